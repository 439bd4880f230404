/*
 * overlay/changeset.c - compare an upper layer with the tree below it
 *
 * A list of directories replaces recursion, and each is opened by its path beneath the root, so
 * depth costs neither stack nor descriptors. Three rules define the set:
 *
 *	- a white-out deletes what the lower tree has by that name, with all below it;
 *	- a directory without the opaque mark leaves the names that only the lower tree has as
 *	  they are; one with it, and all below such a one, deletes them;
 *	- every other name is compared with its counterpart in the lower tree, also below an
 *	  opaque directory: one that was removed and made again alike has not changed.
 */
#include "overlay/changeset.h"
#include "overlay/same.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	BENEATH =
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	MOST_KEPT = 1 << 20,
	MOST_KEPT_ALL = 64 << 20,
	MOST_MARKS = 10000,
};

/* A directory to look into. */
struct todo {
	const char *path;
	bool box;      /* the upper layer has it; else all of the lower one is deleted */
	bool lower;    /* the lower tree has it */
	bool opaque;   /* it hides names that only the lower tree has */
	bool unsteady; /* the host may have had it at the start */
	bool moved;    /* the host may have put all of it there since the start */
	bool absent;   /* nothing of it was there at the start */
};

struct search {
	struct changeset *set;
	VEC(struct todo) todo;
	/* The directory that is being read, and its counterparts; -1: none. */
	const char *path;
	int upper, lower, kept;
	bool opaque, unsteady; /* names were added or removed on the host since the start */
	bool moved, absent;    /* see struct todo */
};

/* ---- one side ---- */

static struct changed_side side_at(int dir, const char *name)
{
	struct changed_side side = { 0 };
	char link[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return side;
	side = (struct changed_side){ .type = change_type_of(st.st_mode),
		.mode = st.st_mode & 07777,
		.size = (unsigned long long)st.st_size,
		.dev = st.st_dev,
		.ino = st.st_ino,
		.links = st.st_nlink,
		.mtime = st.st_mtim,
		.ctime = st.st_ctim };
	n = side.type == TYPE_LINK ? readlinkat(dir, name, link, sizeof(link)) : -1;
	if (side.type == TYPE_LINK)
		side.link = n < 0 ? "" : mem_strndup(link, (size_t)n);
	return side;
}

static bool is_since(const struct changeset *s, const struct timespec *t)
{
	return t->tv_sec > s->since.tv_sec ||
		(t->tv_sec == s->since.tv_sec && t->tv_nsec >= s->since.tv_nsec);
}

/*
 * The state of dir/name at the start, as far as it is known. merged: the box has a directory
 * there, and its contents are compared one by one, so its own ctime does not matter.
 *
 * For a directory that the box deleted or replaced it does matter. Its ctime is new if somebody
 * changed a name in it or moved it there, and the contents of a moved directory have old times.
 * So if its parent changed too, the directory and everything in it may be newer than the start.
 */
static struct changed_side look_base(const struct search *s, const char *name, bool merged,
	int *ret_dir, enum changed_base *ret_is)
{
	struct changed_side lower = side_at(s->lower, name), kept;
	const struct changed_side nothing = { 0 };
	bool moved = lower.type != TYPE_NONE && s->moved;

	*ret_dir = s->lower;
	*ret_is = s->absent ? BASE_KEPT : BASE_SAME;
	if (s->absent)
		return nothing;
	if (s->set->now ||
		(!moved &&
			(lower.type != TYPE_NONE ? !is_since(s->set, &lower.ctime)
						 : !s->unsteady)))
		return lower;
	kept = side_at(s->kept, name);
	if (kept.type == TYPE_DIR && lower.type == TYPE_NONE && !merged) {
		*ret_dir = s->kept;
		*ret_is = BASE_KEPT;
		return kept;
	}
	if (kept.type == TYPE_OTHER) {
		*ret_is = BASE_KEPT; /* mark_absent() */
		return nothing;
	}
	if (lower.type == TYPE_DIR &&
		(kept.type == TYPE_DIR ||
			(kept.type == TYPE_NONE && (merged || (!moved && !s->unsteady)))))
		return lower;
	*ret_is = kept.type == TYPE_FILE || kept.type == TYPE_LINK ? BASE_KEPT : BASE_UNSURE;
	if (*ret_is == BASE_UNSURE)
		return lower;
	*ret_dir = s->kept;
	return kept;
}

/* ---- entries ---- */

static const char *path_of(const struct search *s, const char *name)
{
	return *s->path ? path_join(s->path, name) : mem_strdup(name);
}

static bool is_git(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (!strncmp(at, ".git", 4) && (!at[4] || at[4] == '/'))
			return true;
	}
	return false;
}

