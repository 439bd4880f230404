/*
 * base/look.h - look at the host, and tell "not there" from "cannot tell"
 *
 * What carrel protects and reports depends on what it sees. A failed look is not an absence: a
 * directory without read permission, a file that another process has a lease on, a loop of
 * links or a failing disk could each hide what a box has planted. So every look has three
 * results: 1, it is there; 0, nothing is there (ENOENT, ENOTDIR); or -errno with the fault set.
 * A fault stops a start, and a report passes it on.
 *
 * A caller may ignore a failure only if "not there" makes the box smaller (a toolchain, a file
 * of /etc, the target of a link in the user's configuration), and says so in a comment. A look
 * that decides what is protected, hidden, reported, believed or removed is never ignored.
 */
#ifndef BASE_LOOK_H
#define BASE_LOOK_H

#include <stdbool.h>
#include <stddef.h>

struct fault;
struct stat;

/* Is this the errno of a name that does not exist? */
bool look_is_absent(int err);

/*
 * The same for opening a directory with O_NOFOLLOW. ELOOP then means that a link stands there,
 * and is no failure. Uses errno.
 */
bool look_is_no_dir(int dir, const char *path);

/* What is at path below dir (or AT_FDCWD); links are not followed. */
int look_at(int dir, const char *path, struct stat *ret, struct fault *f);

/* The same, following links. A link that leads nowhere is absent. */
int look_through(int dir, const char *path, struct stat *ret, struct fault *f);

/* Open for reading; flags are added to O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY. */
int look_open(int dir, const char *path, int flags, int *ret_fd, struct fault *f);

/* The text of a link. Anything but a link is -EINVAL. */
int look_link(int dir, const char *path, const char **ret, struct fault *f);

/*
 * A whole regular file of at most max bytes, NUL-terminated; links are followed. A file of
 * another kind, or a larger one, is -EINVAL and -EFBIG.
 */
int look_text(int dir, const char *path, size_t max, char **ret, struct fault *f);

/* The canonical path that path leads to. */
int look_real(const char *path, const char **ret, struct fault *f);

/*
 * Do directories of this file system type (statfs(2)) list every name that can be looked up,
 * and does the kernel itself set their ctimes? Not so FUSE, autofs, NFS, 9p.
 */
bool look_is_plain_fs(unsigned long type);

/* Does every write to a file set its ctime there, also a store to a mapped page? */
bool look_ctime_tells(unsigned long type);

#endif
