#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	/*
	 * Reading and merging use a few descriptors per level; a process may have about 1000.
	 */
	MOST_DEPTH = 64,
};

#define OPAQUE "user.overlay.opaque"

static bool is_dir(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool is_there(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* A box can make directories that even their owner may not read. */
static int open_closed(int dir, const char *name)
{
	auto_close int path = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char proc[40];

	if (path < 0)
		return -1;
	/* By the descriptor: fchmodat(2) would follow a link that takes the name's place. */
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path);
	return chmod(proc, 0700) < 0 ? -1 : openat(dir, name, DIR_FLAGS);
}

int tree_open(int dir, const char *name)
{
	int fd = openat(dir, name, DIR_FLAGS);
	struct stat st;

	if (fd < 0 && errno == EACCES)
		fd = open_closed(dir, name);
	/* Moving or removing its contents takes all three permissions. */
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, (st.st_mode & 0777) | 0700);
	return fd;
}

bool tree_is_named(int dir, const char *name, int fd)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Read all names first, because the caller changes the directory. */
int tree_list(int dir, tree_names *ret)
{
	char buf[1 << 12] __attribute__((aligned(8)));
	long n = lseek(dir, 0, SEEK_SET);

	if (n < 0)
		return -errno;
	/* Not readdir(3): with its own buffer and descriptor it makes nine calls of three. */
	while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0)
		for (const char *at = buf; at < buf + n;) {
			const struct dirent *e = (const void *)at;

			if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
				vec_push(ret, mem_strdup(e->d_name));
			at += e->d_reclen;
		}
	/* A directory that was removed meanwhile has no names. */
	if (n < 0 && errno != ENOENT)
		return -errno;
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	return 0;
}

/* ---- files ---- */

