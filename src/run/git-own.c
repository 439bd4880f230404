#include "run/git-own.h"
#include "plan/host.h"
#include "plan/request.h"
#include "git/git-allow.h"
#include "git/git-config.h"
#include "git/git-files.h"
#include "git/git-merge.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 10, MOST_IGNORE = 256 << 10 };

struct own {
	const struct host *h;
	const char *git_dir; /* of the workspace, canonical; NULL: none */
	const char *branch;  /* that is checked out; NULL: none */
	name_vec urls;       /* of the repository's remotes */
	bool looked;         /* errors of these three */
	int depth;
	struct str text;
	struct git_setting last; /* in the text */
	size_t n;                /* settings in it, identity aside */
	const char *name, *email, *ignore;
};

/* ---- conditions of includes ---- */

static void add_url(void *ctx, const struct git_setting *s)
{
	struct own *own = ctx;

	if (!strcmp(s->section, "remote") && s->subsection && !strcmp(s->key, "url") &&
		s->value)
		vec_push(&own->urls, s->value);
}

/* The facts for conditions, looked up at the first condition. */
static void look_up(struct own *own)
{
	const char *workspace = own->h->workspace.real, *text, *common;
	struct fault unused = { 0 };

	if (own->looked)
		return;
	own->looked = true;
	text = git_read_text(workspace, ".git");
	own->git_dir = text && str_starts(text, "gitdir: ") ? git_canonical(workspace, text + 8)
							    : git_canonical(workspace, ".git");
	if (!own->git_dir)
		return;
	text = git_read_text(own->git_dir, "HEAD");
	if (text && str_starts(text, "ref: refs/heads/"))
		own->branch = text + strlen("ref: refs/heads/");
	common = git_read_text(own->git_dir, "commondir");
	common = common && *common ? path_join(own->git_dir, common) : own->git_dir;
	git_config_read(path_join(common, "config"), add_url, own, &unused);
}

