/*
 * run/planted.c - a directory is new by its inode, a file changed by its ctime
 *
 * Neither can be forged from the box: a directory that was filled under another name and
 * then moved has an inode that the survey did not see under a name like this, and nothing
 * sets a ctime back. Contents are not read: this is a report, not a verdict.
 */
#include "run/planted.h"
#include "run/walk.h"
#include "box/stub.h"
#include "plan/plan.h"
#include "base/path.h"
#include "base/str.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directories (or links to them) that programs enter by name. */
static const struct {
	const char *name, *why;
} dirs[] = {
	{ ".git", "a repository, whose config and hooks git runs" },
	{ ".husky", "hooks, where git's core.hooksPath says so" },
	{ ".githooks", "hooks, where git's core.hooksPath says so" },
	{ ".vscode", "the editor obeys it" },
	{ ".idea", "the editor obeys it" },
	{ ".claude", "Claude Code obeys it and runs its hooks" },
	{ ".codex", "Codex obeys it" },
	{ ".gemini", "Gemini CLI obeys it" },
};

/* Files in those, or anywhere; patterns as path_match() has them. */
static const struct {
	const char *pattern, *why;
} files[] = {
	{ "**/.git/config", "git obeys it, and runs what it names" },
	{ "**/.git/config.worktree", "git obeys it, and runs what it names" },
	{ "**/.git/commondir", "git takes its configuration from there" },
	{ "**/.git/hooks/*", "git runs it" },
	{ "**/.git/modules/**/config",
		"git obeys it in the submodule, and runs what it names" },
	{ "**/.git/modules/**/hooks/*", "git runs it in the submodule" },
	{ "**/.git/rebase-merge/**", "git goes on with it, and runs what it names" },
	{ "**/.git/rebase-apply/**", "git goes on with it, and runs what it names" },
	{ "**/.git/sequencer/**", "git goes on with it, and runs what it names" },
	{ "**/.git", "it says which repository git enters" },
	{ "**/.husky/**", "git runs it where core.hooksPath says so" },
	{ "**/.githooks/**", "git runs it where core.hooksPath says so" },
	{ "**/.envrc", "direnv runs it" },
	{ "**/.vscode/*", "the editor obeys it" },
	{ "**/.idea/**", "the editor obeys it" },
	{ "**/.claude/settings*.json", "Claude Code runs the hooks it names" },
	{ "**/.claude/hooks/**", "Claude Code may run it" },
	{ "**/.mcp.json", "clients start the servers it names" },
	{ "**/.codex/**", "Codex obeys it" },
	{ "**/.gemini/**", "Gemini CLI obeys it" },
	{ "**/opencode.json", "opencode obeys it" },
	{ "**/carrel.json", "carrel reads it" },
};

struct search {
	const struct plan *plan;
	const struct timespec *since;
	planted_vec *found;
};

static const char *dir_why(const char *name)
{
	for (size_t i = 0; name[0] == '.' && i < ARRAY_SIZE(dirs); i++)
		if (!strcmp(name, dirs[i].name))
			return dirs[i].why;
	return NULL;
}

bool planted_could_be(const char *name)
{
	return dir_why(name) != NULL;
}

static bool is_known(const struct plan *p, unsigned long inode)
{
	vec_each(known, &p->known)
		if (*known == inode)
			return true;
	return false;
}

