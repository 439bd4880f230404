/*
 * net/broker/resolver.c - answer the box's questions
 *
 * Theory of operation. The policy judges a question before anything leaves this machine. The
 * broker answers a name that is not allowed itself, and nobody outside ever sees it. It looks
 * up an allowed name as the host would, in the hosts file and with the name servers, both
 * address families at once. If the name exists, the box gets an address that stands for it
 * (net/broker/synth.h), of the family it asked for. Only the broker knows the real addresses,
 * and it looks them up again when the name is dialled after its TTL. A name that the user would
 * be asked about also gets an address; the broker looks it up once the user agrees.
 */
#include "net/broker/conn.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	TTL = 60,     /* of an address that stands for a name */
	TTL_NONE = 5, /* of a negative answer: the user may allow the name meanwhile */
	CLIENT_MS = 15000,
	PUT_OFF_MS = 5000, /* after that the client has asked again, or given up */
	QUESTIONS = 64,    /* in one round */
	READS = 4,         /* of a client over TCP, in one round */
	CLIENT_EVENTS = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
	GONE = -2, /* a waiter whose client over TCP has disconnected */
};

static void read_questions(unsigned int client);

void resolver_init(void)
{
	/* A table of zeros is empty already; clearing it would touch 16 pages. */
	broker.synth.seed = broker.config->seed;
	broker.put_off = NONE;
}

/* An unused query and an unused waiter are zeros as well. */
void resolver_idle(void)
{
	if (broker.lookups || broker.put_off != NONE)
		return;
	mem_drop(broker.queries, sizeof(broker.queries));
	mem_drop(broker.waiters, sizeof(broker.waiters));
}

/* ---- answers to the box ---- */

