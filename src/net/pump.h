/*
 * net/pump.h - one direction of a connection, from one socket to the other
 *
 * Nothing is kept here: bytes are looked at where the kernel has them, sent on, and only
 * then taken, as many as went. So a connection that stalls holds the kernel's
 * buffers and no memory of ours. When much is flowing they go through a pipe by splice(2),
 * without being copied.
 */
#ifndef NET_PUMP_H
#define NET_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pump_result {
	PUMP_WAIT,  /* until one of the two is ready again */
	PUMP_MORE,  /* there is more, and others have had to wait */
	PUMP_BREAK, /* one of the two is broken: reset the other */
};

struct flow {
	uint64_t moved;
	uint32_t held;   /* in the pipe */
	int32_t ends[2]; /* of the pipe, when there is one: has_pipe */
	bool has_pipe, no_pipe;
	bool stuck; /* it waits for room at the destination, not for its source */
	bool ended; /* the source has no more */
	bool shut;  /* and the destination was told */
};

/* How many pipes there may be; without one it works, only slower. */
extern unsigned int flow_pipes;

/*
 * Move up to *room bytes, and count them off. Both are nonblocking TCP sockets. Without `all`
 * one look that finds less than it could take is the last: who calls it will hear of
 * more, and of the end, from epoll(7).
 */
enum pump_result flow_pump(struct flow *flow, int from, int to, uint64_t *room, bool all);

void flow_close(struct flow *flow);

/* Nothing flows: let go of the memory that it took. */
void flow_idle(void);

#endif
