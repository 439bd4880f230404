/*
 * box/native/sys.h - kernel interfaces that this libc or its headers lack
 *
 * Numbers of calls added since Linux 5.1 are the same on every architecture.
 */
#ifndef BOX_NATIVE_SYS_H
#define BOX_NATIVE_SYS_H

#include <linux/mount.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467 /* Linux 6.15 */
#endif

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

struct sys_mount_attr {
	uint64_t set, clear, propagation, userns;
};

static inline int sys_open_tree(int dir, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

static inline int sys_open_tree_attr(int dir, const char *path, unsigned int flags,
	const struct sys_mount_attr *attr)
{
	return (int)syscall(SYS_open_tree_attr, dir, path, flags, attr, sizeof(*attr));
}

static inline int sys_mount_setattr(int dir, const char *path, unsigned int flags,
	const struct sys_mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, sizeof(*attr));
}

static inline int sys_move_mount(int from, const char *from_path, int to, const char *to_path,
	unsigned int flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int sys_fsopen(const char *type, unsigned int flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static inline int sys_fsconfig(int fs, unsigned int command, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fs, command, key, value, 0);
}

static inline int sys_fsconfig_fd(int fs, const char *key, int fd)
{
	return (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_FD, key, NULL, fd);
}

static inline int sys_fsmount(int fs, unsigned int flags, unsigned int attr)
{
	return (int)syscall(SYS_fsmount, fs, flags, attr);
}

#endif
