/*
 * base/fd.h - file descriptors that close themselves
 *
 * Every descriptor carrel opens is O_CLOEXEC. `auto_close int fd = -1;` closes at
 * the end of the scope; take_fd() hands it over and leaves -1 behind. Where it counts, open
 * with openat(AT_FDCWD, ...): musl's open() sets O_CLOEXEC again, for Linux before 2.6.23.
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

/*
 * Descriptors that are needed only briefly. Closing many at once costs less than one by one. A
 * full bag closes its oldest ones, so that the newest FD_BAG_KEPT stay usable; fd_bag_empty()
 * closes all. All zero is an empty bag.
 */
enum { FD_BAG_SIZE = 32, FD_BAG_KEPT = 8 };

struct fd_bag {
	int v[FD_BAG_SIZE];
	size_t n;
};

/* Put fd into the bag and return it; -1 is passed through, and errno kept. */
int fd_later(struct fd_bag *bag, int fd);
void fd_bag_empty(struct fd_bag *bag);

/* Write everything, or -errno. */
int fd_write_all(int fd, const void *bytes, size_t n);

/*
 * The contents of a small file below dir (AT_FDCWD for the working directory),
 * NUL-terminated, or NULL with errno set. More than max bytes is EFBIG.
 */
char *fd_read_file(int dir, const char *path, size_t max);

/* The same for an open file, which is closed. */
char *fd_read_open(int fd, size_t max);

/* The same with the number of bytes: some of them may be NUL. */
char *fd_read_bytes(int fd, size_t max, size_t *ret_n);

/* The canonical path that path leads to; NULL: none. */
const char *fd_real_path(const char *path);

/*
 * The file's birth time, which nobody can change; -1: the file system has none. Links are not
 * followed.
 */
long long fd_born_ms(const char *path);

/*
 * 1: both are on one mount, so a file can be renamed from one to the other. 0: they are not, or
 * the kernel does not say.
 */
int fd_same_mount(int a, int b);

/* openat2(2) with RESOLVE_* flags; no libc has a wrapper. -1 and errno on failure. */
int fd_open2(int dir, const char *path, int flags, unsigned long long resolve);

#endif
