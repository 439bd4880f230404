/*
 * state/boxes.c - records of boxes, by their names
 *
 * Theory of operation. The state directory may be behind a link, on another disk. From there on
 * every step is a descriptor of a real directory that is ours and writable by nobody else. A
 * process that writes or removes a record holds the box's name in the registry. So nobody does
 * both at once, and a record that a running box writes is never removed.
 */
#include "state/boxes.h"
#include "state/registry.h"
#include "state/workspace.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	NAME_MOST = 63,
	DAY = 24 * 60 * 60,
	MOST_RECORD = 16 << 20,
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

/* The directory of all boxes, with links resolved: for messages. */
static const char *all_path(void)
{
	const char *state = xdg_state(), *real = state ? fd_real_path(state) : NULL;

	return state ? path_join(real ? real : state, "boxes") : NULL;
}

const char *boxes_shown(const char *name)
{
	return str_visible(name ? path_join(all_path(), name) : all_path());
}

const char *boxes_path(const char *name)
{
	return path_join(all_path(), name);
}

static int no_state(struct fault *f)
{
	fault_set(f, 0, "there is no place for the record of a box: HOME is not set");
	return fault_fix(f, "Set HOME or XDG_STATE_HOME.");
}

/* A directory that was opened, or not (errno), must be ours alone. */
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

/* Open the directory of all boxes; make: create it if it is missing. */
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

/* Open the directory of one box; make: create it if it is missing. */
int boxes_directory(const char *name, bool make, struct fault *f)
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

/* Save errno first: finding the path for the message may change it. */
static int file_failed(const char *what, const char *name, const char *file, struct fault *f)
{
	int err = errno;

	return fault_set(f, err, "%s %s/%s/%s", what, str_visible(all_path()), name, file);
}

/*
 * Truncating a file is three times as fast as removing it and making another. A reader must not
 * see that, and has locked the file against it. One byte stays, which the first line replaces:
 * ext4 flushes a file that was truncated to nothing when it is closed.
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
	auto_close int dir = boxes_directory(name, true, f);
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

/* A reader sees the old file or the new one, which is complete before it gets its name. */
int boxes_put(const char *name, const char *file, const char *bytes, size_t n, struct fault *f)
{
	auto_close int dir = boxes_directory(name, true, f), fd = -1;
	const char *temporary = mem_printf("%s.new", file);
	int rc;

	if (dir < 0)
		return dir;
	if (unlinkat(dir, temporary, 0) < 0 && errno != ENOENT)
		return file_failed("replace", name, temporary, f);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return file_failed("make", name, temporary, f);
	rc = fd_write_all(fd, bytes, n);
	if (rc == 0 && renameat(dir, temporary, dir, file) == 0)
		return 0;
	if (rc < 0)
		errno = -rc;
	rc = file_failed("write", name, file, f);
	unlinkat(dir, temporary, 0);
	return rc;
}

int boxes_drop(const char *name, const char *file, struct fault *f)
{
	auto_close int dir = boxes_directory(name, false, f);

	if (dir < 0)
		return f->err == ENOENT ? 0 : dir;
	if (unlinkat(dir, file, 0) < 0 && errno != ENOENT)
		return file_failed("remove", name, file, f);
	(void)rmdir(boxes_path(name)); /* an empty one would be listed as the record of a box */
	return 0;
}

bool boxes_has(const char *name, const char *file)
{
	const char *state = xdg_state();

	return state && boxes_is_name(name) &&
		access(mem_printf("%s/boxes/%s/%s", state, name, file), F_OK) == 0;
}

int boxes_open(const char *name, const char *file, struct fault *f)
{
	auto_close int dir = boxes_directory(name, false, f);
	int fd;

	if (dir < 0)
		return dir;
	fd = tree_open_file(dir, file);
	if (fd < 0)
		return file_failed("open", name, file, f);
	flock(fd, LOCK_SH); /* on a file system without locks it may be emptied while we read */
	return fd;
}

const struct json_value *boxes_json(const char *name, const char *file, struct fault *f)
{
	const struct json_value *value = NULL;
	json_errors errors = { 0 };
	size_t n = 0;
	int fd = boxes_open(name, file, f);
	const char *text = fd < 0 ? NULL : fd_read_bytes(fd, MOST_RECORD, &n);

	if (text && json_read_ours(text, n, &value, &errors) == 0 && value->type == JSON_OBJECT)
		return value;
	if (fd >= 0)
		fault_set(f, EINVAL, "read %s/%s", boxes_shown(name), file);
	return NULL;
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

/* The time of the newest file in it, or of the directory's last change. */
static void look_into(int all, struct box_record *r)
{
	auto_close int dir = openat(all, r->name, DIR_FLAGS);
	unsigned long long files = 0;
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
		if (S_ISDIR(st.st_mode))
			tree_size(dir, *name, &r->bytes, &files);
		else
			r->bytes += (unsigned long long)st.st_blocks * 512;
	}
	r->holds = workspace_holds(r->name);
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

int boxes_find(const char *name, struct fault *f)
{
	auto_close int dir = boxes_directory(name, false, f);

	if (dir >= 0)
		return 1;
	if (f->err != ENOENT)
		return dir;
	fault_set(f, 0, "there is no record of a box named '%s'", name);
	return fault_fix(f, "`carrel ps -a` lists those that there are.");
}

int boxes_erase(const char *name, struct fault *f)
{
	auto_close int all = open_all(false, f);

	return all < 0 ? all : tree_remove(all, name, f);
}

int boxes_remove(const struct box_record *r, bool changes, struct fault *f)
{
	struct box_record now = { .name = r->name };
	struct claim held;
	auto_close int all = open_all(false, f);
	int rc;

	if (all < 0)
		return all;
	/* While we hold the name, no box can begin to write. */
	if (registry_claim(r->name, CLAIM_STRICT, &held, f) < 0)
		return -EBUSY;
	look_at(all, r->name, &now);
	if (!now.problem)
		look_into(all, &now);
	if (boxes_is_old(&now) && (changes || !now.holds)) {
		rc = tree_remove(all, r->name, f);
	} else {
		fault_set(f, 0, "the record of '%s' is in use again", r->name);
		rc = -EBUSY;
	}
	registry_release(&held);
	return rc;
}
