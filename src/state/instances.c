/*
 * state/instances.c - all instances: making, listing, finding and removing them
 *
 * Only removing can do harm, so it checks first. The directory of instances must be a real one,
 * ours, and writable by nobody else. An instance counts only if its name is the hash of the
 * root recorded in it and its version is ours. Anything else is left alone. Then all its locks
 * are taken, without waiting, and it is renamed before anything in it is removed: so it exists
 * whole or not at all.
 */
#include "state/instance.h"
#include "overlay/layers.h"
#include "state/root.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	ID_DIGITS = 16,
	MOST_ROOT = 1 << 16,
	MOST_VERSION = 64,
	TRIES = 100,
};

static const char version[] = "1\n";
static const char gone[] = ".gone-";

/* The state may be behind a link, on another disk; from here on no links are followed. */
static const char *all_dir(void)
{
	static const char *found, *of;
	const char *state = xdg_state(), *real;

	if (!state)
		return NULL;
	if (of && !strcmp(of, state))
		return found;
	real = fd_real_path(state);
	if (!real)
		return path_join(state, "instances");
	of = state;
	return found = path_join(real, "instances");
}

const char *instance_dir(const char *id)
{
	const char *all = all_dir();

	return all ? path_join(all, id) : NULL;
}

const char *instance_part_name(const char *path)
{
	char *name = mem_strdup(path + (path[0] == '.'));

	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '-';
	return name;
}

static int no_state(struct fault *f)
{
	fault_set(f, 0, "there is no place for this project's state: HOME is not set");
	return fault_fix(f, "Set HOME or XDG_STATE_HOME.");
}

/*
 * Open the directory of all instances after checking it; -ENOENT: there is none yet. Files that
 * others put there are not used. If others can write there, nothing is removed.
 */
static int open_all(bool to_use, struct fault *f)
{
	const char *path = all_dir();
	auto_close int fd = -1;
	struct stat st;

	if (!path)
		return no_state(f);
	fd = openat(AT_FDCWD, path, DIR_FLAGS);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
		fault_set(f, 0, "%s is no directory of its own: it is a link, or a file",
			str_visible(path));
		return fault_fix(f,
			"Nothing was touched. To keep it elsewhere, set XDG_STATE_HOME.");
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(f, errno, "open %s", str_visible(path));
	if (st.st_uid != geteuid())
		return fault_set(f, 0,
			"%s belongs to another user (uid %u): nothing was touched",
			str_visible(path), st.st_uid);
	if (st.st_mode & 022 && !to_use) {
		fault_set(f, 0, "%s can be written by others: nothing was touched",
			str_visible(path));
		return fault_fix(f, "See what is in there, then: chmod go-w %s",
			str_visible(path));
	}
	return take_fd(&fd);
}

/* ---- making one ---- */

int instance_write(const char *dir, const char *name, const char *text, struct fault *f)
{
	const char *path = path_join(dir, name), *new = mem_printf("%s.new", path);
	auto_close int fd = -1;
	int rc;

	/* A process that was killed may have left it. */
	(void)unlink(new);
	fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
	if (rc == 0 && (fsync(fd) < 0 || rename(new, path) < 0))
		rc = -errno;
	if (rc < 0) {
		(void)unlink(new);
		return fault_set(f, -rc, "write %s", str_visible(path));
	}
	return 0;
}

/*
 * Read a small file of ours: NULL when there is none, a fault when it cannot be read. fd: dir,
 * if it is open, or AT_FDCWD.
 */
static int read_own(int fd, const char *dir, const char *name, size_t max, const char **ret,
	struct fault *f)
{
	/* The open directory is ours; another may hold anything. */
	*ret = fd == AT_FDCWD
		? fd_read_file(AT_FDCWD, path_join(dir, name), max)
		: fd_read_open(openat(fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
			  max);
	if (*ret || errno == ENOENT)
		return 0;
	return fault_set(f, errno, "read %s/%s", str_visible(dir), name);
}

static int other_version(const char *dir, struct fault *f)
{
	fault_set(f, 0, "%s was made by another version of carrel", str_visible(dir));
	return fault_fix(f, "Use that version, or remove the directory to begin anew.");
}

struct own_files {
	const char *version, *root;
};

/* Read the instance's own files; an instance of another version is not touched. */
static int check_instance(int fd, const char *dir, const struct project *p,
	struct own_files *ret, struct fault *f)
{
	struct own_files own = { 0 };
	int rc = read_own(fd, dir, "version", MOST_VERSION, &own.version, f);

