/* net/broker/conn-admit.c - accept connections of the box and judge them */
#include "net/broker/conn.h"
#include "net/broker/own-addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	HEAD_MS = 15000,
	PUT_OFF_MS = 5000, /* a deferred lookup must begin within this */
	AGAIN_MS = 10,
};

/* ---- judging ---- */

static void hold_conn(struct conn *c)
{
	struct net_event e;

	conn_set_state(c, CONN_HELD);
	c->due = broker.now + broker.config->ask_seconds * 1000ULL;
	conn_fill_event(c, NET_HELD, &e);
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

static bool is_host(const struct conn *c)
{
	return c->name && !strcmp(c->name, POLICY_HOST);
}

/* Judge an allowed address again after checking whether it has become this machine's own. */
static struct verdict judge_address(const struct conn *c, const struct address *a)
{
	struct verdict v = ask_policy(c, a);

	if (!v.allowed || is_host(c))
		return v;
	if (!own_learn(&broker.config->policy, a))
		return (struct verdict){ .reason = POLICY_SELF, .rule = -1 };
	return ask_policy(c, a);
}

/*
 * Choose from a name's addresses those that the policy allows, families in turn: IPv6 first
 * (RFC 8305). For the host's own loopback IPv4 comes first, because servers there mostly listen
 * on 127.0.0.1.
 */
static struct verdict choose(struct conn *c, const struct address *a, unsigned int n)
{
	struct verdict no = { .reason = POLICY_UNLISTED, .rule = -1 };
	struct dial *d = &c->dial;
	unsigned int of[2] = { 0 };
	struct address yes[2][CANDIDATES], refused = c->address;

	for (unsigned int i = 0; i < n && i < CANDIDATES; i++) {
		struct verdict v = judge_address(c, &a[i]);
		int family = a[i].family == ADDRESS_V4;

		if (v.allowed) {
			yes[family][of[family]++] = a[i];
		} else {
			no = v;
			refused = a[i];
		}
	}
	for (unsigned int i = 0; i < CANDIDATES; i++)
		for (int k = 0; k < 2; k++) {
			const int family = is_host(c) ? !k : k;

			if (i < of[family] && d->n < CANDIDATES)
				d->candidate[d->n++] = yes[family][i];
		}
	if (d->n)
		return (struct verdict){ .allowed = true };
	c->address = refused;
	return no;
}

/* Dialled names count against the same limits as names that the box asks for. */
static bool begin_lookup(struct conn *c)
{
	struct query *q = query_get(c->name);

	c->put_off = !q;
	if (q)
		query_start(q);
	return q;
}

/* The oldest first. A lookup that ends at once changes the list; start over then. */
uint64_t conn_tick_lookups(void)
{
	bool full = !broker.asks.left;
	uint64_t due = 0;
	int next;

	for (int i = broker.resolving.first; i != NONE; i = next) {
		struct conn *c = &broker.conns[i];

		next = c->next;
		if (!c->put_off)
			continue;
		if (broker.now >= c->due)
			conn_fail(c, EAGAIN);
		else if (!full && begin_lookup(c))
			next = c->state == CONN_RESOLVING ? c->next : broker.resolving.first;
		else
			due = broker_due(due, broker.now + AGAIN_MS);
		/* Connections waiting for this name are resumed. */
		full = broker.lookups == QUERIES || !broker.asks.left;
	}
	return due;
}

static void dial_name(struct conn *c)
{
	static const struct address loopback[2] = { { .family = ADDRESS_V4,
							    .byte = { 127, 0, 0, 1 } },
		{ .family = ADDRESS_V6, .byte = { [15] = 1 } } };
	int number = synth_find(&broker.synth, c->name);
	const struct resolved *r = number < 0 ? NULL : &broker.resolved[number];
	struct verdict v;

	if (is_host(c)) {
		v = choose(c, loopback, 2);
	} else if (r && r->n && r->until > broker.now) {
		v = choose(c, r->address, r->n);
	} else {
		conn_set_state(c, CONN_RESOLVING);
		c->put_off = true;
		c->due = broker.now + PUT_OFF_MS;
		begin_lookup(c);
		return;
	}
	if (v.allowed)
		conn_dial(c);
	else
		conn_refuse(c, v);
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
			conn_fail(c, error);
		else
			dial_name(c);
	}
}

