/*
 * run/survey-git.c - the git directory behind the workspace
 *
 * An ordinary repository's .git is in the workspace and only needs rules. In a linked
 * worktree or a submodule, .git is a file that says where the git directory is, and that
 * file belongs to the repository, so it may lie: a clone could point it at another
 * project to have it mounted. It is believed only if the place it names points
 * back: git writes the worktree's path into its admin directory, and core.worktree into a
 * submodule's config, and neither can be forged from inside this workspace.
 *
 * git itself is not started: it would cost more than the box.
 */
#include "run/survey.h"
#include "plan/host.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SMALL_FILE = 64 * 1024, MAX_MODULE_DEPTH = 8 };

static const char *canonical(const char *base, const char *path)
{
	char buf[PATH_MAX];

	return realpath(path_join(base, path), buf) ? mem_strdup(buf) : NULL;
}

/* The single line of a file that git wrote, without its newline. */
static char *read_line(const char *dir, const char *name)
{
	char *text = fd_read_file(AT_FDCWD, path_join(dir, name), SMALL_FILE);

	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

static bool exists(const char *dir, const char *name)
{
	struct stat st;

	return lstat(path_join(dir, name), &st) == 0;
}

static void protect(struct host *h, const char *root, const char *dir, const char *name,
	const char *stub)
{
	const char *rel = path_below(path_join(dir, name), root);

	survey_protect(h, root, rel, "git runs or obeys it", stub);
}

/* The names directly in dir that are directories; an absent dir has none. */
typedef VEC(const char *) name_vec;

static void list_dirs(const char *dir, name_vec *ret)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if ((e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) &&
			strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			vec_push(ret, mem_strdup(e->d_name));
	if (d)
		closedir(d);
}

static void protect_git_dir(struct host *h, const char *root, const char *dir, int depth);

/* By any of its parts: an earlier run may have taken one away. */
static bool like_git_dir(const char *dir)
{
	return exists(dir, "HEAD") || exists(dir, "config") || exists(dir, "objects") ||
		exists(dir, "refs") || exists(dir, "hooks");
}

/* Submodules keep their git directories here; a name with a slash makes a tree of them. */
static void protect_modules(struct host *h, const char *root, const char *dir, int depth)
{
	name_vec names = { 0 };

	if (depth > MAX_MODULE_DEPTH)
		return;
	list_dirs(dir, &names);
	vec_each(name, &names) {
		const char *module = path_join(dir, *name);

		if (like_git_dir(module))
			protect_git_dir(h, root, module, depth + 1);
		else
			protect_modules(h, root, module, depth + 1);
	}
}

/*
 * Go through a git config's settings: visit(ctx, section, key, value) with names in lower
 * case as far as they are needed. Enough of the format for what git itself writes; a value is
 * taken to the end of its line, without quotes around it.
 */
typedef void setting_fn(void *ctx, const char *section, const char *key, const char *value);

static void read_config(const char *dir, setting_fn *visit, void *ctx)
{
	char *text = fd_read_file(AT_FDCWD, path_join(dir, "config"), SMALL_FILE);
	const char *section = "";

	for (char *line = text, *next; line && *line; line = next) {
		char *value, *key;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		key = line + strspn(line, " \t");
		if (*key == '[') {
			section = key + 1;
			key[1 + strcspn(section, " ]\"")] = '\0';
			continue;
		}
		value = strchr(key, '=');
		if (!value)
			continue;
		key[strcspn(key, " \t=")] = '\0';
		value += 1 + strspn(value + 1, " \t\"");
		for (size_t n = strlen(value); n && strchr(" \t\r\"", value[n - 1]);)
			value[--n] = '\0';
		visit(ctx, section, key, value);
	}
}

struct lookup {
	const char *section, *key, *value;
};

static void match_setting(void *ctx, const char *section, const char *key, const char *value)
{
	struct lookup *l = ctx;

	if (!strcasecmp(section, l->section) && !strcasecmp(key, l->key))
		l->value = value;
}

static const char *config_value(const char *dir, const char *section, const char *key)
{
	struct lookup l = { .section = section, .key = key };

	read_config(dir, match_setting, &l);
	return l.value;
}

struct lead {
	struct host *h;
	const char *dir;
	bool worktree_config; /* git reads config.worktree, and would stumble over a stub */
};

/* Where the config sends git on to, if that is in reach of the box. */
static void protect_lead(void *ctx, const char *section, const char *key, const char *value)
{
	struct lead *l = ctx;
	const char *workspace = l->h->workspace.real, *path = NULL;

	if (!strcasecmp(key, "worktreeconfig"))
		l->worktree_config = true;
	if (!strcasecmp(key, "hookspath") && !strcasecmp(section, "core"))
		path = path_clean(path_join(workspace, value));
	if (!strcasecmp(key, "path") && !strncasecmp(section, "include", 7))
		path = path_clean(path_join(l->dir, value));
	if (path && path_within(path, workspace) && strcmp(path, workspace))
		survey_protect(l->h, workspace, path_below(path, workspace),
			"git's config leads there", NULL);
}

/* The files through which another worktree's git would be led to a hostile config. */
static void protect_worktrees(struct host *h, const char *root, const char *dir,
	const char *config_stub)
{
	name_vec names = { 0 };

	list_dirs(dir, &names);
	vec_each(name, &names) {
		const char *admin = path_join(dir, *name);

		protect(h, root, admin, "commondir", NULL);
		protect(h, root, admin, "gitdir", NULL);
		protect(h, root, admin, "config.worktree", config_stub);
	}
}

/*
 * root is the writable bind that dir lies in. commondir matters although it is usually absent:
 * a git directory that has one takes config and hooks from where it points. git dies of
 * one that it cannot read, so the stub says ".", which is where it is.
 */
static void protect_git_dir(struct host *h, const char *root, const char *dir, int depth)
{
	struct lead lead = { .h = h, .dir = dir };
	const char *config_stub;

	read_config(dir, protect_lead, &lead);
	config_stub = lead.worktree_config ? "" : NULL;

	protect(h, root, dir, "hooks", NULL);
	protect(h, root, dir, "config", NULL);
	protect(h, root, dir, "config.worktree", config_stub);
	protect(h, root, dir, "commondir", ".\n");
	protect_worktrees(h, root, path_join(dir, "worktrees"), config_stub);
	protect_modules(h, root, path_join(dir, "modules"), depth);
}

/* Does the worktree's admin directory name this workspace's .git file? */
static bool points_back(const char *admin, const char *workspace)
{
	char *line = read_line(admin, "gitdir");
	const char *dir;

	if (!line || strcmp(path_base(line), ".git"))
		return false;
	dir = canonical(admin, path_parent(line));
	return dir && !strcmp(dir, workspace);
}

/*
 * The git directory that the file stands for, if it can be believed: the common directory of
 * a linked worktree, or a submodule's own.
 */
static const char *believed_git_dir(const char *admin, const char *workspace)
{
	char *common = read_line(admin, "commondir");
	const char *dir, *worktree;

	if (common && points_back(admin, workspace)) {
		dir = canonical(admin, common);
		return dir && path_within(admin, path_join(dir, "worktrees")) ? dir : NULL;
	}
	worktree = common ? NULL : config_value(admin, "core", "worktree");
	dir = worktree ? canonical(admin, worktree) : NULL;
	return dir && !strcmp(dir, workspace) && exists(admin, "HEAD") ? admin : NULL;
}

static int survey_git_file(struct host *h, struct fault *f)
{
	const char *workspace = h->workspace.real, *admin, *dir;
	char *line = read_line(workspace, ".git");

	protect(h, workspace, workspace, ".git", NULL);
	if (!line || !str_starts(line, "gitdir: "))
		return 0;
	admin = canonical(workspace, line + 8);
	dir = admin ? believed_git_dir(admin, workspace) : NULL;
	if (!dir) {
		h->git_notice =
			mem_printf("the .git file names %s, which does not point back to "
				   "this directory: left out of the box",
				str_visible(line + 8));
		return 0;
	}
	if (path_within(h->home, dir) || path_within(workspace, dir))
		return fault_set(f, 0, "the .git file names %s, which holds this workspace",
			str_visible(dir));
	if (path_within(dir, workspace)) {
		protect_git_dir(h, workspace, dir, 0);
		return 0;
	}
	h->git_common = dir;
	protect_git_dir(h, dir, dir, 0);
	return 0;
}

int survey_git(struct host *h, struct fault *f)
{
	const char *workspace = h->workspace.real, *dir = path_join(workspace, ".git");
	struct stat st;

	if (lstat(dir, &st) < 0)
		return 0; /* the box may make a repository; the report afterwards says so */
	if (S_ISREG(st.st_mode))
		return survey_git_file(h, f);
	protect_git_dir(h, workspace, dir, 0);
	return 0;
}
