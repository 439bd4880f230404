/*
 * cli/eval-progress.h - what a person sees while attempts are made
 *
 * On a terminal one line that is written anew; else a line for each attempt that ended.
 */
#ifndef CLI_EVAL_PROGRESS_H
#define CLI_EVAL_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct engine;
struct item;
struct trial_note;

struct progress {
	bool live;
	size_t width;
	long long began_ms; /* of this sitting */
	size_t before;      /* attempts that were there at its start */
	bool told_controls;
	bool told_stopping;
	long long told_until; /* the pause that was told of last */
};

void progress_begin(struct progress *p, const struct engine *e);

/* As struct engine_watch wants it; arg is the struct progress. */
void progress_changed(const struct engine *e, const struct item *ended,
	const struct trial_note *note, void *arg);

/* Remove the line. */
void progress_end(const struct progress *p);

#endif
