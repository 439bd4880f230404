#include "overlay/layers.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	MOST_PUT = 16 << 20,
	STAT_MOST = 4096
};

/* NFS and FUSE may have no locks; on overlayfs nobody can make a white-out. */
int layers_lacking(struct fault *f)
{
	static const int lacks[] = { ENOLCK, EOPNOTSUPP, ENOSYS, EPERM, EINVAL };

	for (size_t i = 0; i < ARRAY_SIZE(lacks); i++)
		if (f->err == lacks[i])
			return fault_fix(f,
				"Its file system has no such thing; set XDG_STATE_HOME to a "
				"directory on one that has (ext4, xfs, btrfs; tmpfs from Linux "
				"6.6 on).");
	return -f->err;
}

/* The path to open dir/name relative to fd; fd may be dir itself. */
static const char *name_at(int fd, const char *dir, const char *name)
{
	return fd == AT_FDCWD ? path_join(dir, name) : name;
}

int layers_lock_at(int at, const char *dir, const char *name, int how, struct fault *f)
{
	auto_close int fd = openat(at, name_at(at, dir, name),
		O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -1 : 0;

	while (rc == 0 && flock(fd, how) < 0)
		if (errno != EINTR)
			rc = -1;
	if (rc == 0)
		return take_fd(&fd);
	fault_set(f, errno, "lock %s/%s", str_visible(dir), name);
	return layers_lacking(f);
}

int layers_lock(const char *dir, const char *name, int how, struct fault *f)
{
	return layers_lock_at(AT_FDCWD, dir, name, how, f);
}

/* ---- numbers ---- */

static bool is_number(const char *name)
{
	return strlen(name) == 6 && strspn(name, "0123456789") == 6;
}

int layers_numbered_at(int at, const char *dir, const char *name, tree_names *ret,
	struct fault *f)
{
	auto_close int fd = openat(at, name_at(at, dir, name), DIR_FLAGS);
	tree_names all = { 0 };
	int rc = fd < 0 ? -errno : tree_list(fd, &all);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return fault_set(f, -rc, "read %s/%s", str_visible(dir), name);
	vec_each(entry, &all)
		if (is_number(*entry))
			vec_push(ret, *entry);
	return 0;
}

int layers_numbered(const char *dir, const char *name, tree_names *ret, struct fault *f)
{
	return layers_numbered_at(AT_FDCWD, dir, name, ret, f);
}

static int numbered(const struct layers *l, const char *name, tree_names *ret, struct fault *f)
{
	return layers_numbered_at(l->fd, l->dir, name, ret, f);
}

static int open_in(const struct layers *l, const char *name)
{
	return openat(l->fd, name_at(l->fd, l->dir, name), DIR_FLAGS);
}

const char *layers_next(const tree_names *have)
{
	unsigned long last = have->n ? strtoul(have->v[have->n - 1], NULL, 10) : 0;

	return mem_printf("%06lu", last + 1);
}

bool layers_is_running(const char *dir, const char *session)
{
	auto_close int fd =
		openat(AT_FDCWD, mem_printf("%s/sessions/%s", dir, session), DIR_FLAGS);

	/*
	 * Take a shared lock, for a moment only: a process that makes a session waits for its
	 * lock.
	 */
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

int layers_open_users(const struct layers *l)
{
	/* Follow a link at the end of the path: it is the user's own. */
	int fd = l->users ? open(l->users, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : TREE_UNKNOWN;

	if (fd >= 0 || !l->users)
		return fd;
	return errno == ENOENT || errno == ENOTDIR ? TREE_NOTHING : TREE_UNKNOWN;
}

/* ---- what a box finds put there for it ---- */

void layers_note(const tree_names *layers, struct str *notes)
{
	str_addf(notes, "on %s\n", layers->n ? layers->v[layers->n - 1] : "");
}

void layers_note_put(const char *name, const char *text, struct str *notes)
{
	/* The caller may be working in a directory in which a box could have made a link. */
	if (strchr(name, '/'))
		BUG("'%s' is not at the top of a part", name);
	str_addf(notes, "%s %s\n", hash_hex(text, strlen(text)), name);
}

int layers_begin(const char *session, const struct str *notes, struct fault *f)
{
	const char *path = path_join(session, "begun");

	if (symlink(notes->p, path) == 0)
		return 0;
	fault_set(f, errno, "make the link %s", str_visible(path));
	return layers_lacking(f);
}

/* NULL and errno if it has none. */
static const char *notes_at(int dir, const char *begun)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(dir, begun, text, sizeof(text));

	return n < 0 ? NULL : mem_strndup(text, (size_t)n);
}

static const char *notes_of(const char *session)
{
	return notes_at(AT_FDCWD, path_join(session, "begun"));
}

bool layers_has_begun(const char *session)
{
	return notes_of(session) || errno != ENOENT;
}

static bool was_put(const char *notes, int upper, const char *name)
{
	size_t n;
	const char *line, *now = notes ? tree_read(upper, name, MOST_PUT, &n) : NULL;

	if (!now)
		return false;
	line = mem_printf("%s %s\n", hash_hex(now, n), name);
	for (const char *at = notes; (at = strstr(at, line)); at++)
		if (at == notes || at[-1] == '\n')
			return true;
	return false;
}

bool layers_was_put(const char *session, int upper, const char *name)
{
	return was_put(notes_of(session), upper, name);
}

/*
 * Remove files that the box opened for writing but left unchanged. A name may be noted more
 * than once; the first line is about the layers.
 */
static void drop_put(const char *notes, int upper)
{
	const char *at = notes ? strchr(notes, '\n') : NULL;

	while (at && (at = strchr(at, ' '))) {
		size_t n = strcspn(++at, "\n");
		const char *name = mem_strndup(at, n);

		if (was_put(notes, upper, name))
			(void)unlinkat(upper, name, 0);
		at += n;
	}
}

/* ---- what is kept and what is removed ---- */

typedef VEC(int) fd_vec;

static void open_lowers(const struct layers *l, const tree_names *have, fd_vec *ret)
{
	int users = layers_open_users(l);

	vec_push(ret, users);
	vec_each(name, have)
		vec_push(ret,
			openat(AT_FDCWD, mem_printf("%s/layers/%s", l->dir, *name), DIR_FLAGS));
}

static int keep_upper(const struct layers *l, const char *session, int upper, struct fault *f)
{
	tree_names have = { 0 };
	fd_vec lowers = { 0 };
	int rc = numbered(l, "layers", &have, f);

	if (rc < 0)
		return rc;
	open_lowers(l, &have, &lowers);
	rc = tree_hide_journals(upper, lowers.v, lowers.n, f);
	vec_each(fd, &lowers)
		fd_close(fd);
	if (rc == 0 &&
		rename(path_join(session, "upper"),
			mem_printf("%s/layers/%s", l->dir, layers_next(&have))) < 0)
		rc = fault_set(f, errno, "keep what the box has written in %s",
			str_visible(session));
	return rc;
}

/*
 * Remove a session whose upper directory is gone or empty, by the names that a session usually
 * has; tree_remove() does the rest. rmdir(2) needs no permission on the directories that
 * overlayfs made, which nobody may read.
 */
static int remove_session(int all, int one, const char *session, struct fault *f)
{
	static const struct {
		const char *name;
		int flags;
	} known[] = { { "begun", 0 }, { "upper", AT_REMOVEDIR }, { "work/work", AT_REMOVEDIR },
		{ "work", AT_REMOVEDIR } };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		(void)unlinkat(one, known[i].name, known[i].flags);
	return unlinkat(all, session, AT_REMOVEDIR) == 0 ? 0 : tree_remove(all, session, f);
}

/* ---- at rest ---- */

static const char at_rest[] = "rest-";

/*
 * Does the box's init still have its mounts? That would do no harm, because the upper directory
 * is new, but overlayfs would complain about the work directory. A zombie has no mounts any
 * more.
 */
static bool is_ending(const char *rest)
{
	const char *pid = rest + strlen(at_rest), *stat, *end;
	auto_close int fd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(pid, NULL, 10), 0);
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	if (fd < 0 && errno == ESRCH)
		return false;
	if (fd >= 0)
		return poll(&ended, 1, 0) != 1;
	/* The call is refused, perhaps by a container. */
	stat = fd_read_file(AT_FDCWD, mem_printf("/proc/%s/stat", pid), STAT_MOST);
	end = stat ? strrchr(stat, ')') : NULL;
	return !end || !str_starts(end, ") Z");
}

/* Another process may have this id by now. */
static bool put_to_rest(int all, const char *session, pid_t init)
{
	return init > 0 &&
		renameat(all, session, all, mem_printf("%s%d", at_rest, (int)init)) == 0;
}

int layers_take_rest(const struct layers *l, const char *rest, const char *session,
	const char **ret_notes, struct fault *f)
{
	const char *from = name_at(l->fd, l->dir, path_join("sessions", rest));
	const char *to = name_at(l->fd, l->dir, path_join("sessions", session));

	if (renameat(l->fd, from, l->fd, to) < 0)
		return fault_set(f, errno, "take %s/sessions/%s", str_visible(l->dir), rest);
	*ret_notes = notes_at(l->fd, path_join(to, "begun"));
	return 0;
}

int layers_clear(const char *session, struct fault *f)
{
	const char *path = path_join(session, "begun");

	return unlink(path) < 0 ? fault_set(f, errno, "remove %s", str_visible(path)) : 0;
}

/* ---- freezing ---- */

/*
 * usable: by another box, after this one. Never with the same upper directory, even if it is
 * empty: a process that received a descriptor of the overlay keeps that mounted, and could
 * write to the next box's layer.
 */
static int freeze_upper(const struct layers *l, const char *path, int one, int upper,
	bool *ret_usable, struct fault *f)
{
	tree_names names = { 0 };
	int rc;

	drop_put(notes_of(path), upper);
	rc = tree_list(upper, &names);
	if (rc < 0)
		return fault_set(f, -rc, "read %s/upper", str_visible(path));
	rc = names.n ? keep_upper(l, path, upper, f) : 0;
	*ret_usable = rc == 0 &&
		unlinkat(one, names.n ? "begun" : "upper", names.n ? 0 : AT_REMOVEDIR) == 0 &&
		mkdirat(one, "upper", 0700) == 0;
	return rc;
}

/* Usually nothing was changed: then rmdir(2) succeeds, and there is nothing else to do. */
static bool renew_empty(int one)
{
	return unlinkat(one, "upper", AT_REMOVEDIR) == 0 && mkdirat(one, "upper", 0700) == 0;
}

/*
 * overlayfs would remove its work directory at the next mount, and a box would wait for that.
 * Removing the name is cheap while it is mounted: the kernel frees the inode when the box's
 * init is gone.
 */
static void clear_work(int one)
{
	(void)unlinkat(one, "work/work", AT_REMOVEDIR);
}

int layers_freeze(const struct layers *l, const char *session, pid_t init, struct fault *f)
{
	const char *path = mem_printf("%s/sessions/%s", l->dir, session);
	auto_close int all = open_in(l, "sessions");
	auto_close int one = all < 0 ? -1 : openat(all, session, DIR_FLAGS), upper = -1;
	bool usable = false;
	int rc = 0;

	if (all < 0 || one < 0)
		return fault_set(f, errno, "open %s", str_visible(path));
	usable = init > 0 && renew_empty(one);
	if (!usable)
		upper = tree_open(one, "upper");
	if (!usable && upper < 0 && errno != ENOENT)
		return fault_set(f, errno, "open %s/upper", str_visible(path));
	if (upper >= 0 && layers_has_begun(path))
		rc = freeze_upper(l, path, one, upper, &usable, f);
	if (usable)
		clear_work(one);
	if (rc < 0 || (usable && put_to_rest(all, session, init)))
		return rc;
	return remove_session(all, one, session, f);
}

/* Use the first that fits; the others are not needed. */
static const char *choose_rest(int all, const tree_names *names)
{
	const char *chosen = NULL;
	struct fault ignored = { 0 };

	vec_each(name, names) {
		if (!str_starts(*name, at_rest) || is_ending(*name))
			continue;
		if (chosen)
			(void)tree_remove(all, *name, &ignored);
		else
			chosen = *name;
	}
	return chosen;
}

int layers_freeze_dead(const struct layers *l, tree_names *ret, const char **ret_rest,
	struct fault *f)
{
	auto_close int all = open_in(l, "sessions");
	tree_names names = { 0 }, sessions = { 0 };
	int rc = all < 0 ? -errno : tree_list(all, &names);

	if (rc < 0 && rc != -ENOENT)
		return fault_set(f, -rc, "read %s/sessions", str_visible(l->dir));
	rc = 0;
	vec_each(name, &names)
		if (is_number(*name))
			vec_push(&sessions, *name);
	for (size_t i = 0; rc == 0 && i < sessions.n; i++) {
		auto_close int fd = openat(all, sessions.v[i], DIR_FLAGS);

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			rc = layers_freeze(l, sessions.v[i], 0, f);
	}
	if (ret_rest)
		*ret_rest = choose_rest(all, &names);
	if (ret)
		*ret = sessions;
	return rc;
}

/* ---- merging ---- */

static int merge_all(const struct layers *l, const tree_names *names, struct fault *f)
{
	const char *path = path_join(l->dir, "layers");
	auto_close int all = openat(AT_FDCWD, path, DIR_FLAGS), base = -1,
		       users = layers_open_users(l);
	int rc = 0;

	base = all < 0 ? -1 : tree_open(all, names->v[0]);
	if (base < 0)
		return fault_set(f, errno, "open %s/%s", str_visible(path), names->v[0]);
	for (size_t i = 1; rc == 0 && i < names->n; i++) {
		auto_close int newer = tree_open(all, names->v[i]);

		rc = newer < 0
			? fault_set(f, errno, "open %s/%s", str_visible(path), names->v[i])
			: tree_merge(newer, base, users, f);
		if (rc == 0)
			rc = tree_remove(all, names->v[i], f);
	}
	return rc;
}

/*
 * A box uses the layers that existed when it began, and has noted the newest of them: later
 * layers are not in use. NULL: unknown.
 */
static const char *newest_used(const char *dir, const tree_names *sessions)
{
	const char *newest = "";

	vec_each(session, sessions) {
		const char *noted;

		if (!layers_is_running(dir, *session))
			continue;
		noted = notes_of(mem_printf("%s/sessions/%s", dir, *session));
		if (!noted || !str_starts(noted, "on "))
			return NULL;
		noted = mem_strndup(noted + 3, strcspn(noted + 3, "\n"));
		if (*noted && !is_number(noted))
			return NULL;
		newest = strcmp(noted, newest) > 0 ? noted : newest;
	}
	return newest;
}

static int compact(const struct layers *l, const tree_names *names, struct fault *f)
{
	tree_names sessions = { 0 }, free = { 0 };
	int rc = numbered(l, "sessions", &sessions, f);
	const char *used = rc < 0 ? NULL : newest_used(l->dir, &sessions);

	vec_each(name, names)
		if (used && strcmp(*name, used) > 0)
			vec_push(&free, *name);
	return free.n < 2 ? rc : merge_all(l, &free, f);
}

int layers_compact(const struct layers *l, tree_names *ret, struct fault *f)
{
	tree_names names = { 0 }, after = { 0 };
	struct fault ignored = { 0 };
	int rc = numbered(l, "layers", &names, f);

	if (rc == 0 && names.n > 1) {
		rc = compact(l, &names, f);
		if (numbered(l, "layers", &after, &ignored) == 0)
			names = after;
	}
	if (ret)
		*ret = names;
	return rc;
}
