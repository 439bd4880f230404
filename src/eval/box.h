/*
 * eval/box.h - run one box to its end and read what it prints
 *
 * Boxes are started by executing this same program: `carrel run`. Its standard output goes to
 * a file byte for byte, and line by line to the caller, who may say that it is enough. A box
 * is ended gently first (Claude Code answers SIGINT with a last result, which has the cost),
 * then for good; killing carrel kills its box.
 */
#ifndef EVAL_BOX_H
#define EVAL_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <signal.h>

struct fault;

enum {
	BOX_OUTPUT = 256 << 20, /* bytes of output; more is a flood */
	BOX_STDERR = 1 << 20,   /* what is kept of standard error */
	BOX_LINE = 32 << 20,
};

enum box_stop {
	STOP_NOT,
	STOP_FIRED, /* what was waited for has happened */
	STOP_TIME,
	STOP_IDLE,
	STOP_FLOOD,
	STOP_REFUSED, /* the API does not take the credential: it need not be tried again */
	STOP_CANCELLED,
};

struct box_job {
	const char *const *argv; /* of carrel, from "run" on; NULL-terminated */
	const char *const *env;
	int out, err;                  /* -1: not kept */
	unsigned long long time, idle; /* seconds, 0: no limit */
	/* A line of its output; not STOP_NOT: end it. */
	enum box_stop (*line)(void *arg, const char *line, size_t n);
	/* What to write to its standard input next, NULL: close it; NULL function: none. */
	const char *(*input)(void *arg);
	/* True: the client is done, and only has to end. */
	bool (*over)(void *arg);
	void *arg;
};

struct box_end {
	int code; /* as a shell says it */
	enum box_stop stop;
	double seconds;
	unsigned long long bytes;
};

/* Set by the worker's signal handler: end what runs. */
extern volatile sig_atomic_t box_cancelled;

int box_run(const struct box_job *job, struct box_end *ret, struct fault *f);

/* Run to the end and return what it prints, at most max bytes; for short commands. */
int box_output(const char *const *argv, const char *const *env, unsigned long long time,
	size_t max, char **ret, int *ret_code, struct fault *f);

/* The environment of such a carrel: little of ours. extra: "NAME=VALUE", NULL-terminated. */
const char *const *box_environment(const char *const *pass, const char *const *extra);

#endif