	if (rc < 0 && f->err == EFBIG)
		return other_version(dir, f);
	if (rc == 0)
		rc = read_own(fd, dir, "project-root", MOST_ROOT, &own.root, f);
	if (rc < 0)
		return rc;
	if (own.version && strcmp(own.version, version) != 0)
		return other_version(dir, f);
	if (own.root && strcmp(own.root, p->root) != 0)
		return fault_set(f, 0, "%s belongs to %s, not to %s", str_visible(dir),
			str_visible(own.root), str_visible(p->root));
	*ret = own;
	return 0;
}

/* Make the files, one process at a time; all is the directory of all instances. */
static int make_own_files(int all, int fd, const char *dir, const struct project *p,
	struct fault *f)
{
	struct own_files own;
	int rc = check_instance(fd, dir, p, &own, f);

	if (rc < 0 || (own.root && own.version))
		return rc;
	while (flock(all, LOCK_EX) < 0)
		if (errno != EINTR) {
			fault_set(f, errno, "lock %s", str_visible(path_parent(dir)));
			return layers_lacking(f);
		}
	rc = check_instance(fd, dir, p, &own, f);
	if (rc == 0 && !own.root)
		rc = instance_write(dir, "project-root", p->root, f);
	if (rc == 0 && !own.version)
		rc = instance_write(dir, "version", version, f);
	return rc;
}

int instance_look(const struct project *p, const char **ret_dir, struct fault *f)
{
	const char *dir = instance_dir(p->id);
	struct own_files own;
	int rc = dir ? check_instance(AT_FDCWD, dir, p, &own, f) : no_state(f);

	if (rc == 0)
		*ret_dir = dir;
	return rc;
}

/* Lock all/id, which is dir; -EAGAIN when it did not exist, or was removed meanwhile. */
static int hold_instance(int all, const char *id, const char *dir, struct fault *f)
{
	auto_close int fd = openat(all, id, DIR_FLAGS);
	struct stat st;

	while (fd >= 0 && flock(fd, LOCK_SH) < 0)
		if (errno != EINTR) {
			fault_set(f, errno, "lock %s", str_visible(dir));
			return layers_lacking(f);
		}
	if (fd < 0 && errno != ENOENT)
		return fault_set(f, errno, "open %s", str_visible(dir));
	if (fd < 0 || !tree_is_named(all, id, fd) || fstat(fd, &st) < 0)
		return -EAGAIN;
	if (st.st_uid != geteuid())
		return fault_set(f, EPERM, "open %s", str_visible(dir));
	return take_fd(&fd);
}

/*
 * The directory of all instances mostly exists and is ours. If it cannot be opened, xdg_make()
 * makes it, or reports what is wrong with it.
 */
static int enter_all(struct fault *f)
{
	int rc = xdg_state() ? xdg_make(xdg_state(), f) : no_state(f), all;

	if (rc < 0)
		return rc;
	all = open_all(true, f);
	if (all >= 0)
		return all;
	rc = xdg_make(all_dir(), f);
	return rc < 0 ? rc : open_all(true, f);
}

int instance_enter(const struct project *p, const char **ret_dir, struct fault *f)
{
	auto_close int fd = -1, all = enter_all(f);
	const char *dir = instance_dir(p->id);
	int rc = all < 0 ? all : -EAGAIN, made;

	for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
		fd = hold_instance(all, p->id, dir, f);
		rc = fd < 0 ? fd : 0;
		made = rc < 0 ? xdg_make(dir, f) : 0;
		if (made < 0)
			return made;
	}
	if (rc == -EAGAIN)
		return fault_set(f, EAGAIN, "lock %s", str_visible(dir));
	if (rc == 0)
		rc = make_own_files(all, fd, dir, p, f);
	if (rc < 0)
		return rc;
	*ret_dir = dir;
	return take_fd(&fd);
}

/* ---- looking at one ---- */

static bool is_id(const char *name)
{
	return strlen(name) == ID_DIGITS && strspn(name, "0123456789abcdef") == ID_DIGITS;
}

static time_t changed(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_mtime : 0;
}

/* Boxes in a part, and when it was last used. */
static unsigned int look_at_part(const char *dir, struct instance *i)
{
	static const char *const subs[] = { "own", "layers", "sessions" };
	tree_names sessions = { 0 };
	struct fault ignored = { 0 };
	unsigned int running = 0;

	for (size_t s = 0; s < ARRAY_SIZE(subs); s++) {
		time_t t = changed(path_join(dir, subs[s]));

		i->used = t > i->used ? t : i->used;
	}
	(void)layers_numbered(dir, "sessions", &sessions, &ignored);
	vec_each(session, &sessions)
		running += layers_is_running(dir, *session);
	return running;
}

