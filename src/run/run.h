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
 * One run of one box: its name, its plan, what its client keeps, its supervisor. The caller
 * owns it and ends it with run_release(), whatever happened.
 */
struct run;
struct run *run_new(const struct request *r);

/* The box's name, once it is taken; NULL before. */
const char *run_name(const struct run *run);

struct run_options {
	void (*note)(const char
			*line); /* called with what the user should know before the start */
	const char *again;      /* the command that starts this client; NULL: no conversation */
	const char *record;     /* write an asciicast v2 of the session here, or NULL */
	/*
	 * The box has a terminal of its own, that others attach to, and not ours. Called with
	 * its name when its command runs: from then on nothing of the caller's is used.
	 */
	void (*detached)(const char *name);
};

typedef VEC(const char *) note_vec; /* for the user to read, a line each, safe to print */

struct run_result {
	int code;     /* for carrel to exit with */
	bool stopped; /* somebody asked it to end, */
	bool restart; /* and to begin again */
	note_vec notes;
};

enum run_for {
	RUN_TO_SHOW,  /* nothing is made, not even the name is taken */
	RUN_TO_START, /* the box's name is taken: run_release() */
};

/*
 * Survey the host and resolve the request into a plan. What is planned to start is what
 * run_box() starts.
 */
int run_plan(struct run *run, enum run_for what, const struct plan **ret, struct fault *f);

/*
 * Start the box and supervise it to its end. Where the plan was not made before, because
 * nobody needs to see it, it is made while the box is being begun.
 */
int run_box(struct run *run, const struct run_options *o, struct run_result *ret,
	struct fault *f);

/*
 * The box is over, or never came to be: give back its name, and keep what it wrote to its
 * layer. Does nothing when there was none. What goes wrong is for the user to read.
 */
void run_release(struct run *run, note_vec *ret);

#endif
