/*
 * git/git-mend.h - put right what git needs of its directory
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
 * Write HEAD as it was, if git would not accept the one that is there. 1: that was needed;
 * 0: it was not, or the directory is gone.
 */
int git_head_mend(const struct git_head *head, struct fault *f);

/* Let the owner into the directory name in dir again. False: it is not ours, or is none. */
bool git_mend_mode(int dir, const char *name);

#endif
