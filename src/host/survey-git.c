/*
 * host/survey-git.c - the git directory behind the workspace
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
#include "host/survey.h"
#include "host/git-dirs.h"
#include "host/git-leads.h"
#include "plan/host.h"
#include "git/git-config.h"
#include "git/git-files.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_MODULE_DEPTH = 8, MAX_GIT_FILE = 1 << 20 };

/* The first line of a file that git wrote. */
static char *read_line(const char *dir, const char *name)
{
	char *text = git_read_text(dir, name);

	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

/* A look that fails stops the start (git_unseen). */
static bool may_exist(const char *dir, const char *name)
{
	return git_exists(dir, name);
}

static void protect(struct host *h, const char *root, const char *dir, const char *name,
	const char *stub)
{
	const char *rel = path_below(path_join(dir, name), root);

	survey_protect(h, root, rel, SURVEY_GIT, stub);
}

/* What git needs to be in its directory, so that it does not take another one for it. */
static void pin(struct host *h, const char *root, const char *dir, const char *name)
{
	survey_pin(h, root, path_below(path_join(dir, name), root), "git needs it");
}

/*
 * The names directly in dir that are directories. An absent dir has none, nor has a link: git
 * follows it, but then the box cannot write what is there, or it has its own rules there.
 */
static int list_dirs(const char *dir, name_vec *ret, struct fault *f)
{
	int fd = openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *e;
	DIR *d;

	if (fd < 0 && look_is_no_dir(AT_FDCWD, dir))
		return 0;
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return fault_set(f, errno, "look into '%s'", str_visible(dir));
	while ((errno = 0, e = readdir(d)))
		if ((e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) &&
			strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			vec_push(ret, mem_strdup(e->d_name));
	if (errno)
		fault_set(f, errno, "look into '%s'", str_visible(dir));
	else
		f = NULL;
	closedir(d);
	return f ? -f->err : 0;
}

static int protect_git_dir(struct host *h, const char *root, const char *dir, int depth,
	struct fault *f);

/* By any of its parts: an earlier run may have taken one away. */
static bool like_git_dir(const char *dir)
{
	return may_exist(dir, "HEAD") || may_exist(dir, "config") ||
		may_exist(dir, "objects") || may_exist(dir, "refs") || may_exist(dir, "hooks");
}

/* Submodules keep their git directories here; a name with a slash makes a tree of them. */
static int protect_modules(struct host *h, const char *root, const char *dir, int depth,
	struct fault *f)
{
	name_vec names = { 0 };
	int rc;

	if (depth > MAX_MODULE_DEPTH)
		return 0;
	rc = list_dirs(dir, &names, f);
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		const char *module = path_join(dir, names.v[i]);

		rc = like_git_dir(module) ? protect_git_dir(h, root, module, depth + 1, f)
					  : protect_modules(h, root, module, depth + 1, f);
	}
	return rc;
}

/*
 * The files through which another worktree's git would be led to a hostile config, and the
 * submodules of that worktree.
 */
static int protect_worktrees(struct host *h, const char *root, const char *dir, int depth,
	struct fault *f)
{
	name_vec names = { 0 };
	int rc = list_dirs(dir, &names, f);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		const char *admin = path_join(dir, names.v[i]);

		protect(h, root, admin, "commondir", NULL);
		protect(h, root, admin, "gitdir", NULL);
		protect(h, root, admin, "config.worktree", "");
		rc = protect_modules(h, root, path_join(admin, "modules"), depth, f);
	}
	return rc;
}

/*
 * root is the writable bind that dir lies in. commondir matters although it is usually absent:
 * a git directory that has one takes config and hooks from where it points. git dies of
 * one that it cannot read, so the stub says ".", which is where it is.
 */
static int protect_git_dir(struct host *h, const char *root, const char *dir, int depth,
	struct fault *f)
{
	const char *tree = depth ? NULL : h->workspace.real;
	int rc;

	git_leads(h, dir, tree);
	survey_rule(h, (struct rule){ .kind = RULE_PROTECT, .why = SURVEY_GIT, .dir = true },
		path_join(dir, "hooks"));
	protect(h, root, dir, "config", NULL);
	protect(h, root, dir, "config.worktree", "");
	protect(h, root, dir, "commondir", ".\n");
	pin(h, root, dir, "objects");
	pin(h, root, dir, "refs");
	rc = protect_worktrees(h, root, path_join(dir, "worktrees"), depth, f);
	return rc < 0 ? rc : protect_modules(h, root, path_join(dir, "modules"), depth, f);
}