/* Report it like any other failure: the user may have been asked about this connection. */
static void no_traffic(struct conn *c)
{
	broker_limit(LIMIT_TRAFFIC);
	conn_fail(c, EDQUOT);
}

static void judge_conn(struct conn *c)
{
	const struct policy *p = &broker.config->policy;
	struct verdict v;

	if (c->name)
		v = policy_connect(p, c->name, c->port);
	else if (synth_is_range(&c->address))
		v = (struct verdict){ .reason = POLICY_NO_NAME, .rule = -1 };
	else
		v = judge_address(c, &c->address);
	c->reason = v.reason;
	if (!v.allowed && may_ask(v) && broker.bytes_left)
		hold_conn(c);
	else if (!v.allowed)
		conn_refuse(c, v);
	else if (!broker.bytes_left)
		no_traffic(c);
	else if (c->name)
		dial_name(c);
	else {
		c->dial.candidate[0] = c->address;
		c->dial.n = 1;
		conn_dial(c);
	}
}

/* ---- what the box dialled ---- */

/* The address and port of our end are those that the box dialled (box/native/redirect.c). */
static bool dialled(int fd, struct address *ret, uint16_t *ret_port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at;
	socklen_t size = sizeof(at);

	if (getsockname(fd, &at.any, &size) < 0)
		return false;
	if (at.any.sa_family == AF_INET) {
		*ret = address_v4((const uint8_t *)&at.v4.sin_addr);
		*ret_port = ntohs(at.v4.sin_port);
	} else {
		*ret = address_v6(at.v6.sin6_addr.s6_addr);
		*ret_port = ntohs(at.v6.sin6_port);
	}
	return true;
}

static bool is_resolver(const struct address *a, uint16_t port)
{
	static const uint8_t v4[4] = { 198, 18, 0, 1 };
	static const uint8_t v6[16] = { 0xfd, 0x63, 0x61, 0x72, 0x72, 0x65, 0x6c, [15] = 1 };

	return port == 53 &&
		(a->family == ADDRESS_V4 ? !memcmp(a->byte, v4, 4) : !memcmp(a->byte, v6, 16));
}

static struct conn *take_client(int fd)
{
	struct conn *c = conn_take();

	if (c)
		c->client = fd;
	else
		broker_limit(LIMIT_CONNECTIONS);
	if (!c)
		close(fd);
	return c;
}

/*
 * A connection from the box to itself arrives here if its port is a service of the host; the
 * policy decides. It also arrives here if the box dialled the listener itself.
 */
static void take_service(int fd, const struct address *to, uint16_t port)
{
	struct conn *c = port > BROKERS_PORT ? take_client(fd) : NULL;

	if (port <= BROKERS_PORT)
		close(fd);
	if (!c)
		return;
	c->address = *to;
	c->port = port;
	c->name = POLICY_HOST;
	judge_conn(c);
}

static void take_connection(int fd)
{
	struct address to = { 0 };
	struct conn *c;
	uint16_t port = 0;

	if (!dialled(fd, &to, &port)) {
		close(fd);
		return;
	}
	if (broker_is_box(&to)) {
		take_service(fd, &to, port);
		return;
	}
	if (is_resolver(&to, port)) {
		resolver_take(fd);
		return;
	}
	c = take_client(fd);
	if (!c)
		return;
	c->address = to;
	c->port = port;
	c->name = synth_lookup(&broker.synth, &to);
	judge_conn(c);
}

/* ---- the explicit proxy ---- */

static void take_head(int fd)
{
	struct conn *c = take_client(fd);
	int head = 0;

	if (!c)
		return;
	while (head < PROXY_HEADS && broker.head_used[head])
		head++;
	if (head == PROXY_HEADS) {
		broker_limit(LIMIT_CONNECTIONS);
		conn_end(c, false);
		return;
	}
	broker.head_used[head] = true;
	memset(&broker.head[head], 0, sizeof(broker.head[head]));
	c->head = head;
	conn_set_state(c, CONN_HEAD);
	c->due = broker.now + HEAD_MS;
	if (conn_watch_client(c) < 0)
		conn_end(c, false);
	else
		conn_read_head(c);
}

