/*
 * git/git-files.h - what git's own files say, read without git
 *
 * Repositories, and the small files by which working trees and git directories name each other.
 * All of them may be hostile. Whatever is in the place of a file (a FIFO, a device, a
 * gigabyte), these functions do not wait for it and run nothing; at worst they report that
 * there is nothing to read.
 *
 * Most of these functions answer only yes or no, and a failed look is neither. So the failure
 * is kept, and a caller calls git_unseen() before it relies on the answers.
 *
 * git/git-config.h reads configuration files.
 *
 * A file may lie: the caller decides whether to believe it, see state/root.h and
 * host/survey-git.c.
 */
#ifndef GIT_GIT_FILES_H
#define GIT_GIT_FILES_H

#include <stdbool.h>

struct fault;

/*
 * Has a look failed since the last call, here or in git/git-config.h, for another reason than
 * that nothing is there? 0, or -errno with the fault of the first one.
 */
int git_unseen(struct fault *f);

/* Keep this failure for git_unseen(). */
void git_not_seen(const struct fault *why);

/*
 * The path without symlinks, relative to base if it is not absolute; NULL: it does not exist.
 */
const char *git_canonical(const char *base, const char *path);

/* Does an entry exist, even a symlink that leads nowhere? */
bool git_exists(const char *dir, const char *name);

/*
 * A file of one line that git wrote, as git reads it: without newlines at the end, but with
 * those in the middle, which a path may contain. NULL: absent, not a file, or larger than a
 * megabyte, where git gives up as well.
 */
char *git_read_text(const char *dir, const char *name);

/* Does a linked worktree's admin directory name this canonical directory's .git? */
bool git_points_back(const char *admin, const char *workspace);

/* Would git accept this as what HEAD says or, for a link, as where it leads? */
bool git_is_head(const char *text, bool link);

enum git_kind {
	GIT_NONE,   /* not a git directory: git continues its search */
	GIT_FOUND,  /* one that git would use */
	GIT_BROKEN, /* git would stop with an error */
};

/*
 * Is this a git directory (HEAD, objects, refs, by git's own test), and which is its common
 * one? A relative GIT_COMMON_DIR or GIT_OBJECT_DIRECTORY is relative to cwd, as for git. Both
 * results are canonical.
 */
enum git_kind git_look(const char *cwd, const char *dir, const char **ret_git,
	const char **ret_common);

#endif
