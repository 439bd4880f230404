/* A file of its own: musl has no statx(2), and the kernel's header clashes with sys/stat.h. */
#include "base/fd.h"

#include <linux/fcntl.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

long long fd_born_ms(const char *path)
{
	struct statx st;

	if (syscall(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &st) < 0 ||
		!(st.stx_mask & STATX_BTIME) || st.stx_btime.tv_sec <= 0)
		return -1;
	return st.stx_btime.tv_sec * 1000 + st.stx_btime.tv_nsec / 1000000;
}

int fd_same_mount(int a, int b)
{
	struct statx x, y;

	return syscall(SYS_statx, a, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) == 0 &&
		syscall(SYS_statx, b, "", AT_EMPTY_PATH, STATX_MNT_ID, &y) == 0 &&
		(x.stx_mask & y.stx_mask & STATX_MNT_ID) && x.stx_mnt_id == y.stx_mnt_id;
}
