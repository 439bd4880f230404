/*
 * state/import.h - take over what another tool has kept
 *
 * Its layout: DIR/projects/<16 hex digits>/ holds `project-root` and Claude Code's own
 * directories of that project, DIR/history.jsonl the prompts of all. They are copied; nothing
 * is changed in DIR, no link in it is followed, and nothing of ours is overwritten.
 */
#ifndef STATE_IMPORT_H
#define STATE_IMPORT_H

#include <stdbool.h>

#include "base/mem.h"

struct fault;

struct imported {
	const char *from; /* the directory's name in DIR/projects */
	const char *root; /* NULL: it names none */
	const char *id;   /* of our instance; NULL: nothing was done, see `why` */
	const char *why;  /* for a person */
	VEC(const char *) copied, skipped; /* directories; skipped: we have one of that name */
	unsigned int prompts;              /* lines of the history */
	bool history_skipped;              /* ours is not empty */
	unsigned int left_out;             /* links, sockets and the like */
};
typedef VEC(struct imported) imported_vec;

/* only_look: say what would be done. What was done before a failure is in ret. */
int import_all(const char *dir, bool only_look, imported_vec *ret, struct fault *f);

#endif
