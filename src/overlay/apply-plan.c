/*
 * overlay/apply-plan.c - decide what to do with each change
 *
 * A change is taken if its base is the host's present file. If the host has changed since the
 * box started, the present file decides. If it equals the box's version, there is nothing to
 * do. If it equals the saved copy of the base, the change is taken. Two changed texts are
 * merged over that copy. Everything else is a conflict. A change is never dropped without an
 * entry that says so.
 */
#include "overlay/apply-steps.h"
#include "overlay/changeset.h"
#include "overlay/same.h"
#include "overlay/tree.h"
#include "plan/obeyed.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/merge.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_MERGED = 16 << 20 };

int apply_parent(int tree, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	const char *dir = slash ? mem_strndup(path, (size_t)(slash - path)) : ".";

	*ret_name = slash ? slash + 1 : path;
	return fd_open2(tree, dir, O_PATH | O_DIRECTORY | O_CLOEXEC, APPLY_BENEATH);
}

/* What the host has at that path now; st_mode 0: nothing. */
static int look_now(int tree, const char *path, struct stat *ret)
{
	const char *name;
	auto_close int dir = apply_parent(tree, path, &name);

	*ret = (struct stat){ 0 };
	if (dir >= 0 && fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	*ret = (struct stat){ 0 };
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV ? 0
										       : -errno;
}

/* ---- selection ---- */

static bool is_at_or_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strcmp(dir, ".") || (!strncmp(path, dir, n) && (!path[n] || path[n] == '/'));
}

/* A directory is also made if something in it is selected. */
static bool is_wanted(const struct apply *a, const struct changed *c)
{
	if (!a->only)
		return true;
	for (const char *const *path = a->only; *path; path++)
		if (is_at_or_below(c->path, *path) ||
			(c->box.type == TYPE_DIR && c->base.type != TYPE_DIR &&
				is_at_or_below(*path, c->path)))
			return true;
	return false;
}

static int check_only(const struct apply *a, struct fault *f)
{
	for (const char *const *path = a->only; path && *path; path++) {
		bool found = false;

		vec_each(c, &a->set->all)
			found |= !c->git && is_at_or_below(c->path, *path);
		if (!found)
			return fault_set(f, ENOENT, "apply '%s', which the box did not change",
				str_visible(*path));
	}
	return 0;
}

/* ---- what is guarded ---- */

/* Does the box see a directory of that name there, or for HEAD a file of any type? */
static bool box_has(const struct apply *a, const char *dir, const char *name)
{
	const char *path = *dir ? path_join(dir, name) : name;
	struct stat st;

	if (look_now(a->set->upper, path, &st) == 0 && st.st_mode)
		return !S_ISCHR(st.st_mode);
	return look_now(a->set->lower, path, &st) == 0 && st.st_mode;
}

/* git treats a directory with these three as a repository, and obeys its config. */
static bool makes_repository(const struct apply *a, const char *path)
{
	static const char *const parts[] = { "HEAD", "objects", "refs" };
	const char *slash = strrchr(path, '/');
	const char *dir = slash ? mem_strndup(path, (size_t)(slash - path)) : "";
	bool is_part = false, all = true;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		is_part |= !strcmp(path_base(path), parts[i]);
	for (size_t i = 0; is_part && i < ARRAY_SIZE(parts); i++)
		all &= box_has(a, dir, parts[i]);
	return is_part && all;
}

static bool leads_out(const struct apply *a, const struct changed *c)
{
	const char *full = path_join(a->root, c->path);

	return !path_within(path_clean(path_join(path_parent(full), c->box.link)), a->root);
}

/* Why it is taken only on request; or NULL. */
static const char *guard_of(const struct apply *a, const struct changed *c)
{
	bool dir = (c->box.type ? c->box.type : c->base.type) == TYPE_DIR;
	const struct obeyed *o = obeyed_find(c->path, dir);

	if (a->protects(a->protects_ctx, c->path, dir))
		return o ? mem_printf("protected: %s %s", o->who, o->why) : "protected";
	if (c->kind == CHANGED_DELETED)
		return NULL;
	if (makes_repository(a, c->path))
		return "protected: git would take its directory for a repository";
	if (c->box.type == TYPE_LINK && leads_out(a, c))
		return mem_printf("it leads out of the project, to %s",
			str_visible(c->box.link));
	return NULL;
}

/* ---- verdicts ---- */

