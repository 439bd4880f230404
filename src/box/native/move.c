/*
 * box/native/move.c - make a directory of an overlay one of its upper layer alone
 *
 * See rename.c for why. All that is in the directory is renamed into a new one beside it,
 * directory by directory, and the new one is then renamed onto the old, which is empty. A
 * directory below that is of the upper layer alone is moved in one piece.
 *
 * Hard links. Without an index, overlayfs copies each name of a file up as a file of its own.
 * So of a file with several names the first is moved, and the others become links to it.
 */
#include "box/native/move.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { MOST_ROUNDS = 16, MOST_ATTRIBUTES = 64 * 1024 };

struct move {
	int top;             /* where all goes: what paths are relative to */
	void *links;         /* struct link, by tsearch(3) */
	char path[PATH_MAX]; /* of the directory that is being filled, below top */
	size_t len;
	unsigned int depth;
};

/* A file that has several names, and one of those it has got. */
struct link {
	dev_t dev;
	ino_t ino;
	char path[];
};

static int plain_rename(int from, const char *name, int to, const char *as)
{
	return (int)syscall(SYS_renameat2, from, name, to, as, MOVE_MARK);
}

static int compare_links(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->dev < y->dev ? -1 : x->dev > y->dev;
}

static int open_dir(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Its owner may have no right to it; the mode is restored with the rest. */
static int open_any_dir(int dir, const char *name, struct stat *ret)
{
	if (fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if ((ret->st_mode & 0700) != 0700 &&
		fchmodat(dir, name, (ret->st_mode & 01777) | 0700, 0) < 0)
		return -1;
	return open_dir(dir, name);
}

/* --- a directory's own properties ------------------------------------------------- */

static int copy_attribute(int from, int to, const char *name)
{
	char small[1024], *value = small;
	ssize_t n = fgetxattr(from, name, small, sizeof(small));
	int rc;

	if (n < 0 && errno == ERANGE) {
		value = malloc(MOST_ATTRIBUTES);
		n = value ? fgetxattr(from, name, value, MOST_ATTRIBUTES) : -1;
	}
	rc = n < 0 ? -1 : fsetxattr(to, name, value, (size_t)n, 0);
	if (value != small)
		free(value);
	/* The system's own, which it sets by itself, are none that a user may set. */
	return rc < 0 && strncmp(name, "security.", 9) != 0 ? -1 : 0;
}

static int copy_attributes(int from, int to)
{
	char *names = malloc(MOST_ATTRIBUTES);
	ssize_t n = names ? flistxattr(from, names, MOST_ATTRIBUTES) : -1;
	int rc = n < 0 && errno != EOPNOTSUPP ? -1 : 0;

	for (ssize_t at = 0; rc == 0 && at < n; at += (ssize_t)strlen(names + at) + 1)
		rc = copy_attribute(from, to, names + at);
	free(names);
	return rc;
}

/* What `from` was before it was emptied, for `to`, which is full now. */
static int adopt(int from, const struct stat *was, int to)
{
	const struct timespec times[2] = { was->st_atim, was->st_mtim };
	struct stat is;

	if (fstat(to, &is) < 0 || copy_attributes(from, to) < 0)
		return -1;
	if ((is.st_uid != was->st_uid || is.st_gid != was->st_gid) &&
		fchown(to, was->st_uid, was->st_gid) < 0)
		return -1;
	return fchmod(to, was->st_mode & 03777) < 0 || futimens(to, times) < 0 ? -1 : 0;
}

/* --- what is in it --------------------------------------------------------------- */

/* Write down where the file is, for its other names. Without memory they become files. */
static void note_link(struct move *m, const struct stat *st, const char *name)
{
	size_t n = m->len + strlen(name) + 2;
	struct link *link = malloc(sizeof(*link) + n);

	if (!link)
		return;
	*link = (struct link){ .dev = st->st_dev, .ino = st->st_ino };
	snprintf(link->path, n, "%s%s", m->path, name);
	if (!tsearch(link, &m->links, compare_links))
		free(link);
}

static int move_file(struct move *m, int from, int to, const char *name)
{
	struct link **known, key = { 0 };
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	if (st.st_nlink < 2)
		return plain_rename(from, name, to, name);
	key.dev = st.st_dev;
	key.ino = st.st_ino;
	known = tfind(&key, &m->links, compare_links);
	if (known && linkat(m->top, (*known)->path, to, name, 0) == 0)
		return unlinkat(from, name, 0);
	if (plain_rename(from, name, to, name) < 0)
		return -1;
	if (!known)
		note_link(m, &st, name);
	return 0;
}

static int move_entries(struct move *m, int from, int to);

static int move_open_dir(struct move *m, int from, const char *name, int to)
{
	auto_close int old = -1, new = -1;
	struct stat was;

	old = open_any_dir(from, name, &was);
	if (old < 0 || (mkdirat(to, name, 0700) < 0 && errno != EEXIST))
		return -1;
	new = open_dir(to, name);
	if (new < 0 || move_entries(m, old, new) < 0 || adopt(old, &was, new) < 0)
		return -1;
	return 0;
}

static int move_dir(struct move *m, int from, int to, const char *name)
{
	size_t len = m->len, n = strlen(name);
	int rc = -1;

	if (plain_rename(from, name, to, name) == 0)
		return 0;
	/* EACCES: it is read-only, and to be moved it would have to be written to. */
	if (errno != EXDEV && errno != ENOTEMPTY && errno != EEXIST && errno != EACCES)
		return -1;
	if (m->depth == MOVE_DEPTH || m->len + n + 2 > sizeof(m->path) - NAME_MAX - 1) {
		errno = ENAMETOOLONG;
		return -1;
	}
	m->depth++;
	m->len += (size_t)sprintf(m->path + m->len, "%s/", name);
	/* Others may put something in while it is being emptied. */
	for (int i = 0; i < MOST_ROUNDS && rc < 0; i++) {
		if (move_open_dir(m, from, name, to) < 0)
			break;
		rc = unlinkat(from, name, AT_REMOVEDIR);
		if (rc < 0 && errno != ENOTEMPTY)
			break;
	}
	m->depth--;
	m->path[m->len = len] = '\0';
	return rc;
}

static int move_entry(struct move *m, int from, int to, const struct dirent *e)
{
	struct stat st;
	bool dir = e->d_type == DT_DIR;

	if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
		return 0;
	if (e->d_type == DT_UNKNOWN)
		dir = fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISDIR(st.st_mode);
	return dir ? move_dir(m, from, to, e->d_name) : move_file(m, from, to, e->d_name);
}

static int move_entries(struct move *m, int from, int to)
{
	int fd = fcntl(from, F_DUPFD_CLOEXEC, 0), rc = 0, err;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	rewinddir(dir); /* it shares where `from` stands */
	while (rc == 0 && (errno = 0, e = readdir(dir)))
		rc = move_entry(m, from, to, e);
	if (rc == 0 && errno != 0)
		rc = -1;
	err = errno;
	closedir(dir);
	errno = err;
	return rc;
}

/* All in `from` to `to`; -1 and errno. */
static int move_all(int from, int to)
{
	struct move *m = calloc(1, sizeof(*m));
	int rc, err;

	if (!m)
		return -1;
	m->top = to;
	rc = move_entries(m, from, to);
	err = errno;
	while (m->links) {
		struct link *link = *(struct link **)m->links;

		tdelete(link, &m->links, compare_links);
		free(link);
	}
	free(m);
	errno = err;
	return rc;
}

/* --- the directory --------------------------------------------------------------- */

/*
 * Is it of the upper layer alone? overlayfs shows one link for a directory that two layers
 * have, and what the upper file system shows for one that only that has: two or more on most.
 * To set its times, to what they are, gives one that only a lower layer has to the upper.
 */
static bool is_surely_upper(int parent, const char *name)
{
	struct timespec times[2];
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink < 2)
		return false;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	return utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) == 0 &&
		fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink >= 2;
}

