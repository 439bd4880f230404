#include "box/stubs.h"
#include "box/stub-lock.h"
#include "box/stub.h"
#include "plan/obeyed.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_MODE = 01444, DIR_MODE = 01755 };

/* A stub directory may hold another one: .claude/worktrees. */
enum { MAX_DEPTH = 2 };

/* A directory that contains stubs. */
struct dir {
	const char *path;
	int fd;
};

struct stub {
	size_t dir;
	const char *name;
	const char *path;
	const char *text; /* the contents of a file; NULL: a directory or the socket */
	bool is_dir;
	const char *why;
	bool replaced; /* at the end something else was at its name */
};

struct stubs {
	VEC(struct dir) dirs;
	VEC(struct stub) v;
	int lock;    /* see stub-lock.h; -1: none */
	int janitor; /* our end of a pipe; the kernel closes it however we end */
};

/*
 * Nearly all stubs are names of one inode. Once one was seen, the directory entry is enough to
 * recognise the others. Nobody obeys a socket, so a false match does no harm.
 */
static ino_t known;

bool stub_is_known(unsigned char type, unsigned long inode)
{
	return type == DT_SOCK && known && inode == known;
}

static bool is_ours(uid_t uid)
{
	static uid_t us;
	static bool asked;

	if (!asked)
		us = getuid();
	asked = true;
	return uid == us;
}

/*
 * The sticky bit is meant for directories that others may write to; nobody sets it elsewhere.
 */
static bool is_dir_stub(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && (st->st_mode & (S_ISVTX | 022)) == S_ISVTX &&
		is_ours(st->st_uid);
}

/*
 * Call each() for the entries of the directory dir/name, if we made it, until it returns false.
 * False: it did, or the directory could not be read.
 */
