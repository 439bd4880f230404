/*
 * run/lookups.h - did a box without a network need one?
 *
 * A lookup in such a box reaches nobody, so nobody can report it. But a program that looks up a
 * name reads /etc/resolv.conf first, and the access time of that file shows it (plan.h,
 * `watched`). That is a sign and not a proof: a lookup of localhost reads the file, too. So the
 * note is given only if the command failed, and its wording is cautious.
 */
#ifndef RUN_LOOKUPS_H
#define RUN_LOOKUPS_H

struct plan;

/* The box is dead, and root is the directory of its own file system. The note, or NULL. */
const char *lookups_missed(const struct plan *p, int root);

#endif
