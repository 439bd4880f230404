/*
 * overlay/apply-steps.h - shared by the files of apply
 */
#ifndef OVERLAY_APPLY_STEPS_H
#define OVERLAY_APPLY_STEPS_H

#include "overlay/apply.h"

#include <linux/openat2.h>

#define APPLY_BENEATH \
	(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

/* Open the directory of a path of the tree as O_PATH; the path's last part; -1 and errno. */
int apply_parent(int tree, const char *path, const char **ret_name);

/*
 * The stage holds new contents, and later what they replaced. It is in the box's state, which
 * no box sees, if a rename from there to the tree is possible; else it is a directory at the
 * top of the tree.
 */
struct apply_stage {
	int fd;
	bool in_tree;
};
int apply_stage_open(int tree, int state, bool in_tree, bool make, struct apply_stage *ret,
	struct fault *f);
bool apply_stage_in_tree(int tree, int state);
int apply_stage_remove(int tree, int state, bool in_tree, struct fault *f);

/* Put what operation i needs on the stage, under the name "i". */
int apply_stage_put(struct apply *a, int stage, size_t i, struct apply_op *op, struct fault *f);

/* The journal. ops: of STAGED; in that state each operation can be done or undone. */
enum apply_phase { APPLY_BEGUN, APPLY_STAGED, APPLY_DONE };
int apply_journal_write(int state, bool in_tree, enum apply_phase phase,
	const struct apply *ops, struct fault *f);
/* 0: there is none; 1. */
int apply_journal_read(int state, bool *ret_in_tree, enum apply_phase *ret_phase,
	struct apply *ret, struct fault *f);
int apply_journal_remove(int state, struct fault *f);

/* Test builds: the next step may fail, or be the last. */
int apply_test_step(struct fault *f);

#endif
