/*
 * host/survey-rules.c - find what is to be protected and hidden
 *
 * A rule without wildcards names one path, there or not. Rules with wildcards are
 * matched against the tree as it is now, in one walk for all of them.
 */
#include "host/survey.h"
#include "host/contents.h"
#include "host/git-dirs.h"
#include "host/git-leads.h"
#include "host/obeyed-names.h"
#include "git/git-tracked.h"
#include "host/walk.h"
#include "box/stub.h"
#include "plan/host.h"
#include "plan/layout.h"
#include "plan/obeyed.h"
#include "plan/request.h"
#include "state/agreed.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pattern {
	const char *text;            /* as it was given */
	const char *body;            /* without the "!" and, if it names one path, cleaned */
	const struct obeyed *obeyed; /* that it comes from; or NULL */
	bool back, wild;             /* takes back; has wildcards */
	bool ours;                   /* nobody asked for it by name */
	/* The last part of all matching paths; "": any; NULL: see prepare_patterns(). */
	const char *last;
	char first; /* of every name that it could match; '\0': that is not known */
};

typedef VEC(struct pattern) pattern_vec;

static void add_rule(struct host *h, enum path_rule kind, const struct pattern *p,
	const char *rel)
{
	survey_rule(h,
		(struct rule){ .kind = kind,
			.asked = !p->obeyed && !p->ours,
			.why = p->text,
			.neutral = p->obeyed && p->obeyed->neutral ? p->obeyed->neutral : "",
			.dir = p->obeyed ? p->obeyed->dir : str_ends(p->text, "/") },
		path_join(h->workspace.real, rel));
}

/* The last pattern that matches decides, as in .gitignore. NULL: none does. */
static const struct pattern *decide_pattern(const pattern_vec *patterns, const char *rel)
{
	const struct pattern *verdict = NULL;
	const char *name = path_base(rel);

	vec_each(p, patterns) {
		if (p->first && p->first != *name)
			continue;
		if (p->wild ? path_match(p->body, rel) : !strcmp(p->body, rel))
			verdict = p->back ? NULL : p;
	}
	return verdict;
}

/* Does a later pattern take back this one, which names one path? */
static bool is_taken_back(const pattern_vec *patterns, const struct pattern *p)
{
	for (const struct pattern *q = p + 1; q < patterns->v + patterns->n; q++)
		if (q->back)
			return !decide_pattern(patterns, p->body);
	return false;
}

struct search {
	struct host *h;
	pattern_vec protect, hide;
	name_vec repos; /* that may be git directories */
	bool overlay;   /* nothing of the box's reaches the host: only names to hide count */
};

/* A name without wildcards has its rule already, from add_named(). */
static void add_found(struct host *h, enum path_rule kind, const struct pattern *p,
	const char *rel)
{
	if (p->wild)
		add_rule(h, kind, p, rel);
}

/* What the store of agreements has of a file that was shown because git tracks it. */
static const char *tracked_key(const struct host *h, const char *rel)
{
	const char *text = mem_printf("tracked\n%s", path_join(h->workspace.real, rel));

	return hash_hex(text, strlen(text));
}

static bool was_tracked(struct host *h, const char *rel)
{
	struct fault f = { 0 };
	bool is = false;
	struct project p;

	if (survey_project(h->workspace.real, &p, &f) < 0 ||
		agreed_look(p.id, tracked_key(h, rel), &is, &f) < 0)
		return false;
	return is;
}

/*
 * See git/git-tracked.h. With local changes it is shown if it was tracked as it was at an
 * earlier start: only then the index cannot be the work of a box that wants to see it.
 */
static bool is_tracked(struct host *h, const char *rel)
{
	enum tracked is = tracked_look(h->workspace.real, rel);

	if (is == TRACKED_CONTENT)
		vec_push(&h->tracked, tracked_key(h, rel));
	if (is == TRACKED_NOT)
		return false;
	if (is == TRACKED_CONTENT || was_tracked(h, rel))
		return true;
	vec_push(&h->notices,
		mem_printf("%s is tracked by git, but its content is not in the index: it is "
			   "hidden, and the box's git finds an empty file. To show it: --hide "
			   "'!%s', or `git add %s`",
			str_visible(rel), str_visible(rel), str_visible(rel)));
	return false;
}

