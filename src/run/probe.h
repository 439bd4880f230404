/*
 * run/probe.h - does a box work here? Tried, not guessed
 */
#ifndef RUN_PROBE_H
#define RUN_PROBE_H

#include "base/fault.h"
#include "base/mem.h"

enum probe_state { PROBE_OK, PROBE_FAILED, PROBE_NOT_REACHED };

struct probe {
	const char *layer; /* "namespaces" */
	const char *detail;
	enum probe_state state;
	struct fault fault; /* PROBE_FAILED: why, and what to do */
};

typedef VEC(struct probe) probe_vec;

/*
 * Start a box with every layer, run `true` in it, and report for each layer whether it works. A
 * box is built in order, so the first layer that fails hides those after it.
 */
void probe_all(probe_vec *ret);

#endif
