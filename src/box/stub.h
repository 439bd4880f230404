/*
 * box/stub.h - recognise what stands for an absent name; see box/native/stub.h
 */
#ifndef BOX_STUB_H
#define BOX_STUB_H

#include <stdbool.h>

struct stat;

/* Does a stub stand at dir/name? */
bool stub_at(int dir, const char *name);

/*
 * Was it a stub that the caller has just looked at? To look twice would not do: the box that
 * it belongs to may end, and take it away, in between.
 */
bool stub_seen(const struct stat *st, int dir, const char *name);

/* Is an entry of a directory, as getdents(2) has it, a further name of one that was seen? */
bool stub_is_known(unsigned char type, unsigned long inode);

#endif
