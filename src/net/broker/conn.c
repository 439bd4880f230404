/*
 * net/broker/conn.c - the life of the box's connections
 *
 * Theory of operation. The kernel accepts a connection of the box before the broker sees it,
 * and reports which address the box dialled. The broker judges it by name or address, and port.
 * It looks up the name's addresses, judges each of them again, and dials them one after the
 * other with a short head start (RFC 8305). A connection that is refused or fails is reset: the
 * box sees it break at once, never hang and never end in order.
 *
 *	accept ─▶ judge ─┬▶ HELD ──────┐ the user is asked
 *	                 ├▶ RESOLVING ─┴▶ DIALLING ─▶ OPEN ─▶ over
 *	                 └▶ reset
 *
 * Inbound connections go from a port of the host to a server in the box. They are dialled with
 * a socket of the box's network that the box's init made; a few are kept ready.
 */
#include "net/broker/conn.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- slots and lists ---- */

unsigned int conn_index(const struct conn *c)
{
	return (unsigned int)(c - broker.conns);
}

static struct conn_list *list_of(enum conn_state state)
{
	switch (state) {
	case CONN_HEAD:
		return &broker.heads;
	case CONN_HELD:
		return &broker.held;
	case CONN_RESOLVING:
		return &broker.resolving;
	case CONN_WAITING:
		return &broker.waiting;
	case CONN_DIALLING:
		return &broker.dialling;
	default:
		return NULL;
	}
}

void conn_set_state(struct conn *c, enum conn_state state)
{
	struct conn_list *from = list_of(c->state), *to = list_of(state);

	if (from) {
		*(c->prev != NONE ? &broker.conns[c->prev].next : &from->first) = c->next;
		*(c->next != NONE ? &broker.conns[c->next].prev : &from->last) = c->prev;
	}
	c->state = (uint8_t)state;
	if (!to)
		return;
	c->prev = to->last;
	c->next = NONE;
	*(c->prev != NONE ? &broker.conns[c->prev].next : &to->first) = (int)conn_index(c);
	to->last = (int)conn_index(c);
}

struct conn *conn_take(void)
{
	struct conn *c;

	if (broker.open >= broker.config->connections)
		return NULL;
	if (broker.free != NONE) {
		c = &broker.conns[broker.free];
		broker.free = c->next;
	} else {
		c = &broker.conns[broker.used++];
	}
	broker.open++;
	*c = (struct conn){ .client = NONE, .server = NONE, .next_ready = NONE, .head = NONE };
	for (int i = 0; i < DIALS; i++)
		c->dial.fd[i] = NONE;
	c->id = ++broker.last_id;
	c->began = broker_clock(CLOCK_MONOTONIC);
	return c;
}

void conn_init(void)
{
	const struct conn_list none = { NONE, NONE };

	broker.free = broker.over = broker.ready = NONE;
	broker.heads = broker.held = broker.resolving = broker.waiting = broker.dialling = none;
	for (unsigned int i = 0; i < BROKER_PORTS; i++)
		broker.ports[i].listener = NONE;
}

/* All slots are free: forget their order and give their memory back. */
void conn_idle(void)
{
	broker.used = 0;
	broker.free = NONE;
	mem_drop(broker.conns, sizeof(broker.conns));
}

/* A connection in the ready list keeps its slot until that list was handled. */
void conn_sweep(void)
{
	int next, kept = NONE;

	for (int i = broker.over; i != NONE; i = next) {
		struct conn *c = &broker.conns[i];

		next = c->next;
		if (c->ready) {
			c->next = kept;
			kept = i;
			continue;
		}
		c->state = CONN_FREE;
		c->next = broker.free;
		broker.free = i;
		broker.open--;
	}
	broker.over = kept;
}

/* ---- the end of one ---- */