static void count_change(struct changeset *set, const struct changed *c)
{
	bool dir = (c->kind == CHANGED_DELETED ? c->base : c->box).type == TYPE_DIR;

	set->partial |= c->unreadable || c->unlisted;
	set->git += c->git;
	if (c->git || (dir && !(c->what & WHAT_TYPE)))
		return;
	set->added += c->kind == CHANGED_ADDED;
	set->changed += c->kind == CHANGED_CHANGED;
	set->deleted += c->kind == CHANGED_DELETED;
}

static void add_change(struct search *s, struct changed c)
{
	c.git = is_git(c.path);
	vec_push(&s->set->all, c);
}

/* List the names below a directory of the lower tree that was deleted or replaced. */
static void delete_below(struct search *s, const char *path, enum changed_base is)
{
	vec_push(&s->todo,
		((struct todo){ .path = path, .lower = true, .moved = is == BASE_UNSURE }));
}

static void add_deleted(struct search *s, const char *path, const struct changed_side *base,
	enum changed_base is)
{
	add_change(s,
		(struct changed){
			.path = path, .kind = CHANGED_DELETED, .base = *base, .base_is = is });
	if (base->type == TYPE_DIR)
		delete_below(s, path, is);
}

static unsigned int compare_sides(const struct search *s, int base_dir, const char *name,
	const struct changed_side *base, const struct changed_side *box, bool *unreadable)
{
	unsigned int what = 0;

	if (base->type != box->type)
		return WHAT_TYPE;
	if (base->type != TYPE_LINK && base->mode != box->mode)
		what |= WHAT_MODE;
	if (base->type == TYPE_LINK && strcmp(base->link, box->link) != 0)
		what |= WHAT_CONTENT;
	if (base->type == TYPE_FILE) {
		int same =
			base->size == box->size ? same_bytes_at(base_dir, s->upper, name) : 0;

		*unreadable = same < 0;
		what |= same > 0 ? 0 : WHAT_CONTENT;
	}
	if ((base->type == TYPE_FILE || base->type == TYPE_DIR) &&
		!same_xattrs_at(base_dir, s->upper, name))
		what |= WHAT_XATTRS;
	return what;
}

/* ---- going through ---- */

/* Leave room for one more name: a deeper path would be too long for any system call. */
static bool too_deep(const char *path)
{
	return strlen(path) + 1 + NAME_MAX >= PATH_MAX;
}

static bool can_enter(int dir, const char *name)
{
	auto_close int fd = openat(dir, name, DIR_FLAGS);

	return fd >= 0 && faccessat(fd, ".", X_OK, AT_EACCESS) == 0;
}

static bool is_opaque(int dir, const char *name)
{
	auto_close int fd = openat(dir, name, DIR_FLAGS);

	return fd >= 0 && tree_is_opaque(fd);
}

static void enter_dir(struct search *s, const struct changed *c, bool lower)
{
	vec_push(&s->todo,
		((struct todo){ .path = c->path,
			.box = true,
			.lower = lower,
			.opaque = s->opaque || is_opaque(s->upper, path_base(c->path)),
			.unsteady = c->base_is == BASE_UNSURE,
			.absent = c->base_is == BASE_KEPT && c->base.type != TYPE_DIR }));
}

static void visit_dir(struct search *s, struct changed *c)
{
	c->unlisted = too_deep(c->path) || !can_enter(s->upper, path_base(c->path));
	if (!c->unlisted)
		enter_dir(s, c, c->base.type == TYPE_DIR);
}

