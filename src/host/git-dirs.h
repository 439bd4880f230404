/*
 * host/git-dirs.h - the git directories that a box can write, before and after it
 *
 * git on the host writes into a git directory (messages, logs, refs), follows links there, and
 * obeys files in it. A box writes there too: it must, to commit. What it must not touch is
 * kept by mounts (host/survey-git.c): hooks, config and what leads to others cannot be written,
 * objects and refs cannot be renamed or removed. The rest is looked at when the box has ended,
 * before the prompt returns, against what was there before it:
 *
 * - git makes nothing but regular files and directories. A link, FIFO, socket or device that
 *   is new is removed, and the report says where the link led. The user's own links stay: they
 *   are known by path, inode and ctime. HEAD may be a link into refs/, as old gits had it.
 * - HEAD that is missing, or that git would not accept, is put back as it was: without it git
 *   passes over the directory, and would take the workspace itself for a repository.
 * - A directory that its owner may not look into any more becomes accessible again, and one
 *   that other users could not write before is closed to them again.
 * - Files that git runs or obeys and that are new or changed are reported.
 *
 * When the supervisor is killed, the janitor does the same (run/killed.h). A box that was
 * killed together with both, as by a power cut, is not looked at. So a start names links that
 * git would write through to another place. It removes those that were made while a box ran
 * there, which is known by the stubs that are left; the others the user may have made. It stops
 * at what it cannot look into.
 *
 * Git directories are: that of the workspace, also where it lies elsewhere, with its modules
 * and worktrees; every .git below the workspace; and every directory there that git would take
 * for a bare repository, by its own test, however old the files in it are.
 */
#ifndef HOST_GIT_DIRS_H
#define HOST_GIT_DIRS_H

#include <stdbool.h>
#include <time.h>

#include "plan/request.h"
#include "host/obeyed-names.h"

struct fault;
struct git_seen;
struct plan;
struct walk_entry;

/*
 * Before the run: keep in mind what is in the git directory at the canonical path dir. What
 * cannot be looked at is a fault. *seen is NULL at first.
 */
int git_dirs_remember(struct git_seen **seen, const char *dir, struct fault *f);

/*
 * For a walk of the workspace: add to repos the path below it of what this entry makes a git
 * directory, perhaps: a .git itself, or the directory that a HEAD is in.
 */
void git_dirs_gather(const struct walk_entry *e, name_vec *repos);

/* Those that were gathered before the run, below this workspace. */
int git_dirs_remember_all(struct git_seen **seen, const char *workspace, const name_vec *repos,
	struct fault *f);

/* Of those, the one of this number; NULL: there are no more. */
const char *git_dirs_other(const struct git_seen *seen, size_t number);

/*
 * Links that git would write through, for the person. At the start of a box, those that an
 * earlier one made are removed.
 */
void git_dirs_mend(const struct git_seen *seen, bool start, name_vec *notices);

/* After the run: those that were remembered and those that were gathered now. */
void git_dirs_check(const struct plan *p, const name_vec *repos, const struct timespec *since,
	planted_vec *ret);

#endif
