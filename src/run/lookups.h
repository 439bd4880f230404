/*
 * run/lookups.h - whether a box without a network missed one
 *
 * A lookup in such a box reaches nobody, so nobody can report it. But a program that looks a
 * name up reads /etc/resolv.conf first, and the access time of that file shows it (plan.h,
 * `watched`). That is a sign and no proof: a lookup of localhost reads the file, too. So the
 * user is told only where the command failed, and in words that say no more.
 */
#ifndef RUN_LOOKUPS_H
#define RUN_LOOKUPS_H

struct plan;

/* The box is dead, and root is the directory of its own file system. What to say, or NULL. */
const char *lookups_missed(const struct plan *p, int root);

#endif
