/*
 * run/box-branch.h - bring a box's commits to the repository as a branch
 */
#ifndef RUN_BOX_BRANCH_H
#define RUN_BOX_BRANCH_H

#include <stdbool.h>
#include <stddef.h>

struct fault;
struct workspace;

struct box_branch {
	const char *commit; /* where the branch is now */
	size_t commits;     /* of the box that the repository did not have */
	bool rest;          /* and one more with the uncommitted changes */
};

/*
 * Make the new branch `name` in the repository of the workspace: the commits of the branch that
 * the box had checked out, and on top of them one with its uncommitted changes, without what
 * git ignores. Neither the working tree nor any other ref is touched. Call changeset_find()
 * before. This runs the host's git, but never with a configuration or a hook of the box.
 */
int box_branch_make(const struct workspace *w, const char *name, struct box_branch *ret,
	struct fault *f);

#endif