void conn_set_reset(int fd, bool on)
{
	const struct linger now = { .l_onoff = on, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void conn_close_dials(struct conn *c)
{
	for (int i = 0; i < DIALS; i++)
		fd_close(&c->dial.fd[i]);
}

void conn_end(struct conn *c, bool orderly)
{
	if (c->head != NONE)
		broker.head_used[c->head] = false;
	c->head = NONE;
	conn_close_dials(c);
	flow_close(&c->up);
	flow_close(&c->down);
	if (orderly)
		conn_set_reset(c->client, false);
	fd_close(&c->client);
	conn_leave(c, orderly);
	conn_set_state(c, CONN_OVER);
	c->next = broker.over;
	broker.over = (int)conn_index(c);
}

void conn_fill_event(const struct conn *c, enum net_event_kind kind, struct net_event *e)
{
	*e = (struct net_event){
		.kind = (uint8_t)kind,
		.inbound = c->inbound,
		.port = c->port,
		.id = c->id,
		.lasted = broker_clock(CLOCK_MONOTONIC) - c->began,
		.address = c->address,
	};
	if (c->name)
		strcpy(e->name, c->name);
}

static void tell_connect(const struct conn *c, struct verdict v, int error)
{
	struct net_event e;

	conn_fill_event(c, NET_CONNECT, &e);
	e.allowed = v.allowed;
	e.reason = v.reason;
	e.error = error;
	broker_event(&e);
}

static void tell_close(const struct conn *c)
{
	struct net_event e;

	conn_fill_event(c, NET_CLOSE, &e);
	e.allowed = true;
	e.sent = c->inbound ? c->down.moved : c->up.moved;
	e.received = c->inbound ? c->up.moved : c->down.moved;
	broker_event(&e);
}

/* ---- relaying ---- */

/* A listener's connections inherit both options. */
void conn_tune(int fd)
{
	const int yes = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	conn_set_reset(fd, true);
}

static int watch(int fd, enum watch what, unsigned int i, uint32_t events, uint32_t *has)
{
	int rc = 0;

	if (!*has)
		rc = broker_watch(fd, what, i, events);
	else if (events & ~*has)
		rc = broker_rewatch(fd, what, i, *has | events);
	*has |= events;
	return rc;
}

int conn_watch_client(struct conn *c)
{
	return watch(c->client, WATCH_CLIENT, conn_index(c), c->down.stuck ? BOTH : TO_READ,
		&c->client_watch);
}

static int watch_server(struct conn *c)
{
	return watch(c->server, WATCH_DIAL, conn_index(c) * DIALS, c->up.stuck ? BOTH : TO_READ,
		&c->server_watch);
}

static void put_ready(struct conn *c)
{
	if (c->ready)
		return;
	c->ready = true;
	c->next_ready = NONE;
	*(broker.ready != NONE ? &broker.conns[broker.ready_last].next_ready : &broker.ready) =
		(int)conn_index(c);
	broker.ready_last = (int)conn_index(c);
}

/* When the traffic is used up, wake idle connections too, so that they end. */
static void spend(uint64_t bytes)
{
	broker.bytes_left -= bytes;
	for (unsigned int i = 0; bytes && !broker.bytes_left && i < broker.used; i++)
		if (broker.conns[i].state == CONN_OPEN)
			put_ready(&broker.conns[i]);
}

static void end_open(struct conn *c, bool orderly)
{
	tell_close(c);
	conn_end(c, orderly);
}

/* Watch both sides only after relaying, so that nothing that arrives is missed. */
static void relay(struct conn *c, bool go_up, bool go_down, bool all)
{
	uint64_t room =
		broker.bytes_left < broker.rate.left ? broker.bytes_left : broker.rate.left;
	const uint64_t before = room;
	uint64_t between;
	enum pump_result up = PUMP_WAIT, down = PUMP_WAIT;
	bool over, broken;

	if (go_up)
		up = flow_pump(&c->up, c->client, c->server, &room, all);
	*(c->inbound ? &broker.moved.received : &broker.moved.sent) += before - room;
	between = room;
	if (go_down && up != PUMP_BREAK)
		down = flow_pump(&c->down, c->server, c->client, &room, all);
	*(c->inbound ? &broker.moved.sent : &broker.moved.received) += between - room;
	if (broker.config->bytes)
		spend(before - room);
	if (broker.config->rate)
		broker.rate.left -= before - room;
	if (!broker.bytes_left) {
		broker_limit(LIMIT_TRAFFIC);
		up = PUMP_BREAK;
	}
	over = c->up.shut && c->down.shut;
	broken = up == PUMP_BREAK || down == PUMP_BREAK;
	if (!over && !broken)
		broken = watch_server(c) < 0 || conn_watch_client(c) < 0;
	if (over || broken)
		end_open(c, !broken);
	else if (up == PUMP_MORE || down == PUMP_MORE)
		put_ready(c);
}

static bool is_plain(uint32_t events)
{
	return !(events & ~(uint32_t)(EPOLLIN | EPOLLOUT));
}

/*
 * An event of one side resumes a flow: the flow from there if there are bytes or an end, the
 * flow to there if it waited for room. An error resumes both. epoll reports more bytes again.
 * It does not repeat an end it has reported, nor wake a flow that stopped early.
 */
void conn_relay_side(struct conn *c, bool client, uint32_t events)
{
	const struct flow *from = client ? &c->up : &c->down, *to = client ? &c->down : &c->up;
	const bool broken = events & (EPOLLERR | EPOLLHUP);
	const bool from_it = broken || events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP);
	const bool to_it = broken || (events & EPOLLOUT && to->stuck);

	if (!from_it && !to_it)
		return;
	/* A side that has ended is not read any more, so only EPOLLERR shows a reset. */
	if (events & EPOLLERR && from->ended) {
		end_open(c, false);
		return;
	}
	/* With a rate limit, connections take turns: those already in the list go first. */
	if (broker.config->rate && broker.ready != NONE)
		put_ready(c);
	else
		relay(c, client ? from_it : to_it, client ? to_it : from_it,
			to_it || !is_plain(events));
}

void conn_ready(unsigned int i, uint32_t events)
{
	if (broker.conns[i].state == CONN_OPEN)
		conn_relay_side(&broker.conns[i], true, events);
	else if (broker.conns[i].state == CONN_HEAD)
		conn_read_head(&broker.conns[i]);
}

/*
 * Each once, as long as the rate allows. Connections that are not done go to the end of the
 * list.
 */
void conn_run(void)
{
	const int last = broker.ready_last;

	for (int i = NONE; i != last && broker.ready != NONE && broker.rate.left;) {
		struct conn *c = &broker.conns[i = broker.ready];

		broker.ready = c->next_ready;
		c->ready = false;
		if (c->state == CONN_OPEN)
			relay(c, true, true, true);
	}
}

/* Read the server only if it has an event; the client may have sent data all along. */
void conn_established(struct conn *c, uint32_t events)
{
	const struct verdict yes = { .allowed = true, .reason = c->reason };

	conn_set_state(c, CONN_OPEN);
	tell_connect(c, yes, 0); /* before the first byte is forwarded */
	conn_answer(c, true, 0);
	relay(c, true, events & ~(uint32_t)EPOLLOUT, c->client_watch || !is_plain(events));
}

void conn_fail(struct conn *c, int error)
{
	const struct verdict yes = { .allowed = true, .reason = c->reason };

	tell_connect(c, yes, error);
	conn_answer(c, true, error);
	conn_end(c, false);
}

void conn_refuse(struct conn *c, struct verdict v)
{
	tell_connect(c, v, 0);
	conn_answer(c, false, 0);
	conn_end(c, false);
}

/* ---- time ---- */

static void head_is_late(struct conn *c)
{
	conn_end(c, false); /* nothing was requested, so there is nothing to report */
}

static void answer_is_late(struct conn *c)
{
	conn_refuse(c, (struct verdict){ .reason = c->reason, .rule = -1 });
}

static void socket_is_late(struct conn *c)
{
	conn_fail(c, ETIMEDOUT);
}

static uint64_t tick_list(const struct conn_list *list, void (*late)(struct conn *c))
{
	uint64_t due = 0;
	int next;

	for (int i = list->first; i != NONE; i = next) {
		struct conn *c = &broker.conns[i];

		next = c->next;
		if (broker.now < c->due)
			due = broker_due(due, c->due);
		else
			late(c);
	}
	return due;
}

uint64_t conn_tick(void)
{
	uint64_t due = conn_tick_lookups();

	due = broker_due(due, conn_tick_dialling());
	due = broker_due(due, tick_list(&broker.heads, head_is_late));
	due = broker_due(due, tick_list(&broker.held, answer_is_late));
	return broker_due(due, tick_list(&broker.waiting, socket_is_late));
}

/* The kernel has all the bytes that came out of the box, and will deliver them. */
static bool is_sent(const struct conn *c)
{
	char byte;

	if (c->state == CONN_OPEN)
		return c->inbound ? c->down.shut : c->up.shut;
	/* The box sees this connection as open, and may have sent data. */
	return (c->state != CONN_RESOLVING && c->state != CONN_DIALLING) || c->inbound ||
		recv(c->client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

bool conn_all_sent(void)
{
	for (unsigned int i = 0; i < broker.used; i++)
		if (!is_sent(&broker.conns[i]))
			return false;
	return true;
}

/* Outsiders may have seen every connection that was begun, so all of them are reported. */
static void close_one(struct conn *c)
{
	switch ((enum conn_state)c->state) {
	case CONN_FREE:
	case CONN_OVER:
		break;
	case CONN_HEAD:
		conn_end(c, false);
		break;
	case CONN_HELD:
		answer_is_late(c);
		break;
	case CONN_RESOLVING:
	case CONN_WAITING:
	case CONN_DIALLING:
		conn_fail(c, ECANCELED);
		break;
	case CONN_OPEN:
		end_open(c, is_sent(c));
		break;
	}
}

void conn_close_all(void)
{
	for (unsigned int i = 0; i < broker.used; i++)
		close_one(&broker.conns[i]);
	conn_sweep();
}
