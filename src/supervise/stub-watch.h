/*
 * supervise/stub-watch.h - notice when somebody outside takes a protection away
 *
 * While a box runs, an empty directory stands for a protected name that is absent
 * (box/stubs.h). `git clean -d` outside removes it like any other, and the kernel takes the
 * box's mount away with it: from then on the box can make the name. No process can prevent
 * that. Files that the box makes are reported when it ends, but the user may start a program
 * that obeys them before. So the supervisor reports at once what was removed.
 *
 * In the same way, `git config` outside replaces .git/config by renaming, and so removes the
 * box's mount on it.
 *
 *	stub_watch_begin(&w, plan);    the box runs
 *	stub_watch_poll(&w, &pfd); poll(...); stub_watch_serve(&w, &pfd, raw);
 */
#ifndef SUPERVISE_STUB_WATCH_H
#define SUPERVISE_STUB_WATCH_H

#include <stdbool.h>

struct place;
struct plan;
struct pollfd;

enum { STUB_WATCH_FILES = 8 }; /* configurations of one repository: two or three */

struct stub_watch {
	const struct plan *plan;
	int fd; /* -1: nothing to watch, or the user has no watch left */

	/* Private. */
	unsigned int n;
	struct {
		const struct place *place;
		int watch;
		bool lost;
	} files[STUB_WATCH_FILES];
};

void stub_watch_begin(struct stub_watch *w, const struct plan *p);
void stub_watch_poll(const struct stub_watch *w, struct pollfd *pfd);

/* raw: the user's terminal needs CR. */
void stub_watch_serve(struct stub_watch *w, const struct pollfd *pfd, bool raw);

/*
 * These paths and the files that were replaced, NULL-terminated. Inode numbers do not show a
 * replacement, because a file system soon reuses them.
 */
const char *const *stub_watch_lost(const struct stub_watch *w, const char *const *paths);

#endif
