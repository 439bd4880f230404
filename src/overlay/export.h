/*
 * overlay/export.h - the added and changed files of a change set, copied elsewhere
 */
#ifndef OVERLAY_EXPORT_H
#define OVERLAY_EXPORT_H

#include <stddef.h>

struct changed;
struct changeset;
struct fault;

/*
 * Copy the box's side of one change to the same path below the directory `to`: files with their
 * modes except set-id bits, links as links, directories. 1: copied; 0: nothing to copy, because
 * it was deleted or is of another type. No link is followed on the way.
 */
int export_one(const struct changeset *s, const struct changed *c, int to, struct fault *f);

#endif
