/*
 * net/broker/conn.h - one connection, shared by the files that make it; what the rest of the
 * broker calls is in net/broker/broker-state.h
 *
 *	conn-admit.c   accepts, reads requests to the explicit proxy, judges
 *	dial.c         dials: outside, or a server in the box
 *	conn.c         slots and lists, relaying, the end, and events
 */
#ifndef NET_BROKER_CONN_H
#define NET_BROKER_CONN_H

#include "net/broker/broker-state.h"

#include <sys/epoll.h>

/*
 * epoll events. EPOLLOUT only after a write found no room: a socket with room reports it at
 * once. EPOLLPRI because a read stops before urgent data, and more may follow.
 */
enum {
	TO_READ = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET,
	BOTH = TO_READ | EPOLLOUT,
};

/* conn.c */
unsigned int conn_index(const struct conn *c);
void conn_set_state(struct conn *c, enum conn_state state);
struct conn *conn_take(void); /* a slot; NULL: the limit is reached */
int conn_watch_client(struct conn *c);
/*
 * Whether close(2) resets the connection, also when the broker is killed. It is on for all
 * sockets until their connection ends in order.
 */
void conn_set_reset(int fd, bool on);
void conn_close_dials(struct conn *c);
void conn_end(struct conn *c, bool orderly);
void conn_fill_event(const struct conn *c, enum net_event_kind kind, struct net_event *e);
/* The client's side, or else the server's, has an event. */
void conn_relay_side(struct conn *c, bool client, uint32_t events);
/* The server is reached; events are those epoll reported for it so far. */
void conn_established(struct conn *c, uint32_t events);
void conn_fail(struct conn *c, int error); /* allowed, but not reachable */
void conn_refuse(struct conn *c, struct verdict v);

/* conn-admit.c */
int conn_accept_one(int listener);
void conn_read_head(struct conn *c);
uint64_t conn_tick_lookups(void);
/* Tell a client of the explicit proxy the result. Other clients see it by the connection. */
void conn_answer(struct conn *c, bool allowed, int error);

/* dial.c */
void conn_dial(struct conn *c);                /* dial its candidates */
void conn_leave(struct conn *c, bool orderly); /* close its server */
uint64_t conn_tick_dialling(void);

#endif
