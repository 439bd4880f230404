/*
 * overlay/changes.h - what boxes have changed in their layers of a directory of the user's
 *
 * Seen as the next box will see it: the frozen layers and, above them, what boxes that died
 * have left. What a box that runs has changed so far is not in it.
 */
#ifndef OVERLAY_CHANGES_H
#define OVERLAY_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "base/mem.h"
#include "overlay/layers.h"

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
	bool unseen;      /* of a directory: it could not be looked into */
	struct timespec mtime, ctime;
};

struct change {
	const char *name; /* below the user's directory */
	struct change_side users, box;
	bool outdated; /* two files, and the user's was changed after the box's */
};
typedef VEC(struct change) change_vec;

/*
 * In the order of their names. only: that one name alone, and with below what is in that
 * directory, too, however big it is; or NULL: all but what the client writes down about its
 * sessions, which is hidden of the user's and so no change of it.
 */
int changes_find(const struct layers *l, const char *only, bool below, change_vec *ret,
	struct fault *f);

/*
 * The names of files that a box changed and the user changed since: boxes do not see what the
 * user wrote. For the start of a box: only names and times are looked at, and not more than
 * a few hundred names.
 */
int changes_outdated(const struct layers *l, tree_names *ret, struct fault *f);

/* Can all be taken over: plain files, of a size that could be read, and all of them seen? */
int changes_takable(const change_vec *all, struct fault *f);

/*
 * Make the user's files what the changes say, as they were looked at. All are looked at again
 * before the first is made: a fault if a side of one is another by now, if one is no
 * plain file, if a link is on the way, or if a box runs (-EBUSY). They then are no
 * changes any more.
 */
int changes_take(const struct layers *l, const change_vec *all, struct fault *f);

/*
 * Forget what boxes made of `name`, a file or a directory with all in it: the next box sees
 * the user's. `all` is what was found there, and a fault if that is another by now, if a box
 * runs (-EBUSY), or if a box replaced a directory that it is in, as the user's would not
 * be seen then.
 */
int changes_drop(const struct layers *l, const char *name, const change_vec *all,
	struct fault *f);

#endif
