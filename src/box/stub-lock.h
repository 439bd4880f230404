/*
 * box/stub-lock.h - who is the last box in a directory
 *
 * Boxes that share a directory share its stubs, and the last one removes them. Each has a seat
 * at the directory: a locked byte of a file that no box can open. The file is in carrel's
 * runtime directory, or else in its state directory. No box can write either, and the file's
 * mode lets nobody read it. The directory's device and inode select the bytes that are its
 * seats. A box that can lock all of them is alone. The kernel releases a seat when the last
 * descriptor of the open file is closed, however its holders end.
 *
 * A carrel that was started with other XDG directories does not see these locks, and one
 * without any has none. So each also holds flock(2) on the directory itself, if it can. A box
 * can open and lock that directory too. So this lock never stops a start, and at the end it
 * counts only if a carrel outside of all boxes took it. Without a file for the seats it is the
 * only lock.
 */
#ifndef BOX_STUB_LOCK_H
#define BOX_STUB_LOCK_H

#include <stdbool.h>

/* Open the file with the seats; -1: there is none. */
int stub_lock_open(void);

/* Take a seat at the directory. It may be busy while another box removes stubs. */
int stub_lock_share(int file, int dir);

/*
 * Give up the seat, and take all seats if nobody else has one. False: another box is there, or
 * is just removing the stubs. In both cases call stub_lock_leave() next.
 */
bool stub_lock_alone(int file, int dir);
void stub_lock_leave(int file, int dir);

#endif
