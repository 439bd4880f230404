/*
 * box/stubs.h - names that are absent must stay absent
 *
 * A protected file that does not exist cannot be mounted over, and Landlock cannot deny one
 * name in a writable directory (this led to CVE-2026-25725). So while a box runs, a stub stands
 * at the name on the host, and the box has a mount on top of it: the name can be neither
 * created, renamed nor removed. Each side sees what disturbs it least.
 *
 * A stub for a directory is an empty directory. Programs on the host use it like any other, and
 * the box has the same, read-only. It is recognised by a sticky bit, which nobody else sets on
 * a directory that only its owner may write to. At the end it is removed if it is empty. If
 * somebody has put something into it, it is theirs and loses the mark.
 *
 * A stub for a file is a socket inode without permissions on the host, the same one under every
 * name. git does not list sockets on either side, and a program that opens one gets an error at
 * once. The box reads a neutral file instead. In a git directory, where a socket would make git
 * fail, the stub is a file whose text changes nothing, and the box sees it read-only. No other
 * program makes sockets with mode 0 or files with mode 01444, so a stub left by a power cut is
 * recognised and reused.
 *
 * Boxes that share a workspace share its stubs, and the last one removes them. Locks that no
 * box can take tell which one that is (stub-lock.h). The supervisor removes the stubs once the
 * box's last process is dead. If the supervisor is killed, the janitor does it: a process that
 * holds the same locks and waits for the supervisor's end and then for the box's.
 */
#ifndef BOX_STUBS_H
#define BOX_STUBS_H

#include <stdbool.h>

struct fault;
struct plan;
struct stubs;

/*
 * Start the janitor for the box whose init is pidfd, then make all stubs of the plan. *ret is
 * NULL when there are none. On failure all stubs are removed again.
 */
int stubs_make(const struct plan *p, int pidfd, struct stubs **ret, struct fault *f);

/*
 * Remove the stubs that no other box uses. The box must be dead; NULL is fine. Returns the
 * protected paths that hold something else by now, put there from outside; NULL-terminated.
 */
const char *const *stubs_remove(struct stubs *s);

/*
 * Set what else to do if the supervisor is killed. The janitor calls it once the box is dead
 * and before the stubs are removed, in a process of its own, with a copy of the supervisor's
 * memory and without its descriptors. Call this before stubs_make(). A box without stubs has no
 * janitor.
 */
void stubs_when_killed(void (*then)(void));

#endif