/*
 * Is it of a lower layer? The kernel says so before it says that the target is not empty, so to
 * ask changes nothing. `probe` is that target.
 */
static bool is_lower(int parent, const char *name, const char *probe)
{
	return plain_rename(parent, name, parent, probe) < 0 && errno == EXDEV;
}

static int replace(int parent, const char *name, const char *beside)
{
	auto_close int old = -1, new = -1;
	struct stat was;
	int rc = -1, err;

	old = open_any_dir(parent, name, &was);
	new = open_dir(parent, beside);
	if (old < 0 || new < 0)
		return -1;
	for (int i = 0; i < MOST_ROUNDS && rc < 0; i++) {
		rc = move_all(old, new);
		if (rc == 0)
			rc = adopt(old, &was, new);
		if (rc < 0)
			break;
		rc = plain_rename(parent, beside, parent, name);
		if (rc < 0 && errno != ENOTEMPTY && errno != EEXIST)
			break;
	}
	if (rc == 0)
		return 0;
	err = errno;
	if (fchmod(new, 0700) == 0)
		(void)move_all(new, old);
	(void)adopt(old, &was, old);
	errno = err;
	return -1;
}

int move_to_upper(int parent, const char *name)
{
	static atomic_uint number;
	char beside[64], inside[80];
	int rc = 0;

	if (is_surely_upper(parent, name))
		return 0;
	snprintf(beside, sizeof(beside), ".carrel-move-%u", ++number);
	snprintf(inside, sizeof(inside), "%s/probe", beside);
	if (mkdirat(parent, beside, 0700) < 0)
		return -errno;
	if (mkdirat(parent, inside, 0700) == 0) {
		bool lower = is_lower(parent, name, beside);

		unlinkat(parent, inside, AT_REMOVEDIR);
		rc = lower && replace(parent, name, beside) < 0 ? -errno : 0;
	}
	unlinkat(parent, beside, AT_REMOVEDIR); /* unless it has another name now */
	return rc;
}
