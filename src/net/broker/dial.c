/* net/broker/dial.c - dial the outside, or a server in the box */
#include "net/broker/conn.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	GIVE_UP_MS = 30000,
	HEAD_START_MS = 250,
	ALIVE_S = 60,       /* of silence before probes, and as long again without an answer */
	PATIENCE_MS = 2500, /* for one attempt, when others wait for its slot */
};

/* ---- outside ---- */

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

/*
 * Keepalive of a program in the box ends at the broker. Only the broker can find out whether
 * the other end is still there.
 */
static void keep_alive(int fd)
{
	const int yes = 1, idle = ALIVE_S, again = ALIVE_S / 3, tries = 3;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof(again));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

static int make_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0) {
		conn_tune(fd);
		keep_alive(fd);
	}
	return fd;
}

void conn_leave(struct conn *c, bool orderly)
{
	if (c->server == NONE)
		return;
	if (orderly)
		conn_set_reset(c->server, false);
	fd_close(&c->server);
}

static bool is_connected(int fd)
{
	union any_address peer;
	socklen_t size = sizeof(peer);

	return getpeername(fd, &peer.any, &size) == 0;
}

/*
 * All attempts hang and there are more addresses: close the oldest one if it had its time.
 * Returns its slot, or NONE with c->due as the time to try again.
 */
static int make_room(struct conn *c)
{
	struct dial *d = &c->dial;
	int oldest = 0;

	for (int i = 1; i < DIALS; i++)
		if (d->began[i] < d->began[oldest])
			oldest = i;
	c->due = d->began[oldest] + PATIENCE_MS;
	if (broker.now < c->due)
		return NONE;
	d->error = ETIMEDOUT;
	fd_close(&d->fd[oldest]);
	return oldest;
}

/* Dial one address. A near server has answered when connect(2) returns. */
static bool dial_one(struct conn *c, const struct address *a, int slot)
{
	struct dial *d = &c->dial;
	union any_address to;
	socklen_t size = socket_address(a, c->port, &to);
	int fd = make_socket(a->family == ADDRESS_V4 ? AF_INET : AF_INET6);
	unsigned int i;

	if (fd < 0 || (connect(fd, &to.any, size) < 0 && errno != EINPROGRESS)) {
		d->error = errno;
		fd_close(&fd);
		return false;
	}
	if (is_connected(fd)) {
		c->server = fd;
		c->address = *a;
		return true;
	}
	i = conn_index(c) * DIALS + (unsigned int)slot;
	if (broker_watch(fd, WATCH_DIAL, i, BOTH) < 0) {
		d->error = errno;
		close(fd);
		return false;
	}
	d->fd[slot] = fd;
	d->to[slot] = *a;
	d->began[slot] = broker.now;
	c->due = broker.now + HEAD_START_MS;
	return true;
}

/* Dial the next address. False when there is none left. */
static bool dial_next(struct conn *c)
{
	struct dial *d = &c->dial;

	while (d->next < d->n) {
		int slot = 0;

		while (slot < DIALS && d->fd[slot] != NONE)
			slot++;
		if (slot == DIALS)
			slot = make_room(c);
		if (slot == NONE || dial_one(c, &d->candidate[d->next++], slot))
			return true;
	}
	c->due = c->give_up;
	for (int i = 0; i < DIALS; i++)
		if (d->fd[i] != NONE)
			return true;
	return false;
}

/* Dial the next address. Without one the connection fails, with this error or the last one. */
static void dial_on(struct conn *c, int error)
{
	if (!dial_next(c)) {
		error = error ? error : c->dial.error;
		conn_fail(c, error ? error : EHOSTUNREACH);
	} else if (c->server != NONE) {
		conn_close_dials(c);
		conn_established(c, 0);
	}
}

void conn_dial(struct conn *c)
{
	conn_set_state(c, CONN_DIALLING);
	c->give_up = broker.now + GIVE_UP_MS;
	dial_on(c, 0);
}

