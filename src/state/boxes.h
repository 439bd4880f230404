/*
 * state/boxes.h - what is kept of boxes, by their names
 *
 *	$XDG_STATE_HOME/carrel/boxes/NAME/
 *	  events.jsonl		what happened on its network: run/journal.h
 *
 * A box's directory stays when the box has ended, so that one can look; the next box of
 * that name replaces what is in it, and `carrel gc` removes it when it is old. No box sees
 * any of this, and nothing that a box says becomes part of a path.
 */
#ifndef STATE_BOXES_H
#define STATE_BOXES_H

#include <stdbool.h>
#include <time.h>

#include "base/mem.h"

struct fault;

enum { BOXES_DAYS = 30 }; /* how long a record is kept */

/* Could a box have this name: is it safe to be looked for? */
bool boxes_is_name(const char *name);

/*
 * A new file in the directory of the box, in the place of an older one: a descriptor to write
 * to from its start, or -errno. The caller holds the name (state/registry.h).
 */
int boxes_create(const char *name, const char *file, struct fault *f);

/* Where the directory of a box is, or that of all (NULL), for messages. */
const char *boxes_shown(const char *name);

/* Open a file of a box for reading; f->err is ENOENT when there is none. */
int boxes_open(const char *name, const char *file, struct fault *f);

struct box_record {
	const char *name;
	time_t used; /* when it was last written */
	unsigned long long bytes;
	const char *problem; /* why it is left alone, for a person; or NULL */
};
typedef VEC(struct box_record) box_records;

/* All there are; none when there is no such directory. */
int boxes_list(box_records *ret, struct fault *f);

/* Is it so old that it is not kept? */
bool boxes_is_old(const struct box_record *r);

/* Remove a record that is old; -EBUSY: the name is in use, or it has become newer. */
int boxes_remove(const struct box_record *r, struct fault *f);

#endif
