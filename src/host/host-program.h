/*
 * host/host-program.h - programs of the host that carrel runs itself
 *
 * carrel finds them on the user's PATH, but never where an agent may have put one: in the
 * workspace, in a directory around it that could have been a workspace, in its working tree or
 * in its project. Whether something is a repository does not matter: an agent can make one.
 */
#ifndef HOST_HOST_PROGRAM_H
#define HOST_HOST_PROGRAM_H

#include <stdbool.h>

/* Does a canonical path lie there? Yes also if that cannot be determined. */
bool program_is_agents(const char *path, const char *workspace);

/* The canonical path of a program, or NULL. */
const char *program_find(const char *name, const char *workspace);

/* The same for a program that runs in the box: it may be anywhere but in the workspace. */
const char *program_find_client(const char *name, const char *workspace);

/* Remove such directories from our own PATH, because programs that we start use it. */
void program_clean_path(const char *workspace);

/*
 * Run a program to its end, without input, and return what it prints on both streams, up to 1
 * MiB. The status is that of waitpid(2). -errno if it could not be run.
 */
int program_output(const char *const *argv, const char **ret, int *ret_status);

/* Wait for the end of a child of ours; the status, or -errno. */
int program_wait(int pid);

#endif