/* ---- what is there before the run ---- */

struct whole {
	struct contents *contents;
	const char *rel;
};

static enum walk_next remember_inner(void *ctx, const struct walk_entry *entry)
{
	const struct whole *whole = ctx;
	const struct obeyed *o = obeyed_find(path_join(whole->rel, entry->rel), entry->is_dir);

	if (!entry->is_dir)
		contents_remember(whole->contents, walk_dir(entry), entry->name);
	return o && o->how == OBEYED_OPEN ? WALK_SKIP : WALK_ON;
}

/* All that is in a directory that is obeyed as a whole. The report tells what is unseen. */
static void remember_whole(struct host *h, const char *rel)
{
	struct whole whole = { h->contents, rel };
	struct fault ignored = { 0 };

	(void)walk_tree(&(struct walk_how){ .root = path_join(h->workspace.real, rel),
				.visit = remember_inner,
				.ctx = &whole },
		&ignored);
}

/* For the report at the end: run/found.c */
static void remember_for_report(struct search *s, const struct walk_entry *entry)
{
	const bool needed = contents_are_needed(s->h->contents, entry);

	git_dirs_gather(entry, &s->repos);
	if (needed && !entry->is_dir)
		contents_remember(s->h->contents, walk_dir(entry), entry->name);
	if (!entry->is_dir || !planted_could_be(entry->rel))
		return;
	vec_push(&s->h->known, ((struct known){ mem_strdup(entry->rel), entry->inode }));
	if (needed && strcmp(entry->name, ".git") != 0)
		remember_whole(s->h, entry->rel);
}

static enum walk_next visit_entry(void *ctx, const struct walk_entry *entry)
{
	struct search *s = ctx;
	const struct pattern *p = decide_pattern(&s->hide, entry->rel);

	if (!s->overlay)
		remember_for_report(s, entry);
	if (p && !(p->ours && !entry->is_dir && is_tracked(s->h, entry->rel))) {
		add_found(s->h, RULE_HIDE, p, entry->rel);
		return WALK_SKIP;
	}
	p = decide_pattern(&s->protect, entry->rel);
	if (p)
		add_found(s->h, RULE_PROTECT, p, entry->rel);
	/* Thousands of files that are nobody's secrets. */
	if (entry->is_dir &&
		(!strcmp(entry->name, ".git") || !strcmp(entry->name, "node_modules")))
		return WALK_SKIP;
	return WALK_ON;
}

/* ---- which names matter ---- */

/* What a pattern says of the last part of a path; "": nothing, it may be any. */
static const char *last_part(const struct pattern *p)
{
	size_t n = strlen(p->body);
	const char *last;

	while (n && p->body[n - 1] == '/')
		n--;
	last = mem_strndup(p->body, n);
	last = path_base(last);
	return strcmp(last, "*") != 0 && strcmp(last, "**") != 0 ? last : "";
}

static void prepare_patterns(pattern_vec *patterns, struct str *id)
{
	vec_each(p, patterns) {
		str_add(id, p->text);
		str_addc(id, '\n');
		if (!p->wild || p->back)
			continue;
		p->last = last_part(p);
	}
}

/* A pattern that ends in a wildcard for any name: could it match in this directory? */
static bool any_whole(const pattern_vec *patterns, const char *dir)
{
	vec_each(p, patterns)
		if (p->last && !*p->last &&
			path_match(p->body, *dir ? path_join(dir, "x") : "x"))
			return true;
	return false;
}

static bool wants_whole(void *ctx, const char *dir)
{
	struct search *s = ctx;

	return any_whole(&s->hide, dir) || any_whole(&s->protect, dir);
}

static bool any_wants(const pattern_vec *patterns, const char *name)
{
	vec_each(p, patterns)
		if (p->last && *p->last && (!p->first || p->first == *name) &&
			path_match(p->last, name))
			return true;
	return false;
}

static bool wants_name(void *ctx, const char *name)
{
	struct search *s = ctx;

	return planted_wants(name) || any_wants(&s->hide, name) || any_wants(&s->protect, name);
}