static bool each_in(int dir, const char *name,
	bool (*each)(int dir, const struct dirent *entry, int depth), int depth)
{
	char entries[1024] __attribute__((aligned(8)));
	auto_close int fd = -1;
	bool all = true;
	long n = 0;

	if (depth == MAX_DEPTH)
		return false;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT; /* removed meanwhile, as stubs are */
	while (all && (n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; all && at < n;) {
			const struct dirent *d = (const void *)(entries + at);

			at += d->d_reclen;
			if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
				all = each(fd, d, depth + 1);
		}
	/* The kernel lists nothing of a directory that was removed since, and says ENOENT. */
	return all && (n == 0 || (n < 0 && errno == ENOENT));
}

static bool holds_stub(int dir, const struct dirent *entry, int depth)
{
	struct stat st;

	if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return is_dir_stub(&st) && each_in(dir, entry->d_name, holds_stub, depth);
}

/*
 * Recognise a stub by its type and contents: a box could give the mode alone to other files. A
 * directory that contains anything else belongs to somebody.
 */
bool stub_seen(const struct stat *st, int dir, const char *name)
{
	auto_close int fd = -1;
	char text[4];
	ssize_t n;

	if (is_dir_stub(st))
		return each_in(dir, name, holds_stub, 0);
	if (st->st_mode != S_IFSOCK && st->st_mode != (S_IFREG | FILE_MODE))
		return false;
	if (!is_ours(st->st_uid))
		return false;
	if (st->st_mode == S_IFSOCK) {
		known = st->st_ino;
		return true;
	}
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT; /* removed meanwhile, as stubs are */
	n = read(fd, text, sizeof(text));
	return n == 0 || (n == 2 && !memcmp(text, ".\n", 2));
}

bool stub_at(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && stub_seen(&st, dir, name);
}

/* --- making ---------------------------------------------------------------------- */

/* The directory's index in s->dirs, opened; or -errno. */
static int find_dir(struct stubs *s, const char *path, struct fault *f)
{
	struct dir d = { .path = path };

	for (size_t i = 0; i < s->dirs.n; i++)
		if (!strcmp(s->dirs.v[i].path, path))
			return (int)i;
	d.fd = fd_open2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (d.fd < 0)
		return fault_set(f, errno, "open the directory '%s'", str_visible(path));
	vec_push(&s->dirs, d);
	return (int)s->dirs.n - 1;
}

/* A stub inside another is named relative to the directory of the outer one. */
static bool find_outer(const struct stubs *s, struct stub *stub)
{
	vec_each(outer, &s->v) {
		if (!outer->is_dir || !path_within(stub->path, outer->path))
			continue;
		stub->dir = outer->dir;
		stub->name = path_join(outer->name, path_below(stub->path, outer->path));
		return true;
	}
	return false;
}

static int find_stubs(const struct plan *p, struct stubs *s, struct fault *f)
{
	vec_each(place, &p->places) {
		struct stub stub = { .name = path_base(place->source ? place->source : ""),
			.path = place->source,
			.text = place->kind == PLACE_CONFIG ? "" : place->text,
			.is_dir = place->dir,
			.why = place->why };
		int dir;

		if (place->kind != PLACE_STUB && !place->stub)
			continue;
		if (!find_outer(s, &stub)) {
			dir = find_dir(s, path_parent(place->source), f);
			if (dir < 0)
				return dir;
			stub.dir = (size_t)dir;
		}
		vec_push(&s->v, stub);
	}
	return 0;
}

static bool is_nameless(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* It appears with its text at once, because the host's git may read it at any moment. */
static int make_file(int dir, const struct stub *stub)
{
	auto_close int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	char link[32];
	int rc;

	if (fd < 0) /* a file system without O_TMPFILE */
		fd = openat(dir, stub->name,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, stub->text, strlen(stub->text));
	if (rc == 0 && fchmod(fd, FILE_MODE) < 0)
		rc = -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (rc == 0 && is_nameless(fd) &&
		linkat(AT_FDCWD, link, dir, stub->name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	if (rc < 0 && !is_nameless(fd))
		unlinkat(dir, stub->name, 0);
	return rc;
}

/*
 * *socket is a name of the one inode; others are links to it where the file system supports
 * links.
 */
static int make_socket(const struct stubs *s, const struct stub *stub,
	const struct stub **socket)
{
	int dir = s->dirs.v[stub->dir].fd;
	const struct stub *from = *socket;

	if (from && linkat(s->dirs.v[from->dir].fd, from->name, dir, stub->name, 0) == 0)
		return 0;
	if (from && errno == EEXIST)
		return -EEXIST;
	if (mknodat(dir, stub->name, S_IFSOCK, 0) < 0)
		return -errno;
	*socket = stub;
	return 0;
}

/* An existing directory will do: the box gets it read-only. */
static int make_dir(int dir, const struct stub *stub)
{
	struct stat st;

	if (mkdirat(dir, stub->name, DIR_MODE) == 0)
		return 0;
	if (errno == EEXIST && fstatat(dir, stub->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISDIR(st.st_mode))
		return 0;
	return errno == EEXIST ? -EEXIST : -errno;
}

static int make_one(const struct stubs *s, const struct stub *stub, const struct stub **socket,
	struct fault *f)
{
	int dir = s->dirs.v[stub->dir].fd, rc;

	/* Mostly another box's, when there are many: sharing it costs nothing. */
	if (stub->text && stub_at(dir, stub->name))
		return 0;
	rc = stub->is_dir    ? make_dir(dir, stub)
		: stub->text ? make_file(dir, stub)
			     : make_socket(s, stub, socket);
	if (rc == 0)
		return 0;
	if (rc == -EEXIST) {
		if (stub_at(dir, stub->name))
			return 0;
		return fault_set(f, EEXIST, "'%s' appeared while the box was being planned",
			str_visible(stub->path));
	}
	fault_set(f, -rc, "keep the protected name '%s' from being created",
		str_visible(stub->path));
	if (rc == -ENOSPC || rc == -EDQUOT)
		return fault_fix(f,
			"Make room there: a name that is protected while it is "
			"absent needs an entry of the disk (`df -h`, `df -i`).");
	if (strchr(stub->why,
		    ' ')) /* not a pattern: a rule of ours that cannot be taken back */
		return fault_fix(f, "Make its directory writable for you.");
	return fault_fix(f,
		"Make its directory writable for you, or take the protection back with "
		"--protect '!%s'.",
		str_visible(stub->why));
}

static int make_all(struct stubs *s, struct fault *f)
{
	const struct stub *socket = NULL;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->dirs.n; i++) {
		rc = stub_lock_share(s->lock, s->dirs.v[i].fd);
		if (rc < 0)
			fault_set(f, -rc, "lock the directory '%s'",
				str_visible(s->dirs.v[i].path));
	}
	for (size_t i = 0; rc == 0 && i < s->v.n; i++)
		rc = make_one(s, &s->v.v[i], &socket, f);
	return rc;
}

/* --- removing -------------------------------------------------------------------- */

/*
 * The directory entry identifies sockets. Stub directories have names that we know. Stub files
 * have the same names for every box of a repository, so our own list is complete.
 */
static bool could_be_stub(const struct stubs *s, const struct dirent *d)
{
	if (d->d_type == DT_SOCK || d->d_type == DT_UNKNOWN ||
		(d->d_type == DT_DIR && obeyed_find(d->d_name, true)))
		return true;
	vec_each(stub, &s->v)
		if ((stub->text || stub->is_dir) && !strcmp(stub->name, d->d_name))
			return true;
	return false;
}

static bool remove_inner(int dir, const struct dirent *entry, int depth)
{
	(void)depth;
	return unlinkat(dir, entry->d_name, AT_REMOVEDIR) == 0;
}

static void remove_one(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
		return;
	each_in(dir, name, remove_inner, 0);
	unlinkat(dir, name, AT_REMOVEDIR);
}

/* Most are empty: then the directory need not be read. */
static bool remove_empty_dir(int dir, const struct dirent *entry)
{
	struct stat st;

	return entry->d_type == DT_DIR &&
		fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		is_dir_stub(&st) && unlinkat(dir, entry->d_name, AT_REMOVEDIR) == 0;
}

/*
 * A stub directory that somebody put something into is theirs from now on: remove our mark.
 * Stubs inside it are still removed if they are empty.
 */
static void give_away(const struct stubs *s, size_t dir)
{
	const int at = s->dirs.v[dir].fd;
	struct stat st;

	for (size_t i = s->v.n; i-- > 0;) {
		const struct stub *stub = &s->v.v[i];

		if (!stub->is_dir || stub->dir != dir ||
			fstatat(at, stub->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!is_dir_stub(&st))
			continue;
		if (unlinkat(at, stub->name, AT_REMOVEDIR) < 0)
			(void)!fchmodat(at, stub->name, st.st_mode & 0777, 0);
	}
}

/* Unless it is gone: another box with the last lock may remove stubs at the same time. */
static void note_replaced(struct stubs *s, size_t dir, const char *name)
{
	const int fd = s->dirs.v[dir].fd;
	struct stat st;

	vec_each(stub, &s->v)
		if (stub->dir == dir && !strcmp(stub->name, name))
			stub->replaced = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				!is_dir_stub(&st) && !stub_seen(&st, fd, name);
}

/* If the directory was moved away and replaced, the stubs' names are not where we look. */
static void note_moved(struct stubs *s, size_t dir)
{
	const struct dir *d = &s->dirs.v[dir];
	struct stat ours, there, st;

	if (fstat(d->fd, &ours) < 0 || stat(d->path, &there) < 0 ||
		(ours.st_dev == there.st_dev && ours.st_ino == there.st_ino))
		return;
	vec_each(stub, &s->v)
		if (stub->dir == dir && lstat(stub->path, &st) == 0 &&
			!stub_seen(&st, AT_FDCWD, stub->path))
			stub->replaced = true;
}

/*
 * Remove all stubs there, not only our own: a box that left before us could not remove its
 * stubs while we were here. Remove none if another box lives here.
 */
static void remove_in(struct stubs *s, size_t dir)
{
	char entries[4096] __attribute__((aligned(8)));
	const int fd = s->dirs.v[dir].fd;
	const bool alone = stub_lock_alone(s->lock, fd);
	long n;

	lseek(fd, 0, SEEK_SET);
	known = 0; /* inode numbers differ between file systems, and here we remove */
	while ((n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent *d = (const void *)(entries + at);

			const bool could = could_be_stub(s, d);

			at += d->d_reclen;
			if (alone && could && remove_empty_dir(fd, d))
				continue;
			if (!stub_is_known(d->d_type, d->d_ino) &&
				!(could && stub_at(fd, d->d_name)))
				note_replaced(s, dir, d->d_name);
			else if (alone)
				remove_one(fd, d->d_name);
		}
	}
	note_moved(s, dir);
	if (alone)
		give_away(s, dir);
	stub_lock_leave(s->lock, fd);
}

static void remove_all(struct stubs *s)
{
	for (size_t i = 0; i < s->dirs.n; i++) {
		if (s->dirs.v[i].fd < 0)
			continue; /* the supervisor did this one, in memory that we share */
		remove_in(s, i);
		fd_close(&s->dirs.v[i].fd);
	}
}

/* --- the janitor ----------------------------------------------------------------- */

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* A copy of the box's pipes in the janitor would keep them open for ever. keep is sorted. */
static void close_all_but(const int *keep, size_t n)
{
	unsigned int from = 0;

	for (size_t i = 0; i < n; i++) {
		if ((unsigned int)keep[i] > from)
			fd_close_range(from, (unsigned int)keep[i] - 1);
		from = (unsigned int)keep[i] + 1;
	}
	fd_close_range(from, ~0U);
}

static void (*when_killed)(void);

void stubs_when_killed(void (*then)(void))
{
	when_killed = then;
}

/* The janitor has closed the first three: no message may go to a file that is opened now. */
static int after_kill(void *unused)
{
	(void)unused;
	while (open("/dev/null", O_RDWR) < 2)
		if (errno == EMFILE || errno == ENFILE)
			break;
	when_killed();
	_exit(0);
}

/*
 * The new process has a copy of the memory, which may be in any state: if it crashes, the stubs
 * must still be removed.
 */
static void follow_kill(const struct stubs *s)
{
	static char stack[1 << 20] __attribute__((aligned(64))); /* never touched, as a rule */
	bool killed = false;
	pid_t pid;

	vec_each(dir, &s->dirs)
		killed |= dir->fd >= 0;
	if (!killed || !when_killed)
		return;
	pid = clone(after_kill, stack + sizeof(stack), SIGCHLD, NULL);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

struct janitor {
	struct stubs *stubs;
	int supervisor, pidfd;
	int *keep;
	size_t n_keep;
};

/*
 * The janitor has its own session and blocks the signals that end a job. The pidfd becomes
 * readable only when the whole pid namespace is dead.
 */
static int janitor_main(void *arg)
{
	static const int deaf_to[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP };
	const struct janitor *j = arg;
	struct pollfd box = { .fd = j->pidfd, .events = POLLIN };
	sigset_t deaf;
	char byte;

	close_all_but(j->keep, j->n_keep);
	setsid();
	sigemptyset(&deaf);
	for (size_t i = 0; i < ARRAY_SIZE(deaf_to); i++)
		sigaddset(&deaf, deaf_to[i]);
	sigprocmask(SIG_BLOCK, &deaf, NULL);
	prctl(PR_SET_NAME, "carrel-janitor", 0, 0, 0);
	while (read(j->supervisor, &byte, 1) < 0 && errno == EINTR)
		;
	while (poll(&box, 1, -1) < 0 && errno == EINTR)
		;
	follow_kill(j->stubs);
	remove_all(j->stubs);
	syscall(SYS_exit, 0);
	return 0;
}

/*
 * Before the first stub and before the locks: the janitor shares their open files. It shares
 * our memory too, and neither reads nor writes it until we are gone. A plain fork would make an
 * idle box a quarter larger.
 */
static int start_janitor(struct stubs *s, int pidfd, struct fault *f)
{
	/*
	 * Not page-aligned: the little that is used of it shares a page with other small data.
	 */
	static char stack[16 * 1024] __attribute__((aligned(64)));
	static struct janitor j;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, errno, "start the janitor");
	j = (struct janitor){ .stubs = s,
		.supervisor = ends[0],
		.pidfd = pidfd,
		.keep = mem_alloc((s->dirs.n + 3) * sizeof(*j.keep)) };
	j.keep[j.n_keep++] = ends[0];
	j.keep[j.n_keep++] = pidfd;
	if (s->lock >= 0)
		j.keep[j.n_keep++] = s->lock;
	vec_each(dir, &s->dirs)
		j.keep[j.n_keep++] = dir->fd;
	qsort(j.keep, j.n_keep, sizeof(*j.keep), compare_ints);
	pid = clone(janitor_main, stack + sizeof(stack), CLONE_VM, &j);
	close(ends[0]);
	s->janitor = ends[1];
	return pid < 0 ? fault_set(f, errno, "start the janitor") : 0;
}

int stubs_make(const struct plan *p, int pidfd, struct stubs **ret, struct fault *f)
{
	struct stubs *s = mem_alloc(sizeof(*s));
	int rc;

	*ret = NULL;
	s->janitor = -1;
	rc = find_stubs(p, s, f);
	if (rc == 0 && s->v.n == 0)
		return 0;
	s->lock = rc == 0 ? stub_lock_open() : -1;
	if (rc == 0)
		rc = start_janitor(s, pidfd, f);
	if (rc == 0)
		rc = make_all(s, f);
	if (rc == 0)
		*ret = s;
	else
		(void)stubs_remove(s);
	return rc;
}

const char *const *stubs_remove(struct stubs *s)
{
	static const char *const none[] = { NULL };
	const char **replaced;
	size_t n = 0;

	if (!s)
		return none;
	remove_all(s);
	fd_close(&s->lock);
	fd_close(&s->janitor);
	replaced = mem_alloc((s->v.n + 1) * sizeof(*replaced));
	vec_each(stub, &s->v)
		if (stub->replaced)
			replaced[n++] = stub->path;
	return replaced;
}
