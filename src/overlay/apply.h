/*
 * overlay/apply.h - take over on the host what a box changed in its copy of the workspace
 *
 * Three steps. apply_plan() decides for each change what becomes of it and touches nothing.
 * apply_run() stages every new content beside the box's state, writes a journal, and then
 * makes the changes one by one; each is one rename(2), or a mkdir(2), rmdir(2) or chmod(2). If
 * one fails, those before it are undone. If the process is killed, apply_recover() finishes
 * or undoes the rest: the journal is there whole or not at all, and for every change it can
 * be seen whether it was made.
 *
 * The upper layer is hostile, and the tree of the host may be changed by others meanwhile. All
 * is done through descriptors beneath the two roots, without following a link or crossing into
 * another mount. What stands in the place of a change when its turn comes must be what
 * apply_plan() has seen there. Never applied: devices, FIFOs, sockets, set-id bits, attributes
 * that are not the user's, and what is in a git directory.
 */
#ifndef OVERLAY_APPLY_H
#define OVERLAY_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "base/mem.h"

struct changed;
struct changeset;
struct fault;

enum apply_verdict {
	APPLY_TAKEN,    /* the host has not changed it: the box's version is taken */
	APPLY_MERGED,   /* both changed it, in different lines */
	APPLY_THERE,    /* the host has it already */
	APPLY_LEFT,     /* never, or only when asked for: `why` */
	APPLY_CONFLICT, /* both changed it: `why` */
};

struct apply_item {
	const struct changed *change;
	enum apply_verdict verdict;
	const char *why;  /* LEFT, CONFLICT: for a person */
	bool is_guarded;  /* LEFT, TAKEN: a protected path, or a link that leads out */
	const char *text; /* MERGED: the file */
	size_t n;
	mode_t mode;         /* MERGED: its permissions */
	bool over_committed; /* MERGED, THERE: the base was the committed version */
};

/* One change of the tree. The order of the list is the order in which they are made. */
enum apply_kind {
	APPLY_REMOVE = 'd', /* a file or link: moved to the stage */
	APPLY_RMDIR = 'r',  /* an empty directory; one that is not empty stays */
	APPLY_MKDIR = 'm',
	APPLY_PUT = 'p', /* a file or link, from the stage; what it replaces goes there */
	APPLY_CHMOD = 'c',
};

struct apply_op {
	enum apply_kind kind;
	const char *path;
	mode_t mode, old_mode; /* MKDIR, CHMOD: new; RMDIR, CHMOD: before */
	ino_t staged;          /* PUT: of what lies on the stage before */
	ino_t before;          /* of what was there; 0: nothing */
	const struct apply_item *item;
};

struct apply_base {
	const char *text; /* n bytes */
	size_t n;
	bool executable;
};

struct apply {
	/* To be set before: */
	const struct changeset *set;
	const char *root;        /* of the tree, absolute: which links lead out of it */
	int state;               /* the box's directory of state: journal and stage */
	const char *const *only; /* these paths and all below them; NULL: all */
	bool (*protects)(const void *ctx, const char *path, bool dir);
	const void *protects_ctx;
	/*
	 * The committed version of a path, which both sides may have begun with; false:
	 * there is none. ret NULL: only tell whether there is one.
	 */
	bool (*committed)(void *ctx, const char *path, struct apply_base *ret);
	void *committed_ctx;
	bool guarded; /* take what is guarded, too */
	/* The result: */
	VEC(struct apply_item)
	items; /* in the order of the changes; git's own not among them */
	VEC(struct apply_op) ops;
	size_t count[APPLY_CONFLICT + 1]; /* of items, directories left out */
	size_t git;                       /* changes that are git's own */
};

/* -ENOENT: a path of `only` has not changed. Conflicts are no fault: see count. */
int apply_plan(struct apply *a, struct fault *f);

/* Make the changes. Nothing may be in conflict. On failure the tree is as before. */
int apply_run(struct apply *a, struct fault *f);

enum apply_found { APPLY_NOTHING, APPLY_FINISHED, APPLY_UNDONE };

/*
 * What a call that was killed has left: finished if all was staged, else undone. The caller
 * holds the box's name, as for apply_run().
 */
int apply_recover(int tree, int state, enum apply_found *ret, struct fault *f);

#endif
