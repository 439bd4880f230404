/*
 * state/boxes.c - what is kept of boxes, by their names
 *
 * Theory of operation. The state directory may be behind a link, on another disk; from there
 * on every step is a descriptor, a real directory, ours, and writable by nobody else. Who
 * writes or removes holds the box's name in the registry, so nobody does both at once, and a
 * record that a running box writes is never removed.
 */
#include "state/boxes.h"
#include "state/registry.h"
#include "state/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	NAME_MOST = 63,
	DAY = 24 * 60 * 60,
};

bool boxes_is_name(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > NAME_MOST || !isalnum((unsigned char)name[0]))
		return false;
	for (const char *c = name; *c; c++)
		if (!isascii(*c) || (!isalnum((unsigned char)*c) && *c != '-'))
			return false;
	return true;
}

/* Where all are, without links above it: for messages. */
static const char *all_path(void)
{
	const char *state = xdg_state(), *real = state ? fd_real_path(state) : NULL;

	return state ? path_join(real ? real : state, "boxes") : NULL;
}

const char *boxes_shown(const char *name)
{
	return str_visible(name ? path_join(all_path(), name) : all_path());
}

static int no_state(struct fault *f)
{
	fault_set(f, 0, "there is no place for the record of a box: HOME is not set");
	return fault_fix(f, "Set HOME or XDG_STATE_HOME.");
}

/* A directory that was opened, or was not (errno), must be ours alone. */
static int check_own(int opened, const char *box, struct fault *f)
{
	auto_close int fd = opened;
	struct stat st;
	int err;

	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return fault_set(f, 0, "%s is no directory of its own: it is a link, or a file",
			boxes_shown(box));
	if (fd < 0 || fstat(fd, &st) < 0) {
		err = errno;
		return fault_set(f, err, "open %s", boxes_shown(box));
	}
	if (st.st_uid != geteuid())
		return fault_set(f, 0, "%s belongs to another user (uid %u)", boxes_shown(box),
			st.st_uid);
	if (st.st_mode & 022) {
		fault_set(f, 0, "%s can be written by others", boxes_shown(box));
		return fault_fix(f, "See what is in there, then: chmod go-w %s",
			boxes_shown(box));
	}
	return take_fd(&fd);
}

/* The directory of all; with make it comes to be. As a rule it is there. */
static int open_all(bool make, struct fault *f)
{
	const char *state = xdg_state(), *path;
	int fd, rc = state && make ? xdg_make(state, f) : 0;

	if (!state)
		return no_state(f);
	if (rc < 0)
		return rc;
	path = path_join(state, "boxes");
	fd = openat(AT_FDCWD, path, DIR_FLAGS);
	if (fd < 0 && make) {
		rc = xdg_make(all_path(), f);
		if (rc < 0)
			return rc;
		fd = openat(AT_FDCWD, path, DIR_FLAGS);
	}
	return check_own(fd, NULL, f);
}

/* The directory of one box; with make it comes to be. */
static int open_box(const char *name, bool make, struct fault *f)
{
	auto_close int all = -1;
	int fd, err;

	if (!boxes_is_name(name))
		return fault_set(f, 0, "a box cannot be named '%s'", str_visible(name));
	all = open_all(make, f);
	if (all < 0)
		return all;
	fd = openat(all, name, DIR_FLAGS);
	if (fd < 0 && errno == ENOENT && make) {
		if (mkdirat(all, name, 0700) < 0 && errno != EEXIST) {
			err = errno;
			return fault_set(f, err, "make the directory %s", boxes_shown(name));
		}
		fd = openat(all, name, DIR_FLAGS);
	}
	return check_own(fd, name, f);
}

/* errno first: to say where the file is may change it. */
static int file_failed(const char *what, const char *name, const char *file, struct fault *f)
{
	int err = errno;

	return fault_set(f, err, "%s %s/%s/%s", what, str_visible(all_path()), name, file);
}

