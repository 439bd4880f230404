/*
 * supervise/broker-link.c - the supervisor's side of the broker
 *
 * The broker is this program executed again, from the same file, with no environment and no
 * descriptor but its socket. So it has nothing from our memory, which may hold secrets, except
 * what we send.
 *
 * The broker reads what a hostile box sends, so its messages are not trusted either. An invalid
 * event ends the broker, and with it the box's network.
 */
#include "supervise/broker-link.h"
#include "host/network-policy.h"
#include "host/user-hosts.h"
#include "net/broker/broker.h"
#include "helper/spawn.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	ASK_SECONDS = 60,
	END_MS = 2000, /* for the broker's last words */
	EVENTS = 256,  /* messages that are read in one round */
	REST_MS = 5,   /* pause between rounds */
};

/* ---- the start ---- */

static int spawn_broker(struct broker_link *l, struct fault *f)
{
	/*
	 * The longest policy fits into the socket unread: the box runs already, and we must not
	 * wait.
	 */
	const int room = POLICY_RULES * (int)sizeof(struct policy_rule);
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fault_set(f, errno, "make the broker's socket");
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	rc = helper_spawn("/proc/self/exe", BROKER_ARGV0, &ends[1], 1, &l->pid);
	close(ends[1]);
	if (rc < 0) {
		close(ends[0]);
		return fault_set(f, -rc, "start the broker");
	}
	l->socket = ends[0];
	l->on = true;
	return 0;
}

/* ---- what it is told ---- */

/* Test builds only: wait as long as the environment says. */
static uint32_t ask_seconds(void)
{
#ifdef CARREL_TEST_HOOKS
	const char *other = getenv("CARREL_TEST_ASK");

	if (other)
		return (uint32_t)strtoul(other, NULL, 10);
#endif
	return ASK_SECONDS;
}

static int send_rules(int socket, const struct policy *policy)
{
	const struct broker_message m = { .word = BROKER_RULE };
	int rc = 0;

	for (unsigned int i = 0; rc == 0 && i < policy->n; i += BROKER_RULES) {
		unsigned int n = policy->n - i < BROKER_RULES ? policy->n - i : BROKER_RULES;

		rc = broker_send(socket, &m, &policy->rule[i], n * sizeof(*policy->rule), NULL,
			0, 0);
	}
	return rc;
}

static int configure(struct broker_link *l, const struct plan *p)
{
	const struct policy *policy = p->policy;
	const struct broker_message m = { .word = BROKER_CONFIG };
	struct broker_terms terms = {
		.proxy = p->frame.proxy,
		.ask = p->ask,
		.open = policy->open,
		.entries = policy->entries,
		.rules = policy->n,
		.ask_seconds = ask_seconds(),
		.connections = (uint32_t)p->limits.connections,
		.bytes = p->limits.traffic,
		.rate = p->limits.rate,
	};
	int rc;

	snprintf(terms.box, sizeof(terms.box), "%s", p->name);
	rc = broker_send(l->socket, &m, &terms, sizeof(terms), NULL, 0, 0);

	return rc < 0 ? rc : send_rules(l->socket, policy);
}

static int start_broker(struct broker_link *l, const struct plan *p, struct fault *f)
{
	int rc = spawn_broker(l, f);

	if (rc < 0)
		return rc;
	rc = configure(l, p);
	return rc < 0 ? fault_set(f, -rc, "start the broker of the box's network") : 0;
}

/* ---- what it says ---- */

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* The broker has finished and exits; neither side waits for the other. */
static void leave(struct broker_link *l)
{
	fd_close(&l->socket);
	l->on = false;
}

