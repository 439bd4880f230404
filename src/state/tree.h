/*
 * state/tree.h - trees of files that a box has written
 *
 * Everything in them is hostile: links are never followed, nothing is opened that is not a
 * directory or, where a content is wanted, a plain file, and all is relative to descriptors.
 */
#ifndef STATE_TREE_H
#define STATE_TREE_H

#include <stdbool.h>

struct fault;

/* Remove dir/name and all below it, if it is there. */
int tree_remove(int dir, const char *name, struct fault *f);

/*
 * Put the layer `newer` on top of the layer `base`, both open directories of one file
 * system, as overlayfs would show them: what is in `newer` is moved, white-outs and opaque
 * directories too. `newer` is empty afterwards. Broken off in between it can be done again.
 */
int tree_merge(int newer, int base, struct fault *f);

/* Is it overlayfs's sign that a name of a lower layer is gone? */
bool tree_is_whiteout(int dir, const char *name);

/* Does a directory hide what lower layers have in it? */
bool tree_is_opaque(int dir);

/* Bytes on disk, and the number of files, below dir/name. */
void tree_size(int dir, const char *name, unsigned long long *bytes, unsigned long long *files);

/*
 * A frozen layer must hide what belongs to an older version of one of its databases: the
 * journal of an sqlite file that is in a lower layer only.
 */
int tree_hide_journals(int layer, struct fault *f);

#endif
