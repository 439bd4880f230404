/*
 * overlay/usage.c - how much room a layer takes on disk, while a box writes to it
 *
 * Theory of operation. A walk that reads each name once, and needs no memory for names: a
 * directory is read up to its next subdirectory, and later goes on from that offset. The
 * directories of the first levels stay open, so a box that moves one meanwhile does not lead
 * the walk astray. Further down the way back is "..", and is taken only if it leads to the
 * directory that the walk came from.
 *
 * A file with several names counts with an equal share at each: overlayfs never links a file
 * of the layer to a place outside of it. So no list of files is needed.
 *
 * A box can take its owner's right to read a directory. A process that is root in a user
 * namespace of its own may read it nevertheless, and changes nothing that the box could see.
 */
#include "overlay/usage.h"
#include "base/clock.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	HELD = 100,            /* levels that stay open */
	MOST_LEVELS = 1 << 16, /* of a tree; what lies deeper is not counted */
};

struct level {
	ino_t ino;
	off_t next; /* where to go on reading */
	int fd;     /* -1: below the levels that stay open */
};

struct walk {
	struct level *levels;
	size_t depth;
	int dir; /* open, of the level `depth` */
	dev_t dev;
	unsigned long long sum;
	long long until;
	bool raised; /* in a user namespace of its own, or it cannot */
};

static void put(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)fd_write_all(fd, text, strlen(text));
}

/* Become root over our own files. True: it is worth another try. */
static bool raise_rights(struct walk *w)
{
	const unsigned int uid = geteuid(), gid = getegid();
	char map[40];

	if (w->raised)
		return false;
	w->raised = true;
	if (unshare(CLONE_NEWUSER) < 0)
		return false;
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	put("/proc/self/gid_map", map);
	return true;
}

static bool look_at(struct walk *w, const char *name, struct stat *ret)
{
	int rc = fstatat(w->dir, name, ret, AT_SYMLINK_NOFOLLOW);

	if (rc < 0 && errno == EACCES && raise_rights(w))
		rc = fstatat(w->dir, name, ret, AT_SYMLINK_NOFOLLOW);
	return rc == 0;
}

static void count(struct walk *w, const struct stat *st)
{
	const unsigned long long bytes = (unsigned long long)st->st_blocks * 512;

	w->sum += S_ISDIR(st->st_mode) || st->st_nlink < 2 ? bytes : bytes / st->st_nlink;
}

static void enter(struct walk *w, int fd, ino_t ino)
{
	w->levels[w->depth] = (struct level){ .ino = ino, .fd = w->depth < HELD ? fd : -1 };
	w->dir = fd;
}

static bool descend(struct walk *w, const char *name)
{
	auto_close int fd = -1;
	struct stat st;

	if (w->depth + 1 == MOST_LEVELS)
		return false;
	fd = openat(w->dir, name, DIR_FLAGS);
	if (fd < 0 && errno == EACCES && raise_rights(w))
		fd = openat(w->dir, name, DIR_FLAGS);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != w->dev)
		return false;
	if (w->depth >= HELD)
		close(w->dir);
	w->depth++;
	enter(w, take_fd(&fd), st.st_ino);
	return true;
}

/* The parent by "..", if the box has not moved the directory meanwhile. */
static int parent_of(const struct walk *w, const struct level *parent)
{
	auto_close int fd = openat(w->dir, "..", DIR_FLAGS);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != w->dev || st.st_ino != parent->ino)
		return -1;
	return take_fd(&fd);
}

static void ascend(struct walk *w)
{
	int up = -1;

	w->depth--;
	if (w->levels[w->depth].fd < 0)
		up = parent_of(w, &w->levels[w->depth]);
	close(w->dir);
	while (up < 0 && w->levels[w->depth].fd < 0)
		w->depth--;
	w->dir = up < 0 ? w->levels[w->depth].fd : up;
}

/* Go through the next names of the directory. True: it, or one below it, has more. */
static bool read_on(struct walk *w)
{
	char buf[1 << 13] __attribute__((aligned(8)));
	struct level *level = &w->levels[w->depth];
	struct stat st;
	long n = lseek(w->dir, level->next, SEEK_SET) < 0
		? -1
		: syscall(SYS_getdents64, w->dir, buf, sizeof(buf));

	for (const char *at = buf; n > 0 && at < buf + n;) {
		const struct dirent *e = (const void *)at;

		at += e->d_reclen;
		level->next = e->d_off;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!look_at(w, e->d_name, &st))
			continue;
		count(w, &st);
		if (S_ISDIR(st.st_mode) && descend(w, e->d_name))
			return true;
	}
	return n > 0;
}

unsigned long long usage_of(int dir, long long until)
{
	const size_t size = MOST_LEVELS * sizeof(struct level);
	struct walk w = { .until = until };
	struct stat st;

	w.levels = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w.levels == MAP_FAILED || fstat(dir, &st) < 0)
		return 0;
	w.dev = st.st_dev;
	count(&w, &st);
	enter(&w, dir, st.st_ino);
	while (clock_ms() < w.until) {
		if (read_on(&w))
			continue;
		if (!w.depth)
			break;
		ascend(&w);
	}
	for (size_t i = 1; i <= w.depth && i < HELD; i++)
		close(w.levels[i].fd);
	if (w.depth >= HELD)
		close(w.dir);
	munmap(w.levels, size);
	return w.sum;
}
