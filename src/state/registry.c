/*
 * state/registry.c - the names of the boxes that run now
 *
 * Theory of operation. A name is an exclusive flock(2) on NAME.lock in the runtime directory.
 * The lock belongs to the open file description: it ends when the last descriptor is closed,
 * which the kernel does however the supervisor ends. A file without a lock is left over from a
 * crash and means nothing.
 *
 * A process that gives a name back removes the file while it holds the lock. So a lock counts
 * only if the name still leads to the locked inode; otherwise somebody removed the file in
 * between, and we start over. Only the holder removes a file.
 *
 * registry_peek() looks without creating or writing anything: it takes a shared lock for a
 * moment. That must not make a claim at the same moment fail: a claim that does not get its
 * lock tries a shared one, and if it gets that, only lookers were in the way.
 *
 * A box must start even without the directory (no session made one, or it is read-only, full or
 * somebody else's, or has no locks): cron, a CI job, a container or a system user have no
 * session and often no home. The lock is then a socket bound to an abstract address that holds
 * uid and name; the kernel frees it in the same way. Such starts avoid each other, and names
 * that are locked as files if we know where those are. A start with files ignores sockets:
 * anybody on the machine may bind one, and could keep us from a name. Abstract addresses belong
 * to a network namespace, so two containers do not see each other's.
 */
#include "state/registry.h"
#include "state/workspace.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	NAME_MAX_LENGTH = 63, /* what a host name may be */
	LAST_NUMBER = 9999,
	FIRST_FEW = 8,    /* numbers that are tried in turn */
	TRIES = 100,      /* retries, if a file vanishes or others only look */
	PAUSE_NS = 50000, /* a look takes far less */
	DIR_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC,
	/* Not blocking: somebody may have put a FIFO there. */
	FILE_FLAGS = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
};

struct lock_name {
	char text[NAME_MAX_LENGTH + sizeof(".lock")];
};

static struct lock_name lock_name(const char *name)
{
	struct lock_name l;

	snprintf(l.text, sizeof(l.text), "%.*s.lock", NAME_MAX_LENGTH, name);
	return l;
}

/*
 * One way to try one name: 0 and the lock, or -1 for a way that only looks; -EADDRINUSE when
 * the name is taken; another -errno when this way does not work here.
 */
typedef int try_fn(int dir, const char *name, int *ret_lock);

/* --- files ----------------------------------------------------------------------- */

/* 0, or -EADDRINUSE when a box has it. */
static int lock_exclusive(int fd)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (int i = 0; i < TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		if (flock(fd, LOCK_SH | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
		flock(fd, LOCK_UN);
		nanosleep(&pause, NULL);
	}
	return -EADDRINUSE;
}

static int take_file(int dir, const char *name, int *ret_lock)
{
	const struct lock_name file = lock_name(name);

	for (int i = 0; i < TRIES; i++) {
		/* For writing, because NFS locks for writers only. */
		auto_close int fd = openat(dir, file.text, O_RDWR | O_CREAT | FILE_FLAGS, 0600);
		int rc = fd < 0 ? -errno : lock_exclusive(fd);

		if (rc < 0)
			return rc;
		if (tree_is_named(dir, file.text, fd)) {
			*ret_lock = take_fd(&fd);
			return 0;
		}
	}
	return -EADDRINUSE; /* it cannot be had */
}

static int look_file(int dir, const char *name, int *ret_lock)
{
	auto_close int fd = -1;

	/* Without a directory there are no locks. */
	if (dir >= 0)
		fd = openat(dir, lock_name(name).text, O_RDONLY | FILE_FLAGS);
	if (dir >= 0 && fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	*ret_lock = -1;
	return 0;
}

/* --- sockets --------------------------------------------------------------------- */

static int open_socket(const char *name, struct sockaddr_un *ret, socklen_t *ret_size)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "carrel/%u/%s", getuid(),
		name);

	*ret = a;
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	/* Datagrams: one can connect to such a socket without a listener. */
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Where no file can be made, older ones may exist. A file that cannot be read is no lock. */
static bool is_file_locked(int dir, const char *name)
{
	int unused;

	return look_file(dir, name, &unused) == -EADDRINUSE;
}

static int take_socket(int dir, const char *name, int *ret_lock)
{
	struct sockaddr_un address;
	socklen_t size;
	auto_close int fd = open_socket(name, &address, &size);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, size) < 0)
		return -errno;
	if (is_file_locked(dir, name))
		return -EADDRINUSE;
	*ret_lock = take_fd(&fd);
	return 0;
}

static int look_socket(int dir, const char *name, int *ret_lock)
{
	struct sockaddr_un address;
	socklen_t size;
	auto_close int fd = open_socket(name, &address, &size);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, size) == 0 ||
		errno != ECONNREFUSED || is_file_locked(dir, name))
		return -EADDRINUSE;
	*ret_lock = -1;
	return 0;
}

