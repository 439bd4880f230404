/*
 * run/detached-record.h - what is written down of a detached box, for wait and ps
 */
#ifndef RUN_DETACHED_RECORD_H
#define RUN_DETACHED_RECORD_H

#include <stdbool.h>
#include <time.h>

struct fault;
struct outcome;
struct plan;
struct run_result;

/*
 * The box is about to start. What an earlier box of its name left is removed, so that it is
 * not taken for this one's; that is also for a box that is not detached.
 */
int detached_begin(const struct plan *p, const struct timespec *since, bool detached,
	struct fault *f);

/* It has ended. */
void detached_end(const struct plan *p, const struct outcome *outcome, struct run_result *ret);

#endif
