/*
 * run/run.h - from a request to an exit code
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "base/mem.h"

#include <stdbool.h>

struct fault;
struct plan;
struct request;

/*
 * One run of one box: its name, its plan, its client's session, its supervisor. The caller owns
 * it, and ends it with run_release() in any case.
 */
struct run;
struct run *run_new(const struct request *r);

/* The box's name, once it is taken; NULL before. */
const char *run_name(const struct run *run);

struct run_options {
	void (*note)(const char *line); /* called with notes for the user before the start */
	/* the command that starts this client again; NULL: no conversation */
	const char *again;
	const char *record; /* write an asciicast v2 of the session here, or NULL */
	/*
	 * The box has a terminal of its own, to which clients attach. Called with its name once
	 * its command runs; from then on the caller's streams are not used.
	 */
	void (*detached)(const char *name);
};

typedef VEC(const char *) note_vec; /* for the user to read, a line each, safe to print */

struct run_result {
	int code;     /* for carrel to exit with */
	bool stopped; /* a request ended it, */
	bool restart; /* and asked to start it again */
	note_vec notes;
};

enum run_for {
	RUN_TO_SHOW,  /* nothing is made, not even the name is taken */
	RUN_TO_START, /* the box's name is taken: run_release() */
};

/*
 * Survey the host and resolve the request into a plan. With RUN_TO_START, run_box() starts this
 * plan.
 */
int run_plan(struct run *run, enum run_for what, const struct plan **ret, struct fault *f);

/*
 * Start the box and supervise it to its end. If the plan was not made before, it is made while
 * the box is being begun.
 */
int run_box(struct run *run, const struct run_options *o, struct run_result *ret,
	struct fault *f);

/*
 * The box has ended, or was never started: give back its name, and save what it wrote to its
 * layer. Does nothing if there was no box. Errors are added to ret for the user.
 */
void run_release(struct run *run, note_vec *ret);

#endif
