/*
 * net/event.h - what the broker tells the supervisor of
 *
 * One fixed struct for each event, sent over a socket between the two. The broker parses
 * hostile bytes, so whoever reads an event checks it: net_event_is_sane().
 */
#ifndef NET_EVENT_H
#define NET_EVENT_H

#include "net/name.h"

enum net_event_kind {
	NET_LOOKUP = 1, /* a name was asked for, and answered or refused */
	NET_CONNECT,    /* a connection was made, refused, or could not be made */
	NET_CLOSE,      /* one that was made is over: bytes, duration */
	NET_HELD,       /* a connection to an unknown host waits for the user's answer */
	NET_LIMIT,      /* a limit of the box was reached: `name` says which */
	NET_DATAGRAM,   /* one of UDP was refused: none is ever passed on */
	NET_LOST,       /* the broker is gone, and the network with it (from the supervisor) */
};

struct net_event {
	uint8_t kind;    /* enum net_event_kind */
	uint8_t reason;  /* enum policy_reason, of LOOKUP, CONNECT, DATAGRAM */
	bool allowed;    /* by the policy; a dial can fail nevertheless */
	bool inbound;    /* CONNECT, CLOSE: from the host to a server in the box */
	uint16_t port;   /* CONNECT, CLOSE, HELD, DATAGRAM */
	uint16_t type;   /* LOOKUP: the question's */
	int32_t error;   /* errno of a lookup or dial that failed, or 0 */
	uint64_t id;     /* of a connection: the same in its CONNECT and CLOSE, never 0 */
	uint64_t time;   /* CLOCK_REALTIME, ns */
	uint64_t lasted; /* CLOSE: ns; CONNECT, LOOKUP: how long it took */
	uint64_t sent, received; /* CLOSE: bytes, as the box sees it */
	struct address address;  /* that was dialled, or that the box asked for */
	char name[NAME_SIZE];    /* canonical; "" when the box dialled an address */
};

/* Does it make sense: known kind, name canonical and terminated, family known? */
bool net_event_is_sane(const struct net_event *e);

#endif
