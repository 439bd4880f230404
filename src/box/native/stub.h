/*
 * box/native/stub.h - names that are absent must stay absent
 *
 * A protected file that does not exist cannot be mounted over, and Landlock cannot deny
 * one name in a writable directory (CVE-2026-25725 came of that). So for as long as a box
 * runs, an empty directory stands at the name on the host: a stub. The box sees it as
 * a read-only mount point, which it can neither fill, rename nor remove.
 *
 * A directory, because git does not list empty ones, and because rmdir(2) can never remove
 * anything that somebody put there. Its mode (01500) marks it as ours, so a later
 * carrel recognises one that was left by a power cut and takes it over.
 *
 * Boxes that share a workspace share the stub: each holds a shared lock on it, and only
 * who gets it exclusively removes it. That is the supervisor, once the box's last
 * process is dead; or, if the supervisor was killed, the janitor: a process of its own
 * that waits for the supervisor's end and then for the box's, and holds the locks meanwhile.
 */
#ifndef BOX_NATIVE_STUB_H
#define BOX_NATIVE_STUB_H

struct fault;
struct plan;
struct stubs;

/*
 * Start the janitor for the box whose init is pidfd, then make all stubs of the plan.
 * *ret is NULL when there are none. After a failure what was made is removed.
 */
int stubs_make(const struct plan *p, int pidfd, struct stubs **ret, struct fault *f);

/* Remove those that no other box uses. The box must be dead. NULL is fine. */
void stubs_remove(struct stubs *s);

#endif
