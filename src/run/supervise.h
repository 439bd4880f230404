/*
 * run/supervise.h - the life of one running box
 */
#ifndef RUN_SUPERVISE_H
#define RUN_SUPERVISE_H

#include <stdbool.h>

struct fault;
struct plan;
struct record;

struct outcome {
	int code;         /* what carrel exits with */
	bool time_is_up;  /* the time limit ended it */
	bool killed;      /* the box's init was killed from outside */
	int record_error; /* errno of a recording that is incomplete, or 0 */
};

/*
 * Start the plan's command and stay until it has ended and its output is delivered. On
 * failure nothing was started or nothing is left. record is the file to write, or NULL.
 */
int supervise(const struct plan *p, const char *record, struct outcome *ret, struct fault *f);

#endif
