/*
 * net/broker/broker.h - the process between a box and the network
 *
 * The broker answers the box's lookups and makes its connections: it judges, resolves, dials
 * and relays. It reads hostile bytes, so it is a process of its own: this program executed
 * again, with an empty environment and nothing in memory but what it receives here. It can open
 * no file, start no program and reach nothing of the machine but its network (helper/jail.h).
 * Each box has one, in the host's network namespace. It ends with its supervisor. Without it
 * the box has no network.
 *
 *	supervisor            broker
 *	                      reads the machine's configuration, enters its jail
 *	CONFIG          ─▶
 *	RULE ...        ─▶    as many as CONFIG announced
 *	LISTEN + fds    ─▶    the sockets of the box's network: enum net_end
 *	                ◀─    READY, or FAULT
 *	                ◀─    EVENT ...                           net/broker/broker-event.h
 *	RULE ...        ─▶    one more rule of the policy
 *	PORT + 1 fd     ─▶    a listener of the host, for a server in the box
 *	                ◀─    NEED                                sockets of the box's network
 *	                ◀─    MOVED                               bytes so far
 *	SPARE_SOCKET    ─▶    one of the sockets, as a descriptor
 *	END             ─▶
 *	                ◀─    EVENT ... of open connections, then DONE
 *
 * Messages are datagrams on a SOCK_SEQPACKET pair. When the supervisor does not read events,
 * the broker blocks, and the box with it. Once the box runs, the supervisor never waits for the
 * broker.
 */
#ifndef NET_BROKER_BROKER_H
#define NET_BROKER_BROKER_H

#include "net/broker/broker-event.h"
#include "net/proto/lookup.h"
#include "net/policy/policy.h"
#include "plan/request.h"

struct jail;

#define BROKER_ARGV0 "carrel-broker"

enum {
	BROKER_SOCKET = 3, /* the broker's end of the socket pair */
	BROKER_CONNECTIONS = MOST_CONNECTIONS,
	BROKER_PORTS = MOST_PORTS,
	BROKER_NAME = 64,  /* bytes of a host name, with the terminating zero */
	BROKER_SPARE = 8,  /* sockets of the box that are kept ready for its ports */
	BROKER_RULES = 64, /* in one message, before READY */
};

enum broker_word {
	BROKER_CONFIG = 1, /* followed by a struct broker_terms */
	BROKER_READY,
	BROKER_FAULT, /* followed by a struct fault */
	BROKER_LISTEN,
	BROKER_EVENT, /* followed by a struct net_event */
	BROKER_RULE,  /* followed by a struct policy_rule; before READY by several */
	/*
	 * value: the host's port << 16 | the box's port; without a descriptor: close that port
	 */
	BROKER_PORT,
	BROKER_NEED,  /* value: how many */
	BROKER_MOVED, /* followed by a struct broker_moved: at most once a second */
	BROKER_SPARE_SOCKET,
	BROKER_END,
	BROKER_DONE,
};

struct broker_message {
	uint32_t word;
	uint32_t value;
};

/* Bytes of all connections, as the box sees them. */
struct broker_moved {
	uint64_t sent, received;
};

/* The configuration. */
struct broker_terms {
	bool proxy; /* clients use CONNECT or SOCKS; there is no resolver */
	bool ask;
	bool open;        /* the policy allows every public host */
	uint16_t entries; /* number of the policy's entries */
	uint32_t rules;   /* number of rules that follow */
	uint32_t ask_seconds;
	uint32_t connections;  /* simultaneous, at most BROKER_CONNECTIONS */
	uint64_t bytes;        /* in both directions together; 0: no limit */
	uint64_t rate;         /* bytes a second; 0: no limit */
	char box[BROKER_NAME]; /* the box's name, which is also its host name */
};

/* Send with up to NET_ENDS descriptors; body may be NULL. 0 or -errno. */
int broker_send(int socket, const struct broker_message *m, const void *body, size_t n,
	const int *fds, size_t fd_count, int flags);

/* Receive a message. *ret_n is the body's length; missing fds are -1. 0 or -errno. */
int broker_receive(int socket, struct broker_message *m, void *body, size_t size, size_t *ret_n,
	int fds[NET_ENDS], int flags);
void broker_close(int fds[NET_ENDS]);

/* What is left to it once it reads what the box sends. */
extern const struct jail broker_jail;

/* Runs the broker until the box ends; returns main()'s exit code. */
int broker_main(void);

#endif