/* --- which name ------------------------------------------------------------------ */

/* The name itself for 1, or with -NUMBER after it; a name too long for that is cut. */
static void add_number(const char *name, int number, char ret[static NAME_MAX_LENGTH + 1])
{
	char suffix[16] = "";

	if (number > 1)
		snprintf(suffix, sizeof(suffix), "-%d", number);
	snprintf(ret, NAME_MAX_LENGTH + 1, "%.*s%s", (int)(NAME_MAX_LENGTH - strlen(suffix)),
		name, suffix);
}

static int try_numbers(try_fn *try, int dir, const char *name, enum claim_how how, int first,
	int last, struct claim *ret)
{
	int rc = -EADDRINUSE, lock = -1;
	char candidate[NAME_MAX_LENGTH + 1];

	for (int i = first; i <= last && rc == -EADDRINUSE; i++) {
		add_number(name, i, candidate);
		/* A box that has ended keeps its name as long as it holds changes. */
		rc = how == CLAIM_NEXT && workspace_holds(candidate)
			? -EADDRINUSE
			: try(dir, candidate, &lock);
	}
	if (rc == 0)
		*ret = (struct claim){ .name = mem_strdup(candidate), .lock = lock };
	return rc;
}

static bool is_taken(try_fn *look, int dir, const char *name, int number)
{
	char candidate[NAME_MAX_LENGTH + 1];
	int unused;

	add_number(name, number, candidate);
	return look(dir, candidate, &unused) == -EADDRINUSE;
}

/*
 * Beside a thousand boxes, trying all numbers would take longer than the rest of a start.
 * Mostly they are taken up to some number, which is found by bisection.
 */
static int guess_free(try_fn *look, int dir, const char *name)
{
	int taken = FIRST_FEW, free = 2 * FIRST_FEW;

	for (; free < LAST_NUMBER && is_taken(look, dir, name, free); free *= 2)
		taken = free;
	free = free < LAST_NUMBER ? free : LAST_NUMBER;
	while (free - taken > 1) {
		int middle = (taken + free) / 2;

		if (is_taken(look, dir, name, middle))
			taken = middle;
		else
			free = middle;
	}
	return free;
}

static int find_name(try_fn *try, try_fn *look, int dir, const char *name, enum claim_how how,
	struct claim *ret)
{
	int rc = try_numbers(try, dir, name, how, 1, how == CLAIM_STRICT ? 1 : FIRST_FEW, ret);

	if (rc != -EADDRINUSE || how == CLAIM_STRICT)
		return rc;
	rc = try_numbers(try, dir, name, how, guess_free(look, dir, name), LAST_NUMBER, ret);
	if (rc == -EADDRINUSE)
		rc = try_numbers(try, dir, name, how, FIRST_FEW + 1, LAST_NUMBER, ret);
	return rc;
}

static int check_name(const char *name, enum claim_how how, struct fault *f)
{
	size_t n = strlen(name);

	if (n && name[0] != '.' && !strchr(name, '/') &&
		(how == CLAIM_NEXT || n <= NAME_MAX_LENGTH))
		return 0;
	return fault_set(f, 0, "a box cannot be named '%s'", str_visible(name));
}

static int explain(int rc, const char *name, enum claim_how how, struct fault *f)
{
	const char *seen = str_visible(name);

	if (rc != -EADDRINUSE)
		return rc < 0 ? fault_set(f, -rc, "take the name '%s' for the box", seen) : 0;
	if (how == CLAIM_NEXT) {
		fault_set(f, 0, "boxes named '%s', '%s-2' and so on up to '%s-%d' are running",
			seen, seen, seen, LAST_NUMBER);
		return fault_fix(f, "Choose another --name.");
	}
	fault_set(f, 0, "a box named '%s' is running already", seen);
	return fault_fix(f,
		"Choose another --name, or leave it out and carrel will find a free one.");
}

/* A name was found or is taken: else this way does not work here. */
static bool is_settled(int rc)
{
	return rc == 0 || rc == -EADDRINUSE;
}

/* The session's part of the path is not ours to make: it would be in the session's way. */
static bool make_directory(const char *path)
{
	struct fault unused = { 0 };

	return path && access(path_parent(path), F_OK) == 0 && xdg_make(path, &unused) == 0;
}

int registry_claim(const char *name, enum claim_how how, struct claim *ret, struct fault *f)
{
	const char *path = xdg_runtime();
	auto_close int dir = -1;
	int rc = check_name(name, how, f);
	bool made;

	if (rc < 0)
		return rc;
	made = make_directory(path);
	dir = path ? openat(AT_FDCWD, path, DIR_FLAGS) : -1;
	rc = made ? find_name(take_file, look_file, dir, name, how, ret) : -ENOENT;
	if (!is_settled(rc))
		rc = find_name(take_socket, look_socket, dir, name, how, ret);
	return explain(rc, name, how, f);
}