static void look_at_harness(int fd, const char *harness, struct instance *i)
{
	auto_close int dir = openat(fd, harness, DIR_FLAGS);
	tree_names parts = { 0 };
	unsigned int most = 0;

	if (dir < 0 || tree_list(dir, &parts) < 0)
		return;
	vec_push(&i->harnesses, harness);
	/* A box has a session in each part of its client. */
	vec_each(name, &parts) {
		const char *path = mem_printf("%s/%s/%s", i->dir, harness, *name);
		unsigned int running = look_at_part(path, i);

		vec_push(&i->parts, ((struct instance_part){ harness, *name, path }));
		most = running > most ? running : most;
	}
	i->running += most;
}

/* Why it cannot be used; or NULL. */
static const char *problem_of(const char *dir, const struct stat *st, struct instance *i)
{
	const char *said = NULL;
	struct fault f = { 0 };

	if (!S_ISDIR(st->st_mode))
		return "is no directory";
	if (st->st_uid != geteuid())
		return mem_printf("belongs to another user (uid %u)", st->st_uid);
	if (!is_id(i->id))
		return "is no instance: its name is none";
	if (read_own(AT_FDCWD, dir, "version", MOST_VERSION, &said, &f) < 0 && f.err != EFBIG)
		return mem_printf("version: %s", strerror(f.err));
	if (f.err == EFBIG || (said && strcmp(said, version) != 0))
		return "was made by another version of carrel";
	if (read_own(AT_FDCWD, dir, "project-root", MOST_ROOT, &i->root, &f) < 0)
		return mem_printf("project-root: %s", strerror(f.err));
	if (!i->root)
		return "has no project-root";
	if (strncmp(hash_hex(i->root, strlen(i->root)), i->id, ID_DIGITS) != 0)
		return "has a project-root that is another's";
	return NULL;
}

/* dir becomes NULL if it has been removed. */
static struct instance look_at(int all, const char *name, bool sizes)
{
	struct instance i = { .id = name, .dir = instance_dir(name) };
	auto_close int fd = openat(all, name, DIR_FLAGS);
	unsigned long long files = 0;
	tree_names names = { 0 };
	struct stat st;

	if (fstatat(all, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return (struct instance){ 0 };
		i.problem = strerror(errno);
		return i;
	}
	i.problem = problem_of(i.dir, &st, &i);
	i.used = st.st_mtime;
	if (sizes)
		tree_size(all, name, &i.bytes, &files);
	if (fd < 0 || tree_list(fd, &names) < 0)
		return i;
	vec_each(harness, &names)
		look_at_harness(fd, *harness, &i);
	return i;
}

int instance_list(bool sizes, instance_vec *ret, struct fault *f)
{
	auto_close int all = open_all(false, f);
	tree_names names = { 0 };
	int rc;

	if (all < 0)
		return f->err == ENOENT ? 0 : all;
	rc = tree_list(all, &names);
	if (rc < 0)
		return fault_set(f, -rc, "read %s", str_visible(all_dir()));
	vec_each(name, &names) {
		struct instance i;

		if (str_starts(*name, gone))
			continue;
		i = look_at(all, *name, sizes);
		if (i.dir) /* not removed since */
			vec_push(ret, i);
	}
	return 0;
}

int instance_find(const char *id, struct instance *ret, struct fault *f)
{
	const struct instance *found = NULL;
	instance_vec all = { 0 };
	int rc = instance_list(false, &all, f);

	if (rc < 0)
		return rc;
	vec_each(i, &all) {
		if (!str_starts(i->id, id) || !is_id(i->id))
			continue;
		if (found)
			return fault_set(f, 0,
				"'%s' is the beginning of more than one instance",
				str_visible(id));
		found = i;
	}
	if (!found || !*id) {
		fault_set(f, 0, "there is no instance '%s'", str_visible(id));
		return fault_fix(f, "`carrel instances` lists them.");
	}
	*ret = *found;
	return 0;
}

/* ---- removing ---- */

static bool is_empty(const char *dir)
{
	auto_close int fd = open(dir, DIR_FLAGS);
	tree_names names = { 0 };

	return fd < 0 || tree_list(fd, &names) < 0 || names.n == 0;
}

/*
 * A missing path is not enough: its disk may not be mounted, and a removed instance cannot be
 * restored. So the nearest existing parent must be a directory that this user can remove things
 * from (parents of mount points are mostly root's), and must not be empty (as an unused mount
 * point in a home is).
 */
enum instance_root instance_root(const char *root)
{
	const char *above = root;
	struct stat st;