/* Send an answer to where the question came from. */
static void send_answer(const struct waiter *w, const uint8_t *bytes, size_t n)
{
	struct iovec part = { (void *)bytes, n };
	struct msghdr m = { .msg_name = (void *)&w->from,
		.msg_namelen = w->from_size,
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = (void *)w->info,
		.msg_controllen = (__typeof__(m.msg_controllen))w->info_size };
	uint8_t framed[2 + 65535];

	if (w->tcp == GONE)
		return;
	if (w->tcp == NONE) {
		sendmsg(broker.resolver, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
		return;
	}
	framed[0] = (uint8_t)(n >> 8);
	framed[1] = (uint8_t)n;
	memcpy(framed + 2, bytes, n);
	send(broker.dns_clients[w->tcp].fd, framed, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	broker.dns_clients[w->tcp].busy = false;
}

static void answer(const struct waiter *w, const struct dns_reply *reply)
{
	uint8_t out[2048];
	size_t n = dns_write(&w->query, reply, out,
		w->tcp == NONE ? w->query.udp_size : sizeof(out));

	if (n)
		send_answer(w, out, n);
}

static void answer_error(const struct waiter *w, int rcode)
{
	answer(w, &(struct dns_reply){ .rcode = rcode, .ttl = TTL_NONE, .ede = DNS_EDE_NONE });
}

static void report_lookup(const struct waiter *w, struct verdict v, int error)
{
	const struct dns_query *q = &w->query;
	struct net_event e = { .kind = NET_LOOKUP,
		.allowed = v.allowed,
		.reason = v.reason,
		.type = q->type,
		.error = error,
		.lasted = broker_clock(CLOCK_MONOTONIC) - w->began };

	/* Report the question even if it is not for a host name. */
	if (q->kind == NAME_HOST)
		memcpy(e.name, q->name, sizeof(e.name));
	broker_event(&e);
}

/* The lookup ended; error is its result. */
static void answer_lookup(const struct waiter *w, int error)
{
	const struct verdict yes = { .allowed = true, .reason = w->reason };
	struct address both[2];
	struct dns_reply reply = { .address = both, .ttl = TTL, .ede = DNS_EDE_NONE };
	int number = synth_find(&broker.synth, w->query.name);

	if (!error && number >= 0) {
		both[0] = synth_v4((unsigned int)number);
		both[1] = synth_v6((unsigned int)number);
		reply.n = 2;
	} else {
		reply.ttl = TTL_NONE;
		reply.rcode = error == ENOENT ? DNS_NXDOMAIN
			: error == ENODATA    ? DNS_NOERROR
					      : DNS_SERVFAIL;
	}
	report_lookup(w, yes, error);
	answer(w, &reply);
}

/* ---- what was found ---- */

static bool is_known(const char *name)
{
	int number = synth_find(&broker.synth, name);

	return number >= 0 && broker.resolved[number].n &&
		broker.resolved[number].until > broker.now;
}

/* A client that is answered may ask again at once, and get the query's slot. */
void resolver_answered(int waiters, int error)
{
	int next;

	for (int i = waiters; i != NONE; i = next) {
		struct waiter *w = &broker.waiters[i];
		int tcp = w->tcp;

		next = w->next;
		answer_lookup(w, error);
		w->used = false;
		if (tcp >= 0 && !broker.ending)
			read_questions((unsigned int)tcp);
	}
}

/* The box is gone, and with it its waiting clients. Their questions are still reported. */
void resolver_close(void)
{
	query_close();
	resolver_answered(broker.put_off, ECANCELED);
	broker.put_off = NONE;
}

/* ---- questions of the box ---- */

static struct waiter *get_waiter(void)
{
	for (unsigned int i = 0; i < WAITERS; i++)
		if (!broker.waiters[i].used)
			return &broker.waiters[i];
	return NULL;
}

/* Too many lookups, at once or per second: defer this one. */
static void put_off(struct waiter *w)
{
	const int index = (int)(w - broker.waiters);

	w->next = NONE;
	w->due = broker.now + PUT_OFF_MS;
	if (broker.put_off == NONE)
		broker.put_off = index;
	else
		broker.waiters[broker.put_off_last].next = index;
	broker.put_off_last = index;
}

static void look_up(const struct waiter *asked)
{
	struct query *q;
	struct waiter *w;

	if (!strcmp(asked->query.name, POLICY_HOST))
		synth_name(&broker.synth, POLICY_HOST);
	if (!strcmp(asked->query.name, POLICY_HOST) || is_known(asked->query.name)) {
		answer_lookup(asked, 0);
		return;
	}
	w = get_waiter();
	if (!w) {
		answer_lookup(asked, EAGAIN);
		return;
	}
	*w = *asked;
	w->used = true;
	q = query_get(asked->query.name);
	if (!q) {
		put_off(w);
		return;
	}
	w->next = q->waiters;
	q->waiters = (int)(w - broker.waiters);
	query_start(q);
}

static void take_up(void)
{
	struct waiter w = broker.waiters[broker.put_off];

	broker.waiters[broker.put_off].used = false;
	broker.put_off = w.next;
	if (w.due <= broker.now)
		answer_lookup(&w, EAGAIN);
	else
		look_up(&w);
	if (w.tcp >= 0)
		read_questions((unsigned int)w.tcp);
}

/*
 * The user is asked about this name when it is dialled. Until then nobody outside sees it,
 * because the name itself may carry data out. So the box gets an address for it, whether the
 * name exists or not.
 */
static void answer_unasked(const struct waiter *w)
{
	int number = synth_name(&broker.synth, w->query.name);

	answer_lookup(w, number < 0 ? -number : 0);
}

/* The box's own machine, whatever the policy says (RFC 6761). */
static void answer_local(const struct waiter *w)
{
	static const struct address loopback[2] = { { .family = ADDRESS_V4,
							    .byte = { 127, 0, 0, 1 } },
		{ .family = ADDRESS_V6, .byte = { [15] = 1 } } };

	answer(w,
		&(struct dns_reply){
			.address = loopback, .n = 2, .ttl = TTL, .ede = DNS_EDE_NONE });
}

static void answer_refused(const struct waiter *w, struct verdict v)
{
	report_lookup(w, v, 0);
	answer(w,
		&(struct dns_reply){ .rcode = DNS_NXDOMAIN,
			.ttl = TTL_NONE,
			.ede = DNS_EDE_BLOCKED,
			.ede_text = "refused by the box's network policy" });
}

static void question(struct waiter *w, const uint8_t *bytes, size_t n)
{
	enum dns_rcode rcode = dns_parse(bytes, n, &w->query);
	struct verdict v;
	bool to_ask;

	w->began = broker_clock(CLOCK_MONOTONIC);
	if (rcode == DNS_DROP && w->tcp >= 0)
		broker.dns_clients[w->tcp].busy = false;
	if (rcode == DNS_DROP)
		return;
	if (rcode != DNS_NOERROR) {
		answer_error(w, rcode);
		return;
	}
	if (w->query.kind != NAME_HOST) {
		report_lookup(w, (struct verdict){ .reason = POLICY_NO_NAME }, 0);
		answer_error(w, DNS_NXDOMAIN);
		return;
	}
	if (name_is_local(w->query.name)) {
		answer_local(w);
		return;
	}
	/* The box's hosts file has its address; there is no other. */
	if (!strcasecmp(w->query.name, broker.config->box)) {
		answer_error(w, DNS_NOERROR);
		return;
	}
	v = policy_name(&broker.config->policy, w->query.name);
	to_ask = broker.config->ask && v.reason == POLICY_UNLISTED;
	v.allowed |= to_ask; /* the user is asked about the connection, not the lookup */
	w->reason = v.reason;
	if (!v.allowed)
		answer_refused(w, v);
	else if (w->query.type == DNS_A || w->query.type == DNS_AAAA)
		(to_ask ? answer_unasked : look_up)(w);
	else {
		report_lookup(w, v, 0);
		answer_error(w, DNS_NOERROR);
	}
}

void resolver_questions(void)
{
	for (int i = 0; i < QUESTIONS; i++) {
		uint8_t bytes[DNS_UDP_SIZE];
		struct waiter w = { .tcp = NONE };
		struct iovec part = { bytes, sizeof(bytes) };
		struct msghdr m = { .msg_name = &w.from,
			.msg_namelen = sizeof(w.from),
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = w.info,
			.msg_controllen = sizeof(w.info) };
		ssize_t n = recvmsg(broker.resolver, &m, MSG_DONTWAIT);

		if (n < 0)
			return;
		w.from_size = m.msg_namelen;
		w.info_size = m.msg_controllen;
		question(&w, bytes, (size_t)n);
	}
}

/* ---- the same over TCP ---- */

static void drop_client(struct dns_client *c)
{
	const int index = (int)(c - broker.dns_clients);

	for (unsigned int i = 0; c->busy && i < WAITERS; i++)
		if (broker.waiters[i].used && broker.waiters[i].tcp == index)
			broker.waiters[i].tcp = GONE;
	close(c->fd);
	c->used = false;
	broker.dns_open--;
}

void resolver_take(int fd)
{
	conn_set_reset(fd, false); /* the client may read our last answer after its end */
	for (unsigned int i = 0; i < DNS_CLIENTS; i++) {
		struct dns_client *c = &broker.dns_clients[i];

		if (c->used)
			continue;
		if (broker_watch(fd, WATCH_DNS_TCP, i, CLIENT_EVENTS) < 0)
			break;
		broker.dns_open++;
		c->used = true;
		c->busy = false;
		c->have = 0;
		c->fd = fd;
		c->until = broker.now + CLIENT_MS;
		return;
	}
	close(fd);
}

/* False when the buffer holds no whole question. */
static bool take_question(unsigned int i)
{
	struct dns_client *c = &broker.dns_clients[i];
	size_t want = c->have < 2 ? 2 : 2 + ((size_t)c->buf[0] << 8 | c->buf[1]);
	struct waiter w = { .tcp = (int)i };
	uint8_t one[DNS_TCP_MOST];

	if (want > sizeof(c->buf)) {
		drop_client(c);
		return false;
	}
	if (c->have < 2 || c->have < want)
		return false;
	memcpy(one, c->buf + 2, want - 2);
	c->have -= want;
	memmove(c->buf, c->buf + want, c->have);
	c->busy = true;
	c->until = broker.now + CLIENT_MS;
	question(&w, one, want - 2);
	return true;
}

/* The buffer has room: a full buffer would contain a whole question. */
static bool read_more(struct dns_client *c)
{
	ssize_t n = recv(c->fd, c->buf + c->have, sizeof(c->buf) - c->have, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN))
		drop_client(c);
	c->have += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/*
 * One question at a time: the next is read after the last is answered. Until then nothing is
 * read from the client, not even its end. A question that is answered at once calls this
 * function again; `reading` then makes the outer call go on, so the stack does not grow.
 */
static void read_questions(unsigned int i)
{
	struct dns_client *c = &broker.dns_clients[i];
	int reads = 0;

	if (c->reading)
		return;
	c->reading = true;
	while (c->used && !c->busy)
		if (!take_question(i) && (!c->used || reads++ == READS || !read_more(c)))
			break;
	c->reading = false;
	if (c->used && !c->busy && broker_rewatch(c->fd, WATCH_DNS_TCP, i, CLIENT_EVENTS) < 0)
		drop_client(c);
}

void resolver_client(unsigned int i)
{
	if (broker.dns_clients[i].used)
		read_questions(i);
}

/* ---- time ---- */

void resolver_tick(void)
{
	query_tick();
	while (broker.put_off != NONE &&
		((broker.lookups < QUERIES && broker.asks.left) ||
			broker.waiters[broker.put_off].due <= broker.now))
		take_up();
	for (unsigned int i = 0; broker.dns_open && i < DNS_CLIENTS; i++)
		if (broker.dns_clients[i].used && broker.now >= broker.dns_clients[i].until)
			drop_client(&broker.dns_clients[i]);
}

uint64_t resolver_due(void)
{
	uint64_t due = query_due();

	if (broker.put_off != NONE)
		due = broker_due(due, broker.waiters[broker.put_off].due);
	for (unsigned int i = 0; broker.dns_open && i < DNS_CLIENTS; i++)
		if (broker.dns_clients[i].used)
			due = broker_due(due, broker.dns_clients[i].until);
	return due;
}