static bool changed(const struct walk_entry *e, const struct timespec *since)
{
	struct stat st;

	if (stub_is_known(e->type, e->inode) ||
		fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	/* Another box in the same workspace has its own stubs there. */
	if (stub_seen(&st, e->dir, e->name))
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

static bool has(const struct walk_entry *e, const char *sibling)
{
	return faccessat(e->dir, sibling, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_in_hooks(const struct walk_entry *e)
{
	static const char hooks[] = "/hooks/";
	const size_t n = strlen(hooks), at = strlen(e->rel) - strlen(e->name);

	return at >= n ? !memcmp(e->rel + at - n, hooks, n)
		       : at == n - 1 && !memcmp(e->rel, hooks + 1, at);
}

/* A bare repository has no name of its own. */
static const char *bare_why(const struct walk_entry *e)
{
	if (!strcmp(e->name, "config") &&
		(has(e, "HEAD") || has(e, "objects") || has(e, "refs")))
		return "git obeys it, and runs what it names";
	if (is_in_hooks(e) && has(e, "../HEAD") && has(e, "../objects"))
		return str_ends(e->name, ".sample") ? NULL : "git runs it";
	return NULL;
}

/* A whole directory of them, put there under that name: each of them may be old. */
static bool is_bare_hooks(const struct walk_entry *e)
{
	return !strcmp(e->name, "hooks") && !is_below(e->rel, ".git") && has(e, "HEAD") &&
		has(e, "objects");
}

static const char *file_why(const struct walk_entry *e)
{
	const char *why = bare_why(e);

	if (why)
		return why;
	if (!strcmp(e->name, "commondir"))
		return "git takes its configuration from there";
	/* All others have a part that begins with a dot, or are one of two. */
	if (e->rel[0] != '.' && !strstr(e->rel, "/.") && strcmp(e->name, "opencode.json") &&
		strcmp(e->name, "carrel.json"))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (path_match(files[i].pattern, e->rel))
			return str_ends(e->rel, ".sample") ? NULL : files[i].why;
	return NULL;
}

static enum walk_next report(struct search *s, const struct walk_entry *e, const char *why)
{
	vec_each(found, s->found)
		if (!strcmp(found->rel, e->rel))
			return WALK_SKIP;
	vec_push(s->found, ((struct planted){ mem_strdup(e->rel), why }));
	return WALK_SKIP;
}

/* Not the objects and refs of a repository; what is in modules/ is one again. */
static bool matters_in_git(const struct walk_entry *e)
{
	static const char *const names[] = { "hooks", "modules", "rebase-merge", "rebase-apply",
		"sequencer" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(e->name, names[i]))
			return true;
	return is_below(e->rel, "modules") && strcmp(e->name, "objects") &&
		strcmp(e->name, "refs") && strcmp(e->name, "logs");
}

/* Protected, so that it cannot have changed: the top of the workspace's git directory. */
static bool is_own_git(const struct walk_entry *e)
{
	if (!str_starts(e->rel, ".git/"))
		return false;
	return e->is_dir ? !strcmp(e->rel, ".git/hooks") : !strchr(e->rel + 5, '/');
}

static enum walk_next visit_dir(struct search *s, const struct walk_entry *e)
{
	const char *why = dir_why(e->name);

	/* The survey does not look into node_modules: there the directory's own age decides. */
	if (why && !is_known(s->plan, e->inode) &&
		(!is_below(e->rel, "node_modules") || changed(e, s->since)))
		return report(s, e, why);
	if (is_bare_hooks(e) && changed(e, s->since))
		return report(s, e, "git runs what is in it");
	return is_below(e->rel, ".git") && !matters_in_git(e) ? WALK_SKIP : WALK_ON;
}

static enum walk_next visit(void *ctx, const struct walk_entry *e)
{
	struct search *s = ctx;
	const char *why;

	if (is_own_git(e))
		return WALK_SKIP;
	if (e->is_dir)
		return visit_dir(s, e);
	why = dir_why(e->name);
	if (!why)
		why = file_why(e);
	return why && changed(e, s->since) ? report(s, e, why) : WALK_ON;
}

/*
 * A program outside that replaces a protected file (as `git config` does, by renaming) takes
 * the mount in the box away with the old one. So what was protected is looked at too. That a
 * name is in the list already says less.
 */
static void add_replaced(const struct plan *p, const char *path, planted_vec *found)
{
	static const char why[] = "protected, but replaced from outside meanwhile";
	const char *rel =
		path_within(path, p->workspace) ? path_below(path, p->workspace) : path;

	vec_each(known, found)
		if (!strcmp(known->rel, rel)) {
			known->why = why;
			return;
		}
	vec_push(found, ((struct planted){ rel, why }));
}

static bool was_replaced(const struct place *place)
{
	struct stat st;

	return place->kind == PLACE_PROTECT && lstat(place->source, &st) == 0 &&
		st.st_ino != place->inode;
}

void planted_add(const struct plan *p, const char *const *replaced, planted_vec *ret)
{
	for (; *replaced; replaced++)
		add_replaced(p, *replaced, ret);
}

int planted_find(const struct plan *p, const struct timespec *since, planted_vec *ret,
	struct fault *f)
{
	struct search s = { .plan = p, .since = since, .found = ret };

	vec_each(place, &p->places)
		if (was_replaced(place))
			add_replaced(p, place->source, ret);
	return walk_tree(p->workspace, visit, &s, f);
}
