/* box/stub.h - recognise a stub for an absent name; see box/stubs.h */
#ifndef BOX_STUB_H
#define BOX_STUB_H

#include <stdbool.h>

struct stat;

/* Is there a stub at dir/name? */
bool stub_at(int dir, const char *name);

/*
 * Was it a stub that the caller has just examined? Examining it again would not do: its box may
 * end meanwhile and remove it.
 */
bool stub_seen(const struct stat *st, int dir, const char *name);

/* Is a directory entry, from getdents(2), another name of a stub that was seen? */
bool stub_is_known(unsigned char type, unsigned long inode);

#endif
