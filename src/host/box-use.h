/*
 * host/box-use.h - what boxes use of the machine right now
 */
#ifndef HOST_BOX_USE_H
#define HOST_BOX_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct box_use {
	pid_t init;         /* of the box; 0: not known */
	const char *cgroup; /* its control group, or NULL */
	/* The answer. */
	bool known;
	unsigned long long memory;   /* bytes */
	unsigned long long cpu_usec; /* since the box began */
};

/* Fill in the answers. The process table is read once for all, and only if need be. */
void box_use_read(struct box_use *boxes, size_t n);

#endif