/* One that the box can write, in the bind root: what is in it is looked at after the run. */
static int protect_repository(struct host *h, const char *root, const char *dir,
	struct fault *f)
{
	const char *real;
	int rc = look_real(dir, &real, f);

	if (rc > 0 && path_within(real, root))
		rc = git_dirs_remember(&h->git, real, f);
	return rc < 0 ? rc : protect_git_dir(h, root, dir, 0, f);
}

/*
 * Named and made like one; a workspace that was dressed up as one has its own .git. Beside
 * their worktrees many people call it .bare.
 */
static bool is_git_dir(const char *dir)
{
	return (str_ends(dir, ".git") || !strcmp(path_base(dir), ".bare")) &&
		git_exists(dir, "HEAD") && git_exists(dir, "objects") &&
		!may_exist(dir, ".git");
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
	return strstr(admin, "/.git/modules/") && !may_exist(admin, ".git") ? admin : NULL;
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
static int protect_inside(struct host *h, const char *admin, struct fault *f)
{
	const char *workspace = h->workspace.real;
	char *common = read_line(admin, "commondir");
	const char *dir = common ? git_canonical(admin, common) : NULL;
	int rc = protect_repository(h, workspace, admin, f);

	if (rc == 0 && dir && path_within(dir, workspace) && strcmp(dir, workspace) != 0)
		rc = protect_repository(h, workspace, dir, f);
	return rc;
}

static int survey_git_file(struct host *h, struct fault *f)
{
	const char *workspace = h->workspace.real, *admin, *dir;
	char *line;
	int rc = look_text(AT_FDCWD, path_join(workspace, ".git"), MAX_GIT_FILE, &line, f);

	if (rc < 0)
		return rc;
	line = read_line(workspace, ".git");
	protect(h, workspace, workspace, ".git", NULL);
	if (!line || !str_starts(line, "gitdir: "))
		return 0;
	admin = git_canonical(workspace, line + 8);
	dir = admin ? believed_git_dir(admin, workspace) : NULL;
	if (!dir && admin && path_within(admin, workspace) && strcmp(admin, workspace) != 0)
		return protect_inside(h, admin, f);
	if (!dir) {
		if (admin) /* git obeys it all the same */
			git_leads(h, admin, workspace);
		return note_left_out(h, line + 8, f);
	}
	if (path_within(h->home, dir) || path_within(workspace, dir))
		return fault_set(f, 0, "the .git file names %s, which holds this workspace",
			str_visible(dir));
	h->git_admin = admin;
	if (path_within(dir, workspace))
		return protect_repository(h, workspace, dir, f);
	h->git_common = dir;
	return protect_repository(h, dir, dir, f);
}

/*
 * Where .git is none that git accepts, it looks at the directory itself: with HEAD, objects and
 * refs there, it obeys a config that any box may have written.
 */
static int check_broken(struct host *h, struct fault *f)
{
	const char *workspace = h->workspace.real, *git, *common;
	struct project p;
	int rc = survey_project(workspace, &p, f);

	if (rc < 0 || p.common || git_look(workspace, workspace, &git, &common) == GIT_NONE)
		return rc;
	fault_set(f, 0,
		"the .git of the workspace is broken, and git takes the workspace itself for a "
		"repository, by HEAD, objects and refs in it");
	return fault_fix(f,
		"A box may have made it so. Run no git there before you have moved %s/HEAD "
		"away; "
		"then repair .git.",
		str_visible(workspace));
}

/*
 * The workspace may be a directory of a larger repository, which no box has; but what its
 * configuration leads to may lie here. If there is none, the box may make one, and the report
 * afterwards says so.
 */
static int follow_around(struct host *h, struct fault *f)
{
	struct project p;
	int rc = survey_project(h->workspace.real, &p, f);

	if (rc == 0 && p.common)
		git_leads(h, p.common, p.tree);
	return rc;
}

int survey_git(struct host *h, struct fault *f)
{
	const char *workspace = h->workspace.real, *dir = path_join(workspace, ".git");
	const char *git, *common;
	struct stat st;
	int rc = look_at(AT_FDCWD, dir, &st, f);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return git_look(workspace, workspace, &git, &common) == GIT_FOUND
			? protect_repository(h, workspace, workspace, f)
			: follow_around(h, f);
	rc = check_broken(h, f);
	if (rc < 0)
		return rc;
	if (S_ISREG(st.st_mode))
		return survey_git_file(h, f);
	h->git_admin = dir;
	return protect_repository(h, workspace, dir, f);
}
