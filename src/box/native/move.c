/*
 * box/native/move.c - move a directory of an overlay to the upper layer
 *
 * rename.c says why. The contents are renamed into a new directory beside the old one,
 * directory by directory. Then the new directory is renamed onto the old one, which is empty. A
 * subdirectory that exists in the upper layer alone is moved in one piece.
 *
 * Hard links. Without an index, overlayfs copies each name of a file up as a separate file. So
 * if a file has several names, the first is moved and the others become links to it.
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
	int top;             /* the new directory; paths are relative to it */
	void *links;         /* struct link, by tsearch(3) */
	char path[PATH_MAX]; /* path of the directory that is being filled, below top */
	size_t len;
	unsigned int depth;
};

/* A file that has several names, and the first name that was moved. */
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

/* The owner may have no permission to write; the mode is restored with the other properties. */
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
	/* The system sets its own attributes itself, and users may not. */
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

/* Give `to`, which is complete now, the properties that `from` had before it was emptied. */
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

/*
 * Remember where the file is, for its other names. If memory runs out, they become separate
 * files.
 */
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
	/* EACCES: the directory is read-only, and moving it changes its `..`. */
	if (errno != EXDEV && errno != ENOTEMPTY && errno != EEXIST && errno != EACCES)
		return -1;
	if (m->depth == MOVE_DEPTH || m->len + n + 2 > sizeof(m->path) - NAME_MAX - 1) {
		errno = ENAMETOOLONG;
		return -1;
	}
	m->depth++;
	m->len += (size_t)sprintf(m->path + m->len, "%s/", name);
	/* Other processes may create something in it while it is being emptied. */
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

/* Move everything in `from` to `to`; -1 and errno. */
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
 * Is the directory in the upper layer alone? overlayfs shows one link for a directory that is
 * in two layers. For one that is in the upper layer alone it shows the link count of that file
 * system: two or more on most. A directory of a lower layer is first copied up, by setting its
 * times to what they are.
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
 * Is the directory in a lower layer? The kernel checks that before it checks whether the target
 * is empty, so asking with a full target changes nothing. `probe` is that target.
 */
static bool is_lower(int parent, const char *name, const char *probe)
{
	return plain_rename(parent, name, parent, probe) < 0 && errno == EXDEV;
}

static int replace_dir(int parent, const char *name, const char *beside)
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
		rc = lower && replace_dir(parent, name, beside) < 0 ? -errno : 0;
	}
	unlinkat(parent, beside, AT_REMOVEDIR); /* unless it has another name now */
	return rc;
}
