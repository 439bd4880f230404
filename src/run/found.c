/*
 * run/found.c - find files that the host would execute
 *
 * A directory is new if the survey did not see this inode at this path; a file has changed if
 * its ctime is new. A box can forge neither: a directory that was filled under another name and
 * then moved has an inode that the survey did not see at this path, and nothing sets a ctime
 * back. Where a write may leave the ctime as it is, contents are compared (host/contents.h).
 * This is a report, not a verdict.
 */
#include "run/found.h"
#include "host/contents.h"
#include "host/git-dirs.h"
#include "host/walk.h"
#include "box/stub.h"
#include "plan/plan.h"
#include "git/git-files.h"
#include "base/fault.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct search {
	const struct plan *plan;
	const struct timespec *since;
	planted_vec *found;
	name_vec repos; /* that may be git directories */
};

static int by_inode(const void *a_, const void *b_)
{
	const struct known *a = a_, *b = b_;

	return (a->inode > b->inode) - (a->inode < b->inode);
}

/* They are sorted already. */
static bool is_known(const struct plan *p, const struct walk_entry *e)
{
	const struct known key = { .inode = e->inode }, *end = p->known.v + p->known.n, *at;

	at = p->known.n ? bsearch(&key, p->known.v, p->known.n, sizeof(*p->known.v), by_inode)
			: NULL;
	while (at && at > p->known.v && at[-1].inode == e->inode)
		at--;
	for (; at && at < end && at->inode == e->inode; at++)
		if (!strcmp(at->rel, e->rel))
			return true;
	return false;
}

/*
 * Is it a stub directory, of this box or of another? Contents of our stubs come from outside,
 * or are data that the box may write.
 */
static bool is_stub_dir(const struct plan *p, const struct walk_entry *e)
{
	vec_each(place, &p->places)
		if (place->kind == PLACE_STUB && place->dir &&
			path_within(place->source, p->workspace) &&
			!strcmp(path_below(place->source, p->workspace), e->rel))
			return true;
	return stub_at(walk_dir(e), e->name);
}

static void add_unseen(struct search *s, const char *rel, int err)
{
	if (!look_is_absent(err))
		vec_push(s->found,
			((struct planted){ mem_strdup(rel),
				mem_printf("it could not be looked at: %s", strerror(err)),
				PLANTED_UNSEEN }));
}

static bool changed(struct search *s, const struct walk_entry *e)
{
	const struct timespec *since = s->since;
	struct fault f = { 0 };
	struct stat st;
	int rc;

	if (stub_is_known(e->type, e->inode))
		return false;
	rc = walk_dir(e) < 0 ? -errno : look_at(walk_dir(e), e->name, &st, &f);
	if (rc < 0)
		add_unseen(s, e->rel, -rc);
	/* Another box in the same workspace has its own stubs there. */
	if (rc <= 0 || stub_seen(&st, walk_dir(e), e->name))
		return false;
	return st.st_ctim.tv_sec > since->tv_sec ||
		(st.st_ctim.tv_sec == since->tv_sec && st.st_ctim.tv_nsec >= since->tv_nsec);
}

/* Is some part before the last exactly this name? */
static bool is_below(const char *rel, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = rel; (at = strstr(at, name)); at++)
		if ((at == rel || at[-1] == '/') && at[n] == '/')
			return true;
	return false;
}

static bool is_in_hooks(const struct walk_entry *e)
{
	static const char hooks[] = "/hooks/";
	const size_t n = strlen(hooks), at = strlen(e->rel) - strlen(e->name);

	return at >= n ? !memcmp(e->rel + at - n, hooks, n)
		       : at == n - 1 && !memcmp(e->rel, hooks + 1, at);
}