	if (lstat(root, &st) == 0)
		return ROOT_THERE;
	do {
		if (errno != ENOENT && errno != ENOTDIR)
			return ROOT_UNSURE;
		above = path_parent(above);
	} while (above[1] && lstat(above, &st) < 0);
	while (above[1] && !S_ISDIR(st.st_mode)) {
		if (S_ISLNK(st.st_mode))
			return ROOT_UNSURE;
		above = path_parent(above);
		if (lstat(above, &st) < 0)
			return ROOT_UNSURE;
	}
	return access(above, W_OK | X_OK) == 0 && !is_empty(above) ? ROOT_GONE : ROOT_UNSURE;
}

/* A box runs in it, or is about to. */
static int in_use(const struct instance *i, struct fault *f)
{
	fault_set(f, EBUSY, "%s is in use", i->id);
	f->err = 0;
	fault_fix(f, "A box of %s runs: end it first.", str_visible(i->root ? i->root : "it"));
	return -EBUSY;
}

/* Its locks, kept until the caller closes them or the process ends. */
typedef VEC(int) fd_vec;

static int lock_part(const char *dir, fd_vec *locks)
{
	static const char *const names[] = { "change", "busy" };
	tree_names sessions = { 0 };
	struct fault ignored = { 0 };

	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		int fd = open(path_join(dir, names[n]),
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return -errno;
		vec_push(locks, fd);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EBUSY : -errno;
	}
	(void)layers_numbered(dir, "sessions", &sessions, &ignored);
	vec_each(session, &sessions)
		if (layers_is_running(dir, *session))
			return -EBUSY;
	return 0;
}

/* -ENOENT: somebody else has removed it, and what is there now, if anything, is a new one. */
static int lock_all(const struct instance *i, int all, fd_vec *locks)
{
	int fd = openat(all, i->id, DIR_FLAGS), rc = 0;

	if (fd < 0)
		return -errno;
	vec_push(locks, fd);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (!tree_is_named(all, i->id, fd))
		return -ENOENT;
	for (size_t n = 0; rc == 0 && n < i->parts.n; n++)
		rc = lock_part(i->parts.v[n].dir, locks);
	return rc;
}

static int put_aside(int all, const char *id, const char **ret)
{
	for (int n = 0; n < TRIES; n++) {
		const char *to = mem_printf("%s%s-%d-%d", gone, id, (int)getpid(), n);
		struct stat st;

		if (fstatat(all, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		*ret = to;
		return renameat(all, id, all, to) < 0 ? -errno : 0;
	}
	return -EEXIST;
}

static void release(fd_vec *locks)
{
	vec_each(fd, locks)
		close(*fd);
	locks->n = 0;
}

/*
 * Once it is renamed, nobody finds it by its name, and the locks are not needed any more. They
 * must be closed first: NFS and FUSE keep an open file under another name, and with it its
 * directory.
 */
static int remove_locked(const struct instance *i, int all, fd_vec *locks, struct fault *f)
{
	const char *aside;
	int rc = put_aside(all, i->id, &aside);

	if (rc < 0)
		return fault_set(f, -rc, "remove %s", str_visible(i->dir));
	release(locks);
	return tree_remove(all, aside, f);
}

int instance_remove(const struct instance *i, bool vanished, struct fault *f)
{
	auto_close int all = open_all(false, f);
	fd_vec locks = { 0 };
	int rc;

	if (all < 0)
		return all;
	rc = lock_all(i, all, &locks);
	if (rc == 0 && vanished && instance_root(i->root) != ROOT_GONE) {
		fault_set(f, 0, "%s is there again", str_visible(i->root));
		rc = -EEXIST;
	} else if (rc == 0) {
		rc = remove_locked(i, all, &locks, f);
	} else if (rc == -EBUSY) {
		in_use(i, f);
	} else if (rc == -ENOENT) {
		rc = 0;
	} else {
		fault_set(f, -rc, "lock %s", str_visible(i->dir));
	}
	release(&locks);
	return rc;
}

int instance_sweep(bool only_look, unsigned int *ret, struct fault *f)
{
	auto_close int all = open_all(false, f);
	tree_names names = { 0 };
	unsigned int n = 0;
	int rc;

	if (all < 0 && f->err != ENOENT)
		return all;
	rc = all < 0 ? 0 : tree_list(all, &names);
	if (rc < 0)
		return fault_set(f, -rc, "read %s", str_visible(all_dir()));
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		if (!str_starts(names.v[i], gone))
			continue;
		n++;
		if (!only_look)
			rc = tree_remove(all, names.v[i], f);
	}
	if (rc == 0)
		*ret = n;
	return rc;
}
