/*
 * box/native/mount.c - turn the plan's places into a mount tree
 *
 * Theory of operation. A tmpfs becomes the root; every place is put into it in the
 * plan's order; then the process pivots into it and the host's tree is gone. The mount
 * namespace is a private copy of the host's, and only mounts of one's own namespace can be
 * cloned, so sources are opened here and not before the clone: by their canonical path, once,
 * refusing any symlink, so that a tree that changes meanwhile makes the start fail and
 * cannot redirect it (CVE-2021-30465). From then on only descriptors are used. Targets
 * are opened beneath the new root, without links (CVE-2024-42472, CVE-2025-31133).
 *
 * Must run: after userns; before landlock, which forbids mounting.
 * Must not: create anything but on the box's own tmpfs.
 */
#include "box/native/native.h"
#include "box/native/sys.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static const char mask_file[] = ".mask-file", mask_dir[] = ".mask-dir",
		  mask_link[] = ".mask-link", mask_empty[] = ".mask-empty";

/* Where nothing is and nothing can be made; shown by `ls -l`. */
static const char nowhere[] = "/proc/protected-by-carrel";

/* A path of the box relative to its root. */
static const char *rel(const char *target)
{
	return target[1] ? target + 1 : ".";
}

/* --- new file systems ------------------------------------------------------------ */

struct option {
	const char *key, *value;
};

/* Detached mount of a new file system; options end with a NULL key. */
static int new_mount(const char *type, const struct option *options, unsigned int attr,
	struct fault *f)
{
	auto_close int fs = sys_fsopen(type, FSOPEN_CLOEXEC);
	int mount;

	if (fs < 0)
		return fault_set(f, errno, "open a new %s", type);
	for (; options && options->key; options++)
		if (sys_fsconfig(fs, FSCONFIG_SET_STRING, options->key, options->value) < 0)
			return fault_set(f, errno, "set %s=%s of the %s", options->key,
				options->value, type);
	if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
		return fault_set(f, errno, "make a new %s", type);
	mount = sys_fsmount(fs, FSMOUNT_CLOEXEC, attr);
	if (mount < 0)
		return fault_set(f, errno, "mount a new %s", type);
	return mount;
}

