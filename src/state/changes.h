/*
 * state/changes.h - what boxes have changed in their layers of a directory of the user's
 *
 * Seen as the next box will see it: the frozen layers and, above them, what boxes that died
 * have left. What a box that runs has changed so far is not in it.
 */
#ifndef STATE_CHANGES_H
#define STATE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/mem.h"
#include "state/layers.h"

struct fault;

enum change_type { TYPE_NONE, TYPE_FILE, TYPE_DIR, TYPE_LINK, TYPE_OTHER };

/* One side of it. */
struct change_side {
	enum change_type type;
	mode_t mode; /* of a file: its permissions */
	unsigned long long size;
	const char *text; /* of a file: its bytes, if it is not too big; NUL-terminated */
	size_t n;
	const char *link; /* of a link: where it leads */
};

struct change {
	const char *name; /* below the user's directory */
	struct change_side users, box;
};
typedef VEC(struct change) change_vec;

/* only: that one name alone, however big it is; or NULL. In the order of their names. */
int changes_find(const struct layers *l, const char *only, change_vec *ret, struct fault *f);

/*
 * Make the user's file what the change says, as it was looked at: a fault if either side is
 * another by now, if it is no plain file, if a link is on the way, or if a box runs
 * (-EBUSY). It then is no change any more.
 */
int changes_take(const struct layers *l, const struct change *c, struct fault *f);

#endif
