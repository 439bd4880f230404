/*
 * run/survey-git.c - the git directory behind the workspace
 *
 * An ordinary repository's .git is in the workspace and only needs rules. In a linked
 * worktree or a submodule, .git is a file that says where the git directory is, and that
 * file belongs to the repository, so it may lie: a clone could point it at another
 * project to have it mounted. It is believed only if the place it names points
 * back: git writes the worktree's path into its admin directory, and core.worktree into a
 * submodule's config (a person, into that of a separate git directory), and neither can be
 * forged from inside this workspace.
 *
 * git itself is not started: it would cost more than the box.
 */
#include "run/survey.h"
#include "plan/host.h"
#include "state/git-files.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_MODULE_DEPTH = 8, MAX_INCLUDES = 8 };

/* The first line of a file that git wrote. */
static char *read_line(const char *dir, const char *name)
{
	char *text = git_read_text(dir, name);

	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

static void protect(struct host *h, const char *root, const char *dir, const char *name,
	const char *stub)
{
	const char *rel = path_below(path_join(dir, name), root);

	survey_protect(h, root, rel, "git runs or obeys it", stub);
}

/* The names directly in dir that are directories; an absent dir has none. */
static void list_dirs(const char *dir, name_vec *ret)
{
	int fd = openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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
	return git_exists(dir, "HEAD") || git_exists(dir, "config") ||
		git_exists(dir, "objects") || git_exists(dir, "refs") ||
		git_exists(dir, "hooks");
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

struct lead {
	struct host *h;
	const char *dir;
	bool worktree_config; /* git reads config.worktree, and would stumble over a stub */
	int depth;            /* of includes */
};

static void protect_lead(void *ctx, const char *section, const char *key, const char *value);

/* What git is sent to, if the box could write it: below the workspace or its repository. */
static void follow_lead(struct lead *l, const char *path)
{
	const char *const roots[] = { l->h->workspace.real, l->h->git_common };

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
		if (roots[i] && path_within(path, roots[i]) && strcmp(path, roots[i]))
			survey_protect(l->h, roots[i], path_below(path, roots[i]),
				"git's config leads there", NULL);
}

static void protect_lead(void *ctx, const char *section, const char *key, const char *value)
{
	struct lead *l = ctx;

	if (!strcasecmp(key, "worktreeconfig"))
		l->worktree_config = true;
	if (!strcasecmp(key, "hookspath") && !strcasecmp(section, "core"))
		follow_lead(l, path_clean(path_join(l->h->workspace.real, value)));
	if (!strcasecmp(key, "path") && !strncasecmp(section, "include", 7)) {
		const char *path = path_clean(path_join(l->dir, value));
		struct lead deeper = {
			.h = l->h, .dir = path_parent(path), .depth = l->depth + 1
		};

		follow_lead(l, path);
		if (deeper.depth < MAX_INCLUDES)
			git_read_config(path, protect_lead, &deeper);
	}
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

	git_read_config(path_join(dir, "config"), protect_lead, &lead);
	config_stub = lead.worktree_config ? "" : NULL;

	protect(h, root, dir, "hooks", NULL);
	protect(h, root, dir, "config", NULL);
	protect(h, root, dir, "config.worktree", config_stub);
	protect(h, root, dir, "commondir", ".\n");
	protect_worktrees(h, root, path_join(dir, "worktrees"), config_stub);
	protect_modules(h, root, path_join(dir, "modules"), depth);
}

/*
 * Named and made like one; a workspace that was dressed up as one has its own .git. Beside
 * their worktrees many people call it .bare.
 */
static bool is_git_dir(const char *dir)
{
	return (str_ends(dir, ".git") || !strcmp(path_base(dir), ".bare")) &&
		git_exists(dir, "HEAD") && git_exists(dir, "objects") &&
		!git_exists(dir, ".git");
}

/*
 * The git directory that the file stands for, if it can be believed: the common directory of
 * a linked worktree, a submodule's own, or a separate one. All name the workspace, which a
 * hostile repository can copy; so what they are in must be a git directory, not a project's
 * files.
 */
static const char *believed_git_dir(const char *admin, const char *workspace)
{
	char *common = read_line(admin, "commondir");
	const char *dir, *worktree;

	if (common && git_points_back(admin, workspace)) {
		dir = git_canonical(admin, common);
		return dir && is_git_dir(dir) && path_within(admin, path_join(dir, "worktrees"))
			? dir
			: NULL;
	}
	worktree = common ? NULL
			  : git_config_value(path_join(admin, "config"), "core", "worktree");
	dir = worktree ? git_canonical(admin, worktree) : NULL;
	if (!dir || strcmp(dir, workspace) || !git_exists(admin, "HEAD"))
		return NULL;
	if (is_git_dir(admin)) /* --separate-git-dir */
		return admin;
	return strstr(admin, "/.git/modules/") && !git_exists(admin, ".git") ? admin : NULL;
}

/* Not where the project's own note has said it. */
static int note_left_out(struct host *h, const char *names, struct fault *f)
{
	struct project p;
	int rc = survey_project(h->workspace.real, &p, f);

	if (rc < 0 || (p.note && !p.common))
		return rc;
	vec_push(&h->notices,
		mem_printf("the .git file names %s, which is left out of the box: only a git "
			   "directory that points back, with a name that ends in .git or is "
			   ".bare, is in it",
			str_visible(names)));
	return 0;
}

/*
 * A repository in the workspace itself, as in `gitdir: ./.bare`. The box sees it, and could
 * write it, whether it points back or not; and git outside obeys it.
 */
static void protect_inside(struct host *h, const char *admin)
{
	const char *workspace = h->workspace.real;
	char *common = read_line(admin, "commondir");
	const char *dir = common ? git_canonical(admin, common) : NULL;

	protect_git_dir(h, workspace, admin, 0);
	if (dir && path_within(dir, workspace) && strcmp(dir, workspace) != 0)
		protect_git_dir(h, workspace, dir, 0);
}

static int survey_git_file(struct host *h, struct fault *f)
{
	const char *workspace = h->workspace.real, *admin, *dir;
	char *line = read_line(workspace, ".git");

	protect(h, workspace, workspace, ".git", NULL);
	if (!line || !str_starts(line, "gitdir: "))
		return 0;
	admin = git_canonical(workspace, line + 8);
	dir = admin ? believed_git_dir(admin, workspace) : NULL;
	if (!dir && admin && path_within(admin, workspace) && strcmp(admin, workspace) != 0) {
		protect_inside(h, admin);
		return 0;
	}
	if (!dir)
		return note_left_out(h, line + 8, f);
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
