#include "box/native/stub.h"
#include "box/stub.h"
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
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MODE = 01444, LOCK_TRIES = 400, LOCK_PAUSE_MS = 5 };

/* A directory with stubs in it. The descriptor holds the lock. */
struct dir {
	const char *path;
	int fd;
};

struct stub {
	size_t dir;
	const char *name;
	const char *path;
	const char *text; /* a file with this; NULL: the socket */
	const char *why;
	bool replaced; /* something else stood at its name in the end */
};

struct stubs {
	VEC(struct dir) dirs;
	VEC(struct stub) v;
	int janitor; /* our end of a pipe; the kernel closes it however we end */
};

/*
 * Nearly all are names of one inode: having seen one of them, the directory's own word is
 * enough for the others. A socket is nothing that anybody obeys: one too many does no harm.
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

/* By what it is and, for a file, by what it says: the mode alone a box could give to others. */
bool stub_seen(const struct stat *st, int dir, const char *name)
{
	auto_close int fd = -1;
	char text[4];
	ssize_t n;

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
		return errno == ENOENT; /* gone since, as stubs go */
	n = read(fd, text, sizeof(text));
	return n == 0 || (n == 2 && !memcmp(text, ".\n", 2));
}

bool stub_at(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && stub_seen(&st, dir, name);
}

/* --- making ---------------------------------------------------------------------- */

static int lock_shared(const struct dir *d, struct fault *f)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };

	/* Another box holds it alone for as long as it takes to remove its stubs. */
	for (int i = 0; flock(d->fd, LOCK_SH | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES)
			return fault_set(f, errno, "lock the directory '%s'",
				str_visible(d->path));
		nanosleep(&pause, NULL);
	}
	return 0;
}

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

static int find_stubs(const struct plan *p, struct stubs *s, struct fault *f)
{
	vec_each(place, &p->places) {
		int dir;

		if (place->kind != PLACE_STUB)
			continue;
		dir = find_dir(s, path_parent(place->source), f);
		if (dir < 0)
			return dir;
		vec_push(&s->v,
			((struct stub){ .dir = (size_t)dir,
				.name = path_base(place->source),
				.path = place->source,
				.text = place->text,
				.why = place->why }));
	}
	return 0;
}

static bool is_nameless(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* With its text from the first moment: the host's git may look at any. */
static int make_file(int dir, const struct stub *stub)
{
	auto_close int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	char link[32];
	int rc;

	if (fd < 0) /* a file system without nameless files */
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

/* *socket is where the one inode already has a name; links where the file system has them. */
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

static int make_one(const struct stubs *s, const struct stub *stub, const struct stub **socket,
	struct fault *f)
{
	int dir = s->dirs.v[stub->dir].fd, rc;

	/* Another box's, as a rule when there are many: to share it costs nothing. */
	if (stub->text && stub_at(dir, stub->name))
		return 0;
	rc = stub->text ? make_file(dir, stub) : make_socket(s, stub, socket);
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
	if (strchr(stub->why, ' ')) /* no pattern: a rule of ours that cannot be taken back */
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

	for (size_t i = 0; rc == 0 && i < s->dirs.n; i++)
		rc = lock_shared(&s->dirs.v[i], f);
	for (size_t i = 0; rc == 0 && i < s->v.n; i++)
		rc = make_one(s, &s->v.v[i], &socket, f);
	return rc;
}

/* --- removing -------------------------------------------------------------------- */

/*
 * Most are sockets, which the directory itself tells apart. Those that are files have the
 * same names for every box of a repository, so ours are all.
 */
static bool could_be_stub(const struct stubs *s, const struct dirent *d)
{
	if (d->d_type == DT_SOCK || d->d_type == DT_UNKNOWN)
		return true;
	vec_each(stub, &s->v)
		if (stub->text && !strcmp(stub->name, d->d_name))
			return true;
	return false;
}

/* Unless it is gone: another box, with the last lock, removes them beside us. */
static void note_replaced(struct stubs *s, size_t dir, const char *name)
{
	const int fd = s->dirs.v[dir].fd;
	struct stat st;

	vec_each(stub, &s->v)
		if (stub->dir == dir && !strcmp(stub->name, name))
			stub->replaced = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				!stub_seen(&st, fd, name);
}

/*
 * Its directory may have been put aside, and another stand in its place: then what is at the
 * stubs' names now is not where we look.
 */
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
 * All that are there, not only our own: a box that left before us may have had other
 * names, and could not remove them while we were here. None if another box lives here; our own
 * lock is gone then too, as flock(2) does not give back what it could not make exclusive.
 */
static void remove_in(struct stubs *s, size_t dir)
{
	char entries[4096] __attribute__((aligned(8)));
	const int fd = s->dirs.v[dir].fd;
	const bool alone = flock(fd, LOCK_EX | LOCK_NB) == 0;
	long n;

	lseek(fd, 0, SEEK_SET);
	known = 0; /* the number means nothing on another file system, and here we remove */
	while ((n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent *d = (const void *)(entries + at);

			at += d->d_reclen;
			if (!stub_is_known(d->d_type, d->d_ino) &&
				!(could_be_stub(s, d) && stub_at(fd, d->d_name)))
				note_replaced(s, dir, d->d_name);
			else if (alone)
				unlinkat(fd, d->d_name, 0);
		}
	}
	note_moved(s, dir);
	if (alone)
		flock(fd, LOCK_UN);
}

static void remove_all(struct stubs *s)
{
	for (size_t i = 0; i < s->dirs.n; i++) {
		if (s->dirs.v[i].fd < 0)
			continue; /* done, by the supervisor, whose memory the janitor shares */
		remove_in(s, i);
		fd_close(&s->dirs.v[i].fd);
	}
}

/* --- the janitor ----------------------------------------------------------------- */

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* A copy of the box's pipes in here would keep them open for ever. keep is sorted. */
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

struct janitor {
	struct stubs *stubs;
	int supervisor, pidfd;
	int *keep;
	size_t n_keep;
};

/*
 * In its own session and deaf to the signals that end a job. The pidfd becomes readable
 * only when the whole pid namespace is dead.
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
	remove_all(j->stubs);
	syscall(SYS_exit, 0);
	return 0;
}

/*
 * Before the first stub and before the locks, which it shares with us from then on. It
 * shares our memory too, because to copy it would cost more than all stubs; it reads and
 * writes none of it until we are gone.
 */
static int start_janitor(struct stubs *s, int pidfd, struct fault *f)
{
	/* The little it uses of that is beside small things, not in a page of its own. */
	static char stack[16 * 1024] __attribute__((aligned(64)));
	static struct janitor j;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, errno, "start the janitor");
	j = (struct janitor){ .stubs = s,
		.supervisor = ends[0],
		.pidfd = pidfd,
		.keep = mem_alloc((s->dirs.n + 2) * sizeof(*j.keep)) };
	j.keep[j.n_keep++] = ends[0];
	j.keep[j.n_keep++] = pidfd;
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
	fd_close(&s->janitor);
	replaced = mem_alloc((s->v.n + 1) * sizeof(*replaced));
	vec_each(stub, &s->v)
		if (stub->replaced)
			replaced[n++] = stub->path;
	return replaced;
}