/* A server in the box listens on 127.0.0.1, or else on ::1. */
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

/* Use another socket: one that was used for one family cannot dial the other. */
static bool dial_inbound_again(struct conn *c)
{
	if (c->dial.next != 1)
		return false;
	conn_set_state(c, CONN_WAITING);
	conn_spare();
	return true;
}

void conn_dialled(unsigned int i, unsigned int attempt, uint32_t events)
{
	struct conn *c = &broker.conns[i];
	int error = 0;
	socklen_t size = sizeof(error);

	if (c->state == CONN_OPEN) {
		conn_relay_side(c, false, events);
		return;
	}
	if (c->state != CONN_DIALLING || c->dial.fd[attempt] == NONE)
		return;
	/* EPOLLOUT means the connect finished; SO_ERROR says whether it failed. */
	if ((events & EPOLLOUT && !(events & (EPOLLERR | EPOLLHUP))) ||
		is_connected(c->dial.fd[attempt])) {
		c->server = take_fd(&c->dial.fd[attempt]);
		c->server_watch = BOTH;
		if (!c->inbound)
			c->address = c->dial.to[attempt];
		conn_close_dials(c);
		conn_established(c, events);
		return;
	}
	if (getsockopt(c->dial.fd[attempt], SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (!error)
		return; /* still connecting */
	c->dial.error = error;
	fd_close(&c->dial.fd[attempt]);
	if (!c->inbound)
		dial_on(c, error);
	else if (!dial_inbound_again(c))
		conn_fail(c, error);
}

uint64_t conn_tick_dialling(void)
{
	uint64_t due = 0;
	int next;

	for (int i = broker.dialling.first; i != NONE; i = next) {
		struct conn *c = &broker.conns[i];

		next = c->next;
		if (broker.now >= c->give_up)
			conn_fail(c, c->dial.error ? c->dial.error : ETIMEDOUT);
		else if (broker.now >= c->due && !c->inbound)
			dial_on(c, 0);
		if (c->state == CONN_DIALLING)
			due = broker_due(due, c->due);
	}
	return due;
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
	conn_set_state(c, CONN_DIALLING);
	c->due = c->give_up = broker.now + GIVE_UP_MS;
	if (!dial_box(c) ||
		broker_watch(c->dial.fd[0], WATCH_DIAL, conn_index(c) * DIALS, BOTH) < 0)
		conn_fail(c, c->dial.error ? c->dial.error : errno);
}

void conn_spare(void)
{
	while (broker.spares && broker.waiting.first != NONE)
		dial_inbound(&broker.conns[broker.waiting.first]);
	want_spares();
}

/* When no socket will come, fail the connections that wait for one. */
void conn_spare_came(int fd)
{
	if (broker.wanted)
		broker.wanted--;
	if (fd < 0) {
		while (!broker.wanted && !broker.spares && broker.waiting.first != NONE)
			conn_fail(&broker.conns[broker.waiting.first], EMFILE);
		return;
	}
	conn_tune(fd);
	if (broker.spares < BROKER_SPARE)
		broker.spare[broker.spares++] = fd;
	else
		close(fd);
	conn_spare();
}

void conn_accept_port(unsigned int i)
{
	const struct port *port = &broker.ports[i];
	struct conn *c;

	for (int n = 0; n < ACCEPTS && port->listener != NONE; n++) {
		int fd = conn_accept_one(port->listener);

		if (fd < 0)
			return;
		conn_set_reset(fd,
			true); /* the connection may be older than the listener's options */
		c = conn_take();
		if (!c) {
			broker_limit(LIMIT_CONNECTIONS);
			close(fd);
			continue;
		}
		c->inbound = true;
		c->client = fd;
		c->port = port->box;
		conn_set_state(c, CONN_WAITING);
		c->due = broker.now + GIVE_UP_MS;
		conn_spare();
	}
	if (port->listener != NONE)
		broker_rewatch(port->listener, WATCH_PORT, i, TO_ACCEPT);
}
