/*
 * overlay/changes.c - compare layers with the directory below them
 *
 * All layers are read at once, the newest first, as overlayfs does: the first layer that has a
 * name decides, and directories are merged down to an opaque one or to a file of that name. A
 * box has written the layers, so links in them are not followed. Links in the user's directory
 * are not followed either, so that they are compared as links.
 */
#include "overlay/changes.h"
#include "overlay/same.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	MOST_DEPTH = 64,
	MOST_TEXT = 1 << 20,   /* of a file that is shown */
	MOST_TEXTS = 64 << 20, /* of all of them */
	MOST_TAKEN = 64 << 20, /* of a file that is asked for by name */
	MOST_LAYERS = 128,
	MOST_GLANCES = 500, /* names in the layers that a start examines */
};

struct search {
	const struct layers *l;
	const char *only;
	bool below;     /* and everything in it */
	tree_names own; /* names at the top that do not count as changes */
	size_t texts;   /* bytes read so far */
	bool glance;    /* look only for outdated files */
	size_t names;   /* names that were examined so far */
	change_vec *ret;
};

/* The directories that are merged at one path: descriptors, the newest first. */
struct stack {
	int v[MOST_LAYERS];
	/* the top of a layer that is not frozen yet; or NULL */
	const char *session[MOST_LAYERS];
	size_t n;
};

static void close_stack(struct stack *s)
{
	while (s->n)
		close(s->v[--s->n]);
}

/* ---- one side ---- */

enum change_type change_type_of(mode_t mode)
{
	return S_ISREG(mode)    ? TYPE_FILE
		: S_ISDIR(mode) ? TYPE_DIR
		: S_ISLNK(mode) ? TYPE_LINK
				: TYPE_OTHER;
}

