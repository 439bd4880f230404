/* net/broker/broker.c - start, event loop, and messages from the supervisor */
#include "net/broker/broker-state.h"
#include "helper/jail.h"
#include "net/broker/machine.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	EVENTS = 64,
	RATE_TICK_MS = 10,
	FILL_MS = 60000, /* after so much silence every bucket is full */
	QUIET_MS = 500,
	LAST_MS = 1000,
	MOVED_MS = 1000,
	/*
	 * The kernel gives each user 64 MiB of pipes, and after that only tiny ones to all of
	 * the user's programs. So a box may have only a part of it, at 1 MiB each.
	 */
	PIPES = 16,
};

/*
 * A closed connection occupies one of the machine's 28,232 ports for another minute. When one
 * server has used all of them, nobody else on the machine can dial it. So a box may open as
 * many connections as fit into the table, and then so many a second; the kernel queues the
 * rest. Other programs need the host's name server too, so the broker also limits questions to
 * it, and queues the rest.
 */
enum { ACCEPTS_A_SECOND = 300, ASKS = 1000, ASKS_A_SECOND = 200 };

/*
 * A refused datagram costs the box nothing to send, but fills the journal. Above these rates
 * the broker stops reading for a second, then drops what is queued and reports that.
 */
enum { TELLS = 200, TELLS_A_SECOND = 10, HEARS = 2000, HEARS_A_SECOND = 500 };

enum { PAGE = 4096, OWN_AS_A_RULE = 64 };

struct broker broker __attribute__((aligned(PAGE)));

/* An idle broker touches one page only. */
_Static_assert(offsetof(struct broker, synth.seed) % PAGE == 0 &&
		offsetof(struct broker, known.policy.own[OWN_AS_A_RULE]) <
			offsetof(struct broker, synth.seed) + PAGE,
	"see struct broker");

