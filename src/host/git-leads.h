/*
 * host/git-leads.h - what git's configuration leads to
 *
 * git runs and obeys more than what lies in its own directory: hooks where core.hooksPath
 * says, files that are included, programs that a setting names. Where any of that lies in reach
 * of a box, it gets a rule. All files count that git would read: the user's own and the
 * system's, the repository's, and config.worktree of each working tree. All values of a setting
 * count, and all conditions, because what holds can change while a box runs.
 *
 * A file that git would stop at stops the start: what it leads to is not known, and nobody can
 * use git there until it is mended.
 */
#ifndef HOST_GIT_LEADS_H
#define HOST_GIT_LEADS_H

#include <stdbool.h>

struct host;

/*
 * Add rules for what the configuration of the git directory dir leads to, and the user's own
 * with it. tree is a working tree of it that its files may not name; or NULL. Does git read
 * config.worktree there? What fails is kept in h->failed.
 */
bool git_leads(struct host *h, const char *dir, const char *tree);

#endif