/* Compare a name that the upper layer has. */
static void visit_name(struct search *s, const char *name)
{
	struct changed c = { .path = path_of(s, name), .kind = CHANGED_CHANGED };
	int base_dir;

	c.box = side_at(s->upper, name);
	c.base = look_base(s, name, c.box.type == TYPE_DIR, &base_dir, &c.base_is);
	if (tree_is_whiteout(s->upper, name)) {
		if (c.base.type != TYPE_NONE || c.base_is == BASE_UNSURE)
			add_deleted(s, c.path, &c.base, c.base_is);
		return;
	}
	if (c.box.type == TYPE_NONE)
		return; /* it was removed meanwhile */
	c.gone = c.box.type == TYPE_DIR && c.base.type == TYPE_NONE &&
		c.base_is == BASE_UNSURE && side_at(s->kept, name).type == TYPE_DIR;
	if (c.box.type == TYPE_DIR)
		visit_dir(s, &c);
	else if (c.base.type == TYPE_DIR)
		delete_below(s, c.path, c.base_is);
	if (c.base.type == TYPE_NONE)
		c.kind = CHANGED_ADDED;
	else
		c.what = compare_sides(s, base_dir, name, &c.base, &c.box, &c.unreadable);
	if (c.kind == CHANGED_ADDED || c.what || c.unlisted)
		add_change(s, c);
	else if (c.base_is == BASE_SAME && !is_git(c.path))
		vec_push(&s->set->unchanged, c.path);
}

static void delete_name(struct search *s, const char *name)
{
	int base_dir;
	enum changed_base is;
	struct changed_side base = look_base(s, name, false, &base_dir, &is);

	if (base.type != TYPE_NONE)
		add_deleted(s, path_of(s, name), &base, is);
}

/* Both lists are sorted: find the names that only the second has. */
static void delete_others(struct search *s, const tree_names *upper, const tree_names *lower)
{
	size_t i = 0;

	vec_each(name, lower) {
		while (i < upper->n && strcmp(upper->v[i], *name) < 0)
			i++;
		if (i == upper->n || strcmp(upper->v[i], *name) != 0)
			delete_name(s, *name);
	}
}

static int open_beneath(int root, const char *path)
{
	if (root < 0)
		return -1;
	return *path ? fd_open2(root, path, DIR_FLAGS, BENEATH) : openat(root, ".", DIR_FLAGS);
}

static void open_all(struct search *s, const struct todo *todo)
{
	struct stat st;

	s->path = todo->path;
	s->opaque = todo->opaque;
	s->moved = todo->moved;
	s->absent = todo->absent;
	s->upper = todo->box ? open_beneath(s->set->upper, todo->path) : -1;
	s->lower = todo->lower ? open_beneath(s->set->lower, todo->path) : -1;
	s->kept = open_beneath(s->set->kept, todo->path);
	s->unsteady = s->lower < 0 ? todo->unsteady || s->kept >= 0
				   : fstat(s->lower, &st) == 0 && is_since(s->set, &st.st_mtim);
}

static void close_all(struct search *s)
{
	fd_close(&s->upper);
	fd_close(&s->lower);
	fd_close(&s->kept);
}

/* Names that were removed meanwhile are no error; a directory that cannot be listed is. */
static int look_into(struct search *s, const struct todo *todo)
{
	tree_names upper = { 0 }, lower = { 0 };
	int rc = 0, from;

	open_all(s, todo);
	from = s->lower >= 0 ? s->lower : s->kept; /* the host has deleted it since */
	if (s->upper >= 0)
		rc = tree_list(s->upper, &upper);
	if (rc == 0 && from >= 0 && todo->lower && (todo->opaque || !todo->box))
		rc = tree_list(from, &lower);
	vec_each(name, &upper)
		visit_name(s, *name);
	delete_others(s, &upper, &lower);
	close_all(s);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	const struct changed *x = a, *y = b;

	return path_compare(x->path, y->path);
}

/* The root has no name in its own layer, and no mark. */
static void look_at_root(struct search *s)
{
	struct changed c = { .path = ".", .kind = CHANGED_CHANGED };

	s->upper = s->set->upper;
	c.base = side_at(s->set->lower, ".");
	c.box = side_at(s->set->upper, ".");
	c.what = compare_sides(s, s->set->lower, ".", &c.base, &c.box, &c.unreadable);
	if (c.what)
		add_change(s, c);
}

