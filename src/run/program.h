/*
 * run/program.h - programs of the host that carrel uses itself
 *
 * Found on the user's PATH, but never in the project, where an agent may have put one.
 */
#ifndef RUN_PROGRAM_H
#define RUN_PROGRAM_H

/* Below this no program is taken from: the workspace, or the project that it belongs to. */
const char *program_never(const char *workspace, const char *project);

/* The canonical path of a program, or NULL. */
const char *program_find(const char *name, const char *never);

/*
 * Run a program to its end, with no input, and take what it prints and complains of, up to
 * 1 MiB. The status is that of waitpid(2). -errno when it could not be run.
 */
int program_output(const char *const *argv, const char **ret, int *ret_status);

/* Wait for the end of a child of ours; the status, or -errno. */
int program_wait(int pid);

#endif
