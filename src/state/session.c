/*
 * state/session.c - one box's view of an instance
 *
 * See state/instance.h for the layout. Two locks keep order: `change` is held for a moment
 * by whoever adds or takes away a session or a layer; `busy` is shared by all boxes that run,
 * so who can have it alone knows that no layer is in use.
 */
#include "state/instance.h"
#include "state/root.h"
#include "state/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static const char version[] = "1\n";

const char *instance_dir(const char *id)
{
	const char *state = xdg_state();

	return state ? mem_printf("%s/instances/%s", state, id) : NULL;
}

/* "config-opencode" for ".config/opencode". */
static const char *part_name(const char *path)
{
	char *name = mem_strdup(path + (path[0] == '.'));

	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '-';
	return name;
}

/* ---- files of ours ---- */

/* Written whole or not at all. */
static int write_file(const char *dir, const char *name, const char *text, struct fault *f)
{
	const char *path = path_join(dir, name),
		   *new = mem_printf("%s.%d", path, (int)getpid());
	auto_close int fd =
		open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

	if (rc == 0 && (fsync(fd) < 0 || rename(new, path) < 0))
		rc = -errno;
	if (rc < 0) {
		(void)unlink(new);
		return fault_set(f, -rc, "write %s", str_visible(path));
	}
	return 0;
}

/* The instance's own files: made once; another version than ours is not touched. */
static int check_instance(const char *dir, const struct project *p, struct fault *f)
{
	const char *said = fd_read_file(AT_FDCWD, path_join(dir, "version"), 64);
	const char *root = fd_read_file(AT_FDCWD, path_join(dir, "project-root"), 1 << 16);
	int rc = 0;

	if (said && strcmp(said, version) != 0) {
		fault_set(f, 0, "%s was made by another version of carrel", str_visible(dir));
		return fault_fix(f, "Use that version, or remove the directory to begin anew.");
	}
	if (root && strcmp(root, p->root) != 0)
		return fault_set(f, 0, "%s belongs to %s, not to %s", str_visible(dir),
			str_visible(root), str_visible(p->root));
	if (!root)
		rc = write_file(dir, "project-root", p->root, f);
	if (rc == 0 && !said)
		rc = write_file(dir, "version", version, f);
	return rc;
}

static int lock_file(const char *dir, const char *name, int how, struct fault *f)
{
	auto_close int fd = open(path_join(dir, name),
		O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -1 : 0;

	while (rc == 0 && flock(fd, how) < 0)
		if (errno != EINTR)
			rc = -1;
	if (rc < 0)
		return fault_set(f, errno, "lock %s/%s", str_visible(dir), name);
	return take_fd(&fd);
}

/* ---- layers ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

typedef VEC(const char *) entries;

/* The numbered directories in dir/name, the oldest first. */
static void numbered(const char *dir, const char *name, entries *ret)
{
	DIR *d = opendir(path_join(dir, name));
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strlen(e->d_name) == 6 && strspn(e->d_name, "0123456789") == 6)
			vec_push(ret, mem_strdup(e->d_name));
	if (d)
		closedir(d);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
}

static const char *next_number(const entries *have)
{
	unsigned long last = have->n ? strtoul(have->v[have->n - 1], NULL, 10) : 0;

	return mem_printf("%06lu", last + 1);
}

static bool is_empty(int fd)
{
	int copy = openat(fd, ".", DIR_FLAGS);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	int n = 0;

	while (d && n < 3 && (e = readdir(d)))
		n++;
	if (d)
		closedir(d);
	return n <= 2;
}

