/*
 * run/killed.h - clean up after a box whose supervisor was killed
 *
 * The janitor (box/stubs.h) outlives the supervisor. Once the box is dead, it looks for what
 * the box left, as the supervisor would have done. It removes links that git would write
 * through, and writes the findings to the box's record. The next box of that name reports them
 * when it starts.
 */
#ifndef RUN_KILLED_H
#define RUN_KILLED_H

#include <time.h>

#include "plan/request.h"

struct plan;

/*
 * Call this before the box of this plan is started. since: when it was begun. Both must stay
 * valid.
 */
void killed_watch(const struct plan *p, const struct timespec *since);

/* Add a note if the last box of this name was killed and left something; only once. */
void killed_note(const char *name, name_vec *notices);

#endif
