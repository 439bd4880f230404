/*
 * run/run.h - from a request to an exit code
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "base/mem.h"

struct fault;
struct plan;
struct request;

struct run_options {
	void (*note)(const char
			*line); /* called with what the user should know before the start */
	const char *record;     /* write an asciicast v2 of the session here, or NULL */
};

typedef VEC(const char *) note_vec; /* for the user to read, a line each, safe to print */

struct run_result {
	int code; /* for carrel to exit with */
	note_vec notes;
};

enum run_for {
	RUN_TO_SHOW,  /* nothing is made, not even the name is taken */
	RUN_TO_START, /* the box's name is taken: run_release() */
};

/* Survey the host and resolve the request into a plan. */
int run_plan(const struct request *r, enum run_for what, const struct plan **ret,
	struct fault *f);

/*
 * Start the box and supervise it to its end. p is the plan of r that the user has agreed
 * to; NULL, when nobody needs to see it: it is then made while the box is being begun.
 */
int run_box(const struct request *r, const struct plan *p, const struct run_options *o,
	struct run_result *ret, struct fault *f);

/*
 * The box is over, or never came to be: give back its name, and keep what it wrote to its
 * layer. Does nothing when there was none. What goes wrong is for the user to read.
 */
void run_release(note_vec *ret);

#endif