static int check_pattern(const char *option, const char *text, struct fault *f)
{
	const char *body = text + (*text == '!'), *clean = path_clean(body);
	int stars = 0;

	if (!*body || body[0] == '/' || !strcmp(clean, "."))
		return fault_set(f, 0, "%s '%s': name a path or pattern below the workspace",
			option, str_visible(text));
	for (const char *s = body; (s = strstr(s, "**")); s += 2)
		stars++;
	if (stars > 4)
		return fault_set(f, 0, "%s '%s': at most four ** in a pattern", option,
			str_visible(text));
	if (!path_is_pattern(body) && (!strcmp(clean, "..") || str_starts(clean, "../")))
		return fault_set(f, 0, "%s '%s': leads out of the workspace", option,
			str_visible(text));
	return 0;
}

/* Has the program left anything in the home? Where that cannot be told, it has. */
static bool in_use(const struct host *h, const struct obeyed *o)
{
	struct fault ignored = { 0 };
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(o->homes) && o->homes[i]; i++)
		if (look_at(AT_FDCWD, path_join(h->home, o->homes[i]), &st, &ignored) != 0)
			return true;
	return !o->homes[0];
}

/* Is the name to be kept as it is, there or absent? See plan/obeyed.h. */
static bool is_kept(const struct host *h, const struct survey_names *there,
	const struct obeyed *o)
{
	struct fault ignored = { 0 };
	const char *path;
	struct stat st;
	int rc = 0;

	if (survey_may_have(there, o->path)) {
		path = path_join(h->workspace.real, o->path);
		rc = look_at(AT_FDCWD, path, &st, &ignored); /* an error is told by the rule */
		if (rc != 0 && !(rc == 1 && stub_seen(&st, AT_FDCWD, path)))
			return true;
	}
	return o->how == OBEYED_KEPT && in_use(h, o);
}

/*
 * Let the box write to what lies in a protected directory. It must be there itself, or be a
 * directory whose own is there or kept for it.
 */
