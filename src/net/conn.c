/*
 * net/conn.c - the box's connections
 *
 * Theory of operation. The kernel has accepted what the box dialled before we hear of it, and
 * says where it was meant to go. That is judged here by name or address and port; then the
 * name's addresses are looked up, each is judged again, and dialled one after the other with
 * a short head start (RFC 8305). A connection that is refused or fails is reset, so that
 * the box sees it broken at once, never hanging and never as an orderly end.
 *
 *	accept ─▶ judge ─┬▶ HELD ──────┐ the user is asked
 *	                 ├▶ RESOLVING ─┴▶ DIALLING ─▶ OPEN ─▶ over
 *	                 └▶ reset
 *
 * Inbound, from a port of the host to a server in the box: the socket that dials must be one
 * of the box's network, made by its init; some are kept ready.
 */
#include "net/broker-state.h"
#include "net/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	ORIGINAL_DST =
		80, /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST: no header goes with libc */
	HEAD_START_MS = 250,
	GIVE_UP_MS = 30000,
	ACCEPTS = 64, /* in one round */
	BOTH = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
};

/* ---- slots and lists ---- */

static unsigned int index_of(const struct conn *c)
{
	return (unsigned int)(c - broker.conns);
}

static struct conn_list *list_of(enum conn_state state)
{
	switch (state) {
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

static void set_state(struct conn *c, enum conn_state state)
{
	struct conn_list *from = list_of(c->state), *to = list_of(state);

	if (from) {
		if (c->prev != NONE)
			broker.conns[c->prev].next = c->next;
		else
			from->first = c->next;
		if (c->next != NONE)
			broker.conns[c->next].prev = c->prev;
	}
	c->state = state;
	if (!to)
		return;
	c->prev = NONE;
	c->next = to->first;
	if (c->next != NONE)
		broker.conns[c->next].prev = (int)index_of(c);
	to->first = (int)index_of(c);
}

static struct conn *take_slot(void)
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
	*c = (struct conn){ .client = NONE, .server = NONE, .next_ready = NONE };
	for (int i = 0; i < DIALS; i++)
		c->dial.fd[i] = NONE;
	c->id = ++broker.last_id;
	c->began = broker_clock(CLOCK_MONOTONIC);
	return c;
}

void conn_init(void)
{
	broker.free = broker.over = broker.ready = NONE;
	broker.held.first = broker.resolving.first = NONE;
	broker.waiting.first = broker.dialling.first = NONE;
	for (unsigned int i = 0; i < BROKER_PORTS; i++)
		broker.ports[i].listener = NONE;
}

/* One that is in the list of those with more to do stays until that was gone through. */
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

static void reset(int *fd)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (*fd < 0)
		return;
	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(*fd);
	*fd = NONE;
}

static void close_dials(struct conn *c, int but)
{
	for (int i = 0; i < DIALS; i++)
		if (i != but)
			reset(&c->dial.fd[i]);
}

static void end(struct conn *c, bool orderly)
{
	close_dials(c, NONE);
	flow_close(&c->up);
	flow_close(&c->down);
	if (orderly) {
		close(c->client);
		close(c->server);
		c->client = c->server = NONE;
	}
	reset(&c->client);
	reset(&c->server);
	set_state(c, CONN_OVER);
	c->next = broker.over;
	broker.over = (int)index_of(c);
}

static void fill_event(const struct conn *c, enum net_event_kind kind, struct net_event *e)
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

	fill_event(c, NET_CONNECT, &e);
	e.allowed = v.allowed;
	e.reason = v.reason;
	e.error = error;
	broker_event(&e);
}

static void tell_close(const struct conn *c)
{
	struct net_event e;

	fill_event(c, NET_CLOSE, &e);
	e.allowed = true;
	e.sent = c->inbound ? c->down.moved : c->up.moved;
	e.received = c->inbound ? c->up.moved : c->down.moved;
	broker_event(&e);
}

static void tell_limit(const char *which)
{
	struct net_event e = { .kind = NET_LIMIT };

	if (broker.limit_told && broker.now - broker.limit_told < 1000)
		return;
	broker.limit_told = broker.now;
	strcpy(e.name, which);
	broker_event(&e);
}

