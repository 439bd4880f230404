/*
 * run/workspace-notes.h - the last lines of a run on a copy of the workspace
 */
#ifndef RUN_WORKSPACE_NOTES_H
#define RUN_WORKSPACE_NOTES_H

#include "run/run.h"

struct workspace;

/* Add notes about the changes in the box's copy, and the commands to use them. */
void workspace_notes(const struct workspace *w, note_vec *notes);

#endif