/* An allowed name gets a number, as with a lookup: the table then keeps its text. */
static void judge_head(struct conn *c)
{
	const struct proxy *p = &broker.head[c->head];
	struct address stands_for;
	struct verdict v;
	int number;

	c->port = p->port;
	c->address = p->address;
	if (p->kind != NAME_HOST) {
		judge_conn(c);
		return;
	}
	c->name = p->name;
	v = policy_connect(&broker.config->policy, p->name, p->port);
	if (!v.allowed && !may_ask(v)) {
		conn_refuse(c, v);
		return;
	}
	number = synth_name(&broker.synth, p->name);
	if (number < 0) {
		conn_fail(c, ENOSPC);
		return;
	}
	stands_for = synth_v4((unsigned int)number);
	c->name = synth_lookup(&broker.synth, &stands_for);
	judge_conn(c);
}

static void send_bytes(const struct conn *c, const uint8_t *bytes, size_t n)
{
	/* A few bytes, and the connection's buffer is still empty. */
	if (n && send(c->client, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return; /* the client is gone, and epoll will report that */
}

/* The client was told of the refusal. A reset, or unread bytes, would discard that message. */
static void hang_up(struct conn *c)
{
	recv(c->client, NULL, PROXY_HEAD, MSG_TRUNC | MSG_DONTWAIT);
	conn_set_reset(c->client, false);
	close(c->client);
	c->client = NONE;
}

void conn_read_head(struct conn *c)
{
	struct proxy *p = &broker.head[c->head];
	uint8_t bytes[1024], out[PROXY_REPLY];

	for (;;) {
		ssize_t n = recv(c->client, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
		enum proxy_state state;
		size_t used = 0;

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			conn_end(c, false);
			return;
		}
		state = proxy_read(p, bytes, (size_t)n, &used);
		if (used && recv(c->client, bytes, used, MSG_TRUNC | MSG_DONTWAIT) < 0)
			return;
		if (state == PROXY_GREET)
			send_bytes(c, out, proxy_greeting(out));
		if (state == PROXY_READY) {
			judge_head(c);
			return;
		}
		if (state == PROXY_BAD) {
			send_bytes(c, out, proxy_reply(p, p->answer, p->why, out));
			hang_up(c);
			conn_end(c, false);
			return;
		}
	}
}

static enum proxy_answer answer_of(bool allowed, int error)
{
	switch (error) {
	case 0:
		return allowed ? PROXY_YES : PROXY_NO;
	case ENOENT:
	case ENODATA:
		return PROXY_NO_HOST;
	case ENETUNREACH:
	case EHOSTUNREACH:
		return PROXY_UNREACHABLE;
	case ECONNREFUSED:
		return PROXY_REFUSED;
	case ETIMEDOUT:
		return PROXY_LATE;
	default:
		return PROXY_FAILED;
	}
}

void conn_answer(struct conn *c, bool allowed, int error)
{
	const enum proxy_answer answer = answer_of(allowed, error);
	uint8_t out[PROXY_REPLY];

	if (c->head == NONE)
		return;
	send_bytes(c, out,
		proxy_reply(&broker.head[c->head], answer,
			allowed ? "it cannot be reached"
				: "refused by the box's network policy",
			out));
	broker.head_used[c->head] = false;
	c->head = NONE;
	if (answer != PROXY_YES)
		hang_up(c);
}

/* ---- accepting ---- */

int conn_accept_one(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* When there are no descriptors left, the pause keeps the broker from retrying at once. */
void conn_accept(void)
{
	for (int i = 0; i < ACCEPTS && broker.accepts.left; i++) {
		int fd = conn_accept_one(broker.listener);

		if (fd < 0) {
			if (errno != EAGAIN)
				broker.accepts.left = 0;
			return;
		}
		if (!--broker.accepts.left)
			broker_limit(LIMIT_CONNECTION_RATE);
		if (broker.config->proxy)
			take_head(fd);
		else
			take_connection(fd);
	}
}

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
			judge_conn(c);
	}
}
