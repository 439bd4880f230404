/*
 * box/native/redirect.h - a network whose every connection ends at the broker
 */
#ifndef BOX_NATIVE_REDIRECT_H
#define BOX_NATIVE_REDIRECT_H

#include <stdbool.h>

#include "plan/request.h"

/*
 * Call this in the box's new network namespace; it also brings loopback up. On success NULL,
 * and the sockets for the broker: a TCP listener, the resolver's UDP socket, and those that
 * receive refused datagrams, which are -1 if they cannot be made. Else what failed, with errno;
 * the caller closes the sockets made so far.
 */
const char *egress_make(int ends[NET_ENDS]);

/*
 * The same namespace, afterwards: the listener also gets connections to this port of loopback.
 */
const char *egress_service(unsigned short port);

/*
 * The same namespace: a server in the box may listen on ports below 1024, except the broker's.
 * Only on request, because it takes a fifth of the time of all the rest.
 */
const char *egress_low_ports(void);

/* Without tproxy: the listener is that of an explicit proxy, on a port of loopback. */
const char *egress_make_proxy(unsigned short port, int *ret_listener);

#endif
