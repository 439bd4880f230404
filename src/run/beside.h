/*
 * run/beside.h - what a box made beside its workspace, and nobody will see
 *
 * The directories around the workspace are scratch in the box where the home or /tmp is around
 * them: `git worktree add ../other` works there, and is gone with the box. The user should
 * hear of that while the terminal still shows what was done.
 */
#ifndef RUN_BESIDE_H
#define RUN_BESIDE_H

#include "run/run.h"

struct plan;

/* The box is dead, and root is the directory of its own file system. */
void beside_note(const struct plan *p, int root, note_vec *notes);

#endif
