/*
 * net/resolver.c - the box's questions, and ours to the host's name servers
 *
 * Theory of operation. A question of the box is judged by the policy before anything leaves
 * this machine: a name that is not allowed is answered right here, and nobody outside ever
 * hears of it. An allowed one is looked up as the host would, in its hosts file and with its
 * name servers, both address families at once. Only if it is there the box gets an answer,
 * and that is an address that stands for the name (net/synth.h), of whatever family it
 * asked for: what the name really resolves to is the broker's business alone, now and again
 * when the name is dialled after its time is up. A name about which the user would be asked
 * gets one too, and is looked up when the user has said yes.
 *
 * Answers from outside may be forged: a socket and an id for each lookup that nobody can
 * guess, and net/lookup.h which believes nothing else.
 */
#include "net/conn.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	NAMESERVER_PORT = 53,
	TTL = 60,     /* of an address that stands for a name */
	TTL_NONE = 5, /* of the absence of one: the user may allow it meanwhile */
	LEAST_S = 5,  /* that a name's addresses are believed */
	MOST_S = 300,
	OTHER_FAMILY_MS = 250, /* the patience with the second answer when there is one */
	CLIENT_MS = 15000,
	PUT_OFF_MS = 5000, /* then it has asked again, or given up */
	QUESTIONS = 64,    /* in one round */
	V6_MOST = 4,
	GONE = -2, /* a waiter whose client over TCP has left */
};

static const uint16_t types[2] = { DNS_A, DNS_AAAA };

void resolver_init(void)
{
	/* Of zeros, as it begins, it is empty; to write them would take 16 pages. */
	broker.synth.seed = broker.config->seed;
	broker.put_off = NONE;
}

/* A query that is unused, and a waiter of none, are zeros as well. */
void resolver_idle(void)
{
	if (broker.lookups || broker.put_off != NONE)
		return;
	mem_drop(broker.queries, sizeof(broker.queries));
	mem_drop(broker.waiters, sizeof(broker.waiters));
}

/* ---- answers to the box ---- */

/* Where an answer goes: what came with the question. */
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

static void tell(const struct dns_query *q, struct verdict v, int error)
{
	struct net_event e = { .kind = NET_LOOKUP,
		.allowed = v.allowed,
		.reason = v.reason,
		.type = q->type,
		.error = error };

	memcpy(e.name, q->name, sizeof(e.name));
	broker_event(&e);
}

/* The name has been looked up: error says with what result. */
static void answer_lookup(const struct waiter *w, int error)
{
	const struct verdict yes = { .allowed = true, .reason = POLICY_BY_RULE };
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
	tell(&w->query, yes, error);
	answer(w, &reply);
}

/* ---- what is known ---- */

static bool is_known(const char *name)
{
	int number = synth_find(&broker.synth, name);

	return number >= 0 && broker.resolved[number].n &&
		broker.resolved[number].until > broker.now;
}

static int remember(const char *name, const struct address *a, unsigned int n, uint32_t ttl)
{
	int number = synth_name(&broker.synth, name);
	struct resolved *r;

	if (number < 0)
		return ENOSPC;
	r = &broker.resolved[number];
	r->n = (uint8_t)(n < CANDIDATES ? n : CANDIDATES);
	memcpy(r->address, a, r->n * sizeof(*a));
	ttl = ttl < LEAST_S ? LEAST_S : ttl > MOST_S ? MOST_S : ttl;
	r->until = broker.now + ttl * 1000ULL;
	return 0;
}

/* ---- lookups outside ---- */

static void read_questions(unsigned int client);

static void let_go(struct query *q)
{
	if (q->fd >= 0)
		close(q->fd);
	q->fd = NONE;
}

/* Whoever is answered may ask the next thing at once, and get this very slot for it. */
static void finish(struct query *q, int error)
{
	int next, first = q->waiters;
	char name[NAME_SIZE];

	strcpy(name, q->name);
	let_go(q);
	q->used = false;
	broker.lookups--;
	for (int i = first; i != NONE; i = next) {
		struct waiter *w = &broker.waiters[i];
		int tcp = w->tcp;

		next = w->next;
		answer_lookup(w, error);
		w->used = false;
		if (tcp >= 0)
			read_questions((unsigned int)tcp);
	}
	conn_resolved(name, error);
}

