/*
 * host/survey-trail.c - every part of a path that a box could exchange
 *
 * A rule names a path. Whoever can exchange a directory or a link on the way to it can make it
 * lead elsewhere, so the rule has all of them in its trail. The way is walked part by part over
 * the real file system, as the kernel does it: a `..` behind a link leaves the directory that
 * the link led to, and a way that leaves the workspace may come back, or go on in another
 * directory that the box can write. Parts outside of all those need no pin: no box can exchange
 * them.
 */
#include "host/survey.h"
#include "box/stub.h"
#include "plan/host.h"
#include "plan/request.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { MAX_LINKS = 40 };

/* One walk. */
struct walk {
	struct host *h;
	struct rule rule;
	const char *at;   /* the directory that it is in, canonical */
	const char *rest; /* the parts that are left */
	int links;
	bool masked; /* a mask of the box that we are in lies on the way */
};

void survey_failed(struct host *h, const struct fault *f)
{
	if (h->failed)
		return;
	h->failed = mem_alloc(sizeof(*h->failed));
	*h->failed = *f;
}

/* The directory that a box shows, and that path is below, NULL: none. */
static const char *shown_in(const struct host *h, enum path_rule kind, const char *path)
{
	const name_vec *roots = kind == RULE_HIDE ? &h->shown : &h->writable;

	if (h->workspace.real && path_within(path, h->workspace.real))
		return h->workspace.real;
	if (h->git_common && path_within(path, h->git_common))
		return h->git_common;
	vec_each(root, roots)
		if (path_within(path, *root))
			return *root;
	return NULL;
}

bool survey_reaches(const struct host *h, const char *path)
{
	return shown_in(h, RULE_PROTECT, path) != NULL;
}

/*
 * A name without links on a tmpfs is a mask of the box that we are in, which does the same
 * already. Other file systems (FUSE) may just not count links.
 */
