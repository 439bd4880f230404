/*
 * box/native/egress.h - a network whose every connection ends at the broker
 */
#ifndef BOX_NATIVE_EGRESS_H
#define BOX_NATIVE_EGRESS_H

#include <stdbool.h>

/* Does this kernel have IPv6? In any namespace; changes errno. */
bool egress_has_v6(void);

/*
 * Called in the box's new network namespace, brings loopback up. On success NULL, errno as it
 * was, and the two sockets for the broker: a TCP listener and the resolver's UDP socket. Else
 * what failed, with errno. Leaves descriptors open: for a process that ends soon.
 */
const char *egress_make(bool v6, int *ret_listener, int *ret_resolver);

/* Without nf_tables: the listener is that of an explicit proxy, on a port of loopback. */
const char *egress_make_proxy(unsigned short port, int *ret_listener);

#endif