/* ---- relaying ---- */

static void put_ready(struct conn *c)
{
	if (c->ready)
		return;
	c->ready = true;
	c->next_ready = broker.ready;
	broker.ready = (int)index_of(c);
}

static void relay(struct conn *c)
{
	uint64_t room = broker.bytes_left < broker.tokens ? broker.bytes_left : broker.tokens;
	const uint64_t before = room;
	enum pump_result up, down;

	up = flow_pump(&c->up, c->client, c->server, &room);
	down = up == PUMP_BREAK ? PUMP_BREAK : flow_pump(&c->down, c->server, c->client, &room);
	if (broker.config->bytes)
		broker.bytes_left -= before - room;
	if (broker.config->rate)
		broker.tokens -= before - room;
	if (!broker.bytes_left) {
		tell_limit("bytes");
		up = PUMP_BREAK;
	}
	if (up == PUMP_BREAK || down == PUMP_BREAK || (c->up.shut && c->down.shut)) {
		tell_close(c);
		end(c, up != PUMP_BREAK && down != PUMP_BREAK);
	} else if (up == PUMP_MORE || down == PUMP_MORE) {
		put_ready(c);
	}
}

void conn_ready(unsigned int i)
{
	if (broker.conns[i].state == CONN_OPEN)
		relay(&broker.conns[i]);
}

/* Each once: those that are not done put themselves into the list again. */
void conn_run(void)
{
	int next, first = broker.ready;

	if (!broker.tokens)
		return;
	broker.ready = NONE;
	for (int i = first; i != NONE; i = next) {
		struct conn *c = &broker.conns[i];

		next = c->next_ready;
		c->ready = false;
		if (c->state == CONN_OPEN)
			relay(c);
	}
}

/* ---- dialling ---- */

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t socket_address(const struct address *a, uint16_t port, union any_address *ret)
{
	*ret = (union any_address){ 0 };
	if (a->family == ADDRESS_V4) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(port);
		memcpy(&ret->v4.sin_addr, a->byte, 4);
		return sizeof(ret->v4);
	}
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons(port);
	memcpy(&ret->v6.sin6_addr, a->byte, 16);
	return sizeof(ret->v6);
}

static void tune(int fd)
{
	const int yes = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static void established(struct conn *c)
{
	const struct verdict yes = { .allowed = true,
		.reason = broker.config->policy.open ? POLICY_OPEN : POLICY_BY_RULE };

	tune(c->client);
	tune(c->server);
	set_state(c, CONN_OPEN);
	tell_connect(c, yes, 0);
	if (broker_watch(c->client, WATCH_CLIENT, index_of(c), BOTH) < 0) {
		tell_close(c);
		end(c, false);
		return;
	}
	relay(c);
}

static void fail(struct conn *c, int error)
{
	const struct verdict yes = { .allowed = true, .reason = POLICY_BY_RULE };

	tell_connect(c, yes, error);
	end(c, false);
}

/* Begin with the next address. False when there is none left. */
static bool dial_next(struct conn *c)
{
	struct dial *d = &c->dial;

	while (d->next < d->n) {
		const struct address *a = &d->candidate[d->next++];
		union any_address to;
		socklen_t size = socket_address(a, c->port, &to);
		int slot = 0, fd;

		while (slot < DIALS && d->fd[slot] != NONE)
			slot++;
		if (slot == DIALS) {
			/* The next one to fail makes room. To look earlier would be to spin. */
			d->next--;
			c->due = c->give_up;
			return true;
		}
		fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0 || (connect(fd, &to.any, size) < 0 && errno != EINPROGRESS) ||
			broker_watch(fd, WATCH_DIAL, index_of(c) * DIALS + (unsigned int)slot,
				BOTH) < 0) {
			d->error = errno;
			if (fd >= 0)
				close(fd);
			continue;
		}
		d->fd[slot] = fd;
		d->to[slot] = *a;
		c->due = broker.now + HEAD_START_MS;
		return true;
	}
	c->due = c->give_up;
	for (int i = 0; i < DIALS; i++)
		if (d->fd[i] != NONE)
			return true;
	return false;
}

