/*
 * run/found.h - find files of a run that the host would execute
 */
#ifndef RUN_FOUND_H
#define RUN_FOUND_H

#include <time.h>

#include "host/obeyed-names.h"
#include "plan/request.h"

struct fault;
struct plan;

/*
 * Files and directories below the workspace that appeared or changed since `since` and that a
 * program of the host runs or obeys without being asked: a nested repository's hooks and
 * config, .envrc in a subdirectory, ... Protected files can only have changed from outside, and
 * are listed too.
 */
int planted_find(const struct plan *p, const struct timespec *since, planted_vec *ret,
	struct fault *f);

/*
 * Add these paths, which were protected; NULL-terminated. carrel itself made those in `made`.
 */
void planted_add(const struct plan *p, const char *const *replaced, const name_vec *made,
	planted_vec *ret);

/* Sort the entries by rank and path. Of several entries about one path, keep the first. */
void planted_sort(planted_vec *found);

#endif
