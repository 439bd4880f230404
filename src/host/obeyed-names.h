/*
 * host/obeyed-names.h - names in a project that a program of the host runs or obeys
 *
 * Call planted_filter() before the other functions.
 */
#ifndef HOST_OBEYED_NAMES_H
#define HOST_OBEYED_NAMES_H

#include <stdbool.h>

#include "base/mem.h"

struct walk_filter;

/* Most important first, because a box may bury one file under a thousand others. */
enum planted_rank {
	PLANTED_GIT_DIR, /* a git directory is broken, or something looks like one */
	PLANTED_GIT,     /* git runs or obeys it */
	PLANTED_UNSEEN,  /* it could not be looked at */
	PLANTED_CLIENT,  /* a client of a model runs or obeys it when it starts */
	PLANTED_EDITOR,  /* an editor or a shell does */
	PLANTED_REST,
	PLANTED_INSTRUCTIONS, /* no alarm: agents read and write it as part of their work */
};

struct planted {
	const char *rel; /* below the workspace; absolute when it is elsewhere */
	const char *why;
	enum planted_rank rank;
};

typedef VEC(struct planted) planted_vec;

/* Which names matter to planted_find(); does this one, in any directory? */
const struct walk_filter *planted_filter(void);
bool planted_wants(const char *name);

/*
 * Is this the path of a directory that is obeyed as a whole? The survey keeps the paths and
 * inode numbers of those that are there before the run: any other is new, wherever it came
 * from.
 */
bool planted_could_be(const char *rel);

/* Does a program run or obey this path? *ret says why, with the rank. */
bool planted_obeyed(const char *rel, bool dir, struct planted *ret);

#endif
