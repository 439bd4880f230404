/*
 * box/native/move.h - move a directory of an overlay to the upper layer
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
 * parent/name is a directory of an overlay. If a lower layer has it, move its contents to a new
 * directory that takes its name, mode, times and attributes. 0: the directory is in the upper
 * layer alone now, or was before; else -errno, and nothing has changed. Allocates with
 * malloc(3) and frees everything.
 */
int move_to_upper(int parent, const char *name);

#endif
