/*
 * box/native/stub.h - names that are absent must stay absent
 *
 * A protected file that does not exist cannot be mounted over, and Landlock cannot deny
 * one name in a writable directory (CVE-2026-25725 came of that). So for as long as a box
 * runs, something stands at the name on the host, a stub, and the box has a mount on
 * top of it: a symlink that leads nowhere, so that programs in the box find the file
 * absent, while the name can be neither created, renamed nor removed.
 *
 * The stub is a socket inode with no permissions, the same one under every name: git
 * does not list sockets, a program that opens one gets an error at once, and
 * linking it costs two microseconds where a directory would cost a hundred. Where that would
 * make a program on the host stumble (git, over an unreadable commondir) the stub is a
 * file with text that changes nothing, and the box sees it read-only. No other program
 * makes sockets with mode 0 or files with mode 01444, so a stub that a power cut left is
 * recognised and taken over.
 *
 * Boxes that share a workspace share its stubs. Each holds a shared lock (flock) on the
 * directory; who can make it exclusive is the last one and removes them. That is the
 * supervisor, once the box's last process is dead; or, if the supervisor was killed, the
 * janitor: a process of its own that holds the same locks and waits for the
 * supervisor's end and then for the box's.
 */
#ifndef BOX_NATIVE_STUB_H
#define BOX_NATIVE_STUB_H

#include <stdbool.h>

struct fault;
struct plan;
struct stubs;

/*
 * Start the janitor for the box whose init is pidfd, then make all stubs of the plan.
 * *ret is NULL when there are none. After a failure what was made is removed.
 */
int stubs_make(const struct plan *p, int pidfd, struct stubs **ret, struct fault *f);

/*
 * Remove those that no other box uses. The box must be dead. NULL is fine. The protected paths
 * at which something else stood by then: somebody outside put it there. NULL-terminated.
 */
const char *const *stubs_remove(struct stubs *s);

#endif
