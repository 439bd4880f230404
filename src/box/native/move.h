/*
 * box/native/move.h - make a directory of an overlay one of its upper layer alone
 */
#ifndef BOX_NATIVE_MOVE_H
#define BOX_NATIVE_MOVE_H

/*
 * In the high word of the flags of renameat2(2), which the kernel drops: a rename that is not
 * reported to rename.c.
 */
#define MOVE_MARK (1UL << 32)

enum { MOVE_DEPTH = 4000 };

/*
 * parent/name is a directory of an overlay. If a lower layer has it, move all in it to a new
 * directory that takes its name, its mode, times and attributes. 0: it is of the upper layer
 * alone now, or was before; else -errno, and it is as it was. Allocates by malloc(3) and frees
 * all of it.
 */
int move_to_upper(int parent, const char *name);

#endif
