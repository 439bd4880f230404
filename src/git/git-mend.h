/*
 * git/git-mend.h - repair what git needs in its directory
 */
#ifndef GIT_GIT_MEND_H
#define GIT_GIT_MEND_H

#include <stdbool.h>

struct fault;

/* The HEAD of a git directory. */
struct git_head {
	const char *dir; /* its canonical path */
	const char *text;
	bool link;  /* text is where it leads */
	bool valid; /* git accepts it */
};

/* Read HEAD in the open directory dir: 1, 0 if there is none, or -errno. */
int git_head_read(int dir, struct git_head *ret, struct fault *f);

/*
 * Restore HEAD if git would not accept the current one. 1: restored; 0: not needed, or the
 * directory is gone.
 */
int git_head_mend(const struct git_head *head, struct fault *f);

/*
 * Give the owner access to the directory name in dir again. False: it is not ours, or not a
 * directory.
 */
bool git_mend_mode(int dir, const char *name);

#endif
