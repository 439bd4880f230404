/*
 * net/broker/broker-event.h - events that the broker reports to the supervisor
 *
 * One fixed struct for each event, sent over a socket between the two. The broker parses
 * hostile bytes, so the reader checks every event: net_event_is_sane().
 */
#ifndef NET_BROKER_BROKER_EVENT_H
#define NET_BROKER_BROKER_EVENT_H

#include "net/policy/name.h"

enum net_event_kind {
	NET_LOOKUP = 1, /* the box asked for a name: answered or refused */
	NET_CONNECT,    /* a connection was made, refused, or could not be made */
	NET_CLOSE,      /* an open connection ended: bytes, duration */
	NET_HELD,       /* a connection to an unknown host waits for the user's answer */
	NET_LIMIT,      /* a limit of the box was reached: `name` says which */
	NET_DATAGRAM,   /* a UDP datagram was refused; none is ever forwarded */
	NET_LOST,       /* the broker is gone, and the network with it (from the supervisor) */
};

struct net_event {
	uint8_t kind;            /* enum net_event_kind */
	uint8_t reason;          /* enum policy_reason, of LOOKUP, CONNECT, DATAGRAM */
	bool allowed;            /* by the policy; the dial may still fail */
	bool inbound;            /* CONNECT, CLOSE: from the host to a server in the box */
	uint16_t port;           /* CONNECT, CLOSE, HELD, DATAGRAM */
	uint16_t type;           /* LOOKUP: the type of the question */
	int32_t error;           /* errno of a lookup or dial that failed, or 0 */
	uint64_t id;             /* of a connection: the same in CONNECT and CLOSE, never 0 */
	uint64_t time;           /* CLOCK_REALTIME, ns */
	uint64_t lasted;         /* CLOSE: ns; CONNECT, LOOKUP: how long it took */
	uint64_t sent, received; /* CLOSE: bytes, as the box sees it */
	struct address address;  /* the address that was dialled or asked for */
	char name[NAME_SIZE];    /* canonical; "" when the box dialled an address */
};

/* Does it make sense: known kind, name canonical and terminated, family known? */
bool net_event_is_sane(const struct net_event *e);

#endif
