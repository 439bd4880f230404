/*
 * run/git-program.h - run git on the host, for carrel itself
 *
 * git gets an empty environment, no configuration of the user or the system, and no hooks. It
 * fetches no missing object over the network.
 */
#ifndef RUN_GIT_PROGRAM_H
#define RUN_GIT_PROGRAM_H

#include <stddef.h>

/*
 * Run `git` with these words in the directory dir. in: its standard input; -1: none. What it
 * prints and reports goes to *ret, up to 256 MiB, with its length to *ret_n unless NULL.
 * Its exit code, or -errno.
 */
int git_program_run(const char *git, const char *dir, const char *const *words, int in,
	const char **ret, size_t *ret_n);

#endif
