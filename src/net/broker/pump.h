/*
 * net/broker/pump.h - one direction of a connection, from one socket to the other
 *
 * The pump keeps no bytes of its own. It peeks at them in the kernel's buffer, sends them, and
 * then removes as many as were sent. So a stalled connection holds the kernel's buffers and
 * none of our memory. A large transfer goes through a pipe with splice(2), without copying.
 */
#ifndef NET_BROKER_PUMP_H
#define NET_BROKER_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pump_result {
	PUMP_WAIT,  /* until one of the sockets is ready again */
	PUMP_MORE,  /* there is more, but other connections take their turn */
	PUMP_BREAK, /* one socket is broken: reset the other */
};

struct flow {
	uint64_t moved;
	uint32_t held;   /* bytes in the pipe */
	int32_t ends[2]; /* the pipe, if has_pipe */
	bool has_pipe, no_pipe;
	bool stuck; /* waits for room at the destination, not for its source */
	bool ended; /* the source is at its end */
	bool shut;  /* the destination was shut down */
};

/* How many more pipes may be made. Without one a transfer works, but slower. */
extern unsigned int flow_pipes;

/*
 * Move up to *room bytes and subtract them from *room. Both are nonblocking TCP sockets.
 * Without `all` the pump stops after a read that did not fill its buffer: epoll(7) will report
 * more bytes and the end.
 */
enum pump_result flow_pump(struct flow *flow, int from, int to, uint64_t *room, bool all);

void flow_close(struct flow *flow);

/* No connection is active: give the buffer's memory back. */
void flow_idle(void);

#endif
