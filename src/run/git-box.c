#include "run/git-box.h"
#include "host/survey.h"
#include "box/stub.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "git/git-config.h"
#include "git/git-merge.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST_BYTES = 1 << 20,
	LOCK_TRIES = 100,
	LOCK_PAUSE_MS = 10,
	MOST_NOTES = 5,
};

/* In the box, at a path that it may write and that nothing else uses. */
#define COPIES "/run/carrel/git"

/* ---- before the box ---- */

static void ignore(void *ctx, const struct git_setting *s)
{
	(void)ctx, (void)s;
}

static bool is_config(const struct rule *rule)
{
	const char *name = path_base(rule->trail.v[rule->trail.n - 1].path);

	return !strcmp(name, "config") || !strcmp(name, "config.worktree");
}

/*
 * `git config --worktree` and `git sparse-checkout` create this file. The files of other
 * worktrees stay absent.
 */
static bool is_own_absent(const struct host *h, const struct rule *rule)
{
	const struct fact *last = &rule->trail.v[rule->trail.n - 1];

	return last->kind == KIND_ABSENT && rule->stub && h->git_admin &&
		!strcmp(path_parent(last->path), h->git_admin) &&
		!strcmp(path_base(last->path), "config.worktree");
}

/* The text of a git file at its own path, in valid form. NULL: the box cannot have a copy. */
static const char *read_config(const struct host *h, const struct rule *rule)
{
	const struct fact *last = &rule->trail.v[rule->trail.n - 1];
	struct fault f = { 0 };
	size_t n;
	char *text;
	int fd;

	if (is_own_absent(h, rule))
		return "";
	if (last->kind != KIND_FILE)
		return NULL;
	vec_each(fact, &rule->trail)
		if (fact->kind == KIND_LINK)
			return NULL;
	if (look_open(AT_FDCWD, last->path, O_NOFOLLOW, &fd, &f) <= 0)
		return NULL;
	text = fd_read_bytes(fd, MOST_BYTES, &n);
	if (!text || strlen(text) != n || !git_config_parse(text, n, ignore, NULL))
		return NULL;
	return text;
}

/* Several rules may be about one file; it has one copy. */
static const struct rule *same_path(const struct host *h, const struct rule *rule)
{
	const char *path = rule->trail.v[rule->trail.n - 1].path;

	for (const struct rule *other = h->rules.v; other < rule; other++)
		if (other->copy && !strcmp(other->trail.v[other->trail.n - 1].path, path))
			return other;
	return NULL;
}

void git_box_copies(const struct request *r, struct host *h)
{
	size_t n = 0;

	/* A box inside this box would find the link but not its target. */
	if (r->nest)
		return;
	vec_each(rule, &h->rules) {
		const struct rule *same;

		/* A file that the user protects by name stays read-only. */
		if (rule->kind != RULE_PROTECT || strcmp(rule->why, SURVEY_GIT) != 0)
			continue;
		if (!is_config(rule))
			continue;
		/*
		 * numbered over all rules, so a number stays even if another file cannot be
		 * read
		 */
		n++;
		same = same_path(h, rule);
		rule->copy = same ? same->copy : read_config(h, rule);
		if (same)
			rule->copy_at = same->copy_at;
		else if (rule->copy)
			rule->copy_at = mem_printf(COPIES "/%zu/%s", n - 1,
				path_base(rule->trail.v[rule->trail.n - 1].path));
	}
}

/* ---- the host's file ---- */

/*
 * git's own rule: only the holder of config.lock may write config. Our config.lock has a text
 * that names carrel, and is locked with flock(2). So one that a killed carrel has left is
 * recognised and removed.
 */
static const char lock_text[] = "carrel\n";

static bool is_left(int dir, const char *name)
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[sizeof(lock_text)] = "";

	return fd >= 0 && read(fd, text, sizeof(text)) == (ssize_t)strlen(lock_text) &&
		!memcmp(text, lock_text, strlen(lock_text)) &&
		flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static int make_lock(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno
					      : fd_write_all(fd, lock_text, strlen(lock_text));
	if (rc == 0)
		return fd;
	unlinkat(dir, name, 0);
	close(fd);
	return rc;
}

static int take_lock(int dir, const char *name, struct fault *f)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };
	int fd = make_lock(dir, name);

	for (int i = 0; fd == -EEXIST && i < LOCK_TRIES; i++) {
		if (is_left(dir, name))
			unlinkat(dir, name, 0);
		else
			nanosleep(&pause, NULL);
		fd = make_lock(dir, name);
	}
	return fd < 0 ? fault_set(f, -fd, "lock it with %s", str_visible(name)) : fd;
}

/*
 * Write in place, because another box may have a mount on this inode. Write at once: a reader
 * finds the old text or the new one. If the new text is shorter, it is padded with newlines
 * until the file is truncated.
 */
static int write_config(int fd, struct git_text text, size_t old, struct fault *f)
{
	struct str padded = { 0 };

	str_addn(&padded, text.p, text.n);
	while (padded.len < old)
		str_addc(&padded, '\n');
	if (pwrite(fd, padded.p, padded.len, 0) != (ssize_t)padded.len)
		return fault_set(f, errno, "write it");
	return ftruncate(fd, (off_t)text.n) < 0 ? fault_set(f, errno, "shorten it") : 0;
}

static int open_config(int dir, const char *name, struct fault *f)
{
	int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(f, errno, "open it");
	if (S_ISREG(st.st_mode) && st.st_nlink == 1)
		return fd;
	close(fd);
	return fault_set(f, 0, "it is no file with one name");
}

