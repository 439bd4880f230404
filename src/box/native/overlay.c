/*
 * box/native/overlay.c - directories of the host on top of each other
 *
 * The layers are opened like any source, once and without links, and mounted by descriptor.
 */
#include "box/native/mount.h"
#include "box/native/sys.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LAYERS = 64, LONGEST_OPTION = 255 };

struct fds {
	int v[MOST_LAYERS];
	size_t n;
};

static int open_layer(struct fds *fds, const char *path, struct fault *f)
{
	int fd = fds->n < MOST_LAYERS ? mount_open(path, f)
				      : fault_set(f, E2BIG, "lay '%s' on others", path);

	if (fd >= 0)
		fds->v[fds->n++] = fd;
	return fd;
}

/*
 * Before Linux 6.15 overlayfs takes paths only. A descriptor's path in /proc means the opened
 * file, even if its own path is renamed or replaced meanwhile.
 */
static int set_path(int fs, const char *key, int fd)
{
	return sys_fsconfig(fs, FSCONFIG_SET_STRING, key, mem_printf("/proc/self/fd/%d", fd));
}

static int set_layer(int fs, const char *key, int fd)
{
	return sys_fsconfig_fd(fs, key, fd) == 0 ? 0 : set_path(fs, key, fd);
}

/* One by one since Linux 6.7; before that in one option of limited length. */
static int set_paths(int fs, const struct fds *lowers, struct fault *f)
{
	struct str joined = { 0 };
	int rc = 0;

	for (size_t i = 0; i < lowers->n; i++)
		str_addf(&joined, "%s/proc/self/fd/%d", i ? ":" : "", lowers->v[i]);
	if (joined.len <= LONGEST_OPTION) {
		if (sys_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", joined.p) < 0)
			return fault_set(f, errno, "set lowerdir of an overlay");
		return 0;
	}
	for (size_t i = 0; rc == 0 && i < lowers->n; i++)
		rc = set_path(fs, "lowerdir+", lowers->v[i]);
	if (rc == 0)
		return 0;
	fault_set(f, errno, "set lowerdir+ of an overlay");
	return fault_fix(f,
		"Too many boxes of this project ended while others ran; when none runs, what "
		"they wrote becomes one layer.");
}

static int set_lowers(int fs, const struct fds *lowers, struct fault *f)
{
	for (size_t i = 0; i < lowers->n; i++)
		if (sys_fsconfig_fd(fs, "lowerdir+", lowers->v[i]) < 0)
			return i ? fault_set(f, errno, "set lowerdir+ of an overlay")
				 : set_paths(fs, lowers, f);
	return 0;
}

/* Which step fails on an unsuitable file system depends on the kernel version. */
static int no_overlay(const struct place *place, struct fault *f)
{
	fault_set(f, errno, "make an overlay of '%s'", str_visible(place->target));
	return fault_fix(f,
		"Linux 5.11 or later is needed, and a file system for carrel's state that has "
		"extended attributes and is no overlay itself: set XDG_STATE_HOME to a "
		"directory on ext4, xfs or btrfs, or from Linux 6.6 on tmpfs.");
}

/*
 * userxattr: the other attributes need root. With an index, overlayfs would refuse a layer
 * whose last box is just ending. A layer of the workspace is mounted once: volatile saves a
 * sync of the whole file system at the end, and one for each file that is copied up.
 */
static int set_options(int fs, const struct place *place)
{
	int rc = sys_fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL);

	if (rc == 0)
		rc = sys_fsconfig(fs, FSCONFIG_SET_STRING, "index", "off");
	if (rc == 0 && place->layer)
		rc = sys_fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL);
	return rc;
}

/*
 * Since Linux 6.6 overlayfs writes an identifier into the upper directory, where nobody needs
 * it, unless uuid=null. Before Linux 6.5 it collects options, and refuses an unknown one at
 * the end.
 */
static int create(const struct place *place, const struct fds *lowers, int upper, int work,
	const char *uuid, struct fault *f)
{
	auto_close int fs = sys_fsopen("overlay", FSOPEN_CLOEXEC);
	int rc = fs < 0 ? no_overlay(place, f) : set_lowers(fs, lowers, f);

	if (rc < 0)
		return rc;
	if (uuid)
		(void)sys_fsconfig(fs, FSCONFIG_SET_STRING, "uuid", uuid);
	if (set_layer(fs, "upperdir", upper) < 0 || set_layer(fs, "workdir", work) < 0 ||
		set_options(fs, place) < 0 ||
		sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
		return no_overlay(place, f);
	return take_fd(&fs);
}

static int make_overlay(const struct place *place, struct fds *fds, struct fault *f)
{
	auto_close int fs = -1;
	struct fds lowers;
	int upper, work, mount, rc = 0;

	for (size_t i = 0; rc >= 0 && place->lowers[i]; i++)
		rc = open_layer(fds, place->lowers[i], f);
	lowers = *fds;
	upper = rc < 0 ? rc : open_layer(fds, place->source, f);
	work = upper < 0 ? upper : open_layer(fds, place->work, f);
	if (work < 0)
		return work;
	fs = create(place, &lowers, upper, work, "null", &(struct fault){ 0 });
	if (fs < 0)
		fs = create(place, &lowers, upper, work, NULL, f);
	if (fs < 0)
		return fs;
	mount = sys_fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mount < 0 ? fault_set(f, errno, "mount an overlay") : mount;
}

/*
 * Files for the box, mostly a login, never touch a disk: they go into the mount point on the
 * box's own tmpfs, which is the topmost lower layer.
 */
static int put_files(int dir, const struct place *place, struct fault *f)
{
	for (size_t i = 0; place->files[i]; i++) {
		auto_close int fd = openat(dir, place->files[i],
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		const char *text = place->texts[i];
		int rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

		if (rc < 0)
			return fault_set(f, -rc, "put %s into '%s'", place->files[i],
				str_visible(place->target));
	}
	return 0;
}

int mount_overlay(int target, const struct place *place, struct fault *f)
{
	/* A layer of the workspace lies on the workspace alone. */
	const size_t kept = place->layer ? 0 : 1;
	struct fds fds = { .v = { target }, .n = kept };
	int rc = place->layer ? 0 : put_files(target, place, f), mount;

	if (rc < 0)
		return rc;
	mount = make_overlay(place, &fds, f);
	while (fds.n > kept)
		close(fds.v[--fds.n]);
	return mount;
}
