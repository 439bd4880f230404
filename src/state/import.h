/*
 * state/import.h - import what another tool has kept
 *
 * Its layout: DIR/projects/<16 hex digits>/ holds `project-root` and Claude Code's own
 * directories of that project, DIR/history.jsonl the prompts of all. carrel copies them. It
 * changes nothing in DIR, follows no link in it, and overwrites nothing of its own.
 */
#ifndef STATE_IMPORT_H
#define STATE_IMPORT_H

#include <stdbool.h>

#include "base/mem.h"

struct fault;

struct imported {
	const char *from; /* the directory's name in DIR/projects */
	const char *root; /* NULL: not recorded */
	const char *id;   /* of our instance; NULL: nothing was done, see `why` */
	const char *why;  /* for a person */
	VEC(const char *)
	copied, skipped;       /* directories; skipped: there is one of that name already */
	unsigned int prompts;  /* lines of the history */
	bool history_skipped;  /* ours is not empty */
	unsigned int left_out; /* number of links, sockets and the like */
};
typedef VEC(struct imported) imported_vec;

/* only_look: only say what would be done. After a failure ret has what was done before it. */
int import_all(const char *dir, bool only_look, imported_vec *ret, struct fault *f);

#endif
