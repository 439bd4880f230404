/*
 * overlay/changes.h - changes that boxes made on layers over a directory of the user's
 *
 * The view is that of the next box: the frozen layers and, above them, the layers of dead
 * boxes. Changes of running boxes are not included.
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

/* The type of a name that exists, from its st_mode. */
enum change_type change_type_of(mode_t mode);

/* One side of a change. */
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
 * List the changes in the order of their names. only: just that name; with `below` also
 * everything in that directory, however large; or NULL: everything except the client's data
 * about its sessions, which are hidden in the user's directory and so do not change it.
 */
int changes_find(const struct layers *l, const char *only, bool below, change_vec *ret,
	struct fault *f);

/*
 * The names of files that a box changed and the user changed later: boxes do not see the user's
 * version. This runs at the start of a box, so it examines only names and times, and at most a
 * few hundred names.
 */
int changes_outdated(const struct layers *l, tree_names *ret, struct fault *f);

/*
 * Can everything be taken over? All are plain files, were read completely, and none is hidden.
 */
int changes_takable(const change_vec *all, struct fault *f);

/*
 * Make these changes in the user's files. All are examined again before the first is made: a
 * fault if a side has changed since, if one is not a plain file, if a link is on the way, or if
 * a box runs (-EBUSY). Afterwards they are no changes any more.
 */
int changes_take(const struct layers *l, const change_vec *all, struct fault *f);

/*
 * Drop what boxes made of `name`, a file or a whole directory: the next box sees the user's
 * version. `all` is what was listed there. A fault if that has changed since, if a box runs
 * (-EBUSY), or if a box replaced a parent directory, because the user's version would stay
 * hidden.
 */
int changes_drop(const struct layers *l, const char *name, const change_vec *all,
	struct fault *f);

#endif