static struct change_side side_at(int dir, const char *name)
{
	struct change_side side = { 0 };
	char link[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return side;
	side.type = change_type_of(st.st_mode);
	side.mode = st.st_mode & 0777;
	side.size = (unsigned long long)st.st_size;
	side.mtime = st.st_mtim;
	side.ctime = st.st_ctim;
	n = side.type == TYPE_LINK ? readlinkat(dir, name, link, sizeof(link)) : -1;
	if (n >= 0)
		side.link = mem_strndup(link, (size_t)n);
	return side;
}

static void read_side(struct search *s, int dir, const char *name, struct change_side *side)
{
	size_t most = s->only ? MOST_TAKEN : MOST_TEXT;

	if (side->type != TYPE_FILE || side->size > most || s->texts > MOST_TEXTS)
		return;
	side->text = tree_read(dir, name, most, &side->n);
	s->texts += side->text ? side->n : 0;
}

static bool same(int users, int box, const char *name, const struct change_side *u,
	const struct change_side *b)
{
	auto_close int x = -1, y = -1;

	if (u->type != b->type || u->mode != b->mode)
		return false;
	if (u->type == TYPE_LINK)
		return u->link && b->link && !strcmp(u->link, b->link);
	if (u->type != TYPE_FILE || u->size != b->size)
		return u->type == TYPE_DIR;
	x = tree_open_file(users, name);
	y = tree_open_file(box, name);
	return x >= 0 && y >= 0 && same_bytes(x, y) > 0;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/*
 * Compare the mtime, and the ctime in case a tool has set the mtime back, as `cp -p` does.
 * Merging layers sets the ctime of the box's file, so the ctime alone is not enough.
 */
static bool is_outdated(const struct change_side *users, const struct change_side *box)
{
	return users->type == TYPE_FILE && box->type == TYPE_FILE &&
		(is_later(&users->mtime, &box->mtime) || is_later(&users->ctime, &box->ctime));
}

/* ---- going through ---- */

static bool wanted(const struct search *s, const char *path)
{
	return !s->only || !strcmp(s->only, path) || (s->below && path_within(path, s->only));
}

/* Is the selected name at or below this path? */
static bool on_the_way(const struct search *s, const char *path)
{
	size_t n = strlen(path);

	return wanted(s, path) || (!strncmp(s->only, path, n) && strchr("/", s->only[n]));
}

/* box -1: it is gone. */
static void compare_sides(struct search *s, int users, int box, const char *name,
	const char *path)
{
	struct change c = {
		.name = path, .users = side_at(users, name), .box = side_at(box, name)
	};

	c.outdated = is_outdated(&c.users, &c.box);
	if (!wanted(s, path) || (c.users.type == TYPE_NONE && c.box.type == TYPE_NONE) ||
		(s->glance && !c.outdated) ||
		(box >= 0 && same(users, box, name, &c.users, &c.box)))
		return;
	if (s->glance) {
		vec_push(s->ret, c);
		return;
	}
	read_side(s, users, name, &c.users);
	read_side(s, box, name, &c.box);
	vec_push(s->ret, c);
}

static int walk_stack(struct search *s, struct stack *stack, int users, bool hidden,
	const char *path, int depth);

static bool has_name(const tree_names *names, const char *name)
{
	vec_each(one, names)
		if (!strcmp(*one, name))
			return true;
	return false;
}

/* Open a directory so that it can be read and searched: a box may have set any mode. */
static int open_inside(int dir, const char *name)
{
	int fd = openat(dir, name, DIR_FLAGS);

	if (fd >= 0 && faccessat(fd, ".", X_OK, AT_EACCESS) < 0)
		fd_close(&fd);
	return fd;
}

/*
 * Open the directories of that name that are merged, from layer `first` on; true: they hide
 * everything below. *unseen: one of them cannot be read.
 */
static bool descend(const struct stack *stack, size_t first, const char *name,
	struct stack *ret, bool *unseen)
{
	for (size_t i = first; i < stack->n; i++) {
		struct change_side side = side_at(stack->v[i], name);
		int fd = side.type == TYPE_DIR ? open_inside(stack->v[i], name) : -1;

		if (side.type == TYPE_NONE)
			continue;
		*unseen |= fd < 0 && side.type == TYPE_DIR;
		if (fd < 0)
			return true;
		ret->session[ret->n] = NULL;
		ret->v[ret->n++] = fd;
		if (tree_is_opaque(fd))
			return true;
	}
	return false;
}

/* The selected name may be in it, so it is always listed. */
static void add_unseen(struct search *s, int users, int box, const char *name, const char *path)
{
	struct change c = {
		.name = path, .users = side_at(users, name), .box = side_at(box, name)
	};

	c.box.unseen = true;
	vec_push(s->ret, c);
}

static int walk_dir(struct search *s, struct stack *stack, size_t first, int users,
	const char *name, const char *path, int depth)
{
	struct stack *sub = mem_alloc(sizeof(*sub));
	struct change_side u = side_at(users, name);
	bool unseen = depth >= MOST_DEPTH, hidden = descend(stack, first, name, sub, &unseen);
	auto_close int under = u.type == TYPE_DIR ? openat(users, name, DIR_FLAGS) : -1;
	size_t before = s->ret->n;
	int rc = 0;

	if (unseen)
		add_unseen(s, users, stack->v[first], name, path);
	else if (u.type != TYPE_NONE && u.type != TYPE_DIR) /* something else was there */
		compare_sides(s, users, stack->v[first], name, path);
	/* It may contain the user's files, so none of them is listed as deleted. */
	if (depth < MOST_DEPTH)
		rc = walk_stack(s, sub, under, hidden && !unseen, path, depth + 1);
	/* A new directory without contents. */
	if (rc == 0 && u.type == TYPE_NONE && s->ret->n == before)
		compare_sides(s, -1, stack->v[first], name, path);
	close_stack(sub);
	return rc;
}

/* Skip files that carrel put there for the box, and mount points. */
static bool not_the_boxes(const struct search *s, const struct stack *stack, size_t i,
	const char *name, int depth)
{
	return depth == 0 &&
		(has_name(&s->own, name) ||
			(stack->session[i] &&
				layers_was_put(stack->session[i], stack->v[i], name)));
}

static int walk_name(struct search *s, struct stack *stack, int users, const char *name,
	const char *path, int depth)
{
	for (size_t i = 0; i < stack->n; i++) {
		enum change_type type = side_at(stack->v[i], name).type;

		if (type == TYPE_NONE || not_the_boxes(s, stack, i, name, depth))
			continue;
		if (type == TYPE_DIR)
			return walk_dir(s, stack, i, users, name, path, depth);
		compare_sides(s, users, tree_is_whiteout(stack->v[i], name) ? -1 : stack->v[i],
			name, path);
		return 0;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int walk_stack(struct search *s, struct stack *stack, int users, bool hidden,
	const char *path, int depth)
{
	tree_names names = { 0 }, theirs = { 0 };
	const char *last = NULL;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < stack->n; i++)
		rc = tree_list(stack->v[i], &names);
	if (names.n)
		qsort(names.v, names.n, sizeof(*names.v), by_name);
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		const char *full = *path ? path_join(path, names.v[i]) : names.v[i];

		if (s->glance && s->names++ >= MOST_GLANCES)
			return 0;
		if ((!last || strcmp(last, names.v[i])) && on_the_way(s, full))
			rc = walk_name(s, stack, users, names.v[i], full, depth);
		last = names.v[i];
	}
	if (rc == 0 && hidden && users >= 0 && !s->glance)
		rc = tree_list(users, &theirs);
	for (size_t i = 0; rc == 0 && i < theirs.n; i++)
		if (!has_name(&names, theirs.v[i]))
			compare_sides(s, users, -1, theirs.v[i], path_join(path, theirs.v[i]));
	return rc;
}

/* ---- all of it ---- */

static void add_layer(struct stack *stack, const char *path, const char *session)
{
	int fd = stack->n < MOST_LAYERS ? open(path, DIR_FLAGS) : -1;

	if (fd < 0)
		return;
	stack->session[stack->n] = session;
	stack->v[stack->n++] = fd;
}

static int open_stack(const struct layers *l, struct stack *ret, struct fault *f)
{
	tree_names sessions = { 0 }, frozen = { 0 };
	int rc = layers_numbered(l->dir, "sessions", &sessions, f);

	if (rc == 0)
		rc = layers_numbered(l->dir, "layers", &frozen, f);
	while (rc == 0 && sessions.n-- > 0) {
		const char *one = mem_printf("%s/sessions/%s", l->dir, sessions.v[sessions.n]);

		if (!layers_is_running(l->dir, sessions.v[sessions.n]) && layers_has_begun(one))
			add_layer(ret, path_join(one, "upper"), one);
	}
	while (rc == 0 && frozen.n-- > 0)
		add_layer(ret, mem_printf("%s/layers/%s", l->dir, frozen.v[frozen.n]), NULL);
	return rc;
}

/* The names in a directory of the part's; none if it is not there. */
static void add_names(const struct layers *l, const char *name, tree_names *ret)
{
	auto_close int fd = open(path_join(l->dir, name), DIR_FLAGS);

	if (fd >= 0)
		(void)tree_list(fd, ret);
}

static int search(struct search *s, struct fault *f)
{
	auto_close int users = layers_open_users(s->l);
	struct stack *stack = mem_alloc(sizeof(*stack));
	int rc;

	add_names(s->l, "own", &s->own);
	/*
	 * Session data are hidden too, unless the caller asks for a name in them, a plan for
	 * example.
	 */
	if (!s->only)
		add_names(s->l, "hiding", &s->own);
	for (size_t i = 0; !s->only && s->l->notes && s->l->notes[i]; i++)
		vec_push(&s->own, s->l->notes[i]);
	rc = open_stack(s->l, stack, f);
	if (rc == 0) {
		rc = walk_stack(s, stack, users, false, "", 0);
		if (rc < 0)
			fault_set(f, -rc, "read %s", str_visible(s->l->dir));
	}
	close_stack(stack);
	return rc;
}

/* Lock the layers against changes. */
static int search_locked(struct search *s, struct fault *f)
{
	/* If it exists: looking must work even if nothing can be written. */
	auto_close int change = open(path_join(s->l->dir, "change"),
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	while (change >= 0 && flock(change, LOCK_SH) < 0)
		if (errno != EINTR)
			return fault_set(f, errno, "lock %s/change", str_visible(s->l->dir));
	return search(s, f);
}

int changes_find(const struct layers *l, const char *only, bool below, change_vec *ret,
	struct fault *f)
{
	struct search s = { .l = l, .only = only, .below = below, .ret = ret };

	return search_locked(&s, f);
}

int changes_outdated(const struct layers *l, tree_names *ret, struct fault *f)
{
	change_vec all = { 0 };
	struct search s = { .l = l, .glance = true, .ret = &all };
	int rc = search_locked(&s, f);

	vec_each(c, &all)
		if (rc == 0 && c->outdated)
			vec_push(ret, c->name);
	return rc;
}

/* ---- taking over ---- */

static bool equal(const struct change_side *a, const struct change_side *b)
{
	if (a->type != b->type || a->mode != b->mode || !a->text != !b->text)
		return false;
	return !a->text || (a->n == b->n && !memcmp(a->text, b->text, a->n));
}

/* No layer may be in use; layers of dead boxes are frozen first. */
static int settle_layers(const struct layers *l, struct fault *f)
{
	int busy = layers_lock(l->dir, "busy", LOCK_EX | LOCK_NB, f), rc;

	if (busy < 0 && f->err == EWOULDBLOCK) {
		fault_set(f, 0, "a box of this project runs, and its layers are in use");
		fault_fix(f, "End it, then try again.");
		return -EBUSY;
	}
	if (busy < 0)
		return busy;
	/* No box can begin while we hold `change`, which layers_compact() needs. */
	close(busy);
	rc = layers_freeze_dead(l, NULL, NULL, f);
	return rc < 0 ? rc : layers_compact(l, NULL, f);
}

static int still_so(const struct layers *l, const struct change *c, struct fault *f)
{
	change_vec now = { 0 };
	struct search s = { .l = l, .only = c->name, .ret = &now };
	int rc = search(&s, f);

	if (rc < 0)
		return rc;
	if (now.n == 1 && equal(&now.v[0].users, &c->users) && equal(&now.v[0].box, &c->box))
		return 0;
	return fault_set(f, 0, "%s has changed in the meantime", str_visible(c->name));
}

/* Open the directory of a name below dir; no part of the path may be a link. */
static int open_parent(int dir, const char *name, bool make)
{
	int fd = openat(dir, ".", DIR_FLAGS);

	for (const char *slash; fd >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		const char *part = mem_strndup(name, (size_t)(slash - name));
		int up = fd;

		if (make)
			(void)mkdirat(up, part, 0755);
		fd = openat(up, part, DIR_FLAGS);
		fd_close(&up);
	}
	return fd;
}

static mode_t mode_of(const struct change *c)
{
	/* Never take over write permission for others: that is the user's decision. */
	return c->box.mode & ~(022 & ~c->users.mode);
}

static int write_users(int parent, const struct change *c)
{
	static const char new[] = ".carrel.new";
	auto_close int fd = -1;
	int rc;

	/*
	 * One process at a time, so that the temporary file has one name, and the next process
	 * finds what a killed one left. Do not wait for the lock: a box that sees the directory
	 * can hold it for ever.
	 */
	if (flock(parent, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	(void)unlinkat(parent, new, 0);
	fd = openat(parent, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : fd_write_all(fd, c->box.text, c->box.n);
	if (rc == 0 &&
		(fchmod(fd, mode_of(c)) < 0 || fsync(fd) < 0 ||
			renameat(parent, new, parent, path_base(c->name)) < 0))
		rc = -errno;
	if (rc < 0)
		(void)unlinkat(parent, new, 0);
	return rc;
}

static int change_users(const struct layers *l, const struct change *c, struct fault *f)
{
	auto_close int users = -1, parent = -1;
	int rc;

	if (mkdir(l->users, 0700) < 0 && errno != EEXIST)
		return fault_set(f, errno, "make %s", str_visible(l->users));
	users = layers_open_users(l);
	parent = users < 0 ? -1 : open_parent(users, c->name, c->box.type != TYPE_NONE);
	if (parent < 0 && (errno == ELOOP || errno == ENOTDIR)) {
		fault_set(f, 0, "%s: there is a link on the way", str_visible(c->name));
		return fault_fix(f, "Copy it by hand to where it belongs.");
	}
	if (parent < 0)
		return fault_set(f, errno, "open %s",
			str_visible(path_join(l->users, c->name)));
	if (c->box.type == TYPE_FILE)
		rc = write_users(parent, c);
	else if (c->box.type == TYPE_DIR)
		rc = mkdirat(parent, path_base(c->name), 0755) < 0 ? -errno : 0;
	else
		rc = unlinkat(parent, path_base(c->name), 0) < 0 ? -errno : 0;
	if (rc == 0)
		return 0;
	fault_set(f, -rc, "write %s", str_visible(path_join(l->users, c->name)));
	if (rc == -EBUSY)
		return fault_fix(f,
			"Somebody has locked its directory: another `take`, or a box that "
			"sees it. Try again when that has ended.");
	return rc;
}

/*
 * Open the directory of a name in the single layer that exists while no box runs. 0: there is
 * no layer. 1: *ret is the directory, or -1 with errno; *ret_last is the name's last part. If a
 * directory on the way hides the user's, *ret_opaque is its name, and the search stops there.
 */
static int open_in_layer(const struct layers *l, const char *full, int *ret,
	const char **ret_last, const char **ret_opaque, struct fault *f)
{
	tree_names names = { 0 };
	int rc = layers_numbered(l->dir, "layers", &names, f), dir, up;
	const char *slash;

	*ret_last = full;
	*ret_opaque = NULL;
	if (rc < 0 || !names.n)
		return rc < 0 ? rc : 0;
	dir = open(mem_printf("%s/layers/%s", l->dir, names.v[0]), DIR_FLAGS);
	for (; dir >= 0 && (slash = strchr(*ret_last, '/')); *ret_last = slash + 1) {
		up = dir;
		dir = tree_open(up, mem_strndup(*ret_last, (size_t)(slash - *ret_last)));
		fd_close(&up);
		if (dir >= 0 && tree_is_opaque(dir)) {
			*ret_opaque = mem_strndup(full, (size_t)(slash - full));
			break;
		}
	}
	*ret = dir;
	return 1;
}

/*
 * In a directory that hides the user's, the box's file has to stay: otherwise the next box
 * would not see the user's new file.
 */
static int drop_change(const struct layers *l, const struct change *c, struct fault *f)
{
	const char *last, *opaque;
	auto_close int dir = -1;
	int rc = open_in_layer(l, c->name, &dir, &last, &opaque, f);

	if (rc <= 0 || opaque || dir < 0)
		return rc < 0 ? rc : 0;
	if (unlinkat(dir, last, c->box.type == TYPE_DIR ? AT_REMOVEDIR : 0) < 0 &&
		errno != ENOENT)
		return fault_set(f, errno, "take %s out of its layer", str_visible(c->name));
	return 0;
}

static bool is_plain(const struct change *c)
{
	/*
	 * A new directory without contents; other directories are represented by their
	 * contents.
	 */
	if (c->box.type == TYPE_DIR)
		return c->users.type == TYPE_NONE;
	return (c->users.type == TYPE_FILE || c->users.type == TYPE_NONE) &&
		(c->box.type == TYPE_FILE || c->box.type == TYPE_NONE);
}

int changes_takable(const change_vec *all, struct fault *f)
{
	vec_each(c, all) {
		if (c->box.unseen) {
			fault_set(f, 0, "%s: a directory that cannot be looked into",
				str_visible(c->name));
			return fault_fix(f,
				"In a box of this project, `chmod -R u+rwX` makes it "
				"readable.");
		}
		if (!is_plain(c))
			return fault_set(f, 0, "%s: only plain files are taken over",
				str_visible(c->name));
		if (c->box.type == TYPE_FILE && !c->box.text)
			return fault_set(f, EFBIG, "%s", str_visible(c->name));
	}
	return 0;
}

int changes_take(const struct layers *l, const change_vec *all, struct fault *f)
{
	auto_close int change = -1;
	int rc = changes_takable(all, f);

	if (rc < 0)
		return rc;
	if (!l->users)
		return fault_set(f, 0, "your home is not known");
	change = layers_lock(l->dir, "change", LOCK_EX, f);
	if (change < 0)
		return change;
	rc = settle_layers(l, f);
	for (size_t i = 0; rc == 0 && i < all->n; i++)
		rc = still_so(l, &all->v[i], f);
	for (size_t i = 0; rc == 0 && i < all->n; i++) {
		rc = change_users(l, &all->v[i], f);
		if (rc == 0)
			rc = drop_change(l, &all->v[i], f);
	}
	return rc;
}

/* ---- forgetting ---- */

static int in_opaque(const char *name, const char *dir, struct fault *f)
{
	fault_set(f, 0, "%s: a box has replaced the whole directory", str_visible(name));
	return fault_fix(f, "Drop %s instead.", str_visible(dir));
}

static int remove_from_layer(const struct layers *l, const char *full, struct fault *f)
{
	const char *last, *opaque;
	auto_close int dir = -1;
	int rc = open_in_layer(l, full, &dir, &last, &opaque, f);

	if (rc <= 0)
		return rc;
	if (opaque)
		return in_opaque(full, opaque, f);
	if (dir < 0)
		return fault_set(f, errno, "open the layer of %s", str_visible(full));
	return tree_remove(dir, last, f);
}

int changes_drop(const struct layers *l, const char *name, const change_vec *all,
	struct fault *f)
{
	auto_close int change = layers_lock(l->dir, "change", LOCK_EX, f);
	int rc = change < 0 ? change : settle_layers(l, f);

	for (size_t i = 0; rc == 0 && i < all->n; i++)
		rc = still_so(l, &all->v[i], f);
	return rc < 0 ? rc : remove_from_layer(l, name, f);
}