/* Would make_directory() succeed? */
static bool could_be_made(const char *path)
{
	struct stat st;

	if (!path)
		return false;
	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
			access(path, W_OK | X_OK) == 0;
	return errno == ENOENT && access(path_parent(path), W_OK | X_OK) == 0;
}

int registry_peek(const char *name, enum claim_how how, struct claim *ret, struct fault *f)
{
	const char *path = xdg_runtime();
	auto_close int dir = -1;
	int rc = check_name(name, how, f);

	if (rc < 0)
		return rc;
	dir = path ? openat(AT_FDCWD, path, DIR_FLAGS) : -1;
	rc = could_be_made(path) ? find_name(look_file, look_file, dir, name, how, ret)
				 : -ENOENT;
	if (!is_settled(rc))
		rc = find_name(look_socket, look_socket, dir, name, how, ret);
	return explain(rc, name, how, f);
}

void registry_release(struct claim *claim)
{
	const char *path = xdg_runtime();
	auto_close int dir = -1;
	struct lock_name file;

	if (claim->lock < 0)
		return;
	dir = path ? openat(AT_FDCWD, path, DIR_FLAGS) : -1;
	file = lock_name(claim->name);
	/* Never true for a socket, or for a file that belongs to another box by now. */
	if (dir >= 0 && tree_is_named(dir, file.text, claim->lock))
		unlinkat(dir, file.text, 0);
	fd_close(&claim->lock);
}

/* --- looking at all of them ------------------------------------------------------ */

bool registry_is_held(const char *name)
{
	const char *path = xdg_runtime();
	auto_close int dir = path ? openat(AT_FDCWD, path, DIR_FLAGS) : -1;
	int unused;

	return is_file_locked(dir, name) || look_socket(dir, name, &unused) == -EADDRINUSE;
}

int registry_wait(const char *name, struct fault *f)
{
	const char *path = xdg_runtime();
	auto_close int dir = path ? openat(AT_FDCWD, path, DIR_FLAGS) : -1, fd = -1;
	const struct timespec pause = { .tv_nsec = 100000000 };

	if (dir >= 0)
		fd = openat(dir, lock_name(name).text, O_RDONLY | FILE_FLAGS);
	/* The lock ends with its holder, however that ends. */
	while (fd >= 0 && flock(fd, LOCK_SH) < 0)
		if (errno != EINTR)
			return fault_set(f, errno, "wait for the box '%s'", str_visible(name));
	while (fd < 0 && registry_is_held(name))
		nanosleep(&pause, NULL);
	return 0;
}

int registry_directory(struct fault *f)
{
	const char *path = xdg_runtime();
	auto_close int fd = -1;
	struct stat st;

	if (!path)
		return fault_set(f, ENOENT, "find the runtime directory: XDG_RUNTIME_DIR");
	fd = openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(f, errno, "open %s", str_visible(path));
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return fault_set(f, 0, "%s belongs to another user, or others can write it",
			str_visible(path));
	return take_fd(&fd);
}

/* The process that locked this file, from /proc/locks; 0: unknown. */
static pid_t holder_of(const char *locks, int dir, const char *file)
{
	unsigned long inode;
	struct stat st;
	int pid;

	if (!locks || fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	/* "1: FLOCK  ADVISORY  WRITE 4711 00:31:1234 0 EOF" */
	for (; (locks = strstr(locks, " FLOCK ")); locks++)
		if (sscanf(locks, " FLOCK ADVISORY WRITE %d %*x:%*x:%lu", &pid, &inode) == 2 &&
			inode == st.st_ino && pid > 0)
			return pid;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct registry_box *)a)->name,
		((const struct registry_box *)b)->name);
}

int registry_list(registry_boxes *ret, struct fault *f)
{
	const char *locks = fd_read_file(AT_FDCWD, "/proc/locks", 1 << 20);
	auto_close int dir = registry_directory(f);
	int copy = dir < 0 ? -1 : fcntl(dir, F_DUPFD_CLOEXEC, 0);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d)
		return f->err == ENOENT ? 0
			: dir < 0       ? dir
				  : fault_set(f, errno, "read %s", str_visible(xdg_runtime()));
	for (struct dirent *e; (e = readdir(d));) {
		const char *name;

		if (!str_ends(e->d_name, ".lock") || e->d_name[0] == '.')
			continue;
		name = mem_strndup(e->d_name, strlen(e->d_name) - strlen(".lock"));
		if (strlen(name) <= NAME_MAX_LENGTH && is_file_locked(dir, name))
			vec_push(ret,
				((struct registry_box){
					name, holder_of(locks, dir, e->d_name) }));
	}
	closedir(d);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	return 0;
}
