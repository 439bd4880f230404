#include "base/look.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

bool look_is_absent(int err)
{
	return err == ENOENT || err == ENOTDIR;
}

bool look_is_plain_fs(unsigned long type)
{
	static const unsigned long types[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
		BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
		0x2fc12fc1 /* ZFS */, 0xca451a4e /* bcachefs */ };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (type == types[i])
			return true;
	return false;
}

bool look_ctime_tells(unsigned long type)
{
	return type == EXT4_SUPER_MAGIC || type == XFS_SUPER_MAGIC || type == BTRFS_SUPER_MAGIC;
}

bool look_is_no_dir(int dir, const char *path)
{
	const int err = errno;
	struct stat st;
	bool is = look_is_absent(err);

	if (err == ELOOP)
		is = fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
	errno = err;
	return is;
}

/* The full path of a name below dir, as far as the kernel knows it. */
static const char *whole(int dir, const char *path)
{
	char link[32], text[PATH_MAX];
	ssize_t n = -1;

	if (dir >= 0 && path[0] != '/') {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
		n = readlink(link, text, sizeof(text));
	}
	return n > 0 && n < (ssize_t)sizeof(text)
		? path_join(mem_strndup(text, (size_t)n), path)
		: path;
}

/* The result for a call that failed with errno. */
static int look_failed(int dir, const char *path, struct fault *f)
{
	const int err = errno;

	if (look_is_absent(err))
		return 0;
	return fault_set(f, err, "look at '%s'", str_visible(whole(dir, path)));
}

int look_at(int dir, const char *path, struct stat *ret, struct fault *f)
{
	struct stat st;

	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return look_failed(dir, path, f);
	*ret = st;
	return 1;
}

int look_through(int dir, const char *path, struct stat *ret, struct fault *f)
{
	struct stat st;

	if (fstatat(dir, path, &st, 0) < 0)
		return look_failed(dir, path, f);
	*ret = st;
	return 1;
}

int look_open(int dir, const char *path, int flags, int *ret_fd, struct fault *f)
{
	int fd = openat(dir, path, flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return look_failed(dir, path, f);
	*ret_fd = fd;
	return 1;
}

int look_link(int dir, const char *path, const char **ret, struct fault *f)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(dir, path, text, sizeof(text));

	if (n < 0)
		return look_failed(dir, path, f);
	if (n == (ssize_t)sizeof(text))
		return fault_set(f, ENAMETOOLONG, "look at '%s'",
			str_visible(whole(dir, path)));
	*ret = mem_strndup(text, (size_t)n);
	return 1;
}

int look_text(int dir, const char *path, size_t max, char **ret, struct fault *f)
{
	char *text = fd_read_file(dir, path, max);

	if (!text)
		return look_failed(dir, path, f);
	*ret = text;
	return 1;
}

int look_real(const char *path, const char **ret, struct fault *f)
{
	const char *real = fd_real_path(path);

	if (!real)
		return look_failed(AT_FDCWD, path, f);
	*ret = real;
	return 1;
}
