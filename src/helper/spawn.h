/*
 * helper/spawn.h - start a helper process
 */
#ifndef HELPER_SPAWN_H
#define HELPER_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

struct fault;

enum { HELPER_FIRST = 3, HELPER_FDS = 4 };

/*
 * Execute program, with no environment, /dev/null as its standard streams, fds from
 * HELPER_FIRST on, and nothing else that is open. It is killed when we end. -errno.
 */
int helper_spawn(const char *program, const char *argv0, const int *fds, size_t n,
	pid_t *ret_pid);

/* Where the program of that name is: beside ours, or in libexec. NULL: nowhere. */
const char *helper_find(const char *name);

#endif
