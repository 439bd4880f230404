/*
 * host/obeyed-names.c - which names in a project a program outside runs or obeys
 *
 * plan/obeyed.c has the table of clients, editors and tools; the names that git obeys are added
 * here. A walk checks every name of a project, so most of them must be rejected by their first
 * letter and length.
 */
#include "host/obeyed-names.h"
#include "host/walk.h"
#include "plan/obeyed.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <stdint.h>
#include <string.h>

/* A set of names. lengths: for each first letter, a bit for each length modulo 64. */
struct names {
	uint64_t lengths[256];
	VEC(const char *) all;
};

static struct {
	struct walk_filter filter;
	struct names names, tops; /* wanted themselves; wanted with everything below */
	VEC(const char *) ends;   /* of wanted names */
} wanted;

/* Names by which git recognises a repository, and the files that it then reads. */
static const char *const git_names[] = { ".git", "HEAD", "objects", "refs", "config",
	"config.worktree", "commondir", "gitdir", "hooks" };

/* Directories that make the one they are in a repository: what is in a new one may be old. */
static const struct {
	const char *name, *why;
} repositories[] = {
	{ ".git", "a repository, whose config and hooks git runs" },
	{ ".hg", "a repository, whose hgrc Mercurial obeys" },
	{ ".sl", "a repository, whose config Sapling obeys" },
	{ ".jj", "a repository, whose config Jujutsu obeys in older versions" },
	{ "_darcs", "a repository, whose prefs Darcs obeys" },
};

/* Everything that is not in this list is a client of a model. */
static const struct {
	const char *who;
	enum planted_rank rank;
} ranks[] = {
	{ "git", PLANTED_GIT },
	{ "Mercurial", PLANTED_GIT },
	{ "Sapling", PLANTED_GIT },
	{ "Jujutsu", PLANTED_GIT },
	{ "Darcs", PLANTED_GIT },
	{ "pre-commit", PLANTED_GIT },
	{ "lefthook", PLANTED_GIT },
	{ "overcommit", PLANTED_GIT },
	{ "VS Code", PLANTED_EDITOR },
	{ "VS Code and its kin", PLANTED_EDITOR },
	{ "JetBrains editors", PLANTED_EDITOR },
	{ "Zed", PLANTED_EDITOR },
	{ "Fleet", PLANTED_EDITOR },
	{ "Helix", PLANTED_EDITOR },
	{ "editors", PLANTED_EDITOR },
	{ "Vim and Neovim", PLANTED_EDITOR },
	{ "Neovim", PLANTED_EDITOR },
	{ "Vim", PLANTED_EDITOR },
	{ "Emacs", PLANTED_EDITOR },
	{ "Sublime Text", PLANTED_EDITOR },
	{ "direnv", PLANTED_EDITOR },
	{ "mise", PLANTED_EDITOR },
	{ "rust-analyzer", PLANTED_EDITOR },
	{ "gdb", PLANTED_REST },
	{ "lldb", PLANTED_REST },
	{ "Yarn", PLANTED_REST },
	{ "Yarn 1", PLANTED_REST },
	{ "pnpm", PLANTED_REST },
	{ "npm", PLANTED_REST },
	{ "Bun", PLANTED_REST },
	{ "cargo", PLANTED_REST },
	{ "rustup", PLANTED_REST },
	{ "asdf", PLANTED_REST },
	{ "Haskell Language Server", PLANTED_EDITOR },
	{ "rope, in servers for Python", PLANTED_EDITOR },
	{ "GHCi", PLANTED_REST },
	{ "R", PLANTED_REST },
	{ "pdb", PLANTED_REST },
	{ "OCaml", PLANTED_REST },
	{ "irb", PLANTED_REST },
	{ "Pry", PLANTED_REST },
	{ "IEx", PLANTED_REST },
};

static void add_name(struct names *names, const char *name)
{
	names->lengths[(unsigned char)*name] |= 1ULL << (strlen(name) & 63);
	vec_push(&names->all, name);
}

static bool has_name(const struct names *names, const char *name, size_t n)
{
	if (!(names->lengths[(unsigned char)*name] >> (n & 63) & 1))
		return false;
	vec_each(one, &names->all)
		if (**one == *name && strlen(*one) == n && !memcmp(*one, name, n))
			return true;
	return false;
}

