/*
 * host/host-program.h - programs of the host that carrel uses itself
 *
 * Found on the user's PATH, but never where an agent may have put one: in the workspace, in any
 * directory that it lies in and that could have been one, in its working tree or in the
 * project that it belongs to. What is a repository does not decide that: an agent can make one.
 */
#ifndef HOST_HOST_PROGRAM_H
#define HOST_HOST_PROGRAM_H

#include <stdbool.h>

/* Whether a canonical path lies there; so it does if that cannot be told. */
bool program_is_agents(const char *path, const char *workspace);

/* The canonical path of a program, or NULL. */
const char *program_find(const char *name, const char *workspace);

/* The same of one that runs in the box: it may lie anywhere but in the workspace. */
const char *program_find_client(const char *name, const char *workspace);

/* Take such places out of our own PATH: programs that we start look there for others. */
void program_clean_path(const char *workspace);

/*
 * Run a program to its end, with no input, and take what it prints and complains of, up to
 * 1 MiB. The status is that of waitpid(2). -errno when it could not be run.
 */
int program_output(const char *const *argv, const char **ret, int *ret_status);

/* Wait for the end of a child of ours; the status, or -errno. */
int program_wait(int pid);

#endif
