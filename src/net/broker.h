/*
 * net/broker.h - the process between a box and the network
 *
 * The broker answers the box's lookups and makes its connections: it judges, resolves, dials
 * and relays. It reads hostile bytes all day, so it is a process of its own, this program
 * executed again with an empty environment and nothing in memory but what it is told here;
 * it can open no file, start no program and reach nothing of the machine but its network
 * (net/jail.h). One for each box, in the host's network namespace; it ends with its
 * supervisor. Without it the box has no network.
 *
 *	supervisor            broker
 *	                      looks at the machine, shuts itself in
 *	CONFIG          ─▶
 *	RULE ...        ─▶    as many as that said
 *	LISTEN + fds    ─▶    the sockets of the box's network: enum net_end
 *	                ◀─    READY, or FAULT
 *	                ◀─    EVENT ...                           net/event.h
 *	RULE ...        ─▶    one more rule of the policy
 *	PORT + 1 fd     ─▶    a listener of the host, for a server in the box
 *	                ◀─    NEED                                sockets of the box's network
 *	                ◀─    MOVED                               how many bytes by now
 *	SPARE_SOCKET    ─▶    one of them, a fd
 *	END             ─▶
 *	                ◀─    EVENT ... of what was open, then DONE
 *
 * Datagrams on a SOCK_SEQPACKET pair. The broker waits when the supervisor does not read
 * events, and the box with it; the supervisor never waits for the broker once the box runs.
 */
#ifndef NET_BROKER_H
#define NET_BROKER_H

#include "net/event.h"
#include "net/lookup.h"
#include "net/policy.h"
#include "plan/request.h"

#define BROKER_ARGV0 "carrel-broker"

enum {
	BROKER_SOCKET = 3, /* where the broker finds its end */
	BROKER_CONNECTIONS = MOST_CONNECTIONS,
	BROKER_PORTS = MOST_PORTS,
	BROKER_NAME = 64,  /* bytes of a host name, with the one that ends it */
	BROKER_SPARE = 8,  /* sockets of the box that it keeps ready for its ports */
	BROKER_RULES = 64, /* at most, in one word before it is ready */
	BROKER_EVENTS = 4, /* at most, in one word */
};

enum broker_word {
	BROKER_CONFIG = 1, /* followed by a struct broker_terms */
	BROKER_READY,
	BROKER_FAULT, /* followed by a struct fault */
	BROKER_LISTEN,
	BROKER_EVENT, /* followed by struct net_event, BROKER_EVENTS at most */
	BROKER_RULE,  /* followed by a struct policy_rule; before READY by many */
	/* value: the host's port << 16 | the box's; without a descriptor: end it */
	BROKER_PORT,
	BROKER_NEED,  /* value: how many */
	BROKER_MOVED, /* followed by a struct broker_moved: once in a second, if it changes */
	BROKER_SPARE_SOCKET,
	BROKER_END,
	BROKER_DONE,
};

struct broker_message {
	uint32_t word;
	uint32_t value;
};

/* Bytes of all its connections, as the box sees it. */
struct broker_moved {
	uint64_t sent, received;
};

/* What it is told. */
struct broker_terms {
	bool proxy; /* clients say where to, with CONNECT or SOCKS; there is no resolver */
	bool ask;
	bool open;        /* the policy is */
	uint16_t entries; /* it was made of */
	uint32_t rules;   /* that follow */
	uint32_t ask_seconds;
	uint32_t connections;  /* at once, at most BROKER_CONNECTIONS */
	uint64_t bytes;        /* in both directions, until the end; 0: any */
	uint64_t rate;         /* bytes a second; 0: any */
	char box[BROKER_NAME]; /* its name, and what its own host name is */
};

/* Send with up to NET_ENDS descriptors; body may be NULL. 0 or -errno. */
int broker_send(int socket, const struct broker_message *m, const void *body, size_t n,
	const int *fds, size_t fd_count, int flags);

/* Receive; *ret_n is the body's length; fds are -1 where there is none. 0 or -errno. */
int broker_receive(int socket, struct broker_message *m, void *body, size_t size, size_t *ret_n,
	int fds[NET_ENDS], int flags);
void broker_close(int fds[NET_ENDS]);

/* The broker's whole life; what main() returns. */
int broker_main(void);

#endif
