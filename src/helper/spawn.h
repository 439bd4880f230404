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
 * Execute program with an empty environment, /dev/null as its standard streams and fds from
 * HELPER_FIRST on. Nothing else is open. The kernel kills it when we end. -errno on failure.
 */
int helper_spawn(const char *program, const char *argv0, const int *fds, size_t n,
	pid_t *ret_pid);

/* The path of the program of that name: beside ours, or in libexec. NULL: not found. */
const char *helper_find(const char *name);

#endif
