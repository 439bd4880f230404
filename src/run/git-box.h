/*
 * run/git-box.h - git in a box: its configuration as a copy, and the user's own
 *
 * What a repository's configuration says a git outside obeys, and much of it names programs.
 * So the box has a copy: in the place of .git/config it finds a link, mounted, to a file of
 * its own file system. git follows the link when it writes, makes its lock beside the copy
 * and renames there; other programs write the copy in place. When the box has ended the
 * supervisor compares the copy with what the box began with, and makes those changes in the
 * host's file itself that cannot run anything (git/git-merge.h). The others are dropped, and
 * the user hears of them.
 *
 * The copy is in the box's memory: a killed supervisor leaves nothing.
 */
#ifndef RUN_GIT_BOX_H
#define RUN_GIT_BOX_H

#include "plan/request.h"
#include "run/run.h"

struct host;
struct plan;
struct request;

/* Which rules are about configurations that the box can have a copy of. */
void git_box_copies(const struct request *r, struct host *h);

/*
 * The box is dead, and root is the directory of its own file system: take over what it
 * changed, and note for the user what was not. made: files that were absent before.
 */
void git_box_take(const struct plan *p, int root, name_vec *made, note_vec *notes);

#endif
