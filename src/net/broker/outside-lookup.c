/*
 * net/broker/outside-lookup.c - lookups with the host's own hosts file and name servers
 *
 * An attacker may forge answers. So each lookup has a socket of its own and ids that nobody can
 * guess, and net/proto/lookup.h accepts nothing else.
 */
#include "net/broker/broker-state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	NAMESERVER_PORT = 53,
	AGAIN_MS = 1000, /* before a repeated question is sent again */
	MUTE_MS = 10000,
	LEAST_S = 5, /* a name's addresses are cached at least so long */
	MOST_S = 300,
	OTHER_FAMILY_MS = 250, /* how long the second answer may take after the first */
	READS = 64,            /* in one round */
	V6_MOST = 4,
};

static const uint16_t types[2] = { DNS_A, DNS_AAAA };

static bool has_address(const struct query *q)
{
	return (q->have[0] && q->result[0] == LOOKUP_OK) ||
		(q->have[1] && q->result[1] == LOOKUP_OK);
}

/*
 * This server has answered both questions, or failed. A failure for one family says nothing
 * about the other.
 */
static bool is_settled(const struct query *q)
{
	return (q->have[0] || q->failed[0]) && (q->have[1] || q->failed[1]);
}

/* ---- what came of it ---- */

static int remember_addresses(const char *name, const struct address *a, unsigned int n,
	uint32_t ttl)
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

static void let_go(struct query *q)
{
	if (q->fd >= 0)
		close(q->fd);
	q->fd = NONE;
}

static void finish_query(struct query *q, int error)
{
	const int waiters = q->waiters;
	char name[NAME_SIZE];

	strcpy(name, q->name);
	let_go(q);
	q->used = false;
	broker.lookups--;
	resolver_answered(waiters, error);
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
		else if (q->result[family] == LOOKUP_NONE && q->have[!family] &&
			error != ENOENT)
			error = ENODATA; /* only if both families answered */
		if (q->result[family] != LOOKUP_OK)
			continue;
		ttl = a->ttl < ttl ? a->ttl : ttl;
		for (unsigned int i = 0; i < a->n && n < most; i++)
			all[n++] = a->address[i];
	}
	if (n)
		error = remember_addresses(q->name, all, n, ttl);
	finish_query(q, error);
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

/*
 * Each try uses a new socket, so a new port, and new ids. False: this server cannot be asked.
 */
static bool ask_server(struct query *q)
{
	const struct lookup_config *dns = &broker.config->dns;
	const unsigned int server = (q->first + q->tries) % dns->n;
	const struct address *a = &dns->server[server];
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(NAMESERVER_PORT) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(NAMESERVER_PORT),
		.sin6_scope_id = dns->zone[server] };
	const bool is_v4 = a->family == ADDRESS_V4;

	q->server = server;
	let_go(q);
	memcpy(&v4.sin_addr, a->byte, 4);
	memcpy(&v6.sin6_addr, a->byte, 16);
	if (getrandom(q->id, sizeof(q->id), 0) != sizeof(q->id))
		return false;
	q->failed[0] = q->failed[1] = q->sent = false;
	q->heard_n = 0;
	q->asked = broker.now;
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
		if (ask_server(q))
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
			q->failed[i] = true;
		} else if (r == LOOKUP_CUT) {
			q->tcp = true;
		} else {
			q->have[i] = true;
			q->result[i] = r;
		}
	}
}

/* Over TCP a length precedes each answer; the buffer holds the longest. */
static void take_answers(struct query *q)
{
	while (q->heard_n >= 2) {
		size_t want = 2 + ((size_t)q->heard[0] << 8 | q->heard[1]);

		if (q->heard_n < want)
			return;
		believe(q, q->heard + 2, want - 2);
		q->heard_n -= want;
		memmove(q->heard, q->heard + want, q->heard_n);
	}
}

/*
 * Read all there is, because epoll does not report the rest again; two answers at most. False:
 * the connection is of no more use.
 */
static bool read_stream(struct query *q)
{
	for (int i = 0; i < READS; i++) {
		ssize_t n = recv(q->fd, q->heard + q->heard_n, sizeof(q->heard) - q->heard_n,
			MSG_DONTWAIT);

		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		q->heard_n += (size_t)n;
		take_answers(q);
		if (q->have[0] && q->have[1])
			return true;
	}
	return false;
}

