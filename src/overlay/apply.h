/*
 * overlay/apply.h - apply a box's changes in its copy of the workspace to the host
 *
 * Three steps. apply_plan() decides what to do with each change, and touches nothing.
 * apply_run() stages every new content beside the box's state, writes a journal, and then makes
 * the changes one by one; each is one rename(2), mkdir(2), rmdir(2) or chmod(2). If one fails,
 * those before it are undone. If the process is killed, apply_recover() finishes or undoes the
 * rest: the journal is complete or absent, and the tree shows for every change whether it was
 * made.
 *
 * The upper layer is hostile, and other processes may change the host's tree meanwhile.
 * Everything is done through descriptors beneath the two roots, without following a link or
 * crossing into another mount. At its turn, a change must find there what apply_plan() saw.
 * Never applied: devices, FIFOs, sockets, set-id bits, attributes outside the user namespace,
 * and the contents of git directories.
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
	APPLY_TAKEN,    /* the host has not changed it: take the box's version */
	APPLY_MERGED,   /* both changed it, in different lines: merge */
	APPLY_THERE,    /* the host has it already */
	APPLY_LEFT,     /* never taken, or only on request: `why` */
	APPLY_CONFLICT, /* both changed it: `why` */
};

struct apply_item {
	const struct changed *change;
	enum apply_verdict verdict;
	const char *why;  /* LEFT, CONFLICT: the reason, for a person */
	bool is_guarded;  /* LEFT, TAKEN: a protected path, or a link that leads out */
	const char *text; /* MERGED: the file */
	size_t n;
	mode_t mode;         /* MERGED: its permissions */
	bool over_committed; /* MERGED, THERE: the committed version was the base */
};

/* One operation on the tree. They are made in the order of the list. */
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
	ino_t staged;          /* PUT: of the file on the stage before */
	ino_t before;          /* of the file that was there; 0: none */
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
	const char *root;        /* of the tree, absolute: to see which links lead out of it */
	int state;               /* the box's directory of state: journal and stage */
	const char *const *only; /* only these paths and everything below them; NULL: all */
	bool (*protects)(const void *ctx, const char *path, bool dir);
	const void *protects_ctx;
	/*
	 * The committed version of a path, which may be the base of both sides; false: there is
	 * none. ret NULL: only say whether there is one.
	 */
	bool (*committed)(void *ctx, const char *path, struct apply_base *ret);
	void *committed_ctx;
	bool guarded; /* take guarded paths, too */
	void *names;  /* apply-stage.c: files with several names that are staged */
	/* The result: */
	VEC(struct apply_item)
	items; /* in the order of the changes, without those in git directories */
	VEC(struct apply_op) ops;
	size_t count[APPLY_CONFLICT + 1]; /* of items, directories left out */
	size_t git;                       /* changes in git directories */
};

/* -ENOENT: a path of `only` has not changed. A conflict is not a fault: see count. */
int apply_plan(struct apply *a, struct fault *f);

/* Make the changes. There may be no conflicts. On failure the tree is as before. */
int apply_run(struct apply *a, struct fault *f);

enum apply_found { APPLY_NOTHING, APPLY_FINISHED, APPLY_UNDONE };

/*
 * Clean up after a call that was killed: finish it if everything was staged, else undo it. The
 * caller holds the box's name, as for apply_run().
 */
int apply_recover(int tree, int state, enum apply_found *ret, struct fault *f);

#endif
