/*
 * state/session.c - one box's view of an instance
 *
 * See state/instance.h for the layout, and overlay/layers.h for the locks.
 */
#include "state/instance.h"
#include "overlay/layers.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* Mostly it exists, and looking costs less than trying to make it. */
static bool is_there(int fd, const char *name, mode_t type)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		(st.st_mode & S_IFMT) == type;
}

/* In `own` of the part that is open as fd; AT_FDCWD: own is the user's directory itself. */
static int make_own(const struct part *part, int fd, const char *own, struct fault *f)
{
	const char *below = fd == AT_FDCWD ? own : "own";

	for (size_t i = 0; part->own_dirs && part->own_dirs[i]; i++) {
		const char *name = path_join(below, part->own_dirs[i]);

		if (!is_there(fd, name, S_IFDIR) && mkdirat(fd, name, 0700) < 0 &&
			errno != EEXIST)
			return fault_set(f, errno, "make %s/%s", str_visible(own),
				part->own_dirs[i]);
	}
	for (size_t i = 0; part->own_files && part->own_files[i]; i++) {
		const char *name = path_join(below, part->own_files[i]);
		auto_close int file = -1;

		if (is_there(fd, name, S_IFREG))
			continue;
		file = openat(fd, name,
			O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (file < 0)
			return fault_set(f, errno, "make %s/%s", str_visible(own),
				part->own_files[i]);
	}
	return 0;
}

/* A layer of white-outs, made once: it hides these names, whatever the user has. */
static int make_hiding(int fd, const char *dir, const struct part *part, struct fault *f)
{
	const char *hiding = path_join(dir, "hiding");
	size_t n = 0;

	if (!part->traces)
		return 0;
	while (part->traces[n])
		n++;
	/* They are made in order, and new ones are appended: if the last exists, all do. */
	if (n == 0 || tree_is_whiteout(fd, path_join("hiding", part->traces[n - 1])))
		return 0;
	if (mkdir(hiding, 0700) < 0 && errno != EEXIST)
		return fault_set(f, errno, "make %s", str_visible(hiding));
	for (size_t i = 0; i < n; i++)
		if (mknod(path_join(hiding, part->traces[i]), S_IFCHR, makedev(0, 0)) < 0 &&
			errno != EEXIST) {
			fault_set(f, errno, "make the white-out %s/%s", str_visible(hiding),
				part->traces[i]);
			return layers_lacking(f);
		}
	return 0;
}

static struct layers layers_of(const struct session_part *s)
{
	const struct part *part = s->part;
	const char *home = getenv("HOME");

	return (struct layers){ .fd = s->dir,
		.dir = path_parent(s->own),
		.users = home && home[0] == '/' ? path_join(home, part->path) : NULL };
}

/*
 * A process that only checks whether a session is locked holds it for a moment: wait for that.
 */
static int lock_session(int dir, const char *name)
{
	auto_close int fd = openat(dir, path_join("sessions", name), DIR_FLAGS);

	while (fd >= 0 && flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return fd < 0 ? -errno : take_fd(&fd);
}

/* Mostly the previous box has left them. */
static int make_dir(int dir, const char *name, const char *path, bool left, struct fault *f)
{
	if (mkdirat(dir, name, 0700) == 0 || (left && errno == EEXIST))
		return 0;
	return fault_set(f, errno, "make %s", str_visible(path));
}

static int make_session(const struct layers *l, const char *name, const char *rest,
	struct session_part *s, struct fault *f)
{
	const char *path = mem_printf("%s/sessions/%s", l->dir, name);
	struct fault ignored = { 0 };
	bool taken = rest && layers_take_rest(l, rest, name, &s->before, &ignored) == 0;
	int rc = taken ? 0 : make_dir(l->fd, path_join("sessions", name), path, false, f);

	/* Others read there which layers are in use. */
	if (rc == 0 && s->before && !str_starts(s->before, s->notes.p)) {
		rc = layers_clear(path, f);
		s->before = NULL;
	}
	if (rc < 0)
		return rc;
	s->session = path;
	s->lock = lock_session(l->fd, name);
	if (s->lock < 0) {
		fault_set(f, -s->lock, "lock %s", str_visible(path));
		return layers_lacking(f);
	}
	s->busy = layers_lock_at(l->fd, l->dir, "busy", LOCK_SH, f);
	if (s->busy < 0 || s->part->whole)
		return s->busy < 0 ? s->busy : 0;
	s->upper = path_join(path, "upper");
	s->work = path_join(path, "work");
	rc = make_dir(s->lock, "upper", s->upper, taken, f);
	return rc < 0 ? rc : make_dir(s->lock, "work", s->work, taken, f);
}

static void add_layers(const char *dir, const tree_names *layers, struct session_part *s)
{
	for (size_t i = layers->n; i-- > 0;)
		vec_push(&s->layers, mem_printf("%s/layers/%s", dir, layers->v[i]));
}

static int look_at_layers(const char *dir, struct session_part *s, struct fault *f)
{
	tree_names layers = { 0 };
	int rc = layers_numbered(dir, "layers", &layers, f);

	if (rc == 0)
		add_layers(dir, &layers, s);
	return rc;
}

/* dir/name must be ours; dir is open as fd. */
static int make_ours(int fd, const char *dir, const char *name, uid_t me, struct fault *f)
{
	struct stat st;

	if (fstatat(fd, name, &st, 0) == 0 && S_ISDIR(st.st_mode) && st.st_uid == me)
		return 0;
	return xdg_make(path_join(dir, name), f);
}

/* Open the part's directory in that of the instance, and make all that a box needs. */
static int enter_part(const struct session *all, struct session_part *s, struct fault *f)
{
	static const char *const subs[] = { "own", "layers", "sessions" };
	const char *dir = path_parent(s->own), *name = path_below(dir, all->dir);
	const uid_t me = geteuid();
	int rc = make_ours(all->lock, all->dir, all->harness, me, f);

	if (rc == 0)
		rc = make_ours(all->lock, all->dir, name, me, f);
	if (rc < 0)
		return rc;
	s->dir = openat(all->lock, name, DIR_FLAGS);
	if (s->dir < 0)
		return fault_set(f, errno, "open %s", str_visible(dir));
	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(subs); i++)
		rc = make_ours(s->dir, dir, subs[i], me, f);
	if (rc == 0)
		rc = make_own(s->part, s->dir, s->own, f);
	return rc < 0 ? rc : make_hiding(s->dir, dir, s->part, f);
}

static int begin_part(const struct session *all, struct session_part *s, struct fault *f)
{
	tree_names sessions = { 0 }, layers = { 0 };
	struct fault ignored = { 0 };
	auto_close int change = -1;
	const char *rest;
	struct layers l;
	int rc = enter_part(all, s, f);

	if (rc < 0)
		return rc;
	l = layers_of(s);
	change = layers_lock_at(l.fd, l.dir, "change", LOCK_EX, f);
	if (change < 0)
		return change;
	rc = layers_freeze_dead(&l, &sessions, &rest, f);
	if (rc < 0)
		return rc;
	/* Layers that could not be merged, or only half, show the same files as merged ones. */
	if (layers_compact(&l, &layers, &ignored) < 0) {
		layers.n = 0;
		rc = layers_numbered_at(l.fd, l.dir, "layers", &layers, f);
	}
	layers_note(&layers, &s->notes);
	if (rc == 0)
		rc = make_session(&l, layers_next(&sessions), rest, s, f);
	add_layers(l.dir, &layers, s);
	return rc;
}

/* On failure s holds what was begun. */
static int begin_parts(struct session *s, const struct part *parts, bool only_look,
	struct fault *f)
{
	int rc = 0;

	for (const struct part *part = parts; rc == 0 && part->path; part++) {
		const char *dir = mem_printf("%s/%s/%s", s->dir, s->harness,
			instance_part_name(part->path));
		struct session_part one = { .part = part,
			.own = path_join(dir, "own"),
			.dir = -1,
			.busy = -1,
			.lock = -1 };

		rc = only_look ? look_at_layers(dir, &one, f) : begin_part(s, &one, f);
		one.made = !only_look;
		vec_push(&s->parts, one);
	}
	return rc;
}

int session_begin(const struct project *p, const char *harness, const struct part *parts,
	bool only_look, struct session *ret, struct fault *f)
{
	struct session s = { .harness = harness, .lock = -1 };
	struct fault ignored = { 0 };
	int rc;

	if (only_look) {
		rc = instance_look(p, &s.dir, f);
	} else {
		s.lock = instance_enter(p, &s.dir, f);
		rc = s.lock < 0 ? s.lock : 0;
	}
	if (rc == 0)
		rc = begin_parts(&s, parts, only_look, f);
	if (rc == 0)
		*ret = s;
	else
		(void)session_end(&s, 0, &ignored);
	return rc;
}

static int write_own(const struct session_part *part, const char *name, const char *text,
	struct fault *f)
{
	auto_close int change = layers_lock(path_parent(part->own), "change", LOCK_EX, f);

	return change < 0 ? change : instance_write(part->own, name, text, f);
}

int session_file(struct session_part *part, const struct part_file *file, struct fault *f)
{
	if (part->part->whole)
		return part->made ? write_own(part, file->name, file->text, f) : 0;
	layers_note_put(file->name, file->text, &part->notes);
	vec_push(&part->put, *file);
	return 0;
}

/* The previous box may have had the same. */
static int ready_part(const struct session_part *s, struct fault *f)
{
	int rc = 0;

	if (s->before && !strcmp(s->before, s->notes.p))
		return 0;
	if (s->before)
		rc = layers_clear(s->session, f);
	return rc < 0 ? rc : layers_begin(s->session, &s->notes, f);
}

int session_ready(struct session *s, struct fault *f)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->parts.n; i++)
		if (s->parts.v[i].session)
			rc = ready_part(&s->parts.v[i], f);
	return rc;
}

int session_prepare(const struct session_part *part, const char *dir, struct fault *f)
{
	int rc = xdg_make(dir, f);

	return rc < 0 ? rc : make_own(part->part, AT_FDCWD, dir, f);
}

static int end_part(struct session_part *s, pid_t init, struct fault *f)
{
	const struct layers l = layers_of(s);
	auto_close int change = layers_lock_at(l.fd, l.dir, "change", LOCK_EX, f);
	int rc = change < 0 ? change : layers_freeze(&l, path_base(s->session), init, f);

	fd_close(&s->lock);
	fd_close(&s->busy);
	return rc < 0 ? rc : layers_compact(&l, NULL, f);
}

int session_end(struct session *s, pid_t init, struct fault *f)
{
	int rc = 0;

	vec_each(part, &s->parts) {
		int one = part->session ? end_part(part, init, f) : 0;

		fd_close(&part->dir);
		rc = one < 0 ? one : rc;
	}
	s->parts.n = 0;
	if (s->dir)
		fd_close(&s->lock);
	s->dir = NULL;
	return rc;
}