/* What was only there to be mounted on. */
static void drop_mount_points(const struct part *part, int upper)
{
	struct stat st;

	for (size_t i = 0; part->own_dirs && part->own_dirs[i]; i++)
		(void)unlinkat(upper, part->own_dirs[i], AT_REMOVEDIR);
	for (size_t i = 0; part->own_files && part->own_files[i]; i++)
		if (fstatat(upper, part->own_files[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode) && st.st_size == 0)
			(void)unlinkat(upper, part->own_files[i], 0);
}

/* A box's upper directory becomes the newest layer, unless there is nothing in it. */
static int freeze(const char *dir, const char *session, const struct part *part,
	struct fault *f)
{
	const char *path = mem_printf("%s/sessions/%s", dir, session);
	auto_close int all = open(path_join(dir, "sessions"), DIR_FLAGS);
	auto_close int upper = open(path_join(path, "upper"), DIR_FLAGS);
	entries layers = { 0 };
	int rc = 0;

	if (upper >= 0) {
		drop_mount_points(part, upper);
		if (!is_empty(upper)) {
			numbered(dir, "layers", &layers);
			rc = tree_hide_journals(upper, f);
			if (rc == 0 &&
				rename(path_join(path, "upper"),
					mem_printf("%s/layers/%s", dir, next_number(&layers))) <
					0)
				rc = fault_set(f, errno, "keep what the box has written in %s",
					str_visible(path));
		}
	}
	if (rc == 0 && all >= 0)
		rc = tree_remove(all, session, f);
	return rc;
}

/* Sessions whose supervisor is gone. */
static int freeze_dead(const char *dir, const struct part *part, struct fault *f)
{
	entries sessions = { 0 };
	int rc = 0;

	numbered(dir, "sessions", &sessions);
	for (size_t i = 0; rc == 0 && i < sessions.n; i++) {
		auto_close int fd =
			open(mem_printf("%s/sessions/%s", dir, sessions.v[i]), DIR_FLAGS);

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			rc = freeze(dir, sessions.v[i], part, f);
	}
	return rc;
}

/* All layers into one; only when none is in use. */
static int compact(const char *dir, struct fault *f)
{
	auto_close int all = open(path_join(dir, "layers"), DIR_FLAGS), base = -1;
	entries layers = { 0 };
	int rc = 0;

	numbered(dir, "layers", &layers);
	if (layers.n < 2)
		return 0;
	base = openat(all, layers.v[0], DIR_FLAGS);
	if (base < 0)
		return fault_set(f, errno, "%s/layers", str_visible(dir));
	for (size_t i = 1; rc == 0 && i < layers.n; i++) {
		auto_close int newer = openat(all, layers.v[i], DIR_FLAGS);

		rc = newer < 0 ? fault_set(f, errno, "%s/layers", str_visible(dir))
			       : tree_merge(newer, base, f);
		if (rc == 0)
			rc = tree_remove(all, layers.v[i], f);
	}
	return rc;
}

static int compact_if_alone(const char *dir, struct fault *f)
{
	auto_close int alone = open(path_join(dir, "busy"),
		O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (alone < 0)
		return fault_set(f, errno, "lock %s/busy", str_visible(dir));
	return flock(alone, LOCK_EX | LOCK_NB) == 0 ? compact(dir, f) : 0;
}

/* ---- a session ---- */

static int make_own(const struct part *part, const char *own, struct fault *f)
{
	for (size_t i = 0; part->own_dirs && part->own_dirs[i]; i++)
		if (mkdir(path_join(own, part->own_dirs[i]), 0700) < 0 && errno != EEXIST)
			return fault_set(f, errno, "make %s/%s", str_visible(own),
				part->own_dirs[i]);
	for (size_t i = 0; part->own_files && part->own_files[i]; i++) {
		auto_close int fd = open(path_join(own, part->own_files[i]),
			O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

		if (fd < 0)
			return fault_set(f, errno, "make %s/%s", str_visible(own),
				part->own_files[i]);
	}
	return 0;
}

static int make_mount_points(const struct part *part, const char *upper, struct fault *f)
{
	return make_own(part, upper, f);
}

static int make_session(const char *dir, struct session_part *s, struct fault *f)
{
	entries sessions = { 0 };
	const char *path;
	int rc;

	numbered(dir, "sessions", &sessions);
	path = mem_printf("%s/sessions/%s", dir, next_number(&sessions));
	s->upper = path_join(path, "upper");
	s->work = path_join(path, "work");
	if (mkdir(path, 0700) < 0 || mkdir(s->upper, 0700) < 0 || mkdir(s->work, 0700) < 0)
		return fault_set(f, errno, "make %s", str_visible(path));
	s->lock = open(path, DIR_FLAGS);
	if (s->lock < 0 || flock(s->lock, LOCK_EX | LOCK_NB) < 0)
		return fault_set(f, errno, "lock %s", str_visible(path));
	rc = make_mount_points(s->part, s->upper, f);
	s->busy = rc < 0 ? rc : lock_file(dir, "busy", LOCK_SH, f);
	return s->busy < 0 ? s->busy : 0;
}

static void find_layers(const char *dir, struct session_part *s)
{
	entries layers = { 0 };

	numbered(dir, "layers", &layers);
	while (layers.n-- > 0)
		vec_push(&s->layers, mem_printf("%s/layers/%s", dir, layers.v[layers.n]));
}

static int begin_part(const char *dir, struct session_part *s, struct fault *f)
{
	static const char *const subs[] = { "own", "layers", "sessions" };
	auto_close int change = -1;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(subs); i++)
		rc = xdg_make(path_join(dir, subs[i]), f);
	if (rc == 0)
		rc = make_own(s->part, s->own, f);
	if (rc < 0 || s->part->whole)
		return rc;
	change = lock_file(dir, "change", LOCK_EX, f);
	if (change < 0)
		return change;
	rc = freeze_dead(dir, s->part, f);
	if (rc == 0)
		rc = compact_if_alone(dir, f);
	if (rc == 0)
		rc = make_session(dir, s, f);
	if (rc == 0)
		find_layers(dir, s);
	return rc;
}

int session_begin(const struct project *p, const char *harness, const struct part *parts,
	bool only_look, struct session *ret, struct fault *f)
{
	struct session s = { .dir = instance_dir(p->id), .harness = harness };
	int rc = 0;

	if (!s.dir) {
		fault_set(f, 0, "there is no place for this project's state: HOME is not set");
		return fault_fix(f, "Set HOME or XDG_STATE_HOME.");
	}
	if (!only_look)
		rc = xdg_make(s.dir, f);
	if (rc == 0 && !only_look)
		rc = check_instance(s.dir, p, f);
	for (const struct part *part = parts; rc == 0 && part->path; part++) {
		const char *dir = mem_printf("%s/%s/%s", s.dir, harness, part_name(part->path));
		struct session_part one = {
			.part = part, .own = path_join(dir, "own"), .busy = -1, .lock = -1
		};

		if (only_look)
			find_layers(dir, &one);
		else
			rc = begin_part(dir, &one, f);
		one.made = !only_look;
		vec_push(&s.parts, one);
	}
	if (rc == 0)
		*ret = s;
	return rc;
}

int session_file(struct session_part *part, const struct part_file *file, struct fault *f)
{
	const char *name = file->name;
	auto_close int fd = -1;
	struct stat st;
	int rc;

	if (part->part->whole)
		return part->made ? write_file(part->own, name, file->text, f) : 0;
	if (!part->upper)
		return 0;
	if (!file->always)
		vec_each(layer, &part->layers)
			if (lstat(path_join(*layer, name), &st) == 0)
				return 0;
	vec_push(&part->files, *file);
	fd = open(path_join(part->upper, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : fd_write_all(fd, file->text, strlen(file->text));
	return rc < 0 ? fault_set(f, -rc, "write %s/%s", str_visible(part->upper), name) : 0;
}

int session_prepare(const struct session_part *part, const char *dir, struct fault *f)
{
	int rc = xdg_make(dir, f);

	return rc < 0 ? rc : make_own(part->part, dir, f);
}

/* What was put there for the box, and is as it was. */
static void drop_files(const struct session_part *part)
{
	vec_each(file, &part->files) {
		const char *path = path_join(part->upper, file->name);
		struct stat st;
		const char *now;

		if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		now = fd_read_file(AT_FDCWD, path, 16 << 20);
		if (now && !strcmp(now, file->text))
			(void)unlink(path);
	}
}

static int end_part(struct session_part *s, struct fault *f)
{
	const char *session = path_parent(s->upper), *dir = path_parent(path_parent(session));
	auto_close int change = lock_file(dir, "change", LOCK_EX, f);
	int rc;

	if (change < 0)
		return change;
	drop_files(s);
	rc = freeze(dir, path_base(session), s->part, f);
	fd_close(&s->lock);
	fd_close(&s->busy);
	return rc < 0 ? rc : compact_if_alone(dir, f);
}

int session_end(struct session *s, struct fault *f)
{
	int rc = 0;

	vec_each(part, &s->parts) {
		int one = part->upper ? end_part(part, f) : 0;

		rc = one < 0 ? one : rc;
	}
	s->parts.n = 0;
	return rc;
}
