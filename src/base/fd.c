#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

/*
 * Before Linux 5.9: close what /proc lists. Closing changes the list, so repeat until it is
 * empty.
 */
static int close_listed(unsigned int first, unsigned int last)
{
	bool again = true;
	DIR *d = NULL;

	while (again) {
		d = opendir("/proc/self/fd");
		if (!d)
			return -1;
		again = false;
		for (struct dirent *e; !again && (e = readdir(d));) {
			unsigned long fd = strtoul(e->d_name, NULL, 10);

			if (e->d_name[0] != '.' && fd >= first && fd <= last &&
				(int)fd != dirfd(d))
				again = close((int)fd) == 0;
		}
		closedir(d);
	}
	return 0;
}

int fd_close_range(unsigned int first, unsigned int last)
{
	if (syscall(SYS_close_range, first, last, 0) == 0)
		return 0;
	return errno == ENOSYS ? close_listed(first, last) : -1;
}

/* Close the oldest `count` of the bag. Descriptors opened in a row have consecutive numbers. */
static void close_oldest(struct fd_bag *bag, size_t count)
{
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && bag->v[end] == bag->v[end - 1] + 1; end++)
			;
		if (end - i > 1 && syscall(SYS_close_range, bag->v[i], bag->v[end - 1], 0) == 0)
			continue;
		for (size_t k = i; k < end; k++)
			close(bag->v[k]);
	}
	bag->n -= count;
	memmove(bag->v, bag->v + count, bag->n * sizeof(*bag->v));
}

int fd_later(struct fd_bag *bag, int fd)
{
	if (fd < 0)
		return fd;
	if (bag->n == FD_BAG_SIZE)
		close_oldest(bag, FD_BAG_SIZE - FD_BAG_KEPT);
	bag->v[bag->n++] = fd;
	return fd;
}

void fd_bag_empty(struct fd_bag *bag)
{
	close_oldest(bag, bag->n);
}

int fd_write_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

char *fd_read_bytes(int from, size_t max, size_t *ret_n)
{
	auto_close int fd = from;
	size_t size, len = 0;
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return NULL;
	}
	/* Files in /proc report size 0, and any file may grow while it is read. */
	size = st.st_size > 0 && (size_t)st.st_size < max ? (size_t)st.st_size + 1 : max + 1;
	text = mem_alloc(size + 1);
	while (len < size) {
		ssize_t n = read(fd, text + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return NULL;
		if (n == 0)
			break;
		len += (size_t)n;
		if ((off_t)len == st.st_size)
			break; /* the read was short, so this is the end */
	}
	if (len > max) {
		errno = EFBIG;
		return NULL;
	}
	text[len] = '\0';
	*ret_n = len;
	return text;
}

char *fd_read_open(int from, size_t max)
{
	size_t n;

	return fd_read_bytes(from, max, &n);
}

char *fd_read_file(int dir, const char *path, size_t max)
{
	struct stat st;

	/* stat(2) first: opening some devices has effects. */
	if (fstatat(dir, path, &st, 0) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return NULL;
	}
	return fd_read_open(openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
		max);
}

int fd_open2(int dir, const char *path, int flags, unsigned long long resolve)
{
	struct open_how how = {
		.flags = (unsigned long long)(unsigned int)flags,
		.resolve = resolve,
	};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Through the descriptor's link in /proc: realpath(3) looks at every part of a path. */
static const char *follow_link(const char *path)
{
	auto_close int fd = openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);
	char name[32], buf[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return NULL;
	/* The link of a removed file names a path that another file may have by now. */
	if (fstat(fd, &st) == 0 && st.st_nlink == 0) {
		errno = ENOENT;
		return NULL;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, buf, sizeof(buf));
	if (n > 0 && n < (ssize_t)sizeof(buf) && buf[0] == '/')
		return mem_strndup(buf, (size_t)n);
	return realpath(path, buf) ? mem_strdup(buf) : NULL;
}

/*
 * Most paths are canonical already. The kernel confirms that if it may follow no link, and then
 * /proc is not needed, whose files are made when they are opened.
 */
const char *fd_real_path(const char *path)
{
	const char *clean = path[0] == '/' ? path_clean(path) : NULL;
	auto_close int fd = -1;

	if (!clean || strcmp(clean, path))
		return follow_link(path);
	fd = fd_open2(AT_FDCWD, path, O_PATH | O_CLOEXEC, RESOLVE_NO_SYMLINKS);
	if (fd >= 0)
		return clean;
	return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? NULL
								      : follow_link(path);
}