int changeset_find(struct changeset *set, struct fault *f)
{
	struct search s = { .set = set };
	int rc = 0;

	look_at_root(&s);
	vec_push(&s.todo, ((struct todo){ .path = "", .box = true, .lower = true }));
	while (rc == 0 && s.todo.n) {
		struct todo next = s.todo.v[--s.todo.n];

		rc = look_into(&s, &next);
		if (rc < 0)
			return fault_set(f, -rc, "read what the box changed in '%s'",
				str_visible(*next.path ? next.path : "."));
	}
	if (set->all.n)
		qsort(set->all.v, set->all.n, sizeof(*set->all.v), by_path);
	vec_each(c, &set->all)
		count_change(set, c);
	return 0;
}

/* ---- contents ---- */

static int open_file(int root, const char *path)
{
	int fd = fd_open2(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC,
		BENEATH);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int changeset_open_base(const struct changeset *s, const struct changed *c)
{
	return open_file(c->base_is == BASE_KEPT ? s->kept : s->lower, c->path);
}

int changeset_open_box(const struct changeset *s, const struct changed *c)
{
	return open_file(s->upper, c->path);
}

/* ---- keeping the base ---- */

static int keep_base(const struct changeset *s, const struct changed *c, int to)
{
	auto_close int dir = tree_make_parent(to, c->path), from = -1;
	const char *name = path_base(c->path);

	if (dir < 0)
		return -errno;
	if (c->base.type == TYPE_DIR) {
		if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		return fchmodat(dir, name, (c->base.mode & 0777) | 0700, 0) < 0 ? -errno : 0;
	}
	if (c->base.type == TYPE_LINK)
		return symlinkat(c->base.link, dir, name) < 0 && errno != EEXIST ? -errno : 0;
	from = open_file(s->lower, c->path);
	/* A file that the user cannot read cannot be merged later. */
	return from < 0 ? 0 : tree_copy_open(from, dir, name);
}

/* A FIFO stands for a name that the host did not have. */
static int mark_absent(const char *path, int to)
{
	auto_close int dir = tree_make_parent(to, path);

	return dir < 0 ||
			(mknodat(dir, path_base(path), S_IFIFO | 0600, 0) < 0 &&
				errno != EEXIST)
		? -errno
		: 0;
}

/* Of a directory that is new the mark counts for all that is in it. */
static int mark_all_absent(const struct changeset *s, int to, struct fault *f)
{
	const char *new_dir = NULL;
	size_t n = 0;

	vec_each(c, &s->all) {
		int rc = 0;

		if (c->git || (new_dir && path_within(c->path, new_dir)))
			continue;
		if (c->box.type == TYPE_DIR && c->base.type != TYPE_DIR)
			new_dir = c->path;
		if (c->kind == CHANGED_ADDED && c->base_is == BASE_SAME && n++ < MOST_MARKS)
			rc = mark_absent(c->path, to);
		if (rc < 0)
			return fault_set(f, -rc, "note that '%s' is new", str_visible(c->path));
	}
	return 0;
}

static int keep_unchanged(const struct changeset *s, const char *path, int to)
{
	auto_close int from = -1, dir = -1;
	const char *name = path_base(path);

	from = open_beneath(s->upper,
		mem_strndup(path, name > path ? (size_t)(name - path) - 1 : 0));
	dir = from < 0 ? -1 : tree_make_parent(to, path);
	if (from < 0 || dir < 0)
		return -errno;
	if (side_at(from, name).type == TYPE_DIR)
		return mkdirat(dir, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
	return linkat(from, name, dir, name, 0) < 0 && errno != EEXIST ? -errno : 0;
}

int changeset_keep(const struct changeset *s, int to, struct fault *f)
{
	unsigned long long all = 0;

	vec_each(c, &s->all) {
		int rc;

		if (c->kind == CHANGED_ADDED || c->base_is != BASE_SAME || c->git ||
			c->base.type == TYPE_OTHER || c->base.size > MOST_KEPT ||
			all + c->base.size > MOST_KEPT_ALL)
			continue;
		all += c->base.size;
		rc = keep_base(s, c, to);
		if (rc < 0)
			return fault_set(f, -rc, "keep a copy of '%s'", str_visible(c->path));
	}
	vec_each(path, &s->unchanged) {
		int rc = keep_unchanged(s, *path, to);

		if (rc < 0)
			return fault_set(f, -rc, "keep '%s'", str_visible(*path));
	}
	return mark_all_absent(s, to, f);
}
