/*
 * run/beside.h - report what a box made beside its workspace
 *
 * If the workspace is below the home or /tmp, the directories around it are scratch in the box:
 * `git worktree add ../other` works there, and is removed with the box. The user should be told
 * while the terminal still shows the command.
 */
#ifndef RUN_BESIDE_H
#define RUN_BESIDE_H

#include "run/run.h"

struct plan;

/* The box is dead, and root is the directory of its own file system. */
void beside_note(const struct plan *p, int root, note_vec *notes);

#endif
