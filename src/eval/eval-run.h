/*
 * eval/eval-run.h - a run: its directory, its trials, their schedule
 *
 * The run's directory is the only state. journal.jsonl is appended to, attempts appear by
 * rename, and run.json is replaced as a whole; so a run that was killed can go on from what is
 * there, and loses at most the attempts that were under way.
 */
#ifndef EVAL_EVAL_RUN_H
#define EVAL_EVAL_RUN_H

#include "eval/suite.h"
#include "eval/trial.h"

struct fault;

enum { CONTROLS = 2, MOST_JOBS = 64, EVAL_RETRIES = 2 };

struct eval_options {
	const char *output_dir; /* NULL: carrel's state directory */
	unsigned int repeat;    /* 0: the suite's */
	unsigned int jobs;      /* 0: by cores and memory */
	unsigned int retries;   /* of an attempt that the infrastructure failed */
	bool retries_said;
	unsigned int min_n; /* verdicts without which there is none */
	double threshold;
	double usd;              /* 0: no limit */
	unsigned long long time; /* seconds, 0: no limit */
	bool fail_fast, artifacts, triggers;
	bool until_sure;    /* end a series of repeats once the sequential test decides it */
	const char *filter; /* patterns for ids, with commas; or NULL */
};

/* SPARED: the sequential test had decided its series before it was started. */
enum item_state { ITEM_WAITS, ITEM_RUNS, ITEM_DONE, ITEM_SPARED };

struct item {
	struct trial trial;
	enum item_state state;
	unsigned int tries;
	long long not_before; /* milliseconds of the monotonic clock */
	bool judged, success; /* it has a verdict; it passed, or for a query: it fired */
};

struct engine {
	struct bench bench;
	const struct suite *suite;
	struct eval_options options;
	const char *id, *started;
	VEC(struct item) items;
	int journal, lock;
	char version[40];

	size_t done, running, errors, spared;
	size_t unpriced; /* of those that are done: the client did not say what they cost */
	double usd;
	long long paused_until; /* nothing is started before, in milliseconds as now_ms() */
	const char *paused_why; /* for a person; NULL: it is not */
	unsigned int controls, controls_fired;
	char control_reason[300];
	bool stopping;   /* start no more */
	const char *why; /* it stops, for a person; or NULL */
};

/* Called when something changed; ended is NULL when an attempt was started, or at a tick. */
struct engine_watch {
	void (*changed)(const struct engine *e, const struct item *ended,
		const struct trial_note *note, void *arg);
	void *arg;
};

/* Note the verdict of an attempt that has ended, for the sequential test. */
void engine_judged(struct item *item, enum attempt_outcome outcome, enum attempt_fired fired);

/* Make the list of trials. Nothing is written. */
void engine_plan(struct engine *e);

/* Make the run's directory, or open the one of `resume`; done trials are marked. */
int engine_open(struct engine *e, const char *resume, struct fault *f);

/* Run what is left. */
int engine_run(struct engine *e, const struct engine_watch *watch, struct fault *f);

/* Write run.json: at the beginning, and with the end's time at the end. */
int engine_write(const struct engine *e, bool ended, struct fault *f);

/* What a run was started with, from its run.json: options, the time of its start. */
int engine_remember(struct engine *e, const char *run, struct fault *f);

unsigned int engine_default_jobs(void);

/* ---- scratch.c ---- */

/* A new scratch directory, locked; what killed runs have left is removed first. */
int scratch_make(const char **ret, int *ret_lock, struct fault *f);
void scratch_remove(const char *path, int lock);

#endif