static bool on_tmpfs(const char *path)
{
	auto_close int fd = openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static enum kind kind_of(const struct stat *st)
{
	return S_ISLNK(st->st_mode)    ? KIND_LINK
		: S_ISDIR(st->st_mode) ? KIND_DIR
		: S_ISREG(st->st_mode) ? KIND_FILE
				       : KIND_OTHER;
}

/*
 * Could the box make a name in this directory? Not on a read-only file system, and not in
 * somebody else's directory that we may not write to.
 */
static bool could_create_in(const char *dir)
{
	static const char *last;
	static bool could;
	struct stat st;

	/* Asked for name after name of the same directory. */
	if (last && !strcmp(last, dir))
		return could;
	last = dir;
	could = access(dir, W_OK) == 0 ||
		(errno != EROFS && stat(dir, &st) == 0 && st.st_uid == getuid());
	return could;
}

/* A part that the box shows. Rules about one directory come one after the other. */
static int look_inside(const struct walk *w, const char *path, struct fact *ret,
	struct fault *f)
{
	const struct host *h = w->h;
	struct stat st;
	int rc;

	*ret = (struct fact){ .path = path };
	if (*w->rest && h->rules.n)
		vec_each(known, &h->rules.v[h->rules.n - 1].trail)
			if (!strcmp(known->path, path)) {
				*ret = *known;
				return 0;
			}
	rc = look_at(AT_FDCWD, path, &st, f);
	if (rc <= 0 || stub_seen(&st, AT_FDCWD, path))
		return rc < 0 ? rc : 0;
	ret->inode = st.st_ino;
	ret->kind = st.st_nlink == 0 && on_tmpfs(path) ? KIND_MASKED : kind_of(&st);
	return 0;
}

/* One that it does not. Where we may not go, neither goes who follows the path for us. */
static int look_outside(const char *path, struct fact *ret, struct fault *f)
{
	struct stat st;
	int rc = look_at(AT_FDCWD, path, &st, f);

	*ret = (struct fact){ .path = path };
	if (rc == 1)
		ret->kind = kind_of(&st);
	return rc == -EACCES || rc > 0 ? 0 : rc;
}

/* An absolute path goes on from the directory that it lies in, if it is one that we know. */
static void go_on(struct walk *w, const char *path)
{
	const char *root = path[0] == '/' ? shown_in(w->h, w->rule.kind, path) : NULL;
	const char *home = w->h->home;

	if (path[0] != '/') {
		w->rest = *w->rest ? path_join(path, w->rest) : path;
		return;
	}
	if (!root && home && path_within(path, home))
		root = home; /* canonical, too */
	w->at = root ? root : "/";
	path = path_below(path, w->at);
	w->rest = *w->rest && *path ? path_join(path, w->rest) : *path ? path : w->rest;
}

static int follow_link(struct walk *w, const char *path, struct fault *f)
{
	const char *text;
	int rc = look_link(AT_FDCWD, path, &text, f);

	if (rc <= 0 || ++w->links > MAX_LINKS) /* the kernel gives up, too */
		return rc < 0 ? rc : 0;
	go_on(w, text);
	return 1;
}

/* Take the part called name. 1: the walk goes on; 0: it ends there; or -errno. */
static int take_part(struct walk *w, const char *name, struct fault *f)
{
	const char *path = path_join(w->at, name);
	bool inside = shown_in(w->h, w->rule.kind, w->at) != NULL;
	struct fact fact;
	int rc = inside ? look_inside(w, path, &fact, f) : look_outside(path, &fact, f);

	if (rc < 0)
		return rc;
	w->rule.elsewhere = !inside;
	w->masked = fact.kind == KIND_MASKED;
	if (fact.kind == KIND_ABSENT && inside && !could_create_in(w->at)) {
		w->rule.elsewhere = true;
		return 0;
	}
	if (inside)
		vec_push(&w->rule.trail, fact);
	if (fact.kind == KIND_LINK)
		return follow_link(w, path, f);
	if (fact.kind == KIND_DIR)
		w->at = path;
	return fact.kind == KIND_DIR;
}

static int walk_path(struct walk *w, struct fault *f)
{
	int rc = 1;

	while (rc > 0 && *w->rest) {
		size_t n = strcspn(w->rest, "/");
		const char *name = mem_strndup(w->rest, n);

		w->rest += n + strspn(w->rest + n, "/");
		if (!n || !strcmp(name, "."))
			continue;
		if (!strcmp(name, "..")) {
			w->at = path_parent(w->at);
			w->rule.elsewhere = true; /* what comes next decides */
			continue;
		}
		rc = take_part(w, name, f);
	}
	return rc;
}

/* A path that ends in `..` is about the directory that it ends in, not the last on the way. */
static int add_end(struct walk *w, struct fault *f)
{
	const char *root = shown_in(w->h, w->rule.kind, w->at);
	struct fact fact;
	int rc;

	if (!w->rule.elsewhere || !root || !strcmp(root, w->at))
		return 1;
	rc = look_inside(w, w->at, &fact, f);
	if (rc < 0)
		return rc;
	vec_push(&w->rule.trail, fact);
	w->rule.elsewhere = false;
	return 1;
}

const char *survey_rule(struct host *h, struct rule rule, const char *path)
{
	struct walk w = { .h = h, .rule = rule, .rest = "" };
	struct fault f = { 0 };
	int rc;

	vec_reserve(&w.rule.trail, 2);
	go_on(&w, path);
	rc = walk_path(&w, &f);
	if (rc > 0)
		rc = add_end(&w, &f);
	if (rc < 0)
		survey_failed(h, &f);
	/* What it is to lie in, if that is absent. */
	w.rule.dir |= *w.rest != '\0';
	if (rc >= 0 && w.rule.trail.n && !w.masked)
		vec_push(&h->rules, w.rule);
	return rc > 0 ? w.at : NULL;
}

void survey_protect(struct host *h, const char *root, const char *rel, const char *why,
	const char *stub)
{
	survey_rule(h, (struct rule){ .kind = RULE_PROTECT, .why = why, .stub = stub },
		path_join(root, rel));
}

void survey_pin(struct host *h, const char *root, const char *rel, const char *why)
{
	survey_rule(h, (struct rule){ .kind = RULE_PIN, .why = why }, path_join(root, rel));
}

void survey_hide(struct host *h, const char *root, const char *rel, const char *why)
{
	survey_rule(h, (struct rule){ .kind = RULE_HIDE, .why = why }, path_join(root, rel));
}

const char *survey_lead(struct host *h, const char *path, const char *why)
{
	return survey_rule(h, (struct rule){ .kind = RULE_PROTECT, .why = why, .neutral = "" },
		path);
}

/* The first link on the way to real that a box can make, and that leads out; or NULL. */
static const char *find_box_link(struct host *h, const char *path, const char *real)
{
	struct host own = *h;
	const char *found = NULL;

	memset(&own.rules, 0, sizeof(own.rules));
	survey_rule(&own, (struct rule){ .kind = RULE_PROTECT }, path);
	h->failed = own.failed;
	vec_each(rule, &own.rules)
		vec_each(part, &rule->trail)
			if (!found && part->kind == KIND_LINK &&
				!path_within(real, shown_in(h, RULE_PROTECT, part->path)))
				found = part->path;
	return found;
}

/*
 * A link in the workspace or in a writable mount may be the work of an earlier box, or of this
 * one before a restart. It must not decide what of the host the next box gets.
 */
static int check_lead(struct host *h, const char *why, const struct fact *fact, struct fault *f)
{
	const char *link =
		fact->real ? find_box_link(h, path_join(h->cwd, fact->path), fact->real) : NULL;

	if (!link)
		return 0;
	fault_set(f, 0, "%s %s: a box could have made the link %s, which leads to %s", why,
		str_visible(fact->path), str_visible(link), str_visible(fact->real));
	return fault_fix(f, "If that is meant, name %s itself.", str_visible(fact->real));
}

int survey_leads(const struct request *r, struct host *h, struct fault *f)
{
	int rc = check_lead(h, "workspace", &h->workspace, f);

	for (size_t i = 0; rc == 0 && i < r->mounts.n; i++)
		if (!r->mounts.v[i].sure)
			rc = check_lead(h, r->mounts.v[i].why, &h->mounts[i], f);
	return rc;
}
