/*
 * box/native/mount.c - turn the plan's places into a mount tree
 *
 * Theory of operation. A tmpfs becomes the root, every place is put into it in the plan's
 * order, then the process pivots into it and the host's tree is gone. The mount namespace is a
 * private copy of the host's, and only mounts of one's own namespace can be cloned. So init
 * opens the sources here, after the clone: by their canonical path, once, refusing any symlink.
 * A tree that changes meanwhile makes the start fail and cannot redirect it (CVE-2021-30465).
 * From then on only descriptors are used. Targets are opened beneath the new root, without
 * links (CVE-2024-42472, CVE-2025-31133).
 *
 * Neighbours in the plan lie in the same directory. It is opened once for all of them, and each
 * is opened from there by its last part. With O_NOFOLLOW a single name resolves no links
 * either. If that fails, the whole path is tried, which gives the fault its text.
 *
 * Must run: after userns; before landlock, which forbids mounting. Must not: create anything
 * outside the box's own tmpfs.
 */
#include "box/native/native.h"
#include "box/native/mount.h"
#include "box/native/sys.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* Masks for hidden and absent paths: names in the box's root until all are in place. */
enum mask { MASK_NONE, MASK_FILE, MASK_JSON, MASK_DIR, MASK_LINK, MASKS };

/* A target that does not exist and cannot be made; `ls -l` shows it. */
static const char nowhere[] = "/proc/protected-by-carrel";

/*
 * Empty, or a link to nowhere. A mask over a user's file is readable: a program that finds
 * `.env` and may not read it gives up, but accepts an empty one. All are mounted read-only, so
 * that a write fails instead of vanishing.
 */
static const struct place masks[MASKS] = {
	[MASK_NONE] = { .kind = PLACE_FILE, .target = ".mask-none", .mode = S_IFREG },
	[MASK_FILE] = { .kind = PLACE_FILE, .target = ".mask-file", .mode = 0444 },
	[MASK_JSON] = { .kind = PLACE_FILE,
		.target = ".mask-json",
		.mode = 0444,
		.text = "{}\n" },
	[MASK_DIR] = { .kind = PLACE_FILE, .target = ".mask-dir", .mode = 0555, .dir = true },
	[MASK_LINK] = { .kind = PLACE_LINK, .target = ".mask-link", .text = nowhere },
};

/* The parent directory that was opened last. */
struct parent {
	const char *path; /* NULL: none yet */
	int fd;
};