static void conclude(struct query *q)
{
	struct address all[CANDIDATES];
	unsigned int n = 0;
	uint32_t ttl = MOST_S;
	int error = EAGAIN;

	for (int family = 1; family >= 0; family--) {
		const struct lookup_answer *a = &q->answer[family];
		unsigned int most = family ? V6_MOST : CANDIDATES;

		if (!q->have[family])
			continue;
		if (q->result[family] == LOOKUP_NO_NAME)
			error = ENOENT;
		else if (q->result[family] == LOOKUP_NONE && error != ENOENT)
			error = ENODATA;
		if (q->result[family] != LOOKUP_OK)
			continue;
		ttl = a->ttl < ttl ? a->ttl : ttl;
		for (unsigned int i = 0; i < a->n && n < most; i++)
			all[n++] = a->address[i];
	}
	if (n)
		error = remember(q->name, all, n, ttl);
	finish(q, error);
}

static bool send_questions(struct query *q)
{
	uint8_t out[2 * (2 + LOOKUP_QUESTION_SIZE)];
	size_t n = 0;

	for (int i = 0; i < 2; i++) {
		size_t one;

		if (q->have[i])
			continue;
		if (!q->tcp)
			n = 0;
		one = lookup_question(q->name, types[i], q->id[i], out + n + 2,
			LOOKUP_QUESTION_SIZE);
		out[n] = (uint8_t)(one >> 8);
		out[n + 1] = (uint8_t)one;
		if (!q->tcp && send(q->fd, out + 2, one, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return false;
		n += 2 + one;
	}
	return !q->tcp || send(q->fd, out, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

/* A new socket, so a new port, and new ids with each try. False: not with this server. */
static bool ask(struct query *q)
{
	const struct lookup_config *dns = &broker.config->dns;
	const struct address *a = &dns->server[q->tries % dns->n];
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(NAMESERVER_PORT) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(NAMESERVER_PORT) };
	const bool is_v4 = a->family == ADDRESS_V4;

	let_go(q);
	memcpy(&v4.sin_addr, a->byte, 4);
	memcpy(&v6.sin6_addr, a->byte, 16);
	if (getrandom(q->id, sizeof(q->id), 0) != sizeof(q->id))
		return false;
	q->failed = q->sent = false;
	q->tcp_have = 0;
	q->due = broker.now + dns->timeout * 1000ULL;
	q->fd = socket(is_v4 ? AF_INET : AF_INET6,
		(q->tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (q->fd < 0 ||
		(connect(q->fd, is_v4 ? (void *)&v4 : (void *)&v6,
			 is_v4 ? sizeof(v4) : sizeof(v6)) < 0 &&
			errno != EINPROGRESS) ||
		broker_watch(q->fd, WATCH_QUERY, (unsigned int)(q - broker.queries),
			q->tcp ? EPOLLOUT | EPOLLIN | EPOLLET : EPOLLIN | EPOLLET) < 0)
		return false;
	return q->tcp || send_questions(q);
}

static void ask_next(struct query *q)
{
	const struct lookup_config *dns = &broker.config->dns;

	while (++q->tries < dns->attempts * dns->n) {
		q->tcp = false;
		if (ask(q))
			return;
	}
	conclude(q);
}

static void believe(struct query *q, const uint8_t *bytes, size_t n)
{
	for (int i = 0; i < 2; i++) {
		enum lookup_result r;

		if (q->have[i])
			continue;
		r = lookup_answer(q->name, types[i], q->id[i], bytes, n, &q->answer[i]);
		if (r == LOOKUP_IGNORE)
			continue;
		if (r == LOOKUP_FAILED || (r == LOOKUP_CUT && q->tcp)) {
			q->failed = true;
		} else if (r == LOOKUP_CUT) {
			q->tcp = true;
		} else {
			q->have[i] = true;
			q->result[i] = r;
		}
	}
}

/* Over TCP each is preceded by its length. False: one is longer than any we asked for. */
static bool take_answers(struct query *q)
{
	while (q->tcp_have >= 2) {
		size_t want = 2 + ((size_t)q->tcp_buf[0] << 8 | q->tcp_buf[1]);

		if (want > sizeof(q->tcp_buf))
			return false;
		if (q->tcp_have < want)
			return true;
		believe(q, q->tcp_buf + 2, want - 2);
		q->tcp_have -= want;
		memmove(q->tcp_buf, q->tcp_buf + want, q->tcp_have);
	}
	return true;
}

/*
 * All there is, since nobody would tell us again of what is left; but no more than two
 * answers can be. False: the connection is of no more use.
 */
static bool read_stream(struct query *q)
{
	for (int i = 0; i < QUESTIONS; i++) {
		ssize_t n = recv(q->fd, q->tcp_buf + q->tcp_have,
			sizeof(q->tcp_buf) - q->tcp_have, MSG_DONTWAIT);

		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		q->tcp_have += (size_t)n;
		if (!take_answers(q))
			return false;
		if (q->have[0] && q->have[1])
			return true;
	}
	return false;
}

static bool read_answers(struct query *q)
{
	uint8_t buf[DNS_UDP_SIZE];

	if (q->tcp && !q->sent && !send_questions(q))
		return errno == EAGAIN || errno == ENOTCONN;
	q->sent = true;
	if (q->tcp)
		return read_stream(q);
	for (int i = 0; i < QUESTIONS && !q->tcp; i++) {
		ssize_t n = recv(q->fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN;
		believe(q, buf, (size_t)n);
	}
	return true;
}

void resolver_query(unsigned int i)
{
	struct query *q = &broker.queries[i];
	bool was_tcp = q->tcp, good;

	if (!q->used || q->fd < 0)
		return;
	good = read_answers(q);
	if (q->have[0] && q->have[1])
		conclude(q);
	else if (q->tcp && !was_tcp && ask(q))
		return;
	else if (!good || q->failed || (q->tcp && !was_tcp))
		ask_next(q);
	else if ((q->have[0] && q->result[0] == LOOKUP_OK) ||
		(q->have[1] && q->result[1] == LOOKUP_OK))
		q->due = q->due < broker.now + OTHER_FAMILY_MS ? q->due
							       : broker.now + OTHER_FAMILY_MS;
}

static struct query *find_query(const char *name, struct query **ret_free)
{
	*ret_free = NULL;
	for (unsigned int i = 0; i < QUERIES; i++) {
		struct query *q = &broker.queries[i];

		if (q->used && !strcmp(q->name, name))
			return q;
		if (!q->used && !*ret_free)
			*ret_free = q;
	}
	return NULL;
}

/* The query for a name: one that runs, or a new one that does not yet. NULL: too many. */
static struct query *get_query(const char *name)
{
	struct query *free, *q = find_query(name, &free);

	if (q || !free)
		return q;
	free->used = true;
	free->fd = NONE;
	free->waiters = NONE;
	free->tries = 0;
	free->tcp = free->have[0] = free->have[1] = false;
	strcpy(free->name, name);
	broker.lookups++;
	return free;
}

static void start(struct query *q)
{
	struct address a[LOOKUP_MAX];
	unsigned int n;

	if (q->fd != NONE || !q->used)
		return;
	n = lookup_hosts(broker.hosts, broker.config->hosts_size, q->name, a);
	if (n)
		finish(q, remember(q->name, a, n, LEAST_S));
	else if (!ask(q))
		ask_next(q);
}

bool resolver_begin(const char *name)
{
	struct query *q = get_query(name);

	if (q)
		start(q);
	return q;
}

/* ---- questions of the box ---- */

static struct waiter *get_waiter(void)
{
	for (unsigned int i = 0; i < WAITERS; i++)
		if (!broker.waiters[i].used)
			return &broker.waiters[i];
	return NULL;
}

/* As many names as we look up, at once or in a second: it is this one's turn later. */
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
	q = broker.asks.left ? get_query(asked->query.name) : NULL;
	if (!q) {
		put_off(w);
		return;
	}
	broker.asks.left--;
	w->next = q->waiters;
	q->waiters = (int)(w - broker.waiters);
	start(q);
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
 * A name that the user would be asked about when it is dialled. Until then nobody outside
 * hears of it, because the name may be all that somebody wants to send; so the box gets
 * an address for it, whether there is such a name or not.
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
	tell(&w->query, v, 0);
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

	if (rcode == DNS_DROP && w->tcp >= 0)
		broker.dns_clients[w->tcp].busy = false;
	if (rcode == DNS_DROP)
		return;
	if (rcode != DNS_NOERROR) {
		answer_error(w, rcode);
		return;
	}
	if (w->query.kind != NAME_HOST) {
		answer_error(w, DNS_NXDOMAIN);
		return;
	}
	if (name_is_local(w->query.name)) {
		answer_local(w);
		return;
	}
	v = policy_name(&broker.config->policy, w->query.name);
	to_ask = broker.config->ask && v.reason == POLICY_UNLISTED;
	v.allowed |= to_ask; /* the connection is what is asked about */
	if (!v.allowed)
		answer_refused(w, v);
	else if (w->query.type == DNS_A || w->query.type == DNS_AAAA)
		(to_ask ? answer_unasked : look_up)(w);
	else {
		tell(&w->query, v, 0);
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
}

void resolver_take(int fd)
{
	conn_set_reset(fd, false); /* it may read our last answer after its end */
	for (unsigned int i = 0; i < DNS_CLIENTS; i++) {
		struct dns_client *c = &broker.dns_clients[i];

		if (c->used)
			continue;
		if (broker_watch(fd, WATCH_DNS_TCP, i, EPOLLIN | EPOLLRDHUP) < 0)
			break;
		c->used = true;
		c->busy = false;
		c->have = 0;
		c->fd = fd;
		c->until = broker.now + CLIENT_MS;
		return;
	}
	close(fd);
}

/* One at a time: the next is read when the last was answered. */
static void read_questions(unsigned int i)
{
	struct dns_client *c = &broker.dns_clients[i];
	struct waiter w = { .tcp = (int)i };

	while (c->used && !c->busy && c->have >= 2) {
		size_t want = 2 + ((size_t)c->buf[0] << 8 | c->buf[1]);
		uint8_t one[DNS_TCP_MOST];

		if (want > sizeof(c->buf)) {
			drop_client(c);
			return;
		}
		if (c->have < want)
			return;
		memcpy(one, c->buf + 2, want - 2);
		c->have -= want;
		memmove(c->buf, c->buf + want, c->have);
		c->busy = true;
		c->until = broker.now + CLIENT_MS;
		question(&w, one, want - 2);
	}
}

void resolver_client(unsigned int i)
{
	struct dns_client *c = &broker.dns_clients[i];
	ssize_t n;

	if (!c->used)
		return;
	n = recv(c->fd, c->buf + c->have, sizeof(c->buf) - c->have, MSG_DONTWAIT);
	if (n <= 0 && (n == 0 || errno != EAGAIN)) {
		drop_client(c);
		return;
	}
	c->have += n > 0 ? (size_t)n : 0;
	read_questions(i);
}

/* ---- time ---- */

uint64_t resolver_tick(void)
{
	uint64_t due = 0;

	while (broker.put_off != NONE &&
		((broker.lookups < QUERIES && broker.asks.left) ||
			broker.waiters[broker.put_off].due <= broker.now))
		take_up();
	if (broker.put_off != NONE)
		due = broker.waiters[broker.put_off].due;
	for (unsigned int i = 0; broker.lookups && i < QUERIES; i++) {
		struct query *q = &broker.queries[i];

		if (q->used && broker.now >= q->due) {
			if ((q->have[0] && q->result[0] == LOOKUP_OK) ||
				(q->have[1] && q->result[1] == LOOKUP_OK))
				conclude(q);
			else
				ask_next(q);
		}
		if (q->used)
			due = broker_due(due, q->due);
	}
	for (unsigned int i = 0; i < DNS_CLIENTS; i++) {
		struct dns_client *c = &broker.dns_clients[i];

		if (c->used && broker.now >= c->until) {
			c->until = broker.now + CLIENT_MS;
			drop_client(c);
		}
		if (c->used)
			due = broker_due(due, c->until);
	}
	return due;
}