int step_root(struct native *n, struct fault *f)
{
	char size[32], inodes[32];
	const struct option options[] = {
		{ "mode", "0755" },
		{ "size", size },
		{ "nr_inodes", inodes },
		{ 0 },
	};

	snprintf(size, sizeof(size), "%llu", n->plan->limits.scratch);
	snprintf(inodes, sizeof(inodes), "%llu", n->plan->scratch_inodes);
	n->root = new_mount("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, f);
	if (n->root == -EPERM || n->root == -EACCES)
		return fault_fix(f,
			"A security module lets carrel make a user namespace but not use "
			"it; `carrel check` says how to allow it.");
	if (n->root < 0)
		return n->root;
	/*
	 * On top of "/": lookups of absolute paths start below it and still see the
	 * host's tree, wherever the workspace is.
	 */
	if (sys_move_mount(n->root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fault_set(f, errno, "attach the box's root");
	return 0;
}

/* --- making things on the box's own tmpfs ---------------------------------------- */

static int make_parents(int root, const char *path, struct fault *f)
{
	char dir[4096];

	if (strlen(path) >= sizeof(dir))
		return fault_set(f, ENAMETOOLONG, "make a directory in the box");
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		memcpy(dir, path, (size_t)(slash - path));
		dir[slash - path] = '\0';
		if (mkdirat(root, dir, 0755) < 0 && errno != EEXIST)
			return fault_set(f, errno, "make '/%s' in the box", str_visible(dir));
	}
	return 0;
}

static int make_once(int root, const struct place *place, const char *path)
{
	auto_close int fd = -1;

	if (place->kind == PLACE_LINK)
		return symlinkat(place->text, root, path) < 0 ? -errno : 0;
	if (place->dir)
		return mkdirat(root, path, place->mode ? place->mode : 0755) < 0 ? -errno : 0;
	if (!place->text)
		return mknodat(root, path, S_IFREG | (place->mode ? place->mode : 0644), 0) < 0
			? -errno
			: 0;
	fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		place->mode ? place->mode : 0644);
	if (fd < 0)
		return -errno;
	return fd_write_all(fd, place->text, strlen(place->text));
}

/* Make the directory, file or link itself, and on the first miss what is above it. */
static int make(int root, const struct place *place, struct fault *f)
{
	const char *path = rel(place->target);
	int rc = make_once(root, place, path);

	if (rc == -ENOENT) {
		rc = make_parents(root, path, f);
		if (rc < 0)
			return rc;
		rc = make_once(root, place, path);
	}
	/* An earlier place may have needed this directory as a parent. */
	if (rc == -EEXIST && place->dir)
		rc = fchmodat(root, path, place->mode ? place->mode : 0755, 0) < 0 ? -errno : 0;
	if (rc < 0)
		return fault_set(f, -rc, "make '%s' in the box", str_visible(place->target));
	return 0;
}

/* --- cloning and attaching ------------------------------------------------------- */

/* A private copy of the mount tree at fd, restricted. */
static int clone_mount(int fd, uint64_t attr, struct fault *f)
{
	const struct sys_mount_attr set = { .set = attr, .propagation = MS_PRIVATE };
	const unsigned int flags = AT_EMPTY_PATH | AT_RECURSIVE;
	auto_close int tree = -1;

	tree = sys_open_tree_attr(fd, "", flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC, &set);
	if (tree >= 0)
		return take_fd(&tree);
	if (errno != ENOSYS)
		return fault_set(f, errno, "clone a mount");
	/* Before Linux 6.15, in two calls. */
	tree = sys_open_tree(fd, "", flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return fault_set(f, errno, "clone a mount");
	if (sys_mount_setattr(tree, "", flags, &set) < 0)
		return fault_set(f, errno, "restrict a mount");
	return take_fd(&tree);
}

static int open_source(const char *path, struct fault *f)
{
	int fd = fd_open2(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd >= 0)
		return fd;
	fault_set(f, errno, "open '%s'", str_visible(path));
	if (f->err == ENOSYS)
		return fault_fix(f,
			"openat2(2) is needed: Linux 5.6 or later, and a container "
			"profile that lets it through.");
	return -f->err;
}

static int open_target(int root, const char *target, struct fault *f)
{
	int fd = fd_open2(root, rel(target), O_PATH | O_NOFOLLOW | O_CLOEXEC,
		RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd >= 0)
		return fd;
	fault_set(f, errno, "mount at '%s'", str_visible(target));
	if (f->err == ENOENT)
		return fault_fix(f,
			"It does not exist there, and carrel creates nothing on the "
			"host: make it first, or choose another target.");
	return -f->err;
}

static int attach(struct native *n, int mount, const struct place *place, struct fault *f)
{
	auto_close int target = -1;
	int rc;

	if (place->create) {
		/* Made by us a moment ago, on our own tmpfs: the path is what we made it. */
		rc = sys_move_mount(mount, "", n->root, rel(place->target),
			MOVE_MOUNT_F_EMPTY_PATH);
	} else {
		target = open_target(n->root, place->target, f);
		if (target < 0)
			return target;
		rc = sys_move_mount(mount, "", target, "",
			MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	}
	if (rc < 0)
		return fault_set(f, errno, "mount '%s' at '%s'",
			place->source ? str_visible(place->source)
				      : place_kind_name(place->kind),
			str_visible(place->target));
	return 0;
}

/* --- the kinds of place ---------------------------------------------------------- */

static int put_made(struct native *n, const struct place *place, struct fault *f)
{
	(void)n, (void)place, (void)f;
	return 0; /* making it was all */
}

static int put_seal(struct native *n, const struct place *place, struct fault *f)
{
	auto_close int target = open_target(n->root, place->target, f), mount = -1;

	if (target < 0)
		return target;
	mount = clone_mount(target, place->rw ? 0 : MOUNT_ATTR_RDONLY, f);
	if (mount < 0)
		return mount;
	return attach(n, mount, place, f);
}

static int put_copy(struct native *n, const struct place *place, struct fault *f)
{
	auto_close int from =
		fd_open2(AT_FDCWD, place->source, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	auto_close int to =
		openat(n->root, rel(place->target), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	char buf[16 * 1024];
	ssize_t got = 0;
	int rc = from < 0 || to < 0 ? -errno : 0;

	while (rc == 0 && (got = read(from, buf, sizeof(buf))) > 0)
		rc = fd_write_all(to, buf, (size_t)got);
	if (got < 0)
		rc = -errno;
	/* What the user cannot read outside is as unreadable inside: an empty file. */
	if (rc == -EACCES)
		return 0;
	return rc < 0 ? fault_set(f, -rc, "copy '%s'", str_visible(place->source)) : 0;
}

/* Of the host: binds, pins and protected paths. */
static int put_host(struct native *n, const struct place *place, struct fault *f)
{
	uint64_t attr = MOUNT_ATTR_NOSUID |
		(place->device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV) |
		(place->rw ? 0 : MOUNT_ATTR_RDONLY);
	auto_close int source = open_source(place->source, f), mount = -1;

	if (source < 0)
		return source;
	mount = clone_mount(source, attr, f);
	if (mount < 0)
		return fault_set(f, -mount, "clone the mount of '%s'",
			str_visible(place->source));
	return attach(n, mount, place, f);
}

/* One of the masks on top of what is there. */
static int put_mask(struct native *n, const char *mask, const struct place *place,
	struct fault *f)
{
	auto_close int source = openat(n->root, mask, O_PATH | O_NOFOLLOW | O_CLOEXEC),
		       mount = -1;

	if (source < 0)
		return fault_set(f, errno, "open the mask for '%s'",
			str_visible(place->target));
	mount = clone_mount(source, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, f);
	if (mount < 0)
		return mount;
	return attach(n, mount, place, f);
}

static int put_hide(struct native *n, const struct place *place, struct fault *f)
{
	const char *dir = place->mode ? mask_empty : mask_dir;

	return put_mask(n, place->dir ? dir : mask_file, place, f);
}

static int put_stub(struct native *n, const struct place *place, struct fault *f)
{
	return place->text ? put_host(n, place, f) : put_mask(n, mask_link, place, f);
}

/*
 * A user namespace in this one could undo read-only mounts it inherits a handle to;
 * seccomp refuses to make one, and so does the kernel's own count. Through the new proc, and
 * before anything is laid over it: in the host's, each box would leave a name behind, and
 * finding one's own among them takes longer with every box.
 */
static int set_count(int proc, const char *path, const char *value, struct fault *f)
{
	auto_close int fd = openat(proc, path, O_WRONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : fd_write_all(fd, value, strlen(value));

	return rc < 0 ? fault_set(f, -rc, "set %s to %s in the box", path, value) : 0;
}

/* The user's inotify instances are counted for host and boxes together: leave some. */
static int set_counts(int proc, struct fault *f)
{
	int rc = set_count(proc, "sys/user/max_user_namespaces", "0", f);

	return rc < 0 ? rc : set_count(proc, "sys/user/max_inotify_instances", "64", f);
}

static int put_proc(struct native *n, const struct place *place, struct fault *f)
{
	auto_close int mount = new_mount("proc", NULL,
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, f);
	int rc;

	if (mount == -EPERM)
		return fault_fix(f,
			"Parts of /proc are covered here, as containers do; start the outer "
			"container with an unmasked /proc (podman: --security-opt "
			"unmask=/proc/*).");
	if (mount < 0)
		return mount;
	rc = n->frame->nest ? 0 : set_counts(mount, f);
	return rc < 0 ? rc : attach(n, mount, place, f);
}

/* --- overlays -------------------------------------------------------------------- */

enum { MOST_LAYERS = 64, LONGEST_OPTION = 255 };

struct fds {
	int v[MOST_LAYERS];
	size_t n;
};

static void close_fds(struct fds *fds)
{
	while (fds->n)
		close(fds->v[--fds->n]);
}

/*
 * overlayfs takes paths. A descriptor's name in /proc stands for what was opened, whatever the
 * path is called and whoever replaces it meanwhile. -1 and the fault is set on failure.
 */
static const char *layer_path(struct fds *fds, const char *path, struct fault *f)
{
	int fd = fds->n < MOST_LAYERS ? open_source(path, f)
				      : fault_set(f, E2BIG, "lay '%s' on others", path);

	if (fd < 0)
		return NULL;
	fds->v[fds->n++] = fd;
	return mem_printf("/proc/self/fd/%d", fd);
}

static int set_layer(int fs, const char *key, const char *path, struct fault *f)
{
	if (sys_fsconfig(fs, FSCONFIG_SET_STRING, key, path) < 0)
		return fault_set(f, errno, "set %s of an overlay", key);
	return 0;
}

/*
 * On what is open already. One by one since Linux 6.7, before that in one option of limited
 * length.
 */
static int set_lowers(int fs, const char *const *lowers, struct fds *fds, struct fault *f)
{
	struct str joined = { 0 };

	for (size_t i = 0; lowers[i]; i++)
		if (!layer_path(fds, lowers[i], f))
			return -f->err;
	for (size_t i = 0; i < fds->n; i++)
		str_addf(&joined, "%s/proc/self/fd/%d", i ? ":" : "", fds->v[i]);
	if (joined.len <= LONGEST_OPTION)
		return set_layer(fs, "lowerdir", joined.p, f);
	for (size_t i = 0; i < fds->n; i++) {
		int rc = set_layer(fs, "lowerdir+", mem_printf("/proc/self/fd/%d", fds->v[i]),
			f);

		if (rc < 0)
			return fault_fix(f,
				"Too many boxes of this project ended while others ran; when "
				"none runs, what they wrote becomes one layer.");
	}
	return 0;
}

/* Which of the steps finds out what a file system lacks depends on the kernel. */
static int no_overlay(const struct place *place, struct fault *f)
{
	fault_set(f, errno, "make an overlay of '%s'", str_visible(place->target));
	return fault_fix(f,
		"Linux 5.11 or later is needed, and a file system for carrel's state that has "
		"extended attributes and is no overlay itself: set XDG_STATE_HOME to a "
		"directory on ext4, xfs, btrfs or tmpfs.");
}

static int new_overlay(const struct place *place, struct fds *fds, struct fault *f)
{
	auto_close int fs = sys_fsopen("overlay", FSOPEN_CLOEXEC);
	const char *upper, *work;
	int mount, rc;

	if (fs < 0)
		return no_overlay(place, f);
	rc = set_lowers(fs, place->lowers, fds, f);
	if (rc < 0)
		return rc;
	upper = layer_path(fds, place->source, f);
	work = upper ? layer_path(fds, place->work, f) : NULL;
	if (!work)
		return -f->err;
	/*
	 * Its own attributes are the owner's here: those of root need root. With an index, a
	 * layer of a box that is just ending would be refused.
	 */
	if (sys_fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", upper) < 0 ||
		sys_fsconfig(fs, FSCONFIG_SET_STRING, "workdir", work) < 0 ||
		sys_fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL) < 0 ||
		sys_fsconfig(fs, FSCONFIG_SET_STRING, "index", "off") < 0 ||
		sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
		return no_overlay(place, f);
	mount = sys_fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mount < 0 ? fault_set(f, errno, "mount an overlay") : mount;
}

/*
 * What the box is to find there, a login as a rule, is never on a disk: it is in the directory
 * that will be mounted on, on the box's own tmpfs, which is the uppermost of the lower layers.
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

static int put_overlay(struct native *n, const struct place *place, struct fault *f)
{
	auto_close int below = open_target(n->root, place->target, f), mount = -1;
	struct fds fds = { .n = 0 };
	int rc = below < 0 ? below : put_files(below, place, f);

	if (rc < 0)
		return rc;
	fds.v[fds.n++] = take_fd(&below);
	mount = new_overlay(place, &fds, f);
	close_fds(&fds);
	return mount < 0 ? mount : attach(n, mount, place, f);
}

static int put_pts(struct native *n, const struct place *place, struct fault *f)
{
	static const struct option options[] = {
		{ "ptmxmode", "0666" },
		{ "mode", "0620" },
		{ 0 },
	};
	auto_close int mount =
		new_mount("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, f);

	return mount < 0 ? mount : attach(n, mount, place, f);
}

static int (*const put[])(struct native *n, const struct place *place, struct fault *f) = {
	[PLACE_LINK] = put_made,
	[PLACE_FILE] = put_made,
	[PLACE_COPY] = put_copy,
	[PLACE_BIND] = put_host,
	[PLACE_PIN] = put_host,
	[PLACE_PROTECT] = put_host,
	[PLACE_STUB] = put_stub,
	[PLACE_OVERLAY] = put_overlay,
	[PLACE_PROC] = put_proc,
	[PLACE_PTS] = put_pts,
	[PLACE_SCRATCH] = put_made,
	[PLACE_SEAL] = put_made, /* and then put_seals() */
	[PLACE_HIDE] = put_hide,
};

static int put_place(struct native *n, const struct place *place, struct fault *f)
{
	int rc = place->create ? make(n->root, place, f) : 0;

	if (rc == 0)
		rc = put[place->kind](n, place, f);
	return place->optional && rc == -ENOENT ? 0 : rc;
}

/*
 * Last, when what is in them is there: directories that the box must not change, and files in
 * directories that it may. Landlock cannot keep those, a mount can.
 */
static int put_seals(struct native *n, struct fault *f)
{
	vec_each(place, &n->plan->places) {
		int rc = 0;

		if (place->kind == PLACE_SEAL || place->sealed)
			rc = put_seal(n, place, f);
		if (rc < 0 && !(place->optional && rc == -ENOENT))
			return rc;
	}
	return 0;
}

/* Empty, without permissions, leading nowhere; and nameless once they are in use. */
static int make_masks(int root, struct fault *f)
{
	if (mkdirat(root, mask_dir, 0) < 0 || mknodat(root, mask_file, S_IFREG, 0) < 0 ||
		symlinkat(nowhere, root, mask_link) < 0 || mkdirat(root, mask_empty, 0555) < 0)
		return fault_set(f, errno, "make the masks for hidden and absent paths");
	return 0;
}

static int unname_masks(int root, struct fault *f)
{
	if (unlinkat(root, mask_dir, AT_REMOVEDIR) < 0 || unlinkat(root, mask_file, 0) < 0 ||
		unlinkat(root, mask_link, 0) < 0 ||
		unlinkat(root, mask_empty, AT_REMOVEDIR) < 0)
		return fault_set(f, errno, "remove the masks' names");
	return 0;
}

int step_places(struct native *n, struct fault *f)
{
	int rc = make_masks(n->root, f);

	if (rc < 0)
		return rc;
	vec_each(place, &n->plan->places) {
		rc = put_place(n, place, f);
		if (rc < 0)
			return rc;
	}
	rc = put_seals(n, f);
	return rc < 0 ? rc : unname_masks(n->root, f);
}

int step_pivot(struct native *n, struct fault *f)
{
	if (fchdir(n->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return fault_set(f, errno, "pivot into the box's root");
	if (umount2(".", MNT_DETACH) < 0)
		return fault_set(f, errno, "let go of the host's file systems");
	if (chdir("/") < 0)
		return fault_set(f, errno, "enter the box's root");
	close(take_fd(&n->root));
	return 0;
}