static bool like_side(const struct stat *now, const struct changed_side *side)
{
	switch (side->type) {
	case TYPE_NONE:
		return !now->st_mode;
	case TYPE_FILE:
		return S_ISREG(now->st_mode) && (now->st_mode & 0777) == (side->mode & 0777) &&
			(unsigned long long)now->st_size == side->size;
	case TYPE_DIR:
		return S_ISDIR(now->st_mode) && (now->st_mode & 0777) == (side->mode & 0777);
	default:
		return S_ISLNK(now->st_mode) && side->type == TYPE_LINK;
	}
}

static int open_now(const struct apply *a, const char *path)
{
	return fd_open2(a->set->lower, path,
		O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC, APPLY_BENEATH);
}

/* Is the host's present file the same as that side of the change? */
static bool is_now(const struct apply *a, const struct changed *c, const struct stat *now,
	const struct changed_side *side)
{
	auto_close int mine = -1, theirs = -1;
	char link[PATH_MAX];
	const char *name;
	ssize_t n;

	if (!like_side(now, side))
		return false;
	if (side->type == TYPE_LINK) {
		auto_close int dir = apply_parent(a->set->lower, c->path, &name);

		n = dir < 0 ? -1 : readlinkat(dir, name, link, sizeof(link));
		return n >= 0 && (size_t)n == strlen(side->link) &&
			!memcmp(link, side->link, (size_t)n);
	}
	if (side->type != TYPE_FILE)
		return true;
	mine = open_now(a, c->path);
	theirs = side == &c->box ? changeset_open_box(a->set, c)
				 : changeset_open_base(a->set, c);
	return mine >= 0 && theirs >= 0 && same_bytes(mine, theirs) == 1;
}

static bool read_text(int fd, struct merge_text *ret)
{
	if (fd < 0)
		return false;
	ret->p = fd_read_bytes(fd, MOST_MERGED, &ret->n);
	return ret->p != NULL;
}

static bool is_alike(const struct merge_text *a, const struct merge_text *b)
{
	return a->n == b->n && (!a->n || !memcmp(a->p, b->p, a->n));
}

/* The result may equal the present file: merging again changes nothing. */
static bool merge_over(const struct apply *a, const struct merge_text *base, mode_t mode,
	const struct stat *now, struct apply_item *ret)
{
	struct merge_text ours, theirs, merged;
	struct str out = { 0 };

	if (!read_text(open_now(a, ret->change->path), &ours) ||
		!read_text(changeset_open_box(a->set, ret->change), &theirs))
		return false;
	/*
	 * A file with uncommitted changes was newer than its committed version when the box
	 * started. If one side equals the committed version, it has undone these changes, and a
	 * merge over the commit would not see that.
	 */
	if (ret->over_committed && (is_alike(base, &ours) || is_alike(base, &theirs)))
		return false;
	if (!merge_texts(base, &ours, &theirs, &out))
		return false;
	merged = (struct merge_text){ out.p, out.len };
	ret->text = out.p;
	ret->n = out.len;
	ret->mode = mode;
	ret->verdict = is_alike(&merged, &ours) && (mode & 0777) == (now->st_mode & 0777)
		? APPLY_THERE
		: APPLY_MERGED;
	return true;
}

static bool merge_over_kept(const struct apply *a, const struct stat *now,
	struct apply_item *ret)
{
	const struct changed *c = ret->change;
	struct merge_text base;

	return c->base_is == BASE_KEPT && c->base.type == TYPE_FILE &&
		read_text(changeset_open_base(a->set, c), &base) &&
		merge_over(a, &base, c->what & WHAT_MODE ? c->box.mode : now->st_mode, now,
			ret);
}

/* For files without a copy of their version at the start. */
static bool merge_over_committed(const struct apply *a, const struct stat *now,
	struct apply_item *ret)
{
	const struct changed *c = ret->change;
	struct apply_base found;
	struct merge_text base;

	if (c->base_is != BASE_UNSURE || !a->committed(a->committed_ctx, c->path, &found) ||
		found.n > MOST_MERGED)
		return false;
	base = (struct merge_text){ found.text, found.n };
	ret->over_committed = true;
	return merge_over(a, &base,
		!(c->box.mode & 0100) != !found.executable ? c->box.mode : now->st_mode, now,
		ret);
}

static const char *conflict(const struct changed *c, const struct stat *now)
{
	if (c->kind == CHANGED_DELETED)
		return "changed here, and deleted in the box";
	if (!now->st_mode)
		return "deleted here, and changed in the box";
	if (c->kind == CHANGED_ADDED)
		return "made here and in the box, and not alike";
	return "changed here and in the box";
}

