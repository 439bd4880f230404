/*
 * host/git-leads.h - files that git's configuration names
 *
 * git runs and obeys more than the files in its own directory: hooks at core.hooksPath,
 * included files, programs that a setting names. If a box can reach any of these, it gets a
 * rule. All files that git would read count: the user's own and the system's, the repository's,
 * and config.worktree of each working tree. All values of a setting count, and all conditions,
 * because they can change while a box runs.
 *
 * A file that git would stop at stops the start: nobody knows what it names, and nobody can use
 * git there until it is repaired.
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