/*
 * To free one file and make another takes the file system three times as long as to cut it.
 * Nobody is to see that happen who reads, and has locked it for that. One byte stays, which the
 * first line replaces: what was cut to nothing ext4 would write to its disk when closed.
 */
static int open_cut(int dir, const char *file)
{
	auto_close int fd = openat(dir, file, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_mode != (S_IFREG | 0600) ||
		st.st_nlink != 1 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -1;
	if ((st.st_size && ftruncate(fd, 1) < 0) || flock(fd, LOCK_UN) < 0)
		return -1;
	return take_fd(&fd);
}

int boxes_create(const char *name, const char *file, struct fault *f)
{
	auto_close int dir = open_box(name, true, f);
	int fd;

	if (dir < 0)
		return dir;
	fd = open_cut(dir, file);
	if (fd >= 0)
		return fd;
	if (unlinkat(dir, file, 0) < 0 && errno != ENOENT)
		return file_failed("replace", name, file, f);
	fd = openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return file_failed("make", name, file, f);
	return fd;
}

int boxes_open(const char *name, const char *file, struct fault *f)
{
	auto_close int dir = open_box(name, false, f);
	int fd;

	if (dir < 0)
		return dir;
	fd = tree_open_file(dir, file);
	if (fd < 0)
		return file_failed("open", name, file, f);
	flock(fd, LOCK_SH); /* where there are no locks, it may be emptied while we read */
	return fd;
}

/* ---- all of them ---- */

static void look_at(int all, const char *name, struct box_record *r)
{
	struct stat st;

	*r = (struct box_record){ .name = name };
	if (fstatat(all, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r->problem = mem_strdup(strerror(errno));
	else if (!boxes_is_name(name))
		r->problem = "is no name of a box";
	else if (!S_ISDIR(st.st_mode))
		r->problem = "is no directory";
	else if (st.st_uid != geteuid())
		r->problem = mem_printf("belongs to another user (uid %u)", st.st_uid);
}

/* What is in it was written last, or the directory was changed last. */
static void look_into(int all, struct box_record *r)
{
	auto_close int dir = openat(all, r->name, DIR_FLAGS);
	tree_names names = { 0 };
	struct stat st;

	if (dir < 0 || fstat(dir, &st) < 0 || tree_list(dir, &names) < 0) {
		r->problem = mem_strdup(strerror(errno));
		return;
	}
	r->used = st.st_mtime;
	vec_each(name, &names) {
		if (fstatat(dir, *name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r->used = st.st_mtime > r->used ? st.st_mtime : r->used;
		r->bytes += (unsigned long long)st.st_blocks * 512;
	}
}

int boxes_list(box_records *ret, struct fault *f)
{
	auto_close int all = -1;
	tree_names names = { 0 };
	int rc;

	if (!all_path())
		return 0;
	all = open_all(false, f);
	if (all < 0)
		return f->err == ENOENT ? 0 : all;
	rc = tree_list(all, &names);
	if (rc < 0)
		return fault_set(f, -rc, "read %s", str_visible(all_path()));
	vec_each(name, &names) {
		struct box_record r;

		look_at(all, *name, &r);
		if (!r.problem)
			look_into(all, &r);
		vec_push(ret, r);
	}
	return 0;
}

bool boxes_is_old(const struct box_record *r)
{
	return !r->problem && r->used + (time_t)BOXES_DAYS * DAY < time(NULL);
}

int boxes_remove(const struct box_record *r, struct fault *f)
{
	struct box_record now = { .name = r->name };
	struct claim held;
	auto_close int all = open_all(false, f);
	int rc;

	if (all < 0)
		return all;
	/* With the name in our hands no box can begin to write. */
	if (registry_claim(r->name, CLAIM_STRICT, &held, f) < 0)
		return -EBUSY;
	look_at(all, r->name, &now);
	if (!now.problem)
		look_into(all, &now);
	if (boxes_is_old(&now)) {
		rc = tree_remove(all, r->name, f);
	} else {
		fault_set(f, 0, "the record of '%s' is in use again", r->name);
		rc = -EBUSY;
	}
	registry_release(&held);
	return rc;
}
