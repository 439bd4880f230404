/*
 * run/git-base.h - the committed version of a file, as the base of a merge
 */
#ifndef RUN_GIT_BASE_H
#define RUN_GIT_BASE_H

#include <stdbool.h>

#include "base/mem.h"

struct apply_base;
struct workspace;

/* The files of the commit that was checked out when the box started. */
struct git_base {
	const struct workspace *w; /* to be set before */
	const char *git;           /* the program */
	bool listed;
	VEC(const char *) files; /* "MODE blob HASH\tPATH", ordered by path */
};

/*
 * A file of the commit, for struct apply. ret: its content, or NULL to ask only whether the
 * commit has the file. false: it does not, or the workspace is not the top of a repository.
 */
bool git_base_find(void *ctx, const char *path, struct apply_base *ret);

#endif
