/*
 * net/jail.h - what is left to the broker when it begins to read hostile bytes
 */
#ifndef NET_JAIL_H
#define NET_JAIL_H

struct fault;

/*
 * From here on: no files, no programs, no processes, no namespaces, no memory that can be
 * executed; of sockets only those of IPv4 and IPv6, none of which can be bound where
 * Landlock knows of networks. A layer that cannot be applied is a fault; only a kernel
 * without Landlock has one less, because the box does not start there anyway.
 */
int jail_enter(struct fault *f);

#endif
