/*
 * run/survey-rules.c - find what is to be protected and hidden
 *
 * A rule without wildcards names one path, there or not. Rules with wildcards are
 * matched against the tree as it is now, in one walk for all of them.
 */
#include "run/survey.h"
#include "run/planted.h"
#include "run/walk.h"
#include "box/stub.h"
#include "plan/host.h"
#include "plan/layout.h"
#include "plan/request.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { MAX_LINKS = 40 };

struct pattern {
	const char *text; /* as it was given */
	const char *body; /* without the "!" and, if it names one path, cleaned */
	bool back, wild;  /* takes back; has wildcards */
	char first;       /* of every name that it could match; '\0': that is not known */
};

typedef VEC(struct pattern) pattern_vec;

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

static enum kind kind_at(const char *path, unsigned long *ret_inode)
{
	struct stat st;

	if (lstat(path, &st) < 0 || stub_seen(&st, AT_FDCWD, path))
		return KIND_ABSENT;
	*ret_inode = st.st_ino;
	if (st.st_nlink == 0 && on_tmpfs(path))
		return KIND_MASKED;
	return S_ISLNK(st.st_mode)    ? KIND_LINK
		: S_ISDIR(st.st_mode) ? KIND_DIR
		: S_ISREG(st.st_mode) ? KIND_FILE
				      : KIND_OTHER;
}

static const char *link_text(const char *path)
{
	char buf[PATH_MAX];
	ssize_t n = readlink(path, buf, sizeof(buf) - 1);

	return n > 0 ? mem_strndup(buf, (size_t)n) : "";
}