/* ---- after the box ---- */

/* A copy and its original. */
struct copy {
	const char *source, *at; /* on the host, in the box */
	bool absent;             /* the host had no such file, and has a stub there */
	struct git_text base, box;
};

static int read_now(int fd, struct git_text *ret, struct fault *f)
{
	size_t n;
	char *text = fd_read_bytes(fcntl(fd, F_DUPFD_CLOEXEC, 0), MOST_BYTES, &n);

	if (!text)
		return fault_set(f, errno, "read it");
	*ret = (struct git_text){ text, n };
	return 0;
}

/*
 * Turn the stub into a file. It keeps its inode, because another box may have a mount on it. If
 * we are killed before it is written, an empty file has no effect.
 */
static int open_stub(int dir, const char *name, struct fault *f)
{
	if (fchmodat(dir, name, 0644, 0) < 0)
		return fault_set(f, errno, "make it");
	return open_config(dir, name, f);
}

static int merge_locked(int dir, const struct copy *c, struct git_merge *ret, struct fault *f)
{
	const char *name = path_base(c->source);
	const bool stub = c->absent && stub_at(dir, name);
	auto_close int fd = stub ? -1 : open_config(dir, name, f);
	struct git_text now = { "", 0 };
	int rc = fd < 0 && !stub ? fd : 0;

	if (rc == 0 && !stub)
		rc = read_now(fd, &now, f);
	if (rc == 0)
		rc = git_merge(&c->base, &c->box, &now, ret, f);
	if (rc < 0 || !ret->text.p)
		return rc;
	if (stub)
		fd = open_stub(dir, name, f);
	return fd < 0 ? fd : write_config(fd, ret->text, now.n, f);
}

static int merge_copy(const struct copy *c, struct git_merge *ret, struct fault *f)
{
	const char *lock = mem_printf("%s.lock", path_base(c->source));
	auto_close int held = -1,
		       dir = fd_open2(AT_FDCWD, path_parent(c->source),
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC,
			       RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	int rc;

	if (dir < 0)
		return fault_set(f, errno, "open its directory");
	held = take_lock(dir, lock, f);
	if (held < 0)
		return held;
	rc = merge_locked(dir, c, ret, f);
	unlinkat(dir, lock, 0);
	return rc;
}

static const char *shown_path(const struct plan *p, const char *path)
{
	return str_visible(path_within(path, p->workspace) ? path_below(path, p->workspace)
							   : path);
}

static void note_merge(const char *file, const struct git_merge *m, note_vec *notes)
{
	for (size_t i = 0; i < m->told.n && i < MOST_NOTES; i++)
		vec_push(notes,
			mem_printf("the box set %s in %s", str_visible(m->told.v[i]), file));
	if (m->told.n > MOST_NOTES)
		vec_push(notes,
			mem_printf("and %zu more settings in %s", m->told.n - MOST_NOTES,
				file));
	for (size_t i = 0; i < m->refused.n && i < MOST_NOTES; i++) {
		const struct git_refusal *r = &m->refused.v[i];

		vec_push(notes,
			mem_printf("the box's change of %s in %s was not taken over%s%s",
				str_visible(r->name), file, r->why ? ": " : "",
				r->why ? r->why : ""));
	}
	if (m->refused.n > MOST_NOTES)
		vec_push(notes,
			mem_printf("nor were %zu other changes", m->refused.n - MOST_NOTES));
	if (m->refused.n)
		vec_push(notes, "  if you want it, make it yourself with `git config`");
}

/* 1: the box changed it. Whatever stands there now, opening it does not block. */
static int read_copy(int root, struct copy *c, struct fault *f)
{
	int fd = fd_open2(root, c->at + 1,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	struct stat st;
	char *text;

	if (fd < 0 && look_is_absent(errno))
		return fault_set(f, 0, "the box removed its copy");
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(f, errno, "read the box's copy");
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return fault_set(f, 0, "the box's copy is no file");
	}
	text = fd_read_bytes(fd, MOST_BYTES, &c->box.n);
	if (!text)
		return fault_set(f, errno, "read the box's copy");
	c->box.p = text;
	return c->box.n != c->base.n || memcmp(text, c->base.p, c->base.n) != 0;
}

static void take_copy(const struct plan *p, int root, struct copy *c, name_vec *made,
	note_vec *notes)
{
	const char *file = shown_path(p, c->source);
	struct git_merge merge = { 0 };
	struct fault f = { 0 };
	int rc = read_copy(root, c, &f);

	if (rc > 0)
		rc = merge_copy(c, &merge, &f);
	if (rc < 0)
		vec_push(notes,
			mem_printf("what the box changed in %s was not taken over: %s", file,
				fault_line(&f)));
	else
		note_merge(file, &merge, notes);
	if (rc == 0 && c->absent && merge.text.p)
		vec_push(made, c->source);
}

static const char *base_text(const struct plan *p, const char *at)
{
	vec_each(place, &p->places)
		if (place->kind == PLACE_FILE && !strcmp(place->target, at))
			return place->text;
	return "";
}

void git_box_take(const struct plan *p, int root, name_vec *made, note_vec *notes)
{
	const char *last = "";

	if (root < 0)
		return;
	vec_each(place, &p->places) {
		struct copy c = {
			.source = place->source, .at = place->text, .absent = place->stub
		};

		/* The same file may appear at two places. */
		if (place->kind != PLACE_CONFIG || !strcmp(place->text, last))
			continue;
		last = place->text;
		c.base.p = base_text(p, c.at);
		c.base.n = strlen(c.base.p);
		take_copy(p, root, &c, made, notes);
	}
}
