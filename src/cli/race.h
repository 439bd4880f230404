/*
 * cli/race.h - several boxes on one task: start, wait, check, compare
 */
#ifndef CLI_RACE_H
#define CLI_RACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/mem.h"

struct fault;

enum { RACE_MOST = 64 };

enum race_phase { RACE_WAITS, RACE_RUNS, RACE_CHECKS, RACE_ENDED };

struct race_box {
	const char *name;
	enum race_phase phase;
	pid_t pid;          /* of the carrel that runs it, or that checks it; 0: none */
	long long began_ms; /* by the monotonic clock */
	long long ms;       /* how long it ran */
	int code;           /* as a shell has it; -1: it was not started */
	int check;          /* the same of the check; -1: there was none */
	/* What it changed, when it has ended: */
	size_t files, added, removed;
};

struct race {
	/* To be set before: */
	const char *check;      /* a command line for sh, or NULL */
	const char *const *run; /* words after `carrel run ... --name NAME` */
	void (*tell)(const struct race *r, const struct race_box *b); /* b changed its phase */
	void (*tick)(const struct race *r);                           /* about once a second */
	/* */
	VEC(struct race_box) boxes;
};

/* Names PREFIX-1 and so on. A fault if a box has one, or holds changes of an earlier run. */
int race_name(struct race *r, const char *prefix, size_t n, struct fault *f);

/*
 * Start all at once, and wait until the last has been checked. SIGINT and SIGTERM end all of
 * them, and the result is then -EINTR.
 */
int race_run(struct race *r, struct fault *f);

/* How long the carrel that runs it, or that checks it, has been running, in ms. */
long long race_spent(const struct race_box *b);

/* The good one with the least change, or -1. Good: see race_is_good(). */
int race_best(const struct race *r);

/* It ended well, changed something, and passed the check if there is one. */
bool race_is_good(const struct race *r, const struct race_box *b);

#endif
