#include "box/native/stub.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STUB_MODE = 01500, RETRIES = 1000, MAX_STUBS = 250 /* SCM_MAX_FD is 253 */ };

struct stub {
	int parent; /* the directory it is in */
	int lock;   /* the stub itself, with a shared lock; -1: not made yet */
	const char *name;
	const char *path;
};

struct stubs {
	struct stub v[MAX_STUBS];
	size_t n;
	int janitor; /* a socket; its end tells the janitor that we are gone */
};

static bool is_stub(const struct stat *st)
{
	/* A set-group-id directory hands that bit down. */
	return S_ISDIR(st->st_mode) && (st->st_mode & 05777) == STUB_MODE &&
		st->st_uid == getuid();
}

static int open_stub(const struct stub *s)
{
	return openat(s->parent, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Does the name still lead to what fd has open? */
static bool still_there(const struct stub *s, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 &&
		fstatat(s->parent, s->name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
		a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int cannot_keep(const struct stub *s, int err, struct fault *f)
{
	fault_set(f, err, "keep the protected name '%s' from being created",
		str_visible(s->path));
	return fault_fix(f,
		"Make its directory writable for you, or take the protection back "
		"with --protect '!%s'.",
		str_visible(s->name));
}

/*
 * Make the stub, or share one that is there, and lock it. Another box may remove it
 * between our open and our lock: then begin again.
 */
static int stub_make(struct stub *s, struct fault *f)
{
	for (int i = 0; i < RETRIES; i++) {
		auto_close int fd = -1;
		struct stat st;

		if (mkdirat(s->parent, s->name, STUB_MODE) < 0 && errno != EEXIST)
			return cannot_keep(s, errno, f);
		fd = open_stub(s);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || fstat(fd, &st) < 0 || !is_stub(&st))
			return fault_set(f, EEXIST,
				"'%s' appeared while the box was being planned",
				str_visible(s->path));
		if (flock(fd, LOCK_SH) == 0 && still_there(s, fd)) {
			s->lock = take_fd(&fd);
			return 0;
		}
	}
	return cannot_keep(s, EAGAIN, f);
}

/* The lock is shared with the janitor, so whoever of us is left can make it exclusive. */
static void stub_remove(struct stub *s)
{
	struct stat st;

	if (s->lock < 0)
		s->lock = open_stub(s);
	if (s->lock >= 0 && fstat(s->lock, &st) == 0 && is_stub(&st) &&
		flock(s->lock, LOCK_EX | LOCK_NB) == 0 && still_there(s, s->lock))
		unlinkat(s->parent, s->name, AT_REMOVEDIR);
	fd_close(&s->lock);
}

static void remove_all(struct stubs *s)
{
	for (size_t i = 0; i < s->n; i++)
		stub_remove(&s->v[i]);
}

/* --- the janitor ----------------------------------------------------------------- */

/* Take over the locks when the supervisor sends them; wait until its end is closed. */
static void hold_until_end(struct stubs *s, int socket)
{
	char space[CMSG_SPACE(MAX_STUBS * sizeof(int))], byte;
	struct iovec part = { &byte, 1 };

	for (;;) {
		struct msghdr m = { .msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = space,
			.msg_controllen = sizeof(space) };
		ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);

		if (n == 0 || (n < 0 && errno != EINTR))
			return;
		for (size_t i = 0; n > 0 && m.msg_controllen && i < s->n; i++)
			memcpy(&s->v[i].lock, CMSG_DATA(CMSG_FIRSTHDR(&m)) + i * sizeof(int),
				sizeof(int));
	}
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* A copy of the box's pipes in here would keep them open for ever. */
static void close_all_but(int *keep, size_t n)
{
	unsigned int from = 0;

	qsort(keep, n, sizeof(*keep), compare_ints);
	for (size_t i = 0; i < n; i++) {
		if ((unsigned int)keep[i] > from)
			close_range(from, (unsigned int)keep[i] - 1, 0);
		from = (unsigned int)keep[i] + 1;
	}
	close_range(from, ~0U, 0);
}

/*
 * In its own session and deaf to the signals that end a job. The pidfd becomes readable
 * only when the whole pid namespace is dead; the locks go after that.
 */
static void janitor_main(struct stubs *s, int socket, int pidfd)
{
	static const int deaf_to[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP };
	struct pollfd box = { .fd = pidfd, .events = POLLIN };
	int keep[MAX_STUBS + 2] = { socket, pidfd };

	for (size_t i = 0; i < s->n; i++)
		keep[i + 2] = s->v[i].parent;
	close_all_but(keep, s->n + 2);
	setsid();
	for (size_t i = 0; i < ARRAY_SIZE(deaf_to); i++)
		signal(deaf_to[i], SIG_IGN);
	prctl(PR_SET_NAME, "carrel-janitor", 0, 0, 0);
	hold_until_end(s, socket);
	while (poll(&box, 1, -1) < 0 && errno == EINTR)
		;
	remove_all(s);
	_exit(0);
}

static int start_janitor(struct stubs *s, int pidfd, struct fault *f)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fault_set(f, errno, "start the janitor");
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		janitor_main(s, ends[1], pidfd);
	}
	close(ends[1]);
	s->janitor = ends[0];
	return pid < 0 ? fault_set(f, errno, "start the janitor") : 0;
}

static int give_locks(struct stubs *s, struct fault *f)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(MAX_STUBS * sizeof(int))];
	} control = { 0 };
	size_t size = s->n * sizeof(int);
	struct iovec part = { "", 1 };
	struct msghdr m = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(size) };

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(size);
	for (size_t i = 0; i < s->n; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &s->v[i].lock,
			sizeof(int));
	if (sendmsg(s->janitor, &m, MSG_NOSIGNAL) < 0)
		return fault_set(f, errno, "hand the stubs to the janitor");
	return 0;
}

/* --- for the engine -------------------------------------------------------------- */

static int find_stubs(const struct plan *p, struct stubs *s, struct fault *f)
{
	vec_each(place, &p->places) {
		struct stub stub = { .lock = -1, .path = place->source };

		if (place->kind != PLACE_STUB)
			continue;
		if (s->n == MAX_STUBS)
			return fault_set(
				f, 0, "more than %d protected names are absent", MAX_STUBS);
		stub.name = path_base(place->source);
		stub.parent = fd_open2(AT_FDCWD, path_parent(place->source),
			O_PATH | O_DIRECTORY | O_CLOEXEC,
			RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
		if (stub.parent < 0)
			return fault_set(f, errno, "open the directory of '%s'",
				str_visible(place->source));
		s->v[s->n++] = stub;
	}
	return 0;
}

int stubs_make(const struct plan *p, int pidfd, struct stubs **ret, struct fault *f)
{
	struct stubs *s = mem_alloc(sizeof(*s));
	mode_t mask;
	int rc = find_stubs(p, s, f);

	*ret = NULL;
	if (rc < 0 || s->n == 0)
		return rc;
	mask = umask(0);
	rc = start_janitor(s, pidfd, f);
	for (size_t i = 0; rc == 0 && i < s->n; i++)
		rc = stub_make(&s->v[i], f);
	umask(mask);
	if (rc == 0)
		rc = give_locks(s, f);
	if (rc < 0) {
		remove_all(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void stubs_remove(struct stubs *s)
{
	if (!s)
		return;
	remove_all(s);
	close(s->janitor);
}
