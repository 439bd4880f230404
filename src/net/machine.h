/*
 * net/machine.h - what the broker must know of the machine, read before it shuts itself in
 */
#ifndef NET_MACHINE_H
#define NET_MACHINE_H

#include <stddef.h>

enum { MACHINE_SHORT = 1024 }; /* as much as a file has as a rule */

struct fault;
struct lookup_config;
struct lookup_index;
struct policy;

/*
 * Add the addresses of the moment to the policy: all of them, or the broker must not start. Of
 * those that come later it learns when they are dialled (net/own.h).
 */
int machine_own(struct policy *p, struct fault *f);

/* What /etc/resolv.conf says; without one all is asked at 127.0.0.1. */
int machine_dns(struct lookup_config *ret, struct fault *f);

/* /etc/hosts, for good: in the room, or elsewhere and with a list of its names. */
int machine_hosts(char room[MACHINE_SHORT], struct lookup_index *ret, struct fault *f);

#endif
