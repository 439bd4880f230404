#include "host/git-leads.h"
#include "host/survey.h"
#include "plan/host.h"
#include "git/git-config.h"
#include "git/git-files.h"
#include "base/fault.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WHY "git's config leads there"

enum { MOST_ENV = 1000 };

struct git_settings {
	VEC(struct git_setting) v;
};

struct leads {
	struct host *h;
	struct git_settings *user, own;
	name_vec dirs; /* git directories whose hooks a push runs */
	name_vec trees;
	bool per_worktree;
};

static void keep_setting(void *ctx, const struct git_setting *s)
{
	struct git_settings *all = ctx;

	vec_push(&all->v, *s);
}

static void read_config(struct leads *l, struct git_settings *to, const char *file)
{
	struct fault f = { 0 };

	if (git_config_read_all(file, keep_setting, to, &f) < 0)
		survey_failed(l->h, &f);
}

/* ---- the user's own ---- */

/* Settings from the environment. */
static void read_environment(struct leads *l, struct git_settings *to)
{
	const char *text = getenv("GIT_CONFIG_COUNT");
	long n = text ? strtol(text, NULL, 10) : 0;

	for (long i = 0; i < n && i < MOST_ENV; i++) {
		const char *name = getenv(mem_printf("GIT_CONFIG_KEY_%ld", i));
		struct git_setting s = { .file = "/" };

		s.value = getenv(mem_printf("GIT_CONFIG_VALUE_%ld", i));
		if (!name || !s.value)
			continue;
		git_config_split(name, &s);
		keep_setting(to, &s);
		if (git_config_is_include(&s) && git_config_include_path(&s))
			read_config(l, to, git_config_include_path(&s));
	}
}

/* Read once: they apply to each git directory of a project. */
static struct git_settings *read_user(struct leads *l)
{
	const char *system = getenv("GIT_CONFIG_SYSTEM"), *global = getenv("GIT_CONFIG_GLOBAL");
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	struct host *h = l->h;

	if (h->git_user)
		return h->git_user;
	h->git_user = mem_alloc(sizeof(*h->git_user));
	home = home && home[0] == '/' ? home : h->home;
	xdg = xdg && xdg[0] ? xdg : path_join(home, ".config");
	read_config(l, h->git_user, system ? path_join(h->cwd, system) : "/etc/gitconfig");
	if (global && *global)
		read_config(l, h->git_user, path_join(h->cwd, global));
	/* Another shell of the user's may not set the variable. */
	read_config(l, h->git_user, path_join(h->cwd, path_join(xdg, "git/config")));
	read_config(l, h->git_user, path_join(home, ".gitconfig"));
	read_environment(l, h->git_user);
	return h->git_user;
}

/* ---- where relative paths count from ---- */

static void add_place(name_vec *places, const char *path)
{
	vec_each(known, places)
		if (!strcmp(*known, path))
			return;
	vec_push(places, path);
}

/* A linked worktree: its own configuration, and where its working tree is. */
static void add_worktree(void *ctx, const char *dir, const struct dirent *e)
{
	struct leads *l = ctx;
	const char *admin = path_join(dir, mem_strdup(e->d_name)), *text;

	add_place(&l->dirs, admin);
	text = git_read_text(admin, "gitdir");
	if (text && *text)
		add_place(&l->trees, path_parent(path_join(admin, text)));
	if (l->per_worktree)
		read_config(l, &l->own, path_join(admin, "config.worktree"));
}

/* The directory whose files are read for the git directory dir: its common directory. */
static const char *common_dir(const char *dir)
{
	const char *text = git_read_text(dir, "commondir");

	return text && *text ? path_join(dir, text) : dir;
}

static void read_all(struct leads *l, const char *dir, const char *tree)
{
	const char *common = common_dir(dir);

	read_config(l, &l->own, path_join(common, "config"));
	vec_each(s, &l->own.v)
		if (!strcmp(s->name, "extensions.worktreeconfig"))
			l->per_worktree = true;
	if (l->per_worktree)
		read_config(l, &l->own, path_join(dir, "config.worktree"));
	add_place(&l->dirs, dir);
	add_place(&l->dirs, common);
	if (tree)
		add_place(&l->trees, tree);
	if (!strcmp(path_base(common), ".git"))
		add_place(&l->trees, path_parent(common));
	survey_entries(l->h, path_join(common, "worktrees"), add_worktree, l);
	vec_each(s, &l->own.v)
		if (!strcmp(s->name, "core.worktree") && s->value)
			add_place(&l->trees, path_join(dir, s->value));
}

/* ---- directories of hooks ---- */

/*
 * The hooks of githooks(5). In a directory that cannot be protected whole, each of them is
 * protected.
 */
static const char *const hooks[] = { "applypatch-msg", "pre-applypatch", "post-applypatch",
	"pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit",
	"pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update",
	"proc-receive", "post-receive", "post-update", "reference-transaction",
	"push-to-checkout", "pre-auto-gc", "post-rewrite", "rebase", "sendemail-validate",
	"fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist", "p4-post-changelist",
	"p4-pre-submit", "post-index-change" };