/* The mount tree being built; init builds one. */
static struct tree {
	const struct native *native;
	int root;
	struct fd_bag later;          /* all descriptors except root and the parents */
	struct parent source, target; /* the last ones: of the host, of the box */
	const char *made;             /* the path in root that was made last */
	int file;                     /* the same, opened for writing, for a COPY */
	bool masks[MASKS];            /* made so far */
	bool stubs;                   /* the stubs exist */
} tree;

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
static int new_mount(struct fd_bag *later, const char *type, const struct option *options,
	unsigned int attr, struct fault *f)
{
	int fs = fd_later(later, sys_fsopen(type, FSOPEN_CLOEXEC));
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
	struct fd_bag later = { .n = 0 };
	char size[32], inodes[32];
	const struct option options[] = {
		{ "mode", "0755" },
		{ "size", size },
		{ "nr_inodes", inodes },
		{ 0 },
	};

	snprintf(size, sizeof(size), "%llu", n->frame->scratch);
	snprintf(inodes, sizeof(inodes), "%llu", n->frame->scratch_inodes);
	n->root = new_mount(&later, "tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, f);
	fd_bag_empty(&later);
	if (n->root == -EPERM || n->root == -EACCES)
		return fault_fix(f,
			"A security module lets carrel make a user namespace but not use "
			"it; `carrel check` says how to allow it.");
	if (n->root < 0)
		return n->root;
	/*
	 * On top of "/": lookups of absolute paths start below it and still see the host's
	 * tree, wherever the workspace is.
	 */
	if (sys_move_mount(n->root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fault_set(f, errno, "attach the box's root");
	return 0;
}

/* --- making things on the box's own tmpfs ---------------------------------------- */

/*
 * How much of path exists already, up to a slash: the part it shares with the path made before.
 * The plan is sorted, so no other path matters.
 */
static size_t made_already(const char *made, const char *path)
{
	size_t known = 0;

	for (size_t i = 0; path[i]; i++) {
		if (path[i] == '/' && (made[i] == '/' || !made[i]))
			known = i;
		if (path[i] != made[i])
			break;
	}
	return known;
}

static int make_parents(const struct tree *t, const char *path, struct fault *f)
{
	const char *slash = path + made_already(t->made, path);
	char dir[4096];

	if (strlen(path) >= sizeof(dir))
		return fault_set(f, ENAMETOOLONG, "make a directory in the box");
	if (slash > path)
		slash++;
	for (; (slash = strchr(slash, '/')); slash++) {
		memcpy(dir, path, (size_t)(slash - path));
		dir[slash - path] = '\0';
		if (mkdirat(t->root, dir, 0755) < 0 && errno != EEXIST)
			return fault_set(f, errno, "make '/%s' in the box", str_visible(dir));
	}
	return 0;
}

static int make_file(struct tree *t, const struct place *place, const char *path)
{
	int fd = openat(t->root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		place->mode ? place->mode : 0644);

	t->file = fd_later(&t->later, fd);
	if (fd < 0 || (place->watched && futimens(fd, (struct timespec[2]){ 0 }) < 0))
		return -errno;
	return place->text ? fd_write_all(fd, place->text, strlen(place->text)) : 0;
}

static int make_one(struct tree *t, const struct place *place, const char *path)
{
	int rc;

	if (place->kind == PLACE_LINK)
		rc = symlinkat(place->text, t->root, path);
	else if (place->dir)
		rc = mkdirat(t->root, path, place->mode ? place->mode : 0755);
	else if (place->text || place->kind == PLACE_COPY)
		return make_file(t, place, path);
	else
		rc = mknodat(t->root, path, S_IFREG | (place->mode ? place->mode : 0644), 0);
	return rc < 0 ? -errno : 0;
}

/* Make the directory, file or link itself, and what is above it. */
static int make(struct tree *t, const struct place *place, struct fault *f)
{
	const char *path = rel(place->target);
	int rc = make_parents(t, path, f);

	if (rc < 0)
		return rc;
	rc = make_one(t, place, path);
	t->made = path;
	/* An earlier place may have needed this directory as a parent. */
	if (rc == -EEXIST && place->dir)
		rc = fchmodat(t->root, path, place->mode ? place->mode : 0755, 0) < 0 ? -errno
										      : 0;
	if (rc < 0)
		return fault_set(f, -rc, "make '%s' in the box", str_visible(place->target));
	return 0;
}

/* --- cloning and attaching ------------------------------------------------------- */

enum {
	NO_LINKS = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	NO_LINKS_OUT = NO_LINKS | RESOLVE_IN_ROOT,
};

static void leave(struct parent *p)
{
	if (p->path)
		close(p->fd);
	p->path = NULL;
}

/*
 * Open the directory of an absolute path; *ret_name is the last part. -1: it cannot be opened.
 */
static int enter_dir(struct parent *p, int dir, const char *path, unsigned long long resolve,
	const char **ret_name)
{
	const char *name = path_base(path), *parent;
	size_t len = (size_t)(name - path);

	if (!*name)
		return -1;
	if (!p->path || strncmp(p->path, path, len) != 0 || p->path[len]) {
		leave(p);
		parent = mem_strndup(path, len);
		p->fd = fd_open2(dir, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, resolve);
		if (p->fd < 0)
			return -1;
		p->path = parent;
	}
	*ret_name = name;
	return p->fd;
}

/* A private copy of the mounts at name in dir, or at dir itself for "", restricted. */
static int clone_at(struct tree *t, int dir, const char *name, uint64_t attr)
{
	const struct sys_mount_attr set = { .set = attr, .propagation = MS_PRIVATE };
	const unsigned int flags = AT_EMPTY_PATH | AT_RECURSIVE;
	const unsigned int how = flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT |
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
	int mount = fd_later(&t->later, sys_open_tree_attr(dir, name, how, &set));

	if (mount >= 0 || errno != ENOSYS)
		return mount;
	/* Before Linux 6.15, in two calls. */
	mount = fd_later(&t->later, sys_open_tree(dir, name, how));
	if (mount >= 0 && sys_mount_setattr(mount, "", flags, &set) < 0)
		return -1;
	return mount;
}

int mount_open(const char *path, struct fault *f)
{
	int fd = fd_open2(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, NO_LINKS);

	if (fd >= 0)
		return fd;
	fault_set(f, errno, "open '%s'", str_visible(path));
	if (f->err == ENOSYS)
		return fault_fix(f,
			"openat2(2) is needed: Linux 5.6 or later, and a container "
			"profile that lets it through.");
	return -f->err;
}

static int clone_source(struct tree *t, const char *path, uint64_t attr, struct fault *f)
{
	const char *name;
	int dir = enter_dir(&t->source, AT_FDCWD, path, NO_LINKS, &name);
	int mount = dir < 0 ? -1 : clone_at(t, dir, name, attr);

	if (mount >= 0)
		return mount;
	dir = fd_later(&t->later, mount_open(path, f));
	if (dir < 0)
		return dir;
	mount = clone_at(t, dir, "", attr);
	return mount < 0 ? fault_set(f, errno, "clone the mount of '%s'", str_visible(path))
			 : mount;
}

static int open_target(struct tree *t, const char *target, struct fault *f)
{
	int fd = fd_later(&t->later,
		fd_open2(t->root, target, O_PATH | O_NOFOLLOW | O_CLOEXEC, NO_LINKS_OUT));

	if (fd >= 0)
		return fd;
	fault_set(f, errno, "mount at '%s'", str_visible(target));
	if (f->err == ENOENT)
		return fault_fix(f,
			"It does not exist there, and carrel creates nothing on the "
			"host: make it first, or choose another target.");
	return -f->err;
}

/* A directory that was opened at or below a new mount is covered by it now. */
static void covered(struct tree *t, const char *target)
{
	if (t->target.path && path_within(t->target.path, target))
		leave(&t->target);
}

static int attach_on(struct tree *t, int mount, int target, const struct place *place,
	struct fault *f)
{
	if (sys_move_mount(mount, "", target, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return fault_set(f, errno, "mount '%s' at '%s'",
			place->source ? str_visible(place->source)
				      : place_kind_name(place->kind),
			str_visible(place->target));
	covered(t, place->target);
	return 0;
}

static int attach(struct tree *t, int mount, const struct place *place, struct fault *f)
{
	/* We made it a moment ago on our own tmpfs, so the path contains no links. */
	const char *name = rel(place->target);
	int dir = t->root, target;

	if (!place->create)
		dir = enter_dir(&t->target, t->root, place->target, NO_LINKS_OUT, &name);
	if (dir >= 0 && sys_move_mount(mount, "", dir, name, MOVE_MOUNT_F_EMPTY_PATH) == 0) {
		covered(t, place->target);
		return 0;
	}
	target = open_target(t, place->target, f);
	return target < 0 ? target : attach_on(t, mount, target, place, f);
}

/* --- the kinds of place ---------------------------------------------------------- */

static int put_made(struct tree *t, const struct place *place, struct fault *f)
{
	(void)t, (void)place, (void)f;
	return 0; /* making it was enough */
}

static int put_seal(struct tree *t, const struct place *place, struct fault *f)
{
	int target = open_target(t, place->target, f), mount;

	if (target < 0)
		return target;
	mount = clone_at(t, target, "", place->rw ? 0 : MOUNT_ATTR_RDONLY);
	if (mount < 0)
		return fault_set(f, errno, "clone a mount");
	return attach_on(t, mount, target, place, f);
}

/*
 * A read of a file's first page is complete or fails: less than a page is the whole file, and
 * no second read is needed.
 */
static int copy(int from, int to)
{
	char buf[16 * 1024];
	ssize_t got;
	int rc = 0;

	do {
		got = read(from, buf, sizeof(buf));
		if (got > 0)
			rc = fd_write_all(to, buf, (size_t)got);
	} while (rc == 0 && got >= 4096);
	return got < 0 ? -errno : rc;
}

static int put_copy(struct tree *t, const struct place *place, struct fault *f)
{
	const char *name = place->source;
	int dir = enter_dir(&t->source, AT_FDCWD, place->source, NO_LINKS, &name), from, rc;

	from = fd_later(&t->later,
		fd_open2(dir < 0 ? AT_FDCWD : dir, name,
			O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, NO_LINKS));
	rc = from < 0 ? -errno : copy(from, t->file);
	/* A file that the user cannot read outside is empty inside. */
	if (rc == -EACCES)
		return 0;
	return rc < 0 ? fault_set(f, -rc, "copy '%s'", str_visible(place->source)) : 0;
}

/* Paths of the host: binds, pins and protected paths. */
static int put_host(struct tree *t, const struct place *place, struct fault *f)
{
	uint64_t attr = MOUNT_ATTR_NOSUID |
		(place->device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV) |
		(place->rw ? 0 : MOUNT_ATTR_RDONLY);
	int mount = clone_source(t, place->source, attr, f);

	return mount < 0 ? mount : attach(t, mount, place, f);
}

/* A link over a file: git follows it when it writes, and the mount keeps the name. */
static int put_config(struct tree *t, const struct place *place, struct fault *f)
{
	static const char name[] = ".config-link";
	int mount, rc;

	if (symlinkat(place->text, t->root, name) < 0)
		return fault_set(f, errno, "make the link at '%s'", str_visible(place->target));
	mount = clone_at(t, t->root, name, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
	if (mount < 0)
		return fault_set(f, errno, "clone the link at '%s'",
			str_visible(place->target));
	rc = attach(t, mount, place, f);
	if (rc == 0 && unlinkat(t->root, name, 0) < 0)
		return fault_set(f, errno, "remove the link's name");
	return rc;
}

/* Put a mask on top of what is there. */
static int put_mask(struct tree *t, enum mask mask, const struct place *place, struct fault *f)
{
	const char *name = masks[mask].target;
	int mount, rc = t->masks[mask] ? 0 : make_one(t, &masks[mask], name);

	if (rc < 0)
		return fault_set(f, -rc, "make the masks for hidden and absent paths");
	t->masks[mask] = true;
	mount = clone_at(t, t->root, name, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
	if (mount < 0)
		return fault_set(f, errno, "clone the mask for '%s'",
			str_visible(place->target));
	return attach(t, mount, place, f);
}

static int put_hide(struct tree *t, const struct place *place, struct fault *f)
{
	/* Files of the kernel (/proc/kcore) need not be readable for any program. */
	enum mask file = place->optional ? MASK_NONE : MASK_FILE;

	return put_mask(t, place->dir ? MASK_DIR : file, place, f);
}

static int put_stub(struct tree *t, const struct place *place, struct fault *f)
{
	if (place->text || place->dir)
		return put_host(t, place, f);
	if (!place->neutral)
		return put_mask(t, MASK_LINK, place, f);
	/* There is one such text: empty settings. */
	return put_mask(t, *place->neutral ? MASK_JSON : MASK_FILE, place, f);
}

/*
 * A nested user namespace could undo read-only mounts that it inherits a handle to. seccomp
 * refuses to make one, and so does this kernel limit. It is set through the new proc, before
 * anything covers it: in the host's proc each box would leave an entry behind, and lookups
 * there would take longer with every box.
 */
static int set_count(struct tree *t, int proc, const char *path, const char *value,
	struct fault *f)
{
	int fd = fd_later(&t->later, openat(proc, path, O_WRONLY | O_CLOEXEC));
	int rc = fd < 0 ? -errno : fd_write_all(fd, value, strlen(value));

	return rc < 0 ? fault_set(f, -rc, "set %s to %s in the box", path, value) : 0;
}

/*
 * The kernel counts inotify watches and instances (128 by default) for host and boxes together:
 * leave some of both to the host.
 */
static int set_counts(struct tree *t, int proc, struct fault *f)
{
	const struct frame *frame = t->native->frame;
	char watches[24];
	int rc = 0;

	snprintf(watches, sizeof(watches), "%llu", frame->watches);
	if (!frame->nest)
		rc = set_count(t, proc, "sys/user/max_user_namespaces", "0", f);
	if (rc == 0)
		rc = set_count(t, proc, "sys/user/max_inotify_instances", "64", f);
	if (rc == 0 && frame->watches)
		rc = set_count(t, proc, "sys/user/max_inotify_watches", watches, f);
	return rc;
}

static int put_proc(struct tree *t, const struct place *place, struct fault *f)
{
	int mount = fd_later(&t->later,
		new_mount(&t->later, "proc", NULL,
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, f));
	int rc;

	if (mount == -EPERM)
		return fault_fix(f,
			"Parts of /proc are covered here, as containers do; start the outer "
			"container with an unmasked /proc (podman: --security-opt "
			"unmask=/proc/*).");
	if (mount < 0)
		return mount;
	rc = set_counts(t, mount, f);
	return rc < 0 ? rc : attach(t, mount, place, f);
}

/*
 * A mount on an overlay needs a mount point. It is made in the directory that the overlay will
 * cover, which is its topmost lower layer.
 */
static int make_points(const struct tree *t, int dir, const struct place *overlay,
	struct fault *f)
{
	vec_each(place, &t->native->plan->places) {
		const char *name;
		int rc;

		if (!place->own || !path_within(place->target, overlay->target))
			continue;
		name = path_below(place->target, overlay->target);
		if (!*name || strchr(name, '/'))
			continue;
		rc = place->dir ? mkdirat(dir, name, 0700)
				: mknodat(dir, name, S_IFREG | 0600, 0);
		if (rc < 0)
			return fault_set(f, errno, "make '%s' in the box",
				str_visible(place->target));
	}
	return 0;
}

static int put_overlay(struct tree *t, const struct place *place, struct fault *f)
{
	int target = open_target(t, place->target, f), mount, rc;

	if (target < 0)
		return target;
	rc = place->layer ? 0 : make_points(t, target, place, f);
	if (rc < 0)
		return rc;
	mount = fd_later(&t->later, mount_overlay(target, place, f));
	return mount < 0 ? mount : attach_on(t, mount, target, place, f);
}

/*
 * The kernel counts terminals for the whole machine: 4,096 by default, of which the last 1,024
 * are the host's own. A box gets a part of them.
 */
static int put_pts(struct tree *t, const struct place *place, struct fault *f)
{
	static const struct option options[] = {
		{ "ptmxmode", "0666" },
		{ "mode", "0620" },
		{ "max", "256" },
		{ 0 },
	};
	int mount = fd_later(&t->later,
		new_mount(&t->later, "devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
			f));

	return mount < 0 ? mount : attach(t, mount, place, f);
}

static int (*const put[])(struct tree *t, const struct place *place, struct fault *f) = {
	[PLACE_LINK] = put_made,
	[PLACE_FILE] = put_made,
	[PLACE_COPY] = put_copy,
	[PLACE_BIND] = put_host,
	[PLACE_PIN] = put_host,
	[PLACE_PROTECT] = put_host,
	[PLACE_CONFIG] = put_config,
	[PLACE_STUB] = put_stub,
	[PLACE_OVERLAY] = put_overlay,
	[PLACE_PROC] = put_proc,
	[PLACE_PTS] = put_pts,
	[PLACE_SCRATCH] = put_made,
	[PLACE_SEAL] = put_made, /* and later put_seals() */
	[PLACE_HIDE] = put_hide,
};

static int await_stubs(struct tree *t, struct fault *f)
{
	int rc = t->stubs ? 0 : native_await_stubs(t->native, f);

	t->stubs = rc == 0;
	return rc;
}

static int put_place(struct tree *t, const struct place *place, struct fault *f)
{
	int rc = place->create ? make(t, place, f) : 0;

	if (rc == 0 && (place->kind == PLACE_STUB || place->stub))
		rc = await_stubs(t, f);
	if (rc == 0)
		rc = put[place->kind](t, place, f);
	return place->optional && rc == -ENOENT ? 0 : rc;
}

/*
 * Last, when their contents are complete: directories that the box must not change, and files
 * in directories that it may change. Landlock cannot protect those, a mount can.
 */
static int put_seals(struct tree *t, const place_vec *places, bool early, struct fault *f)
{
	vec_each(place, places) {
		int rc = 0;

		if (place->early == early && (place->kind == PLACE_SEAL || place->sealed))
			rc = put_seal(t, place, f);
		if (rc < 0 && !(place->optional && rc == -ENOENT))
			return rc;
	}
	return 0;
}

static int put_places(struct tree *t, const place_vec *places, bool early, struct fault *f)
{
	vec_each(place, places) {
		int rc = place->early == early ? put_place(t, place, f) : 0;

		if (rc < 0)
			return rc;
	}
	return put_seals(t, places, early, f);
}

/* Mounted masks need no name any more, and the box must not find them. */
static int unname_masks(const struct tree *t, struct fault *f)
{
	for (int mask = 0; mask < MASKS; mask++) {
		int flags = mask == MASK_DIR ? AT_REMOVEDIR : 0;

		if (t->masks[mask] && unlinkat(t->root, masks[mask].target, flags) < 0)
			return fault_set(f, errno, "remove the masks' names");
	}
	return 0;
}

int step_own(struct native *n, struct fault *f)
{
	tree = (struct tree){ .native = n, .root = n->root, .made = "" };
	return put_places(&tree, &n->frame->early, true, f);
}

int step_places(struct native *n, struct fault *f)
{
	int rc = put_places(&tree, &n->plan->places, false, f);

	if (rc == 0)
		rc = await_stubs(&tree, f);
	leave(&tree.source);
	leave(&tree.target);
	fd_bag_empty(&tree.later);
	return rc < 0 ? rc : unname_masks(&tree, f);
}

int step_pivot(struct native *n, struct fault *f)
{
	if (fchdir(n->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return fault_set(f, errno, "pivot into the box's root");
	if (umount2(".", MNT_DETACH) < 0)
		return fault_set(f, errno, "let go of the host's file systems");
	if (chdir("/") < 0)
		return fault_set(f, errno, "enter the box's root");
	/* carrel examines what the box wrote there at the end, when nothing lives in it. */
	if (wire_send_fd(n->control, &(struct wire){ .type = WIRE_ROOT }, n->root) < 0)
		return fault_set(f, errno, "hand the box's root to the supervisor");
	close(take_fd(&n->root));
	return 0;
}
