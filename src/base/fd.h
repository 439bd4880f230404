/*
 * base/fd.h - file descriptors that close themselves
 *
 * Every descriptor carrel opens is O_CLOEXEC. `auto_close int fd = -1;` closes at
 * the end of the scope; take_fd() hands it over and leaves -1 behind.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stddef.h>
#include <sys/types.h>

void fd_close(int *fd);
#define auto_close __attribute__((cleanup(fd_close)))

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Close all from first to last, also before Linux 5.9. -1 and errno on failure. */
int fd_close_range(unsigned int first, unsigned int last);

/* Write everything, or -errno. */
int fd_write_all(int fd, const void *bytes, size_t n);

/*
 * The contents of a small file below dir (AT_FDCWD for the working directory),
 * NUL-terminated, or NULL with errno set. More than max bytes is EFBIG.
 */
char *fd_read_file(int dir, const char *path, size_t max);

/* The same of an open file; it is closed. */
char *fd_read_open(int fd, size_t max);

/* The canonical path of what path leads to; NULL: nowhere. */
const char *fd_real_path(const char *path);

/* openat2(2) with RESOLVE_* flags; no libc has a wrapper. -1 and errno on failure. */
int fd_open2(int dir, const char *path, int flags, unsigned long long resolve);

#endif
