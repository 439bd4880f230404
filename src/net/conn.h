/*
 * net/conn.h - one connection, as the files that bring it about share it; what the rest of
 * the broker calls is in net/broker-state.h
 *
 *	admit.c   accepts, reads what a client says to an explicit proxy, judges
 *	dial.c    dials: outside, or a server in the box
 *	conn.c    slots and lists, relaying, the end, and what is told of each
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "net/broker-state.h"

#include <sys/epoll.h>

/*
 * What is waited for: room only where there was none, since a socket that has it says so at
 * once. Urgent data because a read ends before it, and more may be behind.
 */
enum {
	TO_READ = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET,
	BOTH = TO_READ | EPOLLOUT,
};

/* conn.c */
unsigned int conn_index(const struct conn *c);
void conn_set_state(struct conn *c, enum conn_state state);
struct conn *conn_take(void); /* a slot; NULL: there are as many as there may be */
int conn_watch_client(struct conn *c);
/*
 * Whether closing it is a reset; so it is for those of a broker that was killed, too. It is of
 * all that we dial with, and of all that we accept, until they are to end in order.
 */
void conn_set_reset(int fd, bool on);
void conn_close_dials(struct conn *c);
void conn_end(struct conn *c, bool orderly);
void conn_fill_event(const struct conn *c, enum net_event_kind kind, struct net_event *e);
/* Its client, or else its server, has something for us. */
void conn_relay_side(struct conn *c, bool client, uint32_t events);
/* With its server; what of that one was heard already. */
void conn_established(struct conn *c, uint32_t events);
void conn_fail(struct conn *c, int error); /* allowed, and not to be had */
void conn_refuse(struct conn *c, struct verdict v);

/* admit.c */
int conn_accept_one(int listener);
void conn_read_head(struct conn *c);
uint64_t conn_tick_lookups(void);
/* To a client of the explicit proxy, what came of it; others see it by the connection. */
void conn_answer(struct conn *c, bool allowed, int error);

/* dial.c */
void conn_dial(struct conn *c);                /* one of its candidates */
void conn_leave(struct conn *c, bool orderly); /* its server */
uint64_t conn_tick_dialling(void);

#endif