bool planted_wants(const char *name)
{
	if (has_name(&wanted.names, name, strlen(name)))
		return true;
	vec_each(end, &wanted.ends)
		if (str_ends(name, *end))
			return true;
	return false;
}

static bool wants_name(void *ctx, const char *name)
{
	(void)ctx;
	return planted_wants(name);
}

/* Might it be, or be in, a directory that is obeyed as a whole? */
static bool is_in_top(const char *rel)
{
	for (const char *at = rel; *at; at += strcspn(at, "/"), at += *at == '/')
		if (has_name(&wanted.tops, at, strcspn(at, "/")))
			return true;
	return false;
}

static bool wants_whole(void *ctx, const char *dir)
{
	(void)ctx;
	return is_in_top(dir);
}

static void add_obeyed(const struct obeyed *o)
{
	if (*o->path == '*') {
		vec_push(&wanted.ends, o->path + 1);
		return;
	}
	add_name(&wanted.names, path_base(o->path));
	if (o->dir)
		add_name(&wanted.tops, mem_strndup(o->path, strcspn(o->path, "/")));
}

/* Every start calls this for each name, so it avoids printf(3). */
static void add_id(struct str *id, const char *before, const char *name, const char *after)
{
	str_add(id, before);
	str_add(id, name);
	str_add(id, after);
}

const struct walk_filter *planted_filter(void)
{
	struct str id = { 0 };

	if (wanted.filter.id)
		return &wanted.filter;
	for (size_t i = 0; i < ARRAY_SIZE(git_names); i++)
		add_name(&wanted.names, git_names[i]);
	for (size_t i = 0; i < ARRAY_SIZE(repositories); i++)
		add_name(&wanted.names, repositories[i].name);
	add_name(&wanted.tops, "hooks");
	for (size_t i = 0; i < obeyed_n; i++)
		add_obeyed(&obeyed_all[i]);
	vec_each(name, &wanted.names.all)
		add_id(&id, "", *name, "\n");
	vec_each(top, &wanted.tops.all)
		add_id(&id, "", *top, "/\n");
	vec_each(end, &wanted.ends)
		add_id(&id, "*", *end, "\n");
	wanted.filter = (struct walk_filter){ id.p, wants_whole, wants_name };
	return &wanted.filter;
}

/* Its own path, and not one in it? */
static bool ends_there(const struct obeyed *o, const char *rel)
{
	size_t n = strlen(rel), m = strlen(o->path);

	return n == m ? !strcmp(rel, o->path)
		      : n > m && rel[n - m - 1] == '/' && !strcmp(rel + n - m, o->path);
}

/* What a directory of this name makes of the one it is in; NULL: nothing. */
static const char *repository_why(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(repositories); i++)
		if (!strcmp(name, repositories[i].name))
			return repositories[i].why;
	return NULL;
}

bool planted_could_be(const char *rel)
{
	const char *name = path_base(rel);
	const struct obeyed *o;

	if (repository_why(name))
		return true;
	if (!has_name(&wanted.names, name, strlen(name)))
		return false;
	o = obeyed_find(rel, true);
	return o && o->how != OBEYED_OPEN && ends_there(o, rel);
}

static enum planted_rank rank_of(const struct obeyed *o)
{
	if (o->how == OBEYED_TOLD)
		return PLANTED_INSTRUCTIONS;
	for (size_t i = 0; i < ARRAY_SIZE(ranks); i++)
		if (!strcmp(ranks[i].who, o->who))
			return ranks[i].rank;
	return PLANTED_CLIENT;
}

bool planted_obeyed(const char *rel, bool dir, struct planted *ret)
{
	const char *name = path_base(rel), *why = repository_why(name);
	const struct obeyed *o;
	enum planted_rank rank;

	if (why && (dir || !strcmp(name, ".git"))) {
		*ret = (struct planted){ .rank = PLANTED_GIT,
			.why = dir ? why : "it says which repository git enters" };
		return true;
	}
	if (!planted_wants(name) && !is_in_top(rel))
		return false;
	o = obeyed_find(rel, dir);
	if (!o || o->how == OBEYED_OPEN)
		return false;
	rank = rank_of(o);
	/* Packages contain these; nobody works there. */
	if (rank >= PLANTED_REST && strstr(rel, "node_modules/"))
		return false;
	*ret = (struct planted){ .why = mem_printf("%s: %s", o->who, o->why), .rank = rank };
	return true;
}
