/*
 * box/native/egress.h - a network whose every connection ends at the broker
 */
#ifndef BOX_NATIVE_EGRESS_H
#define BOX_NATIVE_EGRESS_H

#include <stdbool.h>

#include "plan/request.h"

/*
 * Called in the box's new network namespace, brings loopback up. On success NULL and
 * the sockets for the broker: a TCP listener, the resolver's UDP socket, and those that hear of
 * refused datagrams, which are left -1 where they cannot be made. Else what failed, with
 * errno; a socket that was made by then is the caller's to close.
 */
const char *egress_make(int ends[NET_ENDS]);

/*
 * There as well: a server in the box may listen on ports below 1024, but for the broker's. Only
 * for who asks for it, because it takes as long as a fifth of all the rest.
 */
const char *egress_low_ports(void);

/* Without tproxy: the listener is that of an explicit proxy, on a port of loopback. */
const char *egress_make_proxy(unsigned short port, int *ret_listener);

#endif
