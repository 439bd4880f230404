/*
 * run/killed.h - the end of a box whose supervisor was killed
 *
 * The janitor (box/stubs.h) outlives the supervisor. Once the box is dead it looks for what the
 * box left, as the supervisor would have: links that git would write through are removed, and
 * what was found is in the box's record. The next box of that name says so when it starts.
 */
#ifndef RUN_KILLED_H
#define RUN_KILLED_H

#include <time.h>

#include "plan/request.h"

struct plan;

/* Before the box of this plan, begun at that time, is started. Both stay where they are. */
void killed_watch(const struct plan *p, const struct timespec *since);

/* Was the last box of this name killed, and left something? For the person, and only once. */
void killed_note(const char *name, name_vec *notices);

#endif