static void stop_broker(struct broker_link *l)
{
	if (!l->on)
		return;
	leave(l);
	kill(l->pid, SIGKILL);
	while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Record what the broker can no longer report. */
static void tell_of(struct broker_link *l, struct net_event *e)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	e->time = (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
	journal_event(&l->journal, e);
	if (l->tell)
		l->tell(l->tell_ctx, e);
}

static void lose(struct broker_link *l)
{
	struct net_event e = { .kind = NET_LOST };

	stop_broker(l);
	l->lost = true;
	tell_of(l, &e);
}

static void take_event(struct broker_link *l, const struct net_event *e)
{
	if (!net_event_is_sane(e) || e->kind == NET_LOST) {
		lose(l);
		return;
	}
	if (e->kind == NET_CONNECT && e->allowed && !e->error)
		l->connections++;
	if (e->kind == NET_CLOSE && l->connections)
		l->connections--;
	journal_event(&l->journal, e);
	if (l->tell)
		l->tell(l->tell_ctx, e);
}

/*
 * Each socket takes two messages between us and the box's init: never ask for more than fit
 * unread.
 */
static void owe(struct broker_link *l, unsigned int n)
{
	l->prompt = true;
	l->owed += n;
	if (l->need)
		l->need(l->need_ctx, n);
}

/* The broker has not read anything of the box yet, but check the fault anyway. */
static void take_fault(struct broker_link *l, const struct fault *told)
{
	l->fault = *told;
	l->fault.step[0] = '\0';
	l->fault.text[sizeof(l->fault.text) - 1] = '\0';
	l->fault.fix[sizeof(l->fault.fix) - 1] = '\0';
}

/* Read one message of the broker; false: there is none now, or there will be no more. */
static bool hear(struct broker_link *l, int flags)
{
	struct broker_message m;
	union {
		struct net_event event;
		struct fault fault;
		struct broker_moved moved;
	} told;
	int fds[NET_ENDS], rc;
	size_t n = 0;

	rc = broker_receive(l->socket, &m, &told, sizeof(told), &n, fds, flags);
	/*
	 * If the broker ended without reading a message of ours, the kernel reports that once,
	 * and then delivers the broker's messages.
	 */
	if (rc == -ECONNRESET)
		rc = broker_receive(l->socket, &m, &told, sizeof(told), &n, fds, flags);
	broker_close(fds);
	if (rc == -EAGAIN)
		return false;
	if (rc == 0 && m.word == BROKER_EVENT && n == sizeof(told.event))
		take_event(l, &told.event);
	else if (rc == 0 && m.word == BROKER_READY && !l->ready)
		l->ready = true;
	else if (rc == 0 && m.word == BROKER_NEED && m.value <= BROKER_SPARE - l->owed)
		owe(l, m.value);
	else if (rc == 0 && m.word == BROKER_MOVED && n == sizeof(told.moved))
		l->moved = told.moved;
	else if (rc == 0 && m.word == BROKER_DONE && l->ending)
		leave(l);
	else {
		if (rc == 0 && m.word == BROKER_FAULT && !l->ready && n == sizeof(told.fault))
			take_fault(l, &told.fault);
		lose(l);
	}
	return l->on;
}

/* ---- when it is needed, and when it is gone ---- */

void broker_expect(struct broker_link *l, const struct plan *p, int net[NET_ENDS])
{
	l->expected = true;
	/* allocate now: nothing may allocate in the loop */
	l->parsed = mem_alloc(sizeof(*l->parsed));
	l->known = mem_alloc(sizeof(*l->known));
	l->plan = p;
	for (int i = 0; i < NET_ENDS; i++)
		l->net[i] = take_fd(&net[i]);
}

bool broker_is_there(const struct broker_link *l)
{
	return l->on || l->expected;
}

/*
 * The broker has its own copies. We keep the listener for the time after the broker: without
 * one, connections would reach a server in the box that listens on their port.
 */
static void let_go(struct broker_link *l)
{
	l->expected = false;
	for (int i = 0; i < NET_ENDS; i++)
		if (i != END_LISTENER)
			fd_close(&l->net[i]);
}

/*
 * The broker enters its jail before it reads what is sent here, and answers READY or a fault at
 * any time. A program in the box waits for the broker; we do not.
 */
static void wake(struct broker_link *l)
{
	const struct broker_message m = { .word = BROKER_LISTEN };
	size_t n = 0;
	int rc;

	if (!l->expected)
		return;
	rc = start_broker(l, l->plan, &l->fault);
	while (n < NET_ENDS && l->net[n] >= 0)
		n++;
	if (rc == 0)
		rc = broker_send(l->socket, &m, NULL, 0, l->net, n, 0);
	let_go(l);
	/* If the broker ended before it received everything, its last message says why. */
	while (rc < 0 && l->on && hear(l, MSG_DONTWAIT))
		;
	if (rc < 0 && !l->fault.text[0])
		fault_set(&l->fault, -rc, "pass the box's network to its broker");
	if (rc < 0 && !l->lost)
		lose(l);
}

/*
 * Refuse connections in place of the broker: closing them resets them (box/native/redirect.c).
 */
static void refuse_connections(const struct broker_link *l)
{
	int fd;

	for (int i = 0; i < EVENTS; i++) {
		fd = accept4(l->net[END_LISTENER], NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			return;
		close(fd);
	}
}

int broker_try(struct broker_link *l, const struct plan *p, struct fault *f)
{
	int rc = start_broker(l, p, f);

	while (rc == 0 && l->on && !l->ready)
		hear(l, 0);
	if (rc == 0 && l->ready)
		return 0;
	if (rc == 0)
		*f = l->fault;
	if (!f->text[0])
		fault_set(f, EPROTO, "start the broker of the box's network");
	strcpy(f->step, "broker");
	return f->err ? -f->err : -EINVAL;
}

/*
 * Without a pause, each connection of the box would wake us twice while it is being made. So
 * after one round we let messages collect for a moment. They wait in the socket, where they
 * survive even the end of the broker.
 */
int broker_timeout(const struct broker_link *l)
{
	long long left = l->on && l->until ? l->until - now_ms() : 0;

	return left > 0 ? (int)left : -1;
}

void broker_poll(const struct broker_link *l, struct pollfd *fds)
{
	for (int i = 0; i < BROKER_FDS; i++)
		fds[i] =
			(struct pollfd){ .fd = l->expected ? l->net[i] : -1, .events = POLLIN };
	if (l->on && broker_timeout(l) < 0)
		fds[0].fd = l->socket;
	if (l->lost)
		fds[0].fd = l->net[END_LISTENER];
}

void broker_serve(struct broker_link *l, const struct pollfd *fds)
{
	bool asked = false;

	for (int i = 0; i < BROKER_FDS; i++)
		asked |= fds[i].revents != 0;
	if (asked && l->lost)
		refuse_connections(l);
	if (asked)
		wake(l);
	if (!l->on || !fds[0].revents)
		return;
	for (int i = 0; i < EVENTS && hear(l, MSG_DONTWAIT); i++)
		;
	l->until = l->prompt ? 0 : now_ms() + REST_MS;
}

/* ---- what it is told later ---- */

const struct policy *broker_rules(struct broker_link *l)
{
	const struct policy *first = l->plan->policy;

	if (!l->known->n && !l->known->n_own)
		memcpy(l->known, first,
			offsetof(struct policy, rule) + first->n * sizeof(*first->rule));
	return l->known;
}

/* Never say yes to an entry that has no effect. */
static int check_rules(struct broker_link *l, const char *entry, bool deny, struct fault *f)
{
	const struct policy *known = broker_rules(l), *more = l->parsed;
	unsigned int new = 0;
	bool vain = !deny;

	for (unsigned int i = 0; i < more->n; i++) {
		new += !policy_has(known, &more->rule[i]);
		vain &= policy_is_vain(known, &more->rule[i]);
	}
	if (known->n + new > POLICY_RULES)
		return fault_set(f, 0, "'%s' is one too many: a box has room for %d rules",
			str_visible(entry), POLICY_RULES);
	if (!vain)
		return 0;
	fault_set(f, 0, "'%s' is denied in this box, and a denial wins", str_visible(entry));
	return fault_fix(f,
		"A box that is started without that denial can reach it. It is the command "
		"line's, the agent's, or a line with ! of %s.",
		str_visible(user_hosts_path() ? user_hosts_path() : "your own file"));
}

/* An entry that the broker has already takes no more room, here or there. */
static int send_rule(struct broker_link *l, const struct policy_rule *rule, struct fault *f)
{
	const struct broker_message m = { .word = BROKER_RULE };
	int rc;

	if (policy_has(l->known, rule))
		return 0;
	rc = broker_send(l->socket, &m, rule, sizeof(*rule), NULL, 0, MSG_DONTWAIT);
	if (rc < 0)
		return fault_set(f, -rc, "tell the broker");
	l->known->rule[l->known->n++] = *rule;
	return 0;
}

int broker_allow(struct broker_link *l, const char *entry, bool deny, struct fault *f)
{
	int rc;

	wake(l);
	if (!l->on)
		return fault_set(f, 0, "its network has ended: there is nothing to change");
	rc = egress_entry(entry, deny, l->parsed, f);
	if (rc == 0)
		rc = check_rules(l, entry, deny, f);
	for (unsigned int i = 0; rc == 0 && i < l->parsed->n; i++)
		rc = send_rule(l, &l->parsed->rule[i], f);
	return rc;
}

int broker_port(struct broker_link *l, int listener, struct port_pair pair)
{
	const struct broker_message m = { .word = BROKER_PORT,
		.value = (uint32_t)pair.host << 16 | pair.box };
	int rc = -EPIPE;

	wake(l);
	if (l->on)
		rc = broker_send(l->socket, &m, NULL, 0, &listener, listener >= 0,
			MSG_DONTWAIT);
	fd_close(&listener);
	return rc;
}

void broker_spare(struct broker_link *l, int fd)
{
	const struct broker_message m = { .word = BROKER_SPARE_SOCKET };

	if (l->owed)
		l->owed--;
	if (l->on)
		broker_send(l->socket, &m, NULL, 0, &fd, fd >= 0, MSG_DONTWAIT);
	fd_close(&fd);
}

/* ---- the end ---- */

/*
 * Did the box ask for anything before it ended that we have not seen yet? A refused program
 * does not wait for the broker, but its refusal must be reported all the same.
 */
static bool is_asked(const struct broker_link *l)
{
	struct pollfd fds[NET_ENDS];

	for (int i = 0; i < NET_ENDS; i++)
		fds[i] = (struct pollfd){ .fd = l->net[i], .events = POLLIN };
	return poll(fds, NET_ENDS, 0) > 0;
}

void broker_ask_end(struct broker_link *l)
{
	const struct broker_message m = { .word = BROKER_END };

	if (l->expected && is_asked(l))
		wake(l);
	if (l->expected)
		let_go(l);
	if (!l->on || l->ending)
		return;
	l->ending = true;
	l->prompt = true;
	l->until = 0;
	broker_send(l->socket, &m, NULL, 0, NULL, 0, MSG_DONTWAIT);
}

/* This is the time for all its last messages: a broker that never stops talking is cut off. */
void broker_end(struct broker_link *l)
{
	long long until, left;
	struct pollfd pfd;

	broker_ask_end(l);
	if (!l->on)
		return;
	until = now_ms() + END_MS;
	while (l->on && (left = until - now_ms()) > 0) {
		if (hear(l, MSG_DONTWAIT) || !l->on)
			continue;
		pfd = (struct pollfd){ .fd = l->socket, .events = POLLIN };
		if (poll(&pfd, 1, (int)left) <= 0)
			break;
	}
	if (!l->on)
		return;
	/* Its last events are missing, and with them the bytes of its connections. */
	stop_broker(l);
	tell_of(l,
		&(struct net_event){ .kind = NET_LIMIT, .name = "time for the broker to end" });
}

void broker_kill(struct broker_link *l)
{
	stop_broker(l);
}
