/*
 * net/broker/machine.h - what the broker knows of the machine, read before it is jailed
 */
#ifndef NET_BROKER_MACHINE_H
#define NET_BROKER_MACHINE_H

#include <stddef.h>

enum { MACHINE_SHORT = 1024 }; /* most files are shorter */

struct fault;
struct lookup_config;
struct lookup_index;
struct policy;

/*
 * Add all current addresses of the machine to the policy. The broker must not start when that
 * fails. It learns later addresses when they are dialled (net/broker/own-addresses.h).
 */
int machine_own(struct policy *p, struct fault *f);

/* Parse /etc/resolv.conf; without one the name server is 127.0.0.1. */
int machine_dns(struct lookup_config *ret, struct fault *f);

/*
 * Read /etc/hosts into the buffer, or into a mapping with an index of its names. It stays
 * there.
 */
int machine_hosts(char room[MACHINE_SHORT], struct lookup_index *ret, struct fault *f);

#endif