int tree_open_file(int dir, const char *name)
{
	auto_close int fd = -1;
	struct stat st;

	/* Check the type first: opening some devices has effects. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		fd = openat(dir, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	else
		errno = EINVAL;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return take_fd(&fd);
	errno = EINVAL;
	return -1;
}

char *tree_read(int dir, const char *name, size_t max, size_t *ret_n)
{
	auto_close int fd = tree_open_file(dir, name);
	size_t n = 0, size;
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	size = (size_t)st.st_size < max ? (size_t)st.st_size : max;
	text = mem_alloc(size + 2);
	while (n <= size) {
		ssize_t got = read(fd, text + n, size + 1 - n);

		if (got < 0 && errno != EINTR)
			return NULL;
		if (got == 0)
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	if (n > size) {
		errno = EFBIG;
		return NULL;
	}
	text[n] = '\0';
	*ret_n = n;
	return text;
}

/* ---- removing ---- */

/*
 * Move it to the top, so that a tree of any depth can be removed without a descriptor for each
 * level. The name is random, so that nobody can have taken it in advance.
 */
static int lift(int top, int dir, const char *name)
{
	unsigned long long any;

	if (getrandom(&any, sizeof(any), 0) != sizeof(any))
		return -errno;
	return renameat(dir, name, top, mem_printf("lifted-%llx", any)) < 0 ? -errno : 0;
}

static int empty_dir(int top, int dir, int depth, bool *lifted);

static int remove_dir(int top, int dir, const char *name, int depth, bool *lifted)
{
	auto_close int fd = tree_open(dir, name);
	int rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (depth >= MOST_DEPTH) {
		rc = lift(top, dir, name);
		*lifted = true;
		return rc;
	}
	rc = empty_dir(top, fd, depth + 1, lifted);
	if (rc == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		rc = -errno;
	return rc;
}

/* Another process may be removing the same tree, so absent names are no error. */
static int empty_dir(int top, int dir, int depth, bool *lifted)
{
	tree_names names = { 0 };
	int rc = tree_list(dir, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		if (unlinkat(dir, names.v[i], 0) == 0 || errno == ENOENT)
			continue;
		rc = errno == EISDIR || is_dir(dir, names.v[i])
			? remove_dir(top, dir, names.v[i], depth, lifted)
			: -errno;
	}
	return rc;
}

static int remove_all(int dir, const char *name)
{
	auto_close int top = -1;
	bool lifted;
	int rc;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && !is_dir(dir, name))
		return -errno;
	top = tree_open(dir, name);
	if (top < 0)
		return errno == ENOENT ? 0 : -errno;
	do {
		lifted = false;
		rc = empty_dir(top, top, 0, &lifted);
	} while (rc == 0 && lifted);
	if (rc == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		rc = -errno;
	return rc;
}

int tree_remove(int dir, const char *name, struct fault *f)
{
	int rc = remove_all(dir, name);

	return rc < 0 ? fault_set(f, -rc, "remove %s", str_visible(name)) : 0;
}

/* ---- merging ---- */

bool tree_is_whiteout(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
		st.st_rdev == makedev(0, 0);
}

bool tree_is_opaque(int dir)
{
	char value[4];

	return fgetxattr(dir, OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

/* The user's directory below base/name, if base does not hide it. */
static int open_below(int below, int base, const char *name)
{
	int fd;

	if (tree_is_opaque(base))
		return TREE_NOTHING;
	if (below < 0)
		return below;
	fd = openat(below, name, DIR_FLAGS);
	if (fd >= 0)
		return fd;
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? TREE_NOTHING
								     : TREE_UNKNOWN;
}

static int merge(int newer, int base, int below, int depth);

/* Two directories become one. */
static int merge_dirs(int newer, int base, int below, const char *name, int depth)
{
	struct stat st = { .st_mode = 0700 };
	int known = fstatat(newer, name, &st, AT_SYMLINK_NOFOLLOW);
	auto_close int from = tree_open(newer, name), to = tree_open(base, name);
	auto_close int under = -1;
	int rc;

	if (from < 0 || to < 0)
		return -errno;
	under = open_below(below, to, name);
	rc = merge(from, to, under, depth + 1);
	if (rc == 0 && known == 0)
		(void)fchmod(to, st.st_mode & 0777);
	if (rc == 0 && unlinkat(newer, name, AT_REMOVEDIR) < 0)
		rc = -errno;
	return rc;
}

static bool hides(int newer, const char *name)
{
	auto_close int fd = tree_open(newer, name);

	return fd < 0 || tree_is_opaque(fd);
}

/*
 * The directory replaces the entry that base has there. If that entry hid a directory of the
 * user's (a white-out does), the new one must hide it too. overlayfs itself marks only
 * directories that it made over a white-out of its own upper layer.
 */
static int replace_by_dir(int newer, int base, int below, const char *name)
{
	struct stat st = { .st_mode = 0700 };
	int known = fstatat(newer, name, &st, AT_SYMLINK_NOFOLLOW), rc = 0;
	auto_close int fd = tree_open(newer, name);

	if (fd < 0)
		return -errno;
	if (is_there(base, name)) {
		if (!tree_is_opaque(fd) && (below == TREE_UNKNOWN || is_dir(below, name)) &&
			fsetxattr(fd, OPAQUE, "y", 1, 0) < 0)
			return -errno;
		rc = remove_all(base, name);
	}
	if (rc == 0 && renameat(newer, name, base, name) < 0)
		rc = -errno;
	if (rc == 0 && known == 0)
		(void)fchmod(fd, st.st_mode & 0777);
	return rc;
}

static int merge_entry(int newer, int base, int below, const char *name, int depth)
{
	int rc = 0;

	if (is_dir(newer, name)) {
		/* Nobody keeps anything that deep: take the newer one. */
		if (is_dir(base, name) && depth < MOST_DEPTH && !hides(newer, name))
			return merge_dirs(newer, base, below, name, depth);
		return replace_by_dir(newer, base, below, name);
	}
	/* A plain file replaces another in one step. */
	if (is_dir(base, name))
		rc = remove_all(base, name);
	if (rc < 0)
		return rc;
	/*
	 * Remove a white-out that hides nothing: in a directory that only one layer has,
	 * overlayfs (Linux 6.18) lists white-outs as names, although they cannot be opened.
	 */
	if (below == TREE_NOTHING && tree_is_whiteout(newer, name)) {
		rc = remove_all(base, name);
		return rc < 0 ? rc : remove_all(newer, name);
	}
	return renameat(newer, name, base, name) < 0 ? -errno : 0;
}

static int merge(int newer, int base, int below, int depth)
{
	tree_names names = { 0 };
	int rc = tree_list(newer, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++)
		rc = merge_entry(newer, base, below, names.v[i], depth);
	return rc;
}

int tree_merge(int newer, int base, int below, struct fault *f)
{
	int rc = merge(newer, base, below, 0);

	return rc < 0 ? fault_set(f, -rc, "merge what a box has written") : 0;
}

/* ---- sizes ---- */

static void add_size(int dir, const char *name, int depth, unsigned long long *bytes,
	unsigned long long *files)
{
	auto_close int fd = -1;
	tree_names names = { 0 };
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	*bytes += (unsigned long long)st.st_blocks * 512;
	if (!S_ISDIR(st.st_mode)) {
		*files += 1;
		return;
	}
	fd = openat(dir, name, DIR_FLAGS);
	if (fd < 0 || depth > 4 * MOST_DEPTH || tree_list(fd, &names) < 0)
		return;
	vec_each(entry, &names)
		add_size(fd, *entry, depth + 1, bytes, files);
}

void tree_size(int dir, const char *name, unsigned long long *bytes, unsigned long long *files)
{
	add_size(dir, name, 0, bytes, files);
}

/* ---- journals ---- */

static bool is_database(int dir, const char *name)
{
	struct stat st;

	return (str_ends(name, ".db") || str_ends(name, ".sqlite") ||
		       str_ends(name, ".sqlite3")) &&
		fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

static int hide_journals_of(int dir, const char *name)
{
	static const char *const tails[] = { "-wal", "-shm", "-journal" };

	for (size_t i = 0; i < ARRAY_SIZE(tails); i++)
		if (mknodat(dir, mem_printf("%s%s", name, tails[i]), S_IFCHR, makedev(0, 0)) <
				0 &&
			errno != EEXIST && errno != ENAMETOOLONG)
			return -errno;
	return 0;
}

typedef VEC(int) fd_vec;

static void open_lowers(const int *lowers, size_t n, const char *name, fd_vec *ret)
{
	for (size_t i = 0; i < n; i++) {
		int fd = lowers[i] < 0 ? -1 : openat(lowers[i], name, DIR_FLAGS);

		if (fd >= 0)
			vec_push(ret, fd);
	}
}

static int hide_journals(int dir, const int *lowers, size_t n, int depth)
{
	tree_names names = { 0 };
	int rc = tree_list(dir, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		fd_vec under = { 0 };
		auto_close int fd = -1;

		if (is_database(dir, names.v[i]))
			rc = hide_journals_of(dir, names.v[i]);
		if (!is_dir(dir, names.v[i]) || depth == MOST_DEPTH)
			continue;
		open_lowers(lowers, n, names.v[i], &under);
		/* See merge_entry(): a white-out with nothing below it would be listed. */
		if (under.n)
			fd = tree_open(dir, names.v[i]);
		if (fd >= 0 && !tree_is_opaque(fd))
			rc = hide_journals(fd, under.v, under.n, depth + 1);
		vec_each(one, &under)
			close(*one);
	}
	return rc;
}

int tree_hide_journals(int layer, const int *lowers, size_t n, struct fault *f)
{
	int rc = hide_journals(layer, lowers, n, 0);

	return rc < 0 ? fault_set(f, -rc, "put aside the journals of older databases") : 0;
}

/* ---- copying ---- */

off_t tree_next_data(int fd, off_t from, off_t size)
{
	off_t at = lseek(fd, from, SEEK_DATA);

	if (at >= 0)
		return at;
	return errno == ENXIO ? size : from; /* a file system without holes */
}

/* Holes stay holes. */
static int copy_bytes(int from, int to, off_t size)
{
	char buf[1 << 16];
	off_t at = 0;
	int rc = 0;

	while (rc == 0 && (at = tree_next_data(from, at, size)) < size) {
		ssize_t n = pread(from, buf, sizeof(buf), at);

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || lseek(to, at, SEEK_SET) < 0)
			return -errno;
		rc = fd_write_all(to, buf, (size_t)n);
		at += n;
	}
	return rc == 0 && ftruncate(to, at > size ? at : size) < 0 ? -errno : rc;
}

static void keep_times(int fd, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };

	(void)futimens(fd, times);
}

int tree_copy_open(int in, int to, const char *as)
{
	auto_close int out = -1;
	struct stat st;
	int rc;

	if (fstat(in, &st) < 0)
		return -errno;
	out = openat(to, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = out < 0 ? -errno : copy_bytes(in, out, st.st_size);
	if (rc == 0 && fchmod(out, st.st_mode & 0777) < 0)
		rc = -errno;
	if (rc == 0)
		keep_times(out, &st);
	return rc;
}

static int copy_file(int from, const char *name, int to)
{
	auto_close int in = tree_open_file(from, name);

	return in < 0 ? -errno : tree_copy_open(in, to, name);
}

static int copy_dir(int from, const char *name, int to, const char *as, int depth,
	unsigned int *left_out)
{
	auto_close int in = openat(from, name, DIR_FLAGS), out = -1;
	tree_names names = { 0 };
	struct stat st;
	int rc;

	if (in < 0 || fstat(in, &st) < 0 || mkdirat(to, as, 0700) < 0)
		return -errno;
	out = openat(to, as, DIR_FLAGS);
	rc = out < 0 ? -errno : tree_list(in, &names);
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		struct stat one;

		if (fstatat(in, names.v[i], &one, AT_SYMLINK_NOFOLLOW) < 0)
			rc = -errno;
		else if (S_ISREG(one.st_mode))
			rc = copy_file(in, names.v[i], out);
		else if (S_ISDIR(one.st_mode) && depth < MOST_DEPTH)
			rc = copy_dir(in, names.v[i], out, names.v[i], depth + 1, left_out);
		else
			*left_out += 1;
	}
	if (rc == 0) {
		(void)fchmod(out, (st.st_mode & 0777) | 0700);
		keep_times(out, &st);
	}
	return rc;
}

int tree_copy(int from, const char *name, int to, const char *as, unsigned int *left_out,
	struct fault *f)
{
	int rc = copy_dir(from, name, to, as, 0, left_out);

	return rc < 0 ? fault_set(f, -rc, "copy %s", str_visible(name)) : 0;
}

int tree_make_parent(int to, const char *path)
{
	int fd = openat(to, ".", DIR_FLAGS);

	for (const char *slash; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		const char *part = mem_strndup(path, (size_t)(slash - path));
		int up = fd;

		(void)mkdirat(up, part, 0755);
		fd = openat(up, part, DIR_FLAGS);
		fd_close(&up);
	}
	return fd;
}