static bool is_root(const struct host *h, const char *path)
{
	bool is = !strcmp(path, h->workspace.real) ||
		(h->git_common && !strcmp(path, h->git_common));

	vec_each(root, &h->writable)
		is |= !strcmp(path, *root);
	return is;
}

static void follow_hooks(struct leads *l, const char *path)
{
	const char *dir = survey_lead(l->h, path, WHY);

	if (!dir)
		return;
	survey_links(l->h, dir,
		WHY); /* for a hook that is a link, the file it leads to counts */
	for (size_t i = 0; is_root(l->h, dir) && i < ARRAY_SIZE(hooks); i++)
		survey_lead(l->h, path_join(dir, hooks[i]), WHY);
}

/* ---- commands ---- */

/* Ends of keys, in any section, whose value git runs. */
static const char *const runs[] = { "cmd", "command", "program", "helper", "driver", "editor",
	"pager", "process", "textconv", "clean", "smudge", "external", "fsmonitor", "proxy",
	"askpass", "filter", "hook", "uploadpack", "receivepack", "tunnel", "browser", "path" };

static bool is_run(const struct git_setting *s)
{
	if (s->value[0] == '!' || !strcmp(s->section, "pager"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		if (str_ends(s->key, runs[i]))
			return true;
	return false;
}

/*
 * A word of a command may be a file of the working tree. If it is absent, it counts only if it
 * is the program itself: the box could create it.
 */
static void follow_word(struct leads *l, const char *word, bool program)
{
	const char *path = git_config_expand(word);
	struct stat st;

	if (!path || !*path)
		return;
	if (path[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		survey_lead(l->h, path, WHY);
	/*
	 * "$(git rev-parse --show-toplevel)/x" leaves something that looks like an absolute
	 * path.
	 */
	path += strspn(path, "/");
	vec_each(tree, &l->trees) {
		const char *there = path_join(*tree, path);
		int err = stat(there, &st) == 0 ? 0 : errno;

		if (err == ENAMETOOLONG || (!survey_reaches(l->h, *tree) && path[0] != '.'))
			continue;
		if (err ? program || !look_is_absent(err) : S_ISREG(st.st_mode))
			survey_lead(l->h, there, WHY);
	}
}

/*
 * Consider every word with a slash in any setting, and other words only in settings that git
 * runs. The name of a variable before the slash is left out: "$PWD/x".
 */
static void follow_words(struct leads *l, const struct git_setting *s, const char *apart)
{
	bool run = is_run(s), first = true;

	for (const char *c = s->value + (*s->value == '!'); *c;) {
		size_t n = strcspn(c, apart);
		const char *word = mem_strndup(c, n), *slash = strchr(word, '/');

		if (slash && c > s->value && c[-1] == '$')
			word = slash;
		if (n && (slash || run))
			follow_word(l, word, run && first && slash && word[0] != '/');
		first &= !n;
		c += n + (c[n] != '\0');
	}
}

/* Names and addresses: a repository may have thousands, and git runs none of them. */
static bool is_data(const struct git_setting *s)
{
	return !strcmp(s->section, "branch") || !strcmp(s->section, "user") ||
		!strcmp(s->section, "color") || !strcmp(s->section, "blame") ||
		!strcmp(s->name, "core.worktree") || !strcmp(s->name, "core.excludesfile") ||
		!strcmp(s->name, "core.attributesfile") ||
		!strcmp(s->name, "commit.template") ||
		(!strcmp(s->section, "remote") && !strcmp(s->key, "fetch"));
}

static void follow_setting(struct leads *l, const struct git_setting *s)
{
	const char *path;

	if (!s->value || !*s->value || is_data(s))
		return;
	if (git_config_is_include(s)) {
		path = git_config_include_path(s);
		if (path)
			survey_lead(l->h, path, WHY);
	} else if (!strcmp(s->name, "core.hookspath") || !strcmp(s->name, "init.templatedir")) {
		path = git_config_expand(s->value);
		vec_each(tree, &l->trees)
			if (path)
				follow_hooks(l, path_join(*tree, path));
		vec_each(dir, &l->dirs)
			if (path && path[0] != '/')
				follow_hooks(l, path_join(*dir, path));
	} else if (is_run(s) || strchr(s->value, '/')) {
		follow_words(l, s, " \t\n\r\"'`();&|<>={},$");
		if (strpbrk(s->value, " \t\"'")) /* a path with blanks in it */
			follow_words(l, s, "\"'");
	}
}

bool git_leads(struct host *h, const char *dir, const char *tree)
{
	struct leads l = { .h = h };

	l.user = read_user(&l);
	read_all(&l, dir, tree);
	vec_each(s, &l.user->v)
		follow_setting(&l, s);
	vec_each(s, &l.own.v)
		follow_setting(&l, s);
	survey_links(h, path_join(common_dir(dir), "hooks"), WHY);
	return l.per_worktree;
}