static void dial(struct conn *c)
{
	set_state(c, CONN_DIALLING);
	c->give_up = broker.now + GIVE_UP_MS;
	if (!dial_next(c))
		fail(c, c->dial.error ? c->dial.error : EHOSTUNREACH);
}

/* Where a server in the box may listen: 127.0.0.1, and if nobody does there, ::1. */
static bool dial_box(struct conn *c)
{
	struct address to = { .family = ADDRESS_V4, .byte = { 127, 0, 0, 1 } };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(c->port) };
	union any_address v4;
	int domain = 0;
	socklen_t size = sizeof(domain);

	if (getsockopt(c->dial.fd[0], SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 ||
		c->dial.next++ > (domain == AF_INET6))
		return false;
	c->address = to;
	if (domain == AF_INET) {
		size = socket_address(&to, c->port, &v4);
		return connect(c->dial.fd[0], &v4.any, size) == 0 || errno == EINPROGRESS;
	}
	if (c->dial.next == 1) {
		memset(v6.sin6_addr.s6_addr + 10, 0xff, 2);
		memcpy(v6.sin6_addr.s6_addr + 12, to.byte, 4);
	} else {
		v6.sin6_addr.s6_addr[15] = 1;
		c->address = address_v6(v6.sin6_addr.s6_addr);
	}
	return connect(c->dial.fd[0], (struct sockaddr *)&v6, sizeof(v6)) == 0 ||
		errno == EINPROGRESS;
}

static bool is_connected(int fd)
{
	union any_address peer;
	socklen_t size = sizeof(peer);

	return getpeername(fd, &peer.any, &size) == 0;
}

