/*
 * git/git-head.h - which commit HEAD leads to, read without git
 *
 * The files are the caller's to read: from a repository on disk, or from one as a box sees it.
 */
#ifndef GIT_GIT_HEAD_H
#define GIT_GIT_HEAD_H

#include <stdbool.h>

/*
 * Return the text of one file, or NULL. own: the file belongs to the working tree (HEAD), not
 * to the repository that several working trees share.
 */
typedef const char *git_head_fn(const void *ctx, bool own, const char *name);

/* The hash that HEAD leads to, or NULL. Symbolic refs are followed up to a limit. */
const char *git_head(git_head_fn *read, const void *ctx);

/* The git directory that `root` names, which may not exist; NULL: its .git file names none. */
const char *git_dir_of(const char *root);

/* The commit that is checked out in the working tree `root` of the host, or NULL. */
const char *git_head_of(const char *root);

#endif
