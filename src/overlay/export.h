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
 * modes but for set-id bits, links as links, directories. 1: it was copied; 0: there is nothing
 * to copy, because it is deleted or neither of these. No link is followed on the way.
 */
int export_one(const struct changeset *s, const struct changed *c, int to, struct fault *f);

#endif