static void open_in(struct host *h, const char *rel, const char *why, bool make)
{
	const char *path = path_join(h->workspace.real, rel);
	struct rule rule = { .kind = RULE_OPEN, .why = why, .dir = true };
	struct fact fact = { .path = path };
	struct fault f = { 0 };
	struct stat st;
	int rc = look_at(AT_FDCWD, path, &st, &f);

	if (rc < 0)
		survey_failed(h, &f);
	if (rc < 0 || (rc == 1 && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return;
	if (rc == 1 && !stub_seen(&st, AT_FDCWD, path))
		fact.kind = S_ISDIR(st.st_mode) ? KIND_DIR : KIND_FILE;
	if (fact.kind == KIND_ABSENT && !make)
		return;
	rule.dir = fact.kind != KIND_FILE;
	vec_push(&rule.trail, fact);
	vec_push(&h->rules, rule);
}

/* Does rel lie directly in the name that is to be protected, a directory and no link? */
static bool is_above(const struct host *h, const struct pattern *p, const char *rel)
{
	const size_t n = strlen(p->body);
	struct stat st;

	if (p->back || p->wild || strncmp(p->body, rel, n) != 0 || rel[n] != '/' ||
		strchr(rel + n + 1, '/'))
		return false;
	return lstat(path_join(h->workspace.real, p->body), &st) < 0 || S_ISDIR(st.st_mode);
}

/* The protected name that rel lies in. */
static const struct pattern *protected_above(const struct host *h, const pattern_vec *patterns,
	const char *rel)
{
	vec_each(p, patterns)
		if (is_above(h, p, rel) && decide_pattern(patterns, p->body) == p)
			return p;
	return NULL;
}

/*
 * Data in directories that are protected as a whole, and what the user takes back in one. The
 * directory that a client needs for itself is made for its own boxes alone.
 */
static void add_open(const struct request *r, struct host *h, const struct survey_names *there,
	const pattern_vec *patterns)
{
	const bool claude = r->agent && !strcmp(r->agent->harness, "claude");

	for (size_t i = 0; i < obeyed_n; i++) {
		const struct obeyed *o = &obeyed_all[i];
		const bool make = claude && str_ends(o->path, "/worktrees");

		if (o->how == OBEYED_OPEN && (make || survey_may_have(there, o->path)) &&
			protected_above(h, patterns, o->path))
			open_in(h, o->path, o->why, make);
	}
	vec_each(p, patterns)
		if (p->back && !p->wild && protected_above(h, patterns, p->body))
			open_in(h, p->body, p->text, true);
}

struct inner {
	struct host *h;
	const struct pattern *p;
};

/* A link in a protected directory: what it leads to is obeyed like the rest. */
static enum walk_next visit_inner(void *ctx, const struct walk_entry *e)
{
	const struct inner *in = ctx;
	const char *rel = path_join(in->p->body, e->rel);
	const struct obeyed *o = obeyed_find(rel, e->is_dir);

	if (e->type == DT_LNK || e->type == DT_UNKNOWN)
		add_rule(in->h, RULE_PROTECT, in->p, rel);
	return o && o->how == OBEYED_OPEN ? WALK_SKIP : WALK_ON;
}

/* What a protected directory holds may lie elsewhere in the workspace, by links. */
static int add_inner(struct host *h, const struct pattern *p, struct fault *f)
{
	struct inner in = { h, p };
	const char *path = path_join(h->workspace.real, p->body);
	struct stat st;
	int rc;

	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	rc = walk_tree(&(struct walk_how){ .root = path, .visit = visit_inner, .ctx = &in }, f);
	/* The stub of a box that has just ended. A directory of the user's is missed later. */
	return rc == -ENOENT && lstat(path, &st) < 0 && errno == ENOENT ? 0 : rc;
}

/* Names without wildcards, unless a later "!name" takes them back. */
static int add_named(struct host *h, const struct survey_names *there, enum path_rule kind,
	const pattern_vec *patterns, struct fault *f)
{
	int rc = 0;

	vec_each(p, patterns) {
		if (p->back || p->wild || is_taken_back(patterns, p))
			continue;
		if (p->obeyed && !is_kept(h, there, p->obeyed))
			continue;
		if (kind == RULE_HIDE &&
			access(path_join(h->workspace.real, p->body), F_OK) < 0)
			vec_push(&h->notices,
				mem_printf("--hide %s: nothing is there now",
					str_visible(p->text)));
		add_rule(h, kind, p, p->body);
		if (kind == RULE_PROTECT && p->obeyed && p->obeyed->dir)
			rc = add_inner(h, p, f);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void add_pattern(pattern_vec *patterns, const char *text, const struct obeyed *obeyed)
{
	struct pattern p = { .text = text,
		.body = text + (*text == '!'),
		.obeyed = obeyed,
		.back = *text == '!' };
	const char *tail;

	p.wild = path_is_pattern(p.body);
	if (!p.wild && !obeyed) /* the table's are clean */
		p.body = path_clean(p.body);
	/* Most names differ in their first letter from what is looked for. */
	tail = str_starts(p.body, "**/") ? p.body + 3 : p.body;
	if (!strchr(tail, '/') && !strchr("*?[\\", *tail))
		p.first = *tail;
	vec_push(patterns, p);
}

/* ---- what takes nothing back ---- */

/* Is there a path that both are about? */
static bool have_common(const struct pattern *a, const struct pattern *b)
{
	if (a->wild && b->wild)
		return path_patterns_meet(a->body, b->body);
	if (a->wild)
		return path_match(a->body, b->body);
	return b->wild ? path_match(b->body, a->body) : !strcmp(a->body, b->body);
}

/*
 * Rules are asked, not the tree: to take back a name that is absent now, or one of a program
 * that is not in use here, is a wish like any other.
 */
static bool takes_back(const struct host *h, enum path_rule kind, const pattern_vec *patterns,
	const struct pattern *back)
{
	for (const struct pattern *p = patterns->v; p < back; p++)
		if (!p->back && have_common(p, back))
			return true;
	if (back->wild || kind == RULE_HIDE)
		return false;
	vec_each(p, patterns)
		if (is_above(h, p, back->body))
			return true;
	return false;
}

/* The names that are protected here by themselves; those of git cannot be taken back. */
static const char *names_kept(const struct host *h, const pattern_vec *patterns)
{
	static const struct survey_names unlisted = { .any = true };
	struct str out = { 0 };

	vec_each(p, patterns)
		if (p->obeyed && is_kept(h, &unlisted, p->obeyed) && out.len < 200)
			str_addf(&out, "%s, ", p->body);
	return out.len ? out.p : "";
}

static int check_back(const struct host *h, enum path_rule kind, const pattern_vec *patterns,
	struct fault *f)
{
	vec_each(p, patterns) {
		if (!p->back || p->ours || takes_back(h, kind, patterns, p))
			continue;
		if (kind == RULE_PROTECT && path_within(p->body, ".git"))
			fault_set(f, 0,
				"--protect '%s': what git runs or obeys stays protected",
				str_visible(p->text));
		else
			fault_set(f, 0, "%s '%s': takes nothing back: no rule is about it",
				kind == RULE_HIDE ? "--hide" : "--protect",
				str_visible(p->text));
		if (kind == RULE_HIDE)
			return fault_fix(f,
				"You can take back .env, .env.* and what an earlier --hide "
				"(or workspace.hide of a manifest) names.");
		return fault_fix(f,
			"You can take back %swhat lies directly in one of these directories, "
			"and what an earlier --protect (or workspace.protect of a manifest) "
			"names.",
			names_kept(h, patterns));
	}
	return 0;
}

static int gather(const char *option, const char *const *asked, size_t n_asked,
	pattern_vec *ret, struct fault *f)
{
	for (size_t i = 0; i < n_asked; i++) {
		int rc = check_pattern(option, asked[i], f);

		if (rc < 0)
			return rc;
		add_pattern(ret, asked[i], NULL);
	}
	return 0;
}

/*
 * A configuration that was looked at, and that git refuses: a line it cannot read, what is no
 * file, a path that is too long. Any other failure leaves open what git would find.
 */
static bool git_refuses(const struct fault *f)
{
	return !f->err || f->err == EINVAL || f->err == ENAMETOOLONG;
}

/*
 * What the configurations of repositories in the workspace lead to. A box may have made them,
 * and test data has broken ones: git refuses to work with such a one, so it leads nowhere.
 */
static void follow_nested(struct host *h)
{
	struct fault *failed = h->failed;
	const char *dir;

	for (size_t i = 0; (dir = git_dirs_other(h->git, i)); i++) {
		h->failed = NULL;
		git_leads(h, dir, NULL);
		if (h->failed && git_refuses(h->failed))
			vec_push(&h->notices,
				mem_printf("the configuration of %s is not followed: %s",
					str_visible(dir), fault_line(h->failed)));
		else if (!failed)
			failed = h->failed;
	}
	h->failed = failed;
}

int survey_rules(const struct request *r, struct host *h, struct fault *f)
{
	struct walk_filter filter = { .whole = wants_whole, .wants = wants_name };
	struct search s = { .h = h, .overlay = r->overlay };
	struct survey_names there;
	struct str id = { 0 };
	int rc;

	for (size_t i = 0; i < obeyed_n; i++)
		if (obeyed_all[i].how <= OBEYED_GATED)
			add_pattern(&s.protect, obeyed_all[i].path, &obeyed_all[i]);
	for (size_t i = 0; i < layout_hide_n; i++) {
		add_pattern(&s.hide, layout_hide[i], NULL);
		s.hide.v[s.hide.n - 1].ours = true;
	}
	rc = gather("--protect", r->protect.v, r->protect.n, &s.protect, f);
	if (rc == 0)
		rc = gather("--hide", r->hide.v, r->hide.n, &s.hide, f);
	if (rc == 0)
		rc = check_back(h, RULE_PROTECT, &s.protect, f);
	if (rc == 0)
		rc = check_back(h, RULE_HIDE, &s.hide, f);
	if (rc < 0)
		return rc;
	h->contents = mem_alloc(sizeof(*h->contents));
	survey_list(h, h->workspace.real, NULL, NULL, &there);
	rc = add_named(h, &there, RULE_PROTECT, &s.protect, f);
	if (rc < 0)
		return rc;
	add_open(r, h, &there, &s.protect);
	rc = add_named(h, &there, RULE_HIDE, &s.hide, f);
	if (rc < 0)
		return rc;
	str_add(&id, planted_filter()->id);
	prepare_patterns(&s.hide, &id);
	prepare_patterns(&s.protect, &id);
	filter.id = id.p;
	rc = walk_tree(&(struct walk_how){ .root = h->workspace.real,
			       .visit = visit_entry,
			       .ctx = &s,
			       .filter = &filter,
			       .cache = "start" },
		f);
	if (rc == 0)
		rc = git_dirs_remember_all(&h->git, h->workspace.real, &s.repos, f);
	if (rc == 0)
		follow_nested(h);
	return rc;
}
