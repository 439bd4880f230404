/*
 * overlay/tree.h - trees of files that a box has written
 *
 * Everything in them is hostile: links are never followed, nothing is opened that is not a
 * directory or, where a content is wanted, a plain file, and all is relative to descriptors.
 * A box cannot make a tree that is in the way for ever, either: directories that their owner
 * may not read or write are opened nevertheless, and no depth is too great.
 */
#ifndef OVERLAY_TREE_H
#define OVERLAY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/mem.h"

struct fault;

typedef VEC(const char *) tree_names;

/*
 * Instead of a descriptor of the user's directory, which the layers lie on: nothing is
 * there; or it cannot be told what is.
 */
enum { TREE_NOTHING = -1, TREE_UNKNOWN = -2 };

/* Open the directory dir/name, whatever its mode; -1 and errno. Its mode may change. */
int tree_open(int dir, const char *name);

/* Is what was opened as dir/name still there by that name? Somebody may have removed it. */
bool tree_is_named(int dir, const char *name, int fd);

/* The names in a directory, sorted; 0 or -errno. */
int tree_list(int dir, tree_names *ret);

/* Open dir/name if it is a plain file; -1 and errno. */
int tree_open_file(int dir, const char *name);

/* All of a plain file with its length, NULL and errno on failure; more than max is EFBIG. */
char *tree_read(int dir, const char *name, size_t max, size_t *ret_n);

/* Remove dir/name and all below it, if it is there. */
int tree_remove(int dir, const char *name, struct fault *f);

/*
 * Put the layer `newer` on top of the layer `base`, both open directories of one file
 * system, as overlayfs would show them on top of `below`: what is in `newer` is moved,
 * white-outs and opaque directories too. `newer` is empty afterwards. Broken off in between,
 * the two together still show the same, and it can be done again.
 */
int tree_merge(int newer, int base, int below, struct fault *f);

/* Is it overlayfs's sign that a name of a lower layer is gone? */
bool tree_is_whiteout(int dir, const char *name);

/* Does a directory hide what lower layers have in it? */
bool tree_is_opaque(int dir);

/* Bytes on disk, and the number of files, below dir/name. */
void tree_size(int dir, const char *name, unsigned long long *bytes, unsigned long long *files);

/*
 * A frozen layer must hide what belongs to another version of one of its databases: the
 * journal of an sqlite file that is in a lower layer only. lowers: what it lies on, all open.
 */
int tree_hide_journals(int layer, const int *lowers, size_t n, struct fault *f);

/*
 * Copy the directory from/name to the new directory to/as: directories and plain files, with
 * their modes (without set-id bits) and times. What is neither is left out and counted.
 */
int tree_copy(int from, const char *name, int to, const char *as, unsigned int *left_out,
	struct fault *f);

/* Copy an open plain file to the new file to/as, in the same way; holes stay holes. -errno. */
int tree_copy_open(int in, int to, const char *as);

/* Where the next byte at or after `from` is that lies in no hole; `size`: there is none. */
off_t tree_next_data(int fd, off_t from, off_t size);

/* The directory below `to` that a path is in, made where it is missing; -1 and errno. */
int tree_make_parent(int to, const char *path);

#endif