static char *lowered(const char *text)
{
	char *copy = mem_strdup(text);

	for (char *c = copy; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return copy;
}

/*
 * A pattern that ends in a slash matches everything below. A pattern with a slash in front is
 * compared with the whole path.
 */
static bool matches(const char *pattern, const char *text, bool fold)
{
	const char *whole = mem_printf("%s%s%s", pattern[0] == '/' ? "" : "/", pattern,
		str_ends(pattern, "/") ? "**" : "");

	if (fold) {
		whole = lowered(whole);
		text = lowered(text);
	}
	return path_match(whole, text[0] == '/' ? text + 1 : text);
}

static bool in_git_dir(struct own *own, const char *pattern, const char *file, bool fold)
{
	if (str_starts(pattern, "./"))
		pattern = path_join(path_parent(file), pattern + 2);
	else
		pattern = git_config_expand(pattern);
	if (!pattern || !own->git_dir)
		return false;
	if (pattern[0] != '/')
		pattern = mem_printf("**/%s", pattern);
	return matches(pattern, own->git_dir, fold);
}

static bool has_url(struct own *own, const char *pattern)
{
	vec_each(url, &own->urls)
		if (matches(pattern, *url, false))
			return true;
	return false;
}

/* An unknown condition is false, as with git. */
static bool is_true(struct own *own, const struct git_setting *s)
{
	static const char url[] = "hasconfig:remote.*.url:";
	const char *c = s->subsection;

	if (!c)
		return true;
	look_up(own);
	if (str_starts(c, "gitdir:"))
		return in_git_dir(own, c + strlen("gitdir:"), s->file, false);
	if (str_starts(c, "gitdir/i:"))
		return in_git_dir(own, c + strlen("gitdir/i:"), s->file, true);
	if (str_starts(c, "onbranch:"))
		return own->branch && matches(c + strlen("onbranch:"), own->branch, false);
	return str_starts(c, url) && has_url(own, c + strlen(url));
}

/* ---- settings ---- */

static bool same_section(const struct git_setting *a, const struct git_setting *b)
{
	if (!a->section || strcmp(a->section, b->section) != 0)
		return false;
	return a->subsection && b->subsection ? !strcmp(a->subsection, b->subsection)
					      : a->subsection == b->subsection;
}

static void add_setting(struct own *own, const struct git_setting *s)
{
	if (!same_section(&own->last, s))
		git_write_section(&own->text, s->section, s->subsection);
	own->last = *s;
	git_write_setting(&own->text, s->key, s->value ? s->value : "true");
	if (!strcmp(s->name, "user.name"))
		own->name = s->value;
	else if (!strcmp(s->name, "user.email"))
		own->email = s->value;
	else
		own->n++;
}

static void read_file(struct own *own, const char *file);

static void visit_setting(void *ctx, const struct git_setting *s)
{
	struct own *own = ctx;

	if (git_config_is_include(s) && is_true(own, s)) {
		const char *path = git_config_include_path(s);

		if (path && own->depth < MOST_DEPTH)
			read_file(own, path);
	} else if (!strcmp(s->name, "core.excludesfile")) {
		own->ignore = s->value ? git_config_expand(s->value) : NULL;
	} else if (git_allow_in(s)) {
		add_setting(own, s);
	}
}

/* The survey fails if the file cannot be read; git itself reports mistakes in it. */
static void read_file(struct own *own, const char *file)
{
	struct fault unused = { 0 };

	own->depth++;
	git_config_read(file, visit_setting, own, &unused);
	own->depth--;
}

/* In git's order: later settings win. */
static void read_all(struct own *own, const char *config_home)
{
	const char *system = getenv("GIT_CONFIG_SYSTEM"), *global = getenv("GIT_CONFIG_GLOBAL");
	const char *without = getenv("GIT_CONFIG_NOSYSTEM"), *cwd = own->h->cwd;

	if (!without || !git_config_is_true(without))
		read_file(own, system ? path_join(cwd, system) : "/etc/gitconfig");
	if (global) {
		if (*global)
			read_file(own, path_join(cwd, global));
		return;
	}
	read_file(own, path_join(config_home, "git/config"));
	read_file(own, path_join(own->h->home, ".gitconfig"));
}

/* ---- files ---- */

/* Does a mount or a client's file use this path already? path is absolute. */
static bool is_taken(const struct request *r, const struct host *h, const char *path)
{
	bool taken = path_within(path, h->workspace.real) ||
		(h->git_common && path_within(path, h->git_common));

	for (size_t i = 0; i < r->mounts.n; i++) {
		const char *target = r->mounts.v[i].target;

		if (!target)
			target = h->mounts[i].path;
		else if (str_starts(target, "~/"))
			target = path_join(h->home, target + 2);
		taken |= path_within(path, path_clean(target));
	}
	vec_each(o, &r->overlays)
		taken |= str_starts(o->target, "~/") &&
			path_within(path, path_join(h->home, o->target + 2));
	return taken;
}

static bool add_file(struct request *r, const struct host *h, const char *name,
	const char *text, const char *why)
{
	if (!text || !*text || is_taken(r, h, path_join(h->home, name)))
		return false;
	vec_push(&r->files,
		((struct request_file){ .target = mem_printf("~/%s", name),
			.text = text,
			.why = why,
			.mode = 0644,
			.rw = true }));
	return true;
}

static const char *described(const struct own *own)
{
	const char *more = mem_printf("%zu setting%s", own->n, own->n == 1 ? "" : "s");

	if (own->name || own->email)
		return mem_printf("%s <%s>%s%s", own->name ? own->name : "",
			own->email ? own->email : "", own->n ? ", " : "", own->n ? more : "");
	return mem_printf("%s, no name and no address", more);
}

void git_own(struct request *r, const struct host *h)
{
	const char *xdg = getenv("XDG_CONFIG_HOME");
	struct own own = { .h = h };

	if (r->no_git)
		return;
	xdg = xdg && *xdg ? path_join(h->cwd, xdg) : path_join(h->home, ".config");
	own.ignore = path_join(xdg, "git/ignore");
	read_all(&own, xdg);
	if (add_file(r, h, ".gitconfig", own.text.p, "your settings of git"))
		r->git_user = described(&own);
	if (own.ignore && own.ignore[0] == '/')
		r->git_ignore = fd_read_file(AT_FDCWD, own.ignore, MOST_IGNORE);
}
