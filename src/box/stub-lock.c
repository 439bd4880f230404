#include "box/stub-lock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	SEATS = 1 << 16, /* for one directory */
	SEATS_TRIED = 64,
	LOCK_TRIES = 400,
	LOCK_PAUSE_MS = 5
};

/* --- seats ----------------------------------------------------------------------- */

/* The lock belongs to the open file, not to the process: the janitor shares it. */
static int set_lock(int file, short type, off_t at, off_t n)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = n };

	return fcntl(file, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

static bool is_busy(int rc)
{
	return rc == -EAGAIN || rc == -EACCES;
}

/* Some network file systems have no locks. */
static bool can_lock(int file)
{
	int rc = set_lock(file, F_WRLCK, 0, 1);

	if (rc == 0)
		set_lock(file, F_UNLCK, 0, 1);
	return rc == 0 || is_busy(rc);
}

/* The session's runtime directory. A state directory is not made for this alone. */
static const char *lock_directory(void)
{
	const char *runtime = xdg_runtime(), *state = xdg_state();
	struct fault unused = { 0 };

	if (runtime && xdg_make(runtime, &unused) == 0)
		return runtime;
	return state && access(state, F_OK) == 0 ? state : NULL;
}

int stub_lock_open(void)
{
	const char *dir = lock_directory();
	struct stat st;
	auto_close int fd = -1;

	if (!dir)
		return -1;
	/*
	 * O_WRONLY: a box that has the directory read-only cannot open a file that can only be
	 * written.
	 */
	fd = openat(AT_FDCWD, path_join(dir, "stubs.seats"),
		O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0200);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !can_lock(fd))
		return -1;
	return take_fd(&fd);
}

/* Two directories with the same seats would only keep each other's stubs longer. */
static int first_seat(int dir, off_t *ret)
{
	unsigned long long key;
	struct stat st;

	if (fstat(dir, &st) < 0)
		return -errno;
	key = ((unsigned long long)st.st_dev * 0x9e3779b97f4a7c15 ^ st.st_ino) *
		0xd6e8feb86659fd93;
	*ret = (off_t)(key >> 18) * SEATS;
	return 0;
}

/* Take any free seat. Boxes begin at different ones, so the first is mostly free. */
static int take_seat(int file, off_t first)
{
	const int own = getpid();
	int rc = -EAGAIN;

	for (int i = 0; i < SEATS_TRIED && is_busy(rc); i++)
		rc = set_lock(file, F_WRLCK, first + (own + i) % SEATS, 1);
	return rc;
}

static int share_once(int file, int dir, off_t first)
{
	if (file >= 0)
		return take_seat(file, first);
	return flock(dir, LOCK_SH | LOCK_NB) == 0 ? 0 : -errno;
}

int stub_lock_share(int file, int dir)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };
	off_t first = 0;
	int rc = first_seat(dir, &first);

	if (rc < 0)
		return rc;
	rc = share_once(file, dir, first);
	for (int i = 0; is_busy(rc) && i < LOCK_TRIES; i++) {
		nanosleep(&pause, NULL);
		rc = share_once(file, dir, first);
	}
	/*
	 * After the seat, and released before it: a carrel that has all seats finds no flock of
	 * ours.
	 */
	if (rc == 0 && file >= 0)
		(void)flock(dir, LOCK_SH | LOCK_NB);
	return rc;
}

/* --- who locked the directory ---------------------------------------------------- */

/*
 * Is it a carrel outside of all boxes? A box has a user namespace of its own, and we may
 * examine the namespaces of our boxes. A process that is gone was in a box; or it was a
 * supervisor that was killed, and then its box died too.
 */
static bool is_carrel(int pid)
{
	char path[40], name[16] = "", own[64] = "", theirs[64] = "";
	auto_close int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, name, sizeof(name) - 1) < 0 || !str_starts(name, "carrel"))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return readlink("/proc/self/ns/user", own, sizeof(own) - 1) < 0 ||
		readlink(path, theirs, sizeof(theirs) - 1) < 0 || !strcmp(own, theirs);
}

/*
 * "1: FLOCK  ADVISORY  WRITE 4711 00:31:1234 0 EOF": the holder's pid; 0: the lock of another
 * file.
 */
static int holder_of(const char *line, ino_t directory)
{
	unsigned long inode;
	int pid;

	if (sscanf(line, "%*s FLOCK ADVISORY %*s %d %*x:%*x:%lu", &pid, &inode) != 2)
		return 0;
	return inode == directory ? pid : 0;
}

/*
 * /proc/locks omits processes outside our pid namespace: if it lists no holder, one of those is
 * there. The file may be long, so it is read in pieces.
 */
static bool is_carrels(int dir)
{
	auto_close int fd = openat(AT_FDCWD, "/proc/locks", O_RDONLY | O_CLOEXEC);
	bool seen = false, found = false;
	char text[1024];
	struct stat st;
	size_t n = 0;
	ssize_t got;

	if (fd < 0 || fstat(dir, &st) < 0)
		return true;
	while (!found && (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0) {
		char *line = text, *end;

		n += (size_t)got;
		text[n] = '\0';
		for (; !found && (end = strchr(line, '\n')); line = end + 1) {
			int pid = holder_of(line, st.st_ino);

			seen = seen || pid != 0;
			found = pid != 0 && is_carrel(pid);
		}
		n = strlen(line);
		memmove(text, line, n);
	}
	return found || !seen;
}

bool stub_lock_alone(int file, int dir)
{
	off_t first;

	if (file < 0)
		return flock(dir, LOCK_EX | LOCK_NB) == 0;
	if (first_seat(dir, &first) < 0)
		return false;
	/* Not directly from one seat to all: two that try at once would both fail. */
	stub_lock_leave(file, dir);
	if (set_lock(file, F_WRLCK, first, SEATS) < 0)
		return false;
	return flock(dir, LOCK_EX | LOCK_NB) == 0 || !is_carrels(dir);
}

void stub_lock_leave(int file, int dir)
{
	off_t first;

	flock(dir, LOCK_UN);
	if (file >= 0 && first_seat(dir, &first) == 0)
		set_lock(file, F_UNLCK, first, SEATS);
}
