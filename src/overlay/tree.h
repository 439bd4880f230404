/*
 * overlay/tree.h - trees of files that a box has written
 *
 * Everything in them is hostile. Links are never followed, only directories and, to read
 * contents, plain files are opened, and every path is relative to a descriptor. A box cannot
 * make a tree that cannot be removed: directories that their owner may not read or write are
 * opened nevertheless, and no depth is too great.
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
 * In place of a descriptor of the user's directory below the layers: it does not exist; or it
 * cannot be examined.
 */
enum { TREE_NOTHING = -1, TREE_UNKNOWN = -2 };

/* Open the directory dir/name, whatever its mode; -1 and errno. Its mode may change. */
int tree_open(int dir, const char *name);

/* Does dir/name still name the open directory? Another process may have removed it. */
bool tree_is_named(int dir, const char *name, int fd);

/* The names in a directory, sorted; 0 or -errno. */
int tree_list(int dir, tree_names *ret);

/* Open dir/name if it is a plain file; -1 and errno. */
int tree_open_file(int dir, const char *name);

/*
 * The contents of a plain file and its length; NULL and errno on failure; more than max is
 * EFBIG.
 */
char *tree_read(int dir, const char *name, size_t max, size_t *ret_n);

/* Remove dir/name and everything below it, if it exists. */
int tree_remove(int dir, const char *name, struct fault *f);

/*
 * Merge the layer `newer` into the layer `base`, as overlayfs would show both on top of
 * `below`. Both are open directories of one file system. The contents of `newer` are moved,
 * white-outs and opaque directories too, and it is empty afterwards. If the merge is
 * interrupted, the two together still show the same, and it can be repeated.
 */
int tree_merge(int newer, int base, int below, struct fault *f);

/* Is it a white-out, overlayfs's mark for a deleted name? */
bool tree_is_whiteout(int dir, const char *name);

/* Is the directory opaque: does it hide the contents of lower layers? */
bool tree_is_opaque(int dir);

/* Bytes on disk, and the number of files, below dir/name. */
void tree_size(int dir, const char *name, unsigned long long *bytes, unsigned long long *files);

/*
 * A frozen layer must hide the journal of an sqlite file if only a lower layer has the journal:
 * it belongs to another version of the database. lowers: the layers below, all open.
 */
int tree_hide_journals(int layer, const int *lowers, size_t n, struct fault *f);

/*
 * Copy the directory from/name to the new directory to/as: directories and plain files, with
 * their modes (without set-id bits) and times. Other types are left out and counted.
 */
int tree_copy(int from, const char *name, int to, const char *as, unsigned int *left_out,
	struct fault *f);

/* Copy an open plain file to the new file to/as, in the same way; holes stay holes. -errno. */
int tree_copy_open(int in, int to, const char *as);

/*
 * The offset of the next byte at or after `from` that is not in a hole; `size`: there is none.
 */
off_t tree_next_data(int fd, off_t from, off_t size);

/* Open the directory of a path below `to`, creating it if necessary; -1 and errno. */
int tree_make_parent(int to, const char *path);

#endif