static bool read_answers(struct query *q)
{
	if (q->tcp && !q->sent && !send_questions(q))
		return errno == EAGAIN || errno == ENOTCONN;
	q->sent = true;
	if (q->tcp)
		return read_stream(q);
	for (int i = 0; i < READS && !q->tcp; i++) {
		ssize_t n = recv(q->fd, q->heard, sizeof(q->heard), MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN;
		believe(q, q->heard, (size_t)n);
	}
	return true;
}

void query_answer(unsigned int i)
{
	struct query *q = &broker.queries[i];
	bool was_tcp = q->tcp, good;

	if (!q->used || q->fd < 0)
		return;
	good = read_answers(q);
	if (q->have[0] && q->have[1])
		conclude(q);
	else if (q->tcp && !was_tcp && ask_server(q))
		return;
	else if (is_settled(q) && has_address(q))
		conclude(q);
	else if (!good || is_settled(q) || (q->tcp && !was_tcp))
		ask_next(q);
	else if (has_address(q))
		q->due = q->due < broker.now + OTHER_FAMILY_MS ? q->due
							       : broker.now + OTHER_FAMILY_MS;
}

/* If this server has said nothing at all, ask others before it for a while. */
static void give_up_on(const struct query *q)
{
	if (!q->have[0] && !q->have[1] && !q->failed[0] && !q->failed[1])
		broker.mute[q->server] = broker.now + MUTE_MS;
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

/* Begin with a server that answers, so that not every name waits for a silent one. */
static unsigned int first_server(void)
{
	for (unsigned int i = 0; i < broker.config->dns.n; i++)
		if (broker.mute[i] <= broker.now)
			return i;
	return 0;
}

struct query *query_get(const char *name)
{
	struct query *free, *q = find_query(name, &free);

	if (q || !free)
		return q;
	if (!broker.asks.left) {
		broker_limit(LIMIT_LOOKUP_RATE);
		return NULL;
	}
	broker.asks.left--;
	free->used = true;
	free->fd = NONE;
	free->waiters = NONE;
	free->tries = 0;
	free->first = first_server();
	free->tcp = free->have[0] = free->have[1] = false;
	strcpy(free->name, name);
	broker.lookups++;
	return free;
}

/*
 * A client that repeats its question, as musl does after 2.5 seconds, soon gives up. The answer
 * was lost or the server is down: ask the next server, or the same one if it is the only one.
 */
static void ask_again(struct query *q)
{
	const struct lookup_config *dns = &broker.config->dns;

	if (q->tcp || broker.now - q->asked < AGAIN_MS)
		return;
	q->asked = broker.now;
	if (dns->n > 1 && q->tries + 1 < dns->attempts * dns->n) {
		give_up_on(q);
		ask_next(q);
	} else {
		send_questions(q);
	}
}

void query_start(struct query *q)
{
	struct address a[LOOKUP_MAX];
	unsigned int n;

	if (q->fd != NONE && q->used)
		ask_again(q);
	if (q->fd != NONE || !q->used)
		return;
	n = lookup_find(&broker.hosts, q->name, a);
	if (n)
		finish_query(q, remember_addresses(q->name, a, n, LEAST_S));
	else if (!ask_server(q))
		ask_next(q);
}

void query_tick(void)
{
	for (unsigned int i = 0; broker.lookups && i < QUERIES; i++) {
		struct query *q = &broker.queries[i];

		if (!q->used || broker.now < q->due)
			continue;
		give_up_on(q);
		if (has_address(q))
			conclude(q);
		else
			ask_next(q);
	}
}

void query_close(void)
{
	for (unsigned int i = 0; broker.lookups && i < QUERIES; i++)
		if (broker.queries[i].used)
			finish_query(&broker.queries[i], ECANCELED);
}

uint64_t query_due(void)
{
	uint64_t due = 0;

	for (unsigned int i = 0; broker.lookups && i < QUERIES; i++)
		if (broker.queries[i].used)
			due = broker_due(due, broker.queries[i].due);
	return due;
}
