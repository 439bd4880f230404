/*
 * run/planted.h - what a run left that the host would execute
 */
#ifndef RUN_PLANTED_H
#define RUN_PLANTED_H

#include <stdbool.h>
#include <time.h>

#include "base/mem.h"

struct fault;
struct plan;

struct planted {
	const char *rel; /* below the workspace; absolute when it is elsewhere */
	const char *why;
};

typedef VEC(struct planted) planted_vec;

/*
 * Files and directories below the workspace that appeared or changed since `since` and that
 * a program of the host runs or obeys without being asked: a nested repository's hooks
 * and config, .envrc in a subdirectory, ... Protected ones can only have changed from outside,
 * and are named too.
 */
int planted_find(const struct plan *p, const struct timespec *since, planted_vec *ret,
	struct fault *f);

/* Also these paths, which were protected; NULL-terminated. */
void planted_add(const struct plan *p, const char *const *replaced, planted_vec *ret);

/*
 * Is this the name of a directory that is looked for? The survey keeps the inode numbers of
 * those that are there before the run: any other is new, wherever it came from.
 */
bool planted_could_be(const char *name);

#endif
