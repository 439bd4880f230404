/*
 * plan/obeyed.h - files of a project that programs outside run or obey
 *
 * One table: what each client, editor and developer tool reads in a project, and what carrel
 * does about it. A box writes to the project, and the next person who works there, outside,
 * uses these programs. host/survey-git.c has what git runs or obeys, because it depends on the
 * repository's own configuration. Build files (package.json, Makefile, conftest.py) are the
 * agent's to write: running them is the user's decision.
 *
 * Each path is protected at the top of the workspace, and reported in any of its directories.
 */
#ifndef PLAN_OBEYED_H
#define PLAN_OBEYED_H

#include <stdbool.h>
#include <stddef.h>

enum obeyed_how {
	/*
	 * Obeyed without a question: protected. While it is absent, a stub keeps the name from
	 * being created (box/stubs.h), if the program is in use on this machine or `homes` is
	 * empty.
	 */
	OBEYED_KEPT,
	/*
	 * The program asks before it obeys a new file, or runs it only on request: protected if
	 * it exists, reported if it is created.
	 */
	OBEYED_GATED,
	OBEYED_REPORTED, /* the agent's to write, and reported when it changed */
	OBEYED_TOLD,     /* instructions to a model: one quiet line when they changed */
	OBEYED_OPEN,     /* data in a protected directory: the box may write it */
};

struct obeyed {
	const char *path; /* relative to where it is obeyed; *.x: any name with that ending */
	bool dir;         /* a directory with all its contents */
	enum obeyed_how how;
	const char *who, *why; /* "Claude Code", "runs the hooks it names" */
	const char *source;    /* where that is documented */
	/*
	 * KEPT: one of these in the home shows that the program is in use; none: assume it is.
	 */
	const char *homes[5];
	const char *neutral; /* KEPT, a file: what the box reads while it is absent */
};

extern const struct obeyed obeyed_all[];
extern const size_t obeyed_n;

/* The entry that covers a path of the project, in any directory; NULL: none. */
const struct obeyed *obeyed_find(const char *rel, bool dir);

#endif
