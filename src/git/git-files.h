/*
 * git/git-files.h - what git's own files say, read without git
 *
 * Repositories and the small files by which working trees and git
 * directories name each other. All of it may be hostile: whatever stands in the place of a
 * file (a FIFO, a device, a gigabyte), nothing here waits for it, runs anything, or fails
 * harder than to say that there is nothing to be read.
 *
 * That something cannot be looked at is no answer to any of these questions, and they have room
 * for yes and no only. So it is kept, and whoever goes by the answers asks git_unseen() before
 * anything comes of them.
 *
 * Configuration files are read by git/git-config.h.
 *
 * Reading is not believing: who asks decides that, see state/root.h and host/survey-git.c.
 */
#ifndef GIT_GIT_FILES_H
#define GIT_GIT_FILES_H

#include <stdbool.h>

struct fault;

/*
 * Did a look fail since this was asked last, here or in git/git-config.h, for another reason
 * than that nothing is there? 0, or -errno with the fault of the first one.
 */
int git_unseen(struct fault *f);

/* Keep this failure for git_unseen(). */
void git_not_seen(const struct fault *why);

/* The path, taken from base when it is relative, without symlinks; NULL: there is none. */
const char *git_canonical(const char *base, const char *path);

/* Is anything there, be it a symlink that leads nowhere? */
bool git_exists(const char *dir, const char *name);

/*
 * A file of one line that git wrote, as git reads it: without newlines at its end, but with
 * those in the middle, which a path may have. NULL: absent, no file, or beyond a megabyte,
 * where git gives up, too.
 */
char *git_read_text(const char *dir, const char *name);

/* Does a linked worktree's admin directory name this canonical directory's .git? */
bool git_points_back(const char *admin, const char *workspace);

/* Would git accept this as what HEAD says or, for a link, as where it leads? */
bool git_is_head(const char *text, bool link);

enum git_kind {
	GIT_NONE,   /* no git directory: git goes on looking */
	GIT_FOUND,  /* one that git would use */
	GIT_BROKEN, /* git would stop with an error */
};

/*
 * Is this a git directory (HEAD, objects, refs, as git tests it), and which is its common
 * one? As for git with the working directory cwd, which is what a relative GIT_COMMON_DIR or
 * GIT_OBJECT_DIRECTORY counts from. Both results are canonical.
 */
enum git_kind git_look(const char *cwd, const char *dir, const char **ret_git,
	const char **ret_common);

#endif