/* The host has changed since the start. */
static void judge_changed(const struct apply *a, const struct stat *now, struct apply_item *i)
{
	const struct changed *c = i->change;

	if (is_now(a, c, now, &c->box))
		i->verdict = APPLY_THERE;
	else if (c->base_is == BASE_KEPT && is_now(a, c, now, &c->base))
		i->verdict = APPLY_TAKEN;
	else if (c->base_is == BASE_UNSURE && !now->st_mode &&
		!a->committed(a->committed_ctx, c->path, NULL))
		i->verdict = APPLY_TAKEN; /* only something else in its directory has changed */
	else if (c->box.type != TYPE_FILE || !S_ISREG(now->st_mode) ||
		(!merge_over_kept(a, now, i) && !merge_over_committed(a, now, i))) {
		i->verdict = APPLY_CONFLICT;
		i->why = conflict(c, now);
	}
}

static void judge_item(const struct apply *a, const struct stat *now, struct apply_item *i)
{
	const struct changed *c = i->change;
	const char *guard = guard_of(a, c);

	i->is_guarded = guard != NULL;
	i->verdict = APPLY_LEFT;
	if (c->unreadable || c->unlisted) {
		i->verdict = APPLY_CONFLICT;
		i->why = "it cannot be read in the box's layer";
	} else if (c->box.type == TYPE_OTHER)
		i->why = "neither a file nor a link nor a directory";
	else if (guard && !a->guarded)
		i->why = guard;
	else if (c->base_is == BASE_SAME)
		i->verdict = is_now(a, c, now, &c->box) ? APPLY_THERE : APPLY_TAKEN;
	else
		judge_changed(a, now, i);
}

/* ---- operations ---- */

static void add_op(struct apply *a, enum apply_kind kind, const struct apply_item *i,
	const struct stat *now, mode_t mode)
{
	vec_push(&a->ops,
		((struct apply_op){ .kind = kind,
			.path = i->change->path,
			.mode = mode & 0777,
			.old_mode = now->st_mode & 07777,
			.before = now->st_ino,
			.item = i }));
}

/* Remove what is deleted, or in the way of a new version; the last path first. */
static void add_removal(struct apply *a, const struct apply_item *i, const struct stat *now)
{
	enum change_type box = i->change->box.type;
	bool dir = S_ISDIR(now->st_mode);

	if (!now->st_mode || (box != TYPE_NONE && dir == (box == TYPE_DIR)))
		return;
	add_op(a, dir ? APPLY_RMDIR : APPLY_REMOVE, i, now, 0);
}

static bool only_mode(const struct apply_item *i, const struct stat *now)
{
	return i->verdict == APPLY_TAKEN && i->change->what == WHAT_MODE &&
		S_ISREG(now->st_mode) && i->change->box.type == TYPE_FILE;
}

static void add_making(struct apply *a, const struct apply_item *i, const struct stat *now)
{
	const struct changed *c = i->change;
	static const struct stat nothing;
	bool in_the_way = S_ISDIR(now->st_mode) != (c->box.type == TYPE_DIR);

	if (c->box.type == TYPE_NONE || only_mode(i, now))
		return;
	if (in_the_way)
		now = &nothing;
	if (c->box.type != TYPE_DIR)
		add_op(a, APPLY_PUT, i, now,
			i->verdict == APPLY_MERGED ? i->mode : c->box.mode);
	else if (!now->st_mode)
		add_op(a, APPLY_MKDIR, i, now, c->box.mode);
}

/*
 * Set the mode when the directory is complete, because it may become read-only; the last path
 * first.
 */
static void add_mode(struct apply *a, const struct apply_item *i, const struct stat *now)
{
	const struct changed *c = i->change;
	bool old_dir = c->box.type == TYPE_DIR && S_ISDIR(now->st_mode);

	if (c->box.type == TYPE_DIR && !old_dir)
		add_op(a, APPLY_CHMOD, i, &(struct stat){ .st_mode = S_IFDIR | 0700 },
			c->box.mode);
	else if ((old_dir && c->what & WHAT_MODE) || only_mode(i, now))
		add_op(a, APPLY_CHMOD, i, now, c->box.mode);
}

static bool is_done(const struct apply_item *i)
{
	return i->verdict == APPLY_TAKEN || i->verdict == APPLY_MERGED;
}

typedef VEC(struct stat) stat_vec;

