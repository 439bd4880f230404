/* helper/jail.h - what a helper process may still do when it reads hostile bytes */
#ifndef HELPER_JAIL_H
#define HELPER_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault;

enum { JAIL_CALLS = 64 };

struct jail {
	const uint16_t *calls; /* system calls that it may make, JAIL_CALLS at most */
	size_t n;
	bool sockets; /* it may make sockets of IPv4 and IPv6, and set the size of pipes */
};

/*
 * From here on the helper has no files but those that are open, no programs, no processes and
 * no namespaces. It cannot bind sockets if Landlock supports networks. A layer that cannot be
 * applied is a fault. Only Landlock may be missing, because without it the box does not start
 * anyway.
 */
int jail_enter(const struct jail *j, struct fault *f);

#endif