void conn_dialled(unsigned int i, unsigned int attempt)
{
	struct conn *c = &broker.conns[i];
	int error = 0;
	socklen_t size = sizeof(error);

	if (c->state == CONN_OPEN) {
		relay(c);
		return;
	}
	if (c->state != CONN_DIALLING || c->dial.fd[attempt] == NONE)
		return;
	if (is_connected(c->dial.fd[attempt])) {
		c->server = c->dial.fd[attempt];
		c->dial.fd[attempt] = NONE;
		if (!c->inbound)
			c->address = c->dial.to[attempt];
		close_dials(c, NONE);
		established(c);
		return;
	}
	if (getsockopt(c->dial.fd[attempt], SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (!error)
		return; /* an event of the attempt before, on the same socket */
	c->dial.error = error;
	if (c->inbound ? dial_box(c) : (reset(&c->dial.fd[attempt]), dial_next(c)))
		return;
	fail(c, error);
}

/* ---- judging ---- */

static void refuse(struct conn *c, struct verdict v)
{
	tell_connect(c, v, 0);
	end(c, false);
}

static void hold(struct conn *c)
{
	struct net_event e;

	set_state(c, CONN_HELD);
	c->due = broker.now + broker.config->ask_seconds * 1000ULL;
	fill_event(c, NET_HELD, &e);
	broker_event(&e);
}

static bool may_ask(struct verdict v)
{
	return broker.config->ask && (v.reason == POLICY_UNLISTED || v.reason == POLICY_PORT);
}

static struct verdict ask_policy(const struct conn *c, const struct address *a)
{
	const struct policy *p = &broker.config->policy;

	return c->name ? policy_resolved(p, c->name, a, c->port)
		       : policy_address(p, a, c->port);
}

/* What is allowed is judged again when we know whether it is this machine's by now. */
static struct verdict judge_address(const struct conn *c, const struct address *a)
{
	struct verdict v = ask_policy(c, a);

	if (!v.allowed || (c->name && !strcmp(c->name, POLICY_HOST)))
		return v;
	if (!own_learn(&broker.config->policy, a))
		return (struct verdict){ .reason = POLICY_SELF, .rule = -1 };
	return ask_policy(c, a);
}

/* Of the addresses that the name has, those that the policy lets through, in turns. */
static struct verdict choose(struct conn *c, const struct address *a, unsigned int n)
{
	struct verdict no = { .reason = POLICY_UNLISTED, .rule = -1 };
	struct dial *d = &c->dial;
	unsigned int of[2] = { 0 };
	struct address yes[2][CANDIDATES];

	for (unsigned int i = 0; i < n && i < CANDIDATES; i++) {
		struct verdict v = judge_address(c, &a[i]);
		int family = a[i].family == ADDRESS_V4;

		if (v.allowed)
			yes[family][of[family]++] = a[i];
		else
			no = v;
		if (!v.allowed)
			c->address = a[i];
	}
	for (unsigned int i = 0; i < CANDIDATES; i++)
		for (int family = 0; family < 2; family++)
			if (i < of[family] && d->n < CANDIDATES)
				d->candidate[d->n++] = yes[family][i];
	return d->n ? (struct verdict){ .allowed = true } : no;
}

static void dial_name(struct conn *c)
{
	static const struct address loopback[2] = { { .family = ADDRESS_V4,
							    .byte = { 127, 0, 0, 1 } },
		{ .family = ADDRESS_V6, .byte = { [15] = 1 } } };
	int number = synth_find(&broker.synth, c->name);
	const struct resolved *r = number < 0 ? NULL : &broker.resolved[number];
	struct verdict v;

	if (!strcmp(c->name, POLICY_HOST)) {
		v = choose(c, loopback, 2);
	} else if (r && r->n && r->until > broker.now) {
		v = choose(c, r->address, r->n);
	} else {
		set_state(c, CONN_RESOLVING);
		if (!resolver_begin(c->name))
			fail(c, EAGAIN);
		return;
	}
	if (v.allowed)
		dial(c);
	else
		refuse(c, v);
}

void conn_resolved(const char *name, int error)
{
	int next;

	for (int i = broker.resolving.first; i != NONE; i = next) {
		struct conn *c = &broker.conns[i];

		next = c->next;
		if (strcmp(c->name, name) != 0)
			continue;
		if (error)
			fail(c, error);
		else
			dial_name(c);
	}
}

static void judge(struct conn *c)
{
	const struct policy *p = &broker.config->policy;
	struct verdict v;

	if (!broker.bytes_left) {
		tell_limit("bytes");
		end(c, false);
		return;
	}
	if (c->name)
		v = policy_connect(p, c->name, c->port);
	else if (synth_is_range(&c->address))
		v = (struct verdict){ .reason = POLICY_NO_NAME, .rule = -1 };
	else
		v = judge_address(c, &c->address);
	if (!v.allowed && may_ask(v))
		hold(c);
	else if (!v.allowed)
		refuse(c, v);
	else if (c->name)
		dial_name(c);
	else {
		c->dial.candidate[0] = c->address;
		c->dial.n = 1;
		dial(c);
	}
}

/* ---- accepting ---- */

static bool original(int fd, struct address *ret, uint16_t *ret_port)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	socklen_t size = sizeof(v4);

	if (getsockopt(fd, IPPROTO_IP, ORIGINAL_DST, &v4, &size) == 0) {
		*ret = address_v4((const uint8_t *)&v4.sin_addr);
		*ret_port = ntohs(v4.sin_port);
		return true;
	}
	size = sizeof(v6);
	if (getsockopt(fd, IPPROTO_IPV6, ORIGINAL_DST, &v6, &size) < 0)
		return false;
	*ret = address_v6(v6.sin6_addr.s6_addr);
	*ret_port = ntohs(v6.sin6_port);
	return true;
}

static bool is_resolver(const struct address *a, uint16_t port)
{
	static const uint8_t v4[4] = { 198, 18, 0, 1 };
	static const uint8_t v6[16] = { 0xfd, 0x63, 0x61, 0x72, 0x72, 0x65, 0x6c, [15] = 1 };

	return port == 53 &&
		(a->family == ADDRESS_V4 ? !memcmp(a->byte, v4, 4) : !memcmp(a->byte, v6, 16));
}

static void take(int fd)
{
	struct address to = { 0 };
	struct conn *c;
	uint16_t port = 0;

	if (!original(fd, &to, &port)) {
		reset(&fd); /* not redirected: it dialled the listener itself */
		return;
	}
	if (is_resolver(&to, port)) {
		resolver_take(fd);
		return;
	}
	c = take_slot();
	if (!c) {
		tell_limit("connections");
		reset(&fd);
		return;
	}
	c->client = fd;
	c->address = to;
	c->port = port;
	c->name = synth_lookup(&broker.synth, &to);
	judge(c);
}

static int accept_one(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void conn_accept(void)
{
	for (int i = 0, fd; i < ACCEPTS && (fd = accept_one(broker.listener)) >= 0; i++)
		take(fd);
}

/* ---- from the host to a server in the box ---- */

static void want_spares(void)
{
	const unsigned int need = BROKER_SPARE;
	struct broker_message m = { .word = BROKER_NEED };

	if (broker.spares + broker.wanted >= need)
		return;
	m.value = need - broker.spares - broker.wanted;
	broker.wanted = need - broker.spares;
	if (broker_send(broker.supervisor, &m, NULL, 0, NULL, 0, 0) < 0)
		_exit(0);
}

static void dial_inbound(struct conn *c)
{
	c->dial.fd[0] = broker.spare[--broker.spares];
	set_state(c, CONN_DIALLING);
	c->due = c->give_up = broker.now + GIVE_UP_MS;
	if (!dial_box(c) ||
		broker_watch(c->dial.fd[0], WATCH_DIAL, index_of(c) * DIALS, BOTH) < 0)
		fail(c, errno);
}

void conn_spare(int fd)
{
	if (fd >= 0 && broker.wanted)
		broker.wanted--;
	if (fd >= 0 && broker.spares == BROKER_SPARE)
		close(fd);
	else if (fd >= 0)
		broker.spare[broker.spares++] = fd;
	while (broker.spares && broker.waiting.first != NONE)
		dial_inbound(&broker.conns[broker.waiting.first]);
	want_spares();
}

void conn_accept_port(unsigned int i)
{
	const struct port *port = &broker.ports[i];
	struct conn *c;

	for (int fd; port->listener != NONE && (fd = accept_one(port->listener)) >= 0;) {
		c = take_slot();
		if (!c) {
			tell_limit("connections");
			close(fd);
			continue;
		}
		c->inbound = true;
		c->client = fd;
		c->port = port->box;
		set_state(c, CONN_WAITING);
		c->due = broker.now + GIVE_UP_MS;
		conn_spare(NONE);
	}
}

/* ---- time, and what the user says ---- */

void conn_policy_changed(void)
{
	int next;

	for (int i = broker.held.first; i != NONE; i = next) {
		struct conn *c = &broker.conns[i];
		const struct policy *p = &broker.config->policy;
		struct verdict v = c->name ? policy_connect(p, c->name, c->port)
					   : policy_address(p, &c->address, c->port);

		next = c->next;
		if (v.allowed || !may_ask(v))
			judge(c);
	}
}

static uint64_t tick_dialling(void)
{
	uint64_t due = 0;
	int next;

	for (int i = broker.dialling.first; i != NONE; i = next) {
		struct conn *c = &broker.conns[i];

		next = c->next;
		if (broker.now >= c->give_up ||
			(broker.now >= c->due && !c->inbound && !dial_next(c)))
			fail(c, c->dial.error ? c->dial.error : ETIMEDOUT);
		else
			due = broker_due(due, c->due);
	}
	return due;
}

static uint64_t tick_list(const struct conn_list *list, int error)
{
	uint64_t due = 0;
	int next;

	for (int i = list->first; i != NONE; i = next) {
		struct conn *c = &broker.conns[i];

		next = c->next;
		if (broker.now < c->due)
			due = broker_due(due, c->due);
		else if (error)
			fail(c, error);
		else
			refuse(c, (struct verdict){ .reason = POLICY_UNLISTED, .rule = -1 });
	}
	return due;
}

uint64_t conn_tick(void)
{
	uint64_t due = tick_dialling();

	due = broker_due(due, tick_list(&broker.held, 0));
	return broker_due(due, tick_list(&broker.waiting, ETIMEDOUT));
}

void conn_close_all(void)
{
	for (unsigned int i = 0; i < broker.used; i++) {
		struct conn *c = &broker.conns[i];

		if (c->state == CONN_OPEN)
			tell_close(c);
		if (c->state != CONN_FREE && c->state != CONN_OVER)
			end(c, false);
	}
	conn_sweep();
}
