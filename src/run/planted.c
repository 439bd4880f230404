/*
 * Judged by ctime, which nothing in the box can set back. Names are compared, contents
 * are not read: this is a report, not a verdict.
 */
#include "run/planted.h"
#include "run/walk.h"
#include "plan/plan.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>

/* Patterns as path_match() has them. */
static const struct {
	const char *pattern, *why;
} suspects[] = {
	{ "**/.git/config", "git obeys it, and runs what it names" },
	{ "**/.git/config.worktree", "git obeys it, and runs what it names" },
	{ "**/.git/commondir", "git takes its configuration from there" },
	{ "**/.git/hooks/*", "git runs it" },
	{ "**/.git", "a repository, or a link to one, that git would enter" },
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
	const struct timespec *since;
	planted_vec *found;
};

static bool is_new(const struct walk_entry *e, const struct timespec *since)
{
	struct stat st;

	if (fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return st.st_ctim.tv_sec > since->tv_sec ||
		(st.st_ctim.tv_sec == since->tv_sec && st.st_ctim.tv_nsec >= since->tv_nsec);
}

/* Only names that begin with a dot, or are one of two, can match: most do not get further. */
static const char *suspicion(const struct walk_entry *e)
{
	if (!strstr(e->rel, "/.") && e->rel[0] != '.' && strcmp(e->name, "opencode.json") &&
		strcmp(e->name, "carrel.json"))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(suspects); i++)
		if (path_match(suspects[i].pattern, e->rel))
			return suspects[i].why;
	return NULL;
}

static enum walk_next visit(void *ctx, const struct walk_entry *e)
{
	struct search *s = ctx;
	const char *why;

	/* The workspace's own git directory is protected, and large. */
	if (e->is_dir && (!strcmp(e->name, "node_modules") || !strcmp(e->rel, ".git")))
		return WALK_SKIP;
	/* Of a git directory only the top and its hooks matter. */
	if (e->is_dir && strstr(e->rel, ".git/") && strcmp(e->name, "hooks"))
		return WALK_SKIP;
	/* A directory changes with what is in it; a repository inside shows by its config. */
	if (e->is_dir)
		return WALK_ON;
	why = suspicion(e);
	if (why && !(str_ends(e->name, ".sample")) && is_new(e, s->since))
		vec_push(s->found, ((struct planted){ mem_strdup(e->rel), why }));
	return WALK_ON;
}

int planted_find(const struct plan *p, const struct timespec *since, planted_vec *ret,
	struct fault *f)
{
	struct search s = { .since = since, .found = ret };

	return walk_tree(p->workspace, visit, &s, f);
}