/* If that cannot be determined, assume it is. */
static bool is_there(const struct walk_entry *e, const char *rel)
{
	return walk_dir(e) < 0 || faccessat(walk_dir(e), rel, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
		!look_is_absent(errno);
}

/* A bare repository has no name of its own. */
static bool git_obeys(const struct walk_entry *e, struct planted *ret)
{
	ret->rank = PLANTED_GIT;
	if (!strcmp(e->name, "config") &&
		(walk_has(e, "HEAD") || walk_has(e, "objects") || walk_has(e, "refs")))
		ret->why = "git obeys it, and runs what it names";
	else if (!strcmp(e->name, "commondir"))
		ret->why = "git takes its configuration from there";
	else if (is_in_hooks(e) && !str_ends(e->name, ".sample") && is_there(e, "../HEAD") &&
		is_there(e, "../objects"))
		ret->why = "git runs it";
	return ret->why;
}

/* A new directory of such files: each file in it may be old. */
static bool is_bare_hooks(const struct walk_entry *e)
{
	return !strcmp(e->name, "hooks") && walk_has(e, "HEAD") && walk_has(e, "objects");
}

static enum walk_next report(struct search *s, const struct walk_entry *e,
	const struct planted *what)
{
	vec_push(s->found, ((struct planted){ mem_strdup(e->rel), what->why, what->rank }));
	return WALK_SKIP;
}

/*
 * An obeyed directory is new by its inode. A directory inside it is new by its ctime, because
 * it may have been moved there. The survey does not look into node_modules, so the ctime
 * decides there too.
 */
static bool is_new(struct search *s, const struct walk_entry *e)
{
	if (is_known(s->plan, e) || is_stub_dir(s->plan, e))
		return false;
	return (planted_could_be(e->rel) && !is_below(e->rel, "node_modules")) || changed(s, e);
}

static enum walk_next visit_dir(struct search *s, const struct walk_entry *e)
{
	struct planted what = { 0 };

	if (planted_obeyed(e->rel, true, &what) && is_new(s, e))
		return report(s, e, &what);
	if (is_bare_hooks(e) && changed(s, e))
		return report(s, e,
			&(struct planted){
				.why = "git runs what is in it", .rank = PLANTED_GIT });
	/* host/git-dirs.c examines the contents of git directories. */
	return !strcmp(e->name, ".git") ? WALK_SKIP : WALK_ON;
}

/* Read-only in the box, or not there at all? The last match is the deepest. */
static bool is_shielded(const struct plan *p, const char *path)
{
	for (size_t i = p->places.n; i-- > 0;) {
		const struct place *in = &p->places.v[i];

		if (in->source && path_within(path, in->source))
			return in->kind == PLACE_PROTECT || in->kind == PLACE_HIDE;
	}
	return false;
}

/* The same time and other contents. The survey has not looked into node_modules. */
static bool differs(struct search *s, const struct walk_entry *e)
{
	struct stat st;

	return s->plan->contents && contents_are_needed(s->plan->contents, e) &&
		!stub_is_known(e->type, e->inode) && !is_below(e->rel, "node_modules") &&
		!is_shielded(s->plan, path_join(s->plan->workspace, e->rel)) &&
		walk_dir(e) >= 0 &&
		fstatat(walk_dir(e), e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		!stub_seen(&st, walk_dir(e), e->name) &&
		contents_differ(s->plan->contents, walk_dir(e), e->name, &st);
}

static enum walk_next visit_entry(void *ctx, const struct walk_entry *e)
{
	struct planted what = { 0 };
	struct search *s = ctx;

	git_dirs_gather(e, &s->repos);
	if (e->is_dir)
		return visit_dir(s, e);
	if (planted_obeyed(e->rel, false, &what))
		return changed(s, e) || differs(s, e) ? report(s, e, &what) : WALK_ON;
	/* host/git-dirs.c compares the contents of these. */
	return git_obeys(e, &what) && changed(s, e) ? report(s, e, &what) : WALK_ON;
}

/*
 * If a program outside replaces a protected file by renaming, as `git config` does, the kernel
 * removes the box's mount on it. So protected files are examined too.
 */
static void add_replaced(const struct plan *p, const char *path, planted_vec *found)
{
	const char *rel =
		path_within(path, p->workspace) ? path_below(path, p->workspace) : path;

	vec_push(found,
		((struct planted){ rel, "protected, but replaced from outside meanwhile",
			PLANTED_GIT_DIR }));
}

/* Sort by directory, so that files of one kind in one directory are neighbours. */
static int in_order(const void *a_, const void *b_)
{
	const struct planted *a = a_, *b = b_;
	const char *a_name = path_base(a->rel), *b_name = path_base(b->rel);
	size_t n = (size_t)(a_name - a->rel), m = (size_t)(b_name - b->rel);
	int order = (a->rank > b->rank) - (a->rank < b->rank);

	if (!order)
		order = memcmp(a->rel, b->rel, n < m ? n : m);
	if (!order)
		order = (n > m) - (n < m);
	if (!order)
		order = strcmp(a->why, b->why);
	return order ? order : strcmp(a_name, b_name);
}

static int by_path(const void *a_, const void *b_)
{
	const struct planted *a = a_, *b = b_;
	int order = strcmp(a->rel, b->rel);

	return order ? order : in_order(a, b);
}

void planted_sort(planted_vec *found)
{
	size_t n = 0;

	if (!found->n)
		return;
	qsort(found->v, found->n, sizeof(*found->v), by_path);
	for (size_t i = 0; i < found->n; i++)
		if (!n || strcmp(found->v[i].rel, found->v[n - 1].rel) != 0)
			found->v[n++] = found->v[i];
	found->n = n;
	qsort(found->v, found->n, sizeof(*found->v), in_order);
}

static bool was_replaced(struct search *s, const struct place *place)
{
	struct fault f = { 0 };
	struct stat st;
	int rc;

	/* planted_add() reports stubs that were replaced. */
	if ((place->kind != PLACE_PROTECT && place->kind != PLACE_CONFIG) || place->stub)
		return false;
	rc = look_at(AT_FDCWD, place->source, &st, &f);
	if (rc < 0)
		add_unseen(s, place->source, -rc);
	return rc > 0 && st.st_ino != place->inode;
}

static bool is_named(const name_vec *names, const char *path)
{
	vec_each(name, names)
		if (!strcmp(*name, path))
			return true;
	return false;
}

void planted_add(const struct plan *p, const char *const *replaced, const name_vec *made,
	planted_vec *ret)
{
	for (; *replaced; replaced++)
		if (!is_named(made, *replaced))
			add_replaced(p, *replaced, ret);
}

static void unseen(void *ctx, const char *rel, const struct fault *f)
{
	struct search *s = ctx;

	add_unseen(s, *rel ? rel : s->plan->workspace, f->err);
}

int planted_find(const struct plan *p, const struct timespec *since, planted_vec *ret,
	struct fault *f)
{
	struct search s = { .plan = p, .since = since, .found = ret };
	int rc;

	if (p->known.n)
		qsort(p->known.v, p->known.n, sizeof(*p->known.v), by_inode);
	vec_each(place, &p->places)
		if (was_replaced(&s, place))
			add_replaced(p, place->source, ret);
	rc = walk_tree(&(struct walk_how){ .root = p->workspace,
			       .visit = visit_entry,
			       .ctx = &s,
			       .filter = planted_filter(),
			       .cache = "end",
			       .unseen = unseen },
		f);
	git_dirs_check(p, &s.repos, since, ret);
	return rc < 0 ? rc : git_unseen(f);
}
