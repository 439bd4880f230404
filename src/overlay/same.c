/*
 * overlay/same.c - are two files alike: bytes and extended attributes
 *
 * Holes are skipped on both sides: a box can make an empty file of any size.
 */
#include "overlay/same.h"
#include "overlay/tree.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, MOST_NAMES = 1 << 16, MOST_VALUE = 1 << 16 };

/* Read a whole chunk, with zeros if the file has become shorter; -errno. */
static int read_chunk(int fd, char *buf, size_t n, off_t from)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, buf + done, n - done, from + (off_t)done);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0)
			break;
		done += got > 0 ? (size_t)got : 0;
	}
	memset(buf + done, 0, n - done);
	return 0;
}

int same_bytes(int a, int b)
{
	static char x[CHUNK], y[CHUNK];
	struct stat s, t;
	int rc = 0;

	if (fstat(a, &s) < 0 || fstat(b, &t) < 0)
		return -errno;
	if (s.st_size != t.st_size)
		return 0;
	for (off_t at = 0; at < s.st_size; at += CHUNK) {
		off_t in_a = tree_next_data(a, at, s.st_size),
		      in_b = tree_next_data(b, at, s.st_size);
		size_t n = CHUNK;

		at = in_a < in_b ? in_a : in_b;
		if (at >= s.st_size)
			break;
		if ((off_t)n > s.st_size - at)
			n = (size_t)(s.st_size - at);
		rc = read_chunk(a, x, n, at);
		if (rc == 0)
			rc = read_chunk(b, y, n, at);
		if (rc < 0)
			return rc;
		if (memcmp(x, y, n) != 0)
			return 0;
	}
	return 1;
}

int same_bytes_at(int a, int b, const char *name)
{
	auto_close int x = tree_open_file(a, name), y = -1;

	if (x < 0)
		return -errno;
	y = tree_open_file(b, name);
	return y < 0 ? -errno : same_bytes(x, y);
}

/* ---- extended attributes ---- */

struct xattrs {
	char path[40]; /* of the file, by a descriptor that need not be readable */
	char *names;
	ssize_t n;
};

static bool counts(const char *name)
{
	return !str_starts(name, "user.overlay.") && strcmp(name, "security.selinux") != 0;
}

static void list_xattrs(int fd, struct xattrs *ret)
{
	static char buf[MOST_NAMES];

	snprintf(ret->path, sizeof(ret->path), "/proc/self/fd/%d", fd);
	ret->n = fd < 0 ? 0 : listxattr(ret->path, buf, sizeof(buf));
	ret->names = ret->n > 0 ? mem_alloc((size_t)ret->n) : NULL;
	if (ret->n > 0)
		memcpy(ret->names, buf, (size_t)ret->n);
}

static size_t count_names(const struct xattrs *x)
{
	size_t n = 0;

	for (ssize_t at = 0; at < x->n; at += (ssize_t)strlen(x->names + at) + 1)
		n += counts(x->names + at);
	return n;
}

static bool same_value(const struct xattrs *a, const struct xattrs *b, const char *name)
{
	static char x[MOST_VALUE], y[MOST_VALUE];
	ssize_t n = getxattr(a->path, name, x, sizeof(x)),
		m = getxattr(b->path, name, y, sizeof(y));

	return n >= 0 && n == m && !memcmp(x, y, (size_t)n);
}

bool same_xattrs_at(int a, int b, const char *name)
{
	auto_close int in_a = openat(a, name, O_PATH | O_NOFOLLOW | O_CLOEXEC),
		       in_b = openat(b, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct xattrs x, y;

	list_xattrs(in_a, &x);
	list_xattrs(in_b, &y);
	if (count_names(&x) != count_names(&y))
		return false;
	for (ssize_t at = 0; at < x.n; at += (ssize_t)strlen(x.names + at) + 1)
		if (counts(x.names + at) && !same_value(&x, &y, x.names + at))
			return false;
	return true;
}