uint64_t broker_clock(int clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint64_t broker_due(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static int control(int how, int fd, enum watch what, unsigned int index, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u64 = (uint64_t)what << 32 | index };

	return epoll_ctl(broker.epoll, how, fd, &e) < 0 ? -errno : 0;
}

int broker_watch(int fd, enum watch what, unsigned int index, uint32_t events)
{
	return control(EPOLL_CTL_ADD, fd, what, index, events);
}

int broker_rewatch(int fd, enum watch what, unsigned int index, uint32_t events)
{
	return control(EPOLL_CTL_MOD, fd, what, index, events);
}

/* Blocks when the supervisor is behind. Without a supervisor there is no box to serve. */
void broker_event(const struct net_event *e)
{
	const struct broker_message m = { .word = BROKER_EVENT };
	struct net_event now = *e;

	now.time = broker_clock(CLOCK_REALTIME);
	if (broker_send(broker.supervisor, &m, &now, sizeof(now), NULL, 0, 0) < 0)
		_exit(0);
}

static bool has_moved(void)
{
	return broker.moved.sent != broker.moved_told.sent ||
		broker.moved.received != broker.moved_told.received;
}

/* For `carrel ps`. Each connection's own bytes are reported when it ends. */
static void tell_moved(void)
{
	const struct broker_message m = { .word = BROKER_MOVED };

	if (!has_moved() || broker.now < broker.moved_due)
		return;
	broker.moved_due = broker.now + MOVED_MS;
	broker.moved_told = broker.moved;
	if (broker_send(broker.supervisor, &m, &broker.moved, sizeof(broker.moved), NULL, 0,
		    0) < 0)
		_exit(0);
}

/* ---- limits ---- */

void broker_limit(enum limit which)
{
	static const char *const names[LIMITS] = {
		[LIMIT_CONNECTIONS] = "connections",
		[LIMIT_CONNECTION_RATE] = "connections a second",
		[LIMIT_LOOKUP_RATE] = "lookups a second",
		[LIMIT_TRAFFIC] = "traffic",
		[LIMIT_REFUSAL_RATE] = "refused datagrams a second",
	};
	struct net_event e = { .kind = NET_LIMIT };

	if (broker.limit_told[which] && broker.now - broker.limit_told[which] < 1000)
		return;
	broker.limit_told[which] = broker.now;
	strcpy(e.name, names[which]);
	broker_event(&e);
}

/* Keep the fraction of a token for the next call. */
static void fill_bucket(struct bucket *b, uint64_t a_second, uint64_t most)
{
	uint64_t passed = broker.now - b->filled;
	uint64_t more = (passed < FILL_MS ? passed : FILL_MS) * a_second / 1000;

	if (!more)
		return;
	b->filled = passed < FILL_MS ? b->filled + more * 1000 / a_second : broker.now;
	b->left = b->left + more < most ? b->left + more : most;
}

static void fill_rate(void)
{
	const uint64_t rate = broker.config->rate;

	if (!rate)
		broker.rate.left = UINT64_MAX;
	else if (broker.now - broker.rate.filled >= RATE_TICK_MS)
		fill_bucket(&broker.rate, rate, rate / 4 + 1);
}

/* Test the buckets before they are filled, so that a flood is cut off for a whole second. */
static void pace_refused(void)
{
	const bool deaf = broker.tells.left < (broker.deaf ? TELLS_A_SECOND : 1) ||
		broker.hears.left < (broker.deaf ? HEARS_A_SECOND : 1);

	fill_bucket(&broker.tells, TELLS_A_SECOND, TELLS);
	fill_bucket(&broker.hears, HEARS_A_SECOND, HEARS);
	if (broker.deaf == deaf)
		return;
	broker.deaf = deaf;
	for (unsigned int i = 0; i < ARRAY_SIZE(broker.refused); i++) {
		if (broker.refused[i] < 0)
			continue;
		if (!deaf)
			refused_drop(i);
		if (broker_rewatch(broker.refused[i], WATCH_REFUSED, i, deaf ? 0 : EPOLLIN) < 0)
			_exit(1);
	}
}

static void pace(void)
{
	fill_bucket(&broker.accepts, ACCEPTS_A_SECOND, BROKER_CONNECTIONS);
	fill_bucket(&broker.asks, ASKS_A_SECOND, ASKS);
	pace_refused();
	if (broker.listener < 0 || broker.paused == !broker.accepts.left)
		return;
	broker.paused = !broker.accepts.left;
	if (broker_rewatch(broker.listener, WATCH_LISTENER, 0, broker.paused ? 0 : EPOLLIN) < 0)
		_exit(1);
}

/* ---- the supervisor ---- */

static void add_rule(const struct policy_rule *rule)
{
	struct policy *p = &broker.config->policy;

	if (p->n < POLICY_RULES)
		p->rule[p->n++] = *rule;
	conn_policy_changed();
}

static void set_port(uint16_t host, uint16_t box, int listener)
{
	struct port *free = NULL;

	for (unsigned int i = 0; i < BROKER_PORTS; i++) {
		struct port *p = &broker.ports[i];

		if (p->listener != NONE && p->host == host && listener == NONE)
			fd_close(&p->listener);
		if (p->listener == NONE && !free)
			free = p;
	}
	if (listener == NONE)
		return;
	if (!free ||
		broker_watch(listener, WATCH_PORT, (unsigned int)(free - broker.ports),
			TO_ACCEPT) < 0) {
		close(listener);
		return;
	}
	conn_tune(listener);
	*free = (struct port){ .listener = listener, .host = host, .box = box };
	conn_spare();
}

/* All level-triggered: the broker reads a flood in parts, between other events. */
static void listen_to_box(const int fds[NET_ENDS])
{
	static const struct {
		enum watch what;
		unsigned int index;
	} of[NET_ENDS] = {
		[END_LISTENER] = { WATCH_LISTENER, 0 },
		[END_RESOLVER] = { WATCH_RESOLVER, 0 },
		[END_REFUSED_V4] = { WATCH_REFUSED, 0 },
		[END_REFUSED_V6] = { WATCH_REFUSED, 1 },
	};

	broker.listener = fds[END_LISTENER];
	broker.resolver = fds[END_RESOLVER];
	broker.refused[0] = fds[END_REFUSED_V4];
	broker.refused[1] = fds[END_REFUSED_V6];
	for (int i = 0; i < NET_ENDS; i++)
		if (fds[i] >= 0 && broker_watch(fds[i], of[i].what, of[i].index, EPOLLIN) < 0)
			_exit(1);
}

/* Read one message from the supervisor. It sends few, and epoll reports the rest again. */
static void hear_supervisor(void)
{
	struct policy_rule rule;
	struct broker_message m;
	int fds[NET_ENDS], rc;
	size_t n;

	rc = broker_receive(broker.supervisor, &m, &rule, sizeof(rule), &n, fds, MSG_DONTWAIT);
	if (rc == -EAGAIN)
		return;
	if (rc < 0)
		_exit(0); /* the supervisor is gone, and the box with it */
	if (m.word == BROKER_LISTEN && fds[0] >= 0 && broker.listener < 0) {
		listen_to_box(fds);
		return;
	}
	if (m.word == BROKER_RULE && n == sizeof(rule))
		add_rule(&rule);
	else if (m.word == BROKER_PORT)
		set_port((uint16_t)(m.value >> 16), (uint16_t)m.value, take_fd(&fds[0]));
	else if (m.word == BROKER_SPARE_SOCKET)
		conn_spare_came(take_fd(&fds[0]));
	else if (m.word == BROKER_END)
		broker.ending = true;
	broker_close(fds);
}

/* Loopback and the two addresses that the box has on it: box/native/redirect.c. */
bool broker_is_box(const struct address *a)
{
	static const struct {
		struct address net;
		unsigned int bits;
	} own[] = {
		{ { ADDRESS_V4, { 127 } }, 8 },
		{ { ADDRESS_V4, { 198, 18, 0, 2 } }, 32 },
		{ { ADDRESS_V6, { [15] = 1 } }, 128 },
		{ { ADDRESS_V6, { 0xfd, 0x63, 0x61, 0x72, 0x72, 0x65, 0x6c, [15] = 2 } }, 128 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (address_within(a, &own[i].net, own[i].bits))
			return true;
	return false;
}

/* ---- the loop ---- */

static void dispatch(const struct epoll_event *e)
{
	const unsigned int index = (unsigned int)e->data.u64 & 0xffffff;

	switch ((enum watch)(e->data.u64 >> 32)) {
	case WATCH_SUPERVISOR:
		hear_supervisor();
		break;
	case WATCH_LISTENER:
		conn_accept();
		break;
	case WATCH_RESOLVER:
		resolver_questions();
		break;
	case WATCH_CLIENT:
		conn_ready(index, e->events);
		break;
	case WATCH_DIAL:
		conn_dialled(index / DIALS, index % DIALS, e->events);
		break;
	case WATCH_QUERY:
		query_answer(index);
		break;
	case WATCH_DNS_TCP:
		resolver_client(index);
		break;
	case WATCH_PORT:
		conn_accept_port(index);
		break;
	case WATCH_REFUSED:
		refused_hear(index);
		break;
	}
}

/* Give memory back while nothing happens. */
static void trim(void)
{
	flow_idle();
	if (!broker.open)
		conn_idle();
	resolver_idle();
	mem_trim();
	broker.trimmed = true;
}

static int timeout(uint64_t due)
{
	if (broker.ready != NONE)
		due = broker.rate.left ? broker.now
				       : broker_due(due, broker.now + RATE_TICK_MS);
	if (!broker.trimmed)
		due = broker_due(due, broker.now + QUIET_MS);
	if (has_moved())
		due = broker_due(due, broker.moved_due);
	if (broker.paused || broker.deaf || (broker.put_off != NONE && !broker.asks.left))
		due = broker_due(due, broker.now + RATE_TICK_MS);
	if (!due)
		return -1;
	return due <= broker.now           ? 0
		: due - broker.now > 60000 ? 60000
					   : (int)(due - broker.now);
}

/*
 * Handle deadlines first, then compute the next one: a lookup that ends starts connections, and
 * a connection starts a lookup.
 */
static uint64_t tick(void)
{
	uint64_t due;

	resolver_tick();
	due = conn_tick();
	return broker_due(due, resolver_due());
}

/* Wait once and handle all events; returns their number. */
static int turn(int wait)
{
	struct epoll_event events[EVENTS];
	const uint64_t due = tick();
	int n = epoll_wait(broker.epoll, events, EVENTS, wait < 0 ? timeout(due) : wait);

	broker.now = broker_clock(CLOCK_MONOTONIC) / 1000000;
	fill_rate();
	for (int i = 0; i < n; i++)
		dispatch(&events[i]);
	conn_run();
	conn_sweep();
	pace();
	tell_moved();
	return n;
}

static void broker_loop(void)
{
	while (!broker.ending) {
		int n = turn(-1);

		if (n > 0)
			broker.trimmed = false;
		else if (!broker.trimmed && broker.ready == NONE)
			trim();
	}
}

/*
 * The box is dead. Deliver what it has sent, because a program may send and exit at once. Wait
 * only so long for a peer that does not read.
 */
static void finish_box(void)
{
	const uint64_t until = broker.now + LAST_MS;
	int n = 1;

	broker.config->rate = 0; /* no more data follows, and there is no time to wait */
	while ((n > 0 || !conn_all_sent()) && broker.now < until)
		n = turn(conn_all_sent() ? 0 : RATE_TICK_MS);
	resolver_close();
	conn_close_all();
	broker_send(broker.supervisor, &(struct broker_message){ .word = BROKER_DONE }, NULL, 0,
		NULL, 0, 0);
}

/* ---- the start ---- */

static int look_at_machine(struct fault *f)
{
	struct broker_config *c = broker.config;
	int rc;

	if (getrandom(&c->seed, sizeof(c->seed), 0) != sizeof(c->seed))
		return fault_set(f, errno, "get something random for the broker");
	rc = machine_dns(&c->dns, f);
	if (rc == 0)
		rc = machine_hosts(broker.hosts_room, &broker.hosts, f);
	return rc == 0 ? machine_own(&c->policy, f) : rc;
}

/* A connection that is being dialled has up to four descriptors, and a pipe has two. */
static void raise_limit(void)
{
	struct rlimit limit;
	rlim_t most;

	broker.config->connections = BROKER_CONNECTIONS;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (limit.rlim_cur != limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	most = limit.rlim_max > 400 ? (limit.rlim_max - 200) / 6 : 32;
	flow_pipes = most < PIPES ? (unsigned int)most : PIPES;
	if (most < BROKER_CONNECTIONS)
		broker.config->connections = (uint32_t)most;
}

static int get_ready(struct fault *f)
{
	int rc = look_at_machine(f);

	if (rc < 0)
		return rc;
	raise_limit();
	return jail_enter(&broker_jail, f);
}

static int hear_rules(struct fault *f)
{
	struct policy *p = &broker.config->policy;
	struct broker_message m;
	int fds[NET_ENDS], rc;
	size_t n;

	for (unsigned int have = 0; have < p->n; have += (unsigned int)(n / sizeof(*p->rule))) {
		rc = broker_receive(broker.supervisor, &m, &p->rule[have],
			(p->n - have) * sizeof(*p->rule), &n, fds, 0);
		if (rc < 0)
			_exit(0);
		if (m.word != BROKER_RULE || n < sizeof(*p->rule) || n % sizeof(*p->rule))
			return fault_set(f, 0, "the broker's policy is cut");
	}
	return 0;
}

static int hear_config(struct fault *f)
{
	struct broker_config *c = broker.config;
	struct broker_message m;
	struct broker_terms t;
	int fds[NET_ENDS], rc;
	size_t n;

	rc = broker_receive(broker.supervisor, &m, &t, sizeof(t), &n, fds, 0);
	if (rc < 0)
		_exit(0);
	if (m.word != BROKER_CONFIG || n != sizeof(t) || t.rules > POLICY_RULES)
		return fault_set(f, 0, "the broker was told nothing to do");
	c->proxy = t.proxy;
	c->ask = t.ask;
	c->ask_seconds = t.ask_seconds;
	if (t.connections < c->connections)
		c->connections = t.connections;
	c->bytes = t.bytes;
	c->rate = t.rate;
	memcpy(c->box, t.box, sizeof(c->box));
	c->policy.open = t.open;
	c->policy.entries = t.entries;
	c->policy.n = t.rules;
	return hear_rules(f);
}

static void begin_broker(void)
{
	broker.now = broker_clock(CLOCK_MONOTONIC) / 1000000;
	broker.rate.filled = broker.now;
	broker.accepts = (struct bucket){ BROKER_CONNECTIONS, broker.now };
	broker.asks = (struct bucket){ ASKS, broker.now };
	broker.tells = (struct bucket){ TELLS, broker.now };
	broker.hears = (struct bucket){ HEARS, broker.now };
	broker.bytes_left = broker.config->bytes ? broker.config->bytes : UINT64_MAX;
	fill_rate();
	resolver_init();
	conn_init();
}

/*
 * The broker prepares itself before it reads its configuration. It reports a fault only after
 * it has read it: a supervisor that writes to a closed socket would not receive the fault.
 */
int broker_main(void)
{
	struct fault f = { 0 };
	struct broker_message m = { .word = BROKER_READY };
	int rc, heard;

	prctl(PR_SET_NAME, BROKER_ARGV0, 0, 0,
		0); /* /proc/self/exe was executed, so the kernel calls it "exe" */
	signal(SIGPIPE, SIG_IGN);
	broker.supervisor = BROKER_SOCKET;
	broker.listener = broker.resolver = broker.refused[0] = broker.refused[1] = NONE;
	broker.config = &broker.known;
	broker.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (broker_watch(broker.supervisor, WATCH_SUPERVISOR, 0, EPOLLIN) < 0) {
		fputs("carrel-broker: carrel starts this itself, when a box has a network\n",
			stderr);
		return 125;
	}
	rc = get_ready(&f);
	heard = hear_config(&f);
	if (rc < 0 || heard < 0) {
		m.word = BROKER_FAULT;
		broker_send(broker.supervisor, &m, &f, sizeof(f), NULL, 0, 0);
		return 125;
	}
	begin_broker();
	if (broker_send(broker.supervisor, &m, NULL, 0, NULL, 0, 0) < 0)
		return 125;
	broker_loop();
	finish_box();
	return 0;
}