/* An absolute path in terms of root, if it leads there, perhaps by other links. */
static const char *below_root(const char *path, const char *root)
{
	char buf[PATH_MAX];

	path = path_clean(path);
	if (!path_within(path, root) && realpath(path, buf))
		path = mem_strdup(buf);
	return path_within(path, root) ? path_below(path, root) : NULL;
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

/*
 * What is at path. Rules about one directory come one after the other, and one look at it
 * does for all of them.
 */
static struct fact look_at(const struct host *h, const char *path, bool on_the_way)
{
	struct fact fact = { .path = path };

	if (on_the_way && h->rules.n)
		vec_each(known, &h->rules.v[h->rules.n - 1].trail)
			if (!strcmp(known->path, path))
				return *known;
	fact.kind = kind_at(path, &fact.inode);
	return fact;
}

/*
 * Go down from root to rel as the kernel would, link by link, and note every part on
 * the way: each of them could be exchanged for another to make the path lead elsewhere.
 */
static void add_rule(struct host *h, struct rule rule, const char *root, const char *rel)
{
	const char *at = root, *rest = path_below(path_clean(path_join(root, rel)), root);
	int links = 0;

	vec_reserve(&rule.trail, 2);
	while (*rest) {
		size_t n = strcspn(rest, "/");
		const char *name = mem_strndup(rest, n);
		struct fact fact;

		rest += n + strspn(rest + n, "/");
		if (!n || !strcmp(name, "."))
			continue;
		if (!strcmp(name, "..")) {
			at = path_parent(at);
			if (!path_within(at, root))
				break;
			continue;
		}
		fact = look_at(h, path_join(at, name), *rest);
		if (fact.kind == KIND_MASKED)
			return;
		if (fact.kind == KIND_ABSENT && !could_create_in(at))
			break;
		vec_push(&rule.trail, fact);
		if (fact.kind == KIND_LINK) {
			const char *text = link_text(fact.path);

			if (++links > MAX_LINKS)
				break;
			if (text[0] == '/') {
				text = below_root(text, root);
				at = root;
			}
			if (!text)
				break;
			rest = path_join(text, rest);
		} else if (fact.kind == KIND_DIR) {
			at = fact.path;
		} else {
			break;
		}
	}
	if (rule.trail.n)
		vec_push(&h->rules, rule);
}

void survey_protect(struct host *h, const char *root, const char *rel, const char *why,
	const char *stub)
{
	add_rule(h, (struct rule){ .kind = RULE_PROTECT, .why = why, .stub = stub }, root, rel);
}

void survey_hide(struct host *h, const char *root, const char *rel, const char *why)
{
	add_rule(h, (struct rule){ .kind = RULE_HIDE, .why = why }, root, rel);
}

/* The last pattern that matches decides, as in .gitignore. NULL: none does. */
static const struct pattern *decide(const pattern_vec *patterns, const char *rel)
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

struct search {
	struct host *h;
	pattern_vec protect, hide;
};

/* A name without wildcards has its rule already, from add_named(). */
static void add_found(struct host *h, enum path_rule kind, const struct pattern *p,
	const char *rel)
{
	if (p->wild)
		add_rule(h, (struct rule){ .kind = kind, .why = p->text }, h->workspace.real,
			mem_strdup(rel));
}

static enum walk_next visit(void *ctx, const struct walk_entry *entry)
{
	struct search *s = ctx;
	const struct pattern *p = decide(&s->hide, entry->rel);

	if (planted_could_be(entry->name))
		vec_push(&s->h->known, entry->inode);

	if (p) {
		add_found(s->h, RULE_HIDE, p, entry->rel);
		return WALK_SKIP;
	}
	p = decide(&s->protect, entry->rel);
	if (p)
		add_found(s->h, RULE_PROTECT, p, entry->rel);
	/* Thousands of files that are nobody's secrets. */
	if (entry->is_dir &&
		(!strcmp(entry->name, ".git") || !strcmp(entry->name, "node_modules")))
		return WALK_SKIP;
	return WALK_ON;
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

/* Names without wildcards, unless a later "!name" takes them back. */
static void add_named(struct host *h, enum path_rule kind, const pattern_vec *patterns)
{
	vec_each(p, patterns) {
		if (p->back || p->wild || !decide(patterns, p->body))
			continue;
		if (kind == RULE_HIDE &&
			access(path_join(h->workspace.real, p->body), F_OK) < 0)
			vec_push(&h->notices,
				mem_printf("--hide %s: nothing is there now",
					str_visible(p->text)));
		add_rule(h, (struct rule){ .kind = kind, .why = p->text }, h->workspace.real,
			p->body);
	}
}

static void add_pattern(pattern_vec *patterns, const char *text)
{
	struct pattern p = {
		.text = text, .body = text + (*text == '!'), .back = *text == '!'
	};
	const char *tail;

	p.wild = path_is_pattern(p.body);
	if (!p.wild)
		p.body = path_clean(p.body);
	/* Most names differ in their first letter from what is looked for. */
	tail = str_starts(p.body, "**/") ? p.body + 3 : p.body;
	if (!strchr(tail, '/') && !strchr("*?[\\", *tail))
		p.first = *tail;
	vec_push(patterns, p);
}

static int gather(const char *option, const char *const *defaults, size_t n,
	const char *const *asked, size_t n_asked, pattern_vec *ret, struct fault *f)
{
	for (size_t i = 0; i < n; i++)
		add_pattern(ret, defaults[i]);
	for (size_t i = 0; i < n_asked; i++) {
		int rc = check_pattern(option, asked[i], f);

		if (rc < 0)
			return rc;
		add_pattern(ret, asked[i]);
	}
	return 0;
}

int survey_rules(const struct request *r, struct host *h, struct fault *f)
{
	struct search s = { .h = h };
	int rc;

	rc = gather("--protect", layout_protect, layout_protect_n, r->protect.v, r->protect.n,
		&s.protect, f);
	if (rc == 0)
		rc = gather("--hide", layout_hide, layout_hide_n, r->hide.v, r->hide.n, &s.hide,
			f);
	if (rc < 0)
		return rc;
	add_named(h, RULE_PROTECT, &s.protect);
	add_named(h, RULE_HIDE, &s.hide);
	return walk_tree(h->workspace.real, visit, &s, f);
}
