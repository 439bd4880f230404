/*
 * run/git-box.h - git in a box: a copy of the repository's configuration
 *
 * git outside obeys the repository's configuration, and many of its settings name programs. So
 * the box gets a copy: a link to a file of the box's own file system is mounted over
 * .git/config. git follows the link when it writes, makes its lock beside the copy and renames
 * there; other programs write the copy in place. When the box has ended, the supervisor
 * compares the copy with its original text, and makes those changes in the host's file that
 * cannot run anything (git/git-merge.h). It drops the other changes and reports them.
 *
 * The copy is on the box's own tmpfs, so a killed supervisor leaves nothing behind.
 */
#ifndef RUN_GIT_BOX_H
#define RUN_GIT_BOX_H

#include "plan/request.h"
#include "run/run.h"

struct host;
struct plan;
struct request;

/* Mark the rules about configurations that the box can have a copy of. */
void git_box_copies(const struct request *r, struct host *h);

/*
 * The box is dead, and root is the directory of its own file system: take over its changes, and
 * add notes about those that were dropped. made: files that were absent before.
 */
void git_box_take(const struct plan *p, int root, name_vec *made, note_vec *notes);

#endif