static void add_ops(struct apply *a, const stat_vec *now)
{
	for (size_t i = a->items.n; i-- > 0;)
		if (is_done(&a->items.v[i]))
			add_removal(a, &a->items.v[i], &now->v[i]);
	for (size_t i = 0; i < a->items.n; i++)
		if (is_done(&a->items.v[i]))
			add_making(a, &a->items.v[i], &now->v[i]);
	for (size_t i = a->items.n; i-- > 0;)
		if (is_done(&a->items.v[i]))
			add_mode(a, &a->items.v[i], &now->v[i]);
}

static bool counts(const struct apply_item *i)
{
	const struct changed *c = i->change;

	return i->verdict >= APPLY_LEFT || (c->what & WHAT_TYPE) ||
		(c->kind == CHANGED_DELETED ? c->base : c->box).type != TYPE_DIR;
}

static int by_path(const void *key, const void *item)
{
	return path_compare(key, ((const struct apply_item *)item)->change->path);
}

/* Is the change of that path made? */
static const struct apply_item *find_done(const struct apply *a, const char *path)
{
	const struct apply_item *i =
		bsearch(path, a->items.v, a->items.n, sizeof(*a->items.v), by_path);

	return i && is_done(i) ? i : NULL;
}

/*
 * A directory is replaced only if everything in it is deleted too. Files that the user has put
 * there since are not.
 */
static bool has_more(const struct apply *a, const struct changed *c)
{
	auto_close int dir = fd_open2(a->set->lower, c->path,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC, APPLY_BENEATH);
	tree_names names = { 0 };

	if (dir < 0 || tree_list(dir, &names) < 0)
		return true;
	vec_each(name, &names)
		if (!find_done(a, path_join(c->path, *name)))
			return true;
	return false;
}

static void check_replaced(struct apply *a, const stat_vec *now)
{
	for (size_t i = 0; i < a->items.n; i++) {
		struct apply_item *item = &a->items.v[i];
		enum change_type box = item->change->box.type;

		if (!is_done(item) || !S_ISDIR(now->v[i].st_mode) || box == TYPE_DIR ||
			box == TYPE_NONE || !has_more(a, item->change))
			continue;
		item->verdict = APPLY_CONFLICT;
		item->why = "a directory here that has more in it, and something else in the "
			    "box";
	}
}

/* If a directory is not made, leave out everything in it. Parents come first. */
static void leave_below(struct apply *a)
{
	const struct apply_item *left = NULL;

	vec_each(i, &a->items) {
		if (left && is_at_or_below(i->change->path, left->change->path)) {
			if (!is_done(i))
				continue;
			i->verdict = left->verdict;
			i->why = left->why;
			i->is_guarded = left->is_guarded;
		} else if (i->verdict == APPLY_LEFT && i->change->box.type == TYPE_DIR &&
			i->change->base.type != TYPE_DIR) {
			left = i;
		}
	}
}

/*
 * A directory that was deleted here, and that the box has as it was, is made again only for
 * what is put into it. What is in it comes next.
 */
static void leave_gone(struct apply *a)
{
	for (size_t i = a->items.n; i-- > 0;) {
		struct apply_item *item = &a->items.v[i];
		bool needed = false;

		if (!item->change->gone || item->verdict != APPLY_TAKEN)
			continue;
		for (size_t k = i + 1; !needed && k < a->items.n; k++) {
			const struct apply_item *below = &a->items.v[k];

			if (!is_at_or_below(below->change->path, item->change->path))
				break;
			needed = is_done(below) && below->change->box.type != TYPE_NONE;
		}
		if (!needed)
			item->verdict = APPLY_THERE;
	}
}

int apply_plan(struct apply *a, struct fault *f)
{
	stat_vec now = { 0 };
	int rc = check_only(a, f);

	if (rc < 0)
		return rc;
	vec_each(c, &a->set->all) {
		struct apply_item item = { .change = c };
		struct stat st;

		a->git += c->git;
		if (c->git || !strcmp(c->path, ".") || !is_wanted(a, c))
			continue;
		rc = look_now(a->set->lower, c->path, &st);
		if (rc < 0)
			return fault_set(f, -rc, "look at '%s'", str_visible(c->path));
		judge_item(a, &st, &item);
		vec_push(&a->items, item);
		vec_push(&now, st);
	}
	leave_below(a);
	leave_gone(a);
	check_replaced(a, &now);
	vec_each(i, &a->items)
		a->count[i->verdict] += counts(i);
	add_ops(a, &now);
	return 0;
}
