#include "run/steer.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 512 };

/* ---- ports of the host ---- */

/* On the host's loopback alone: what runs in a box is for its user, not for his network. */
static int open_port(struct port_pair pair, struct fault *f)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(pair.host),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int yes = 1;
	auto_close int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
		bind(s, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
		listen(s, BACKLOG) < 0) {
		fault_set(f, errno, "listen on port %u of this machine for the box", pair.host);
		if (f->err == EADDRINUSE)
			return fault_fix(f,
				"Something else listens there; take another with HOST:BOX, as "
				"in %u:%u.",
				pair.host < 60000 ? pair.host + 1U : pair.host - 1U, pair.box);
		if (f->err == EACCES)
			return fault_fix(f, "Ports below 1024 are the system's; take another.");
		return -f->err;
	}
	return take_fd(&s);
}

static int add_port(struct steer *s, struct port_pair pair, struct fault *f)
{
	int listener;

	for (unsigned int i = 0; i < s->n_ports; i++)
		if (s->ports[i].pair.host == pair.host)
			return fault_set(f, 0, "port %u of this machine is this box's already",
				pair.host);
	if (s->n_ports == BROKER_PORTS)
		return fault_set(f, 0, "a box can have %d ports", BROKER_PORTS);
	listener = open_port(pair, f);
	if (listener < 0)
		return listener;
	s->ports[s->n_ports++] = (struct steer_port){ pair, listener };
	return 0;
}

int steer_ports(struct steer *s, const struct plan *p, struct fault *f)
{
	int rc = 0;

	s->plan = p;
	vec_each(pair, &p->ports)
		if (rc == 0)
			rc = add_port(s, *pair, f);
	return rc;
}

static int hand_over(struct steer *s, struct steer_port *port)
{
	return broker_port(s->broker, take_fd(&port->listener), port->pair);
}

/* ---- what is asked of the box ---- */

/* Is the same asked by one of the first n? Each connection asks for itself. */
static bool is_among(const struct steer *s, unsigned int n, const struct steer_waiting *w)
{
	for (unsigned int i = 0; i < n; i++)
		if (s->waiting[i].port == w->port && !strcmp(s->waiting[i].host, w->host))
			return true;
	return false;
}

static void put_status(void *ctx, struct json *j)
{
	const struct steer *s = ctx;
	const struct plan *p = s->plan;

	json_number(j, "pid", getpid());
	json_string(j, "agent", p->agent ? p->agent->name : NULL);
	json_string(j, "project", p->project ? p->project : p->workspace);
	json_number(j, "since", s->since);
	json_string(j, "network", network_name(p->frame.network));
	json_bool(j, "lost", s->broker->lost);
	json_number(j, "connections", s->broker->lost ? 0 : s->broker->connections);
	json_count(j, "sent", s->broker->moved.sent);
	json_count(j, "received", s->broker->moved.received);
	json_open(j, "waiting", '[');
	for (unsigned int i = 0; i < s->n_waiting; i++)
		if (!is_among(s, i, &s->waiting[i]))
			json_string(j, NULL,
				mem_printf("%s:%u", s->waiting[i].host, s->waiting[i].port));
	json_close(j, ']');
	json_open(j, "ports", '[');
	for (unsigned int i = 0; i < s->n_ports && !s->broker->lost; i++)
		json_string(j, NULL,
			mem_printf("%u:%u", s->ports[i].pair.host, s->ports[i].pair.box));
	json_close(j, ']');
}

static int decide(void *ctx, const char *entry, bool deny, struct fault *f)
{
	struct steer *s = ctx;

	if (!network_is_brokered(s->plan->frame.network))
		return fault_set(f, 0,
			"its network is \"%s\": there is nothing to allow or deny",
			network_name(s->plan->frame.network));
	return broker_allow(s->broker, entry, deny, f);
}

/* Of "8092" alone it is not known where it is meant to lead. */
static int remove_port(struct steer *s, struct port_pair pair, bool alone, struct fault *f)
{
	for (unsigned int i = 0; i < s->n_ports; i++) {
		int rc;

		if (s->ports[i].pair.host != pair.host)
			continue;
		if (!alone && s->ports[i].pair.box != pair.box)
			return fault_set(f, 0, "port %u of this machine leads to %u of the box",
				pair.host, s->ports[i].pair.box);
		rc = broker_port(s->broker, -1, s->ports[i].pair);
		if (rc < 0)
			return fault_set(f, -rc, "tell the broker to close port %u", pair.host);
		s->ports[i] = s->ports[--s->n_ports];
		return 0;
	}
	return fault_set(f, 0, "the box has no port %u of this machine", pair.host);
}

static int change_port(void *ctx, const char *spec, bool remove, struct fault *f)
{
	struct steer *s = ctx;
	struct port_pair pair;
	const char *problem;
	int rc;

	problem = port_problem(spec, &pair);
	if (problem)
		return fault_set(f, 0, "port '%s': %s", str_visible(spec), problem);
	if (!network_is_brokered(s->plan->frame.network))
		return fault_set(f, 0, "its network is \"%s\": ports are for allow and open",
			network_name(s->plan->frame.network));
	if (!broker_is_there(s->broker))
		return fault_set(f, 0, "its network has ended, and its ports with it");
	if (remove)
		return remove_port(s, pair, !strchr(spec, ':'), f);
	if (pair.box < LOW_PORTS && !s->plan->frame.low_ports) {
		fault_set(f, 0, "nothing in this box can listen on port %u", pair.box);
		return fault_fix(f,
			"Ports below %d are for a box that is started with one, as with --port "
			"%u:%u; or let the server listen on another.",
			LOW_PORTS, pair.host, pair.box);
	}
	rc = add_port(s, pair, f);
	if (rc < 0)
		return rc;
	rc = hand_over(s, &s->ports[s->n_ports - 1]);
	if (rc == 0)
		return 0;
	s->n_ports--;
	return fault_set(f, -rc, "give port %u to the broker", pair.host);
}

static const struct control_ops ops = {
	.status = put_status, .decide = decide, .port = change_port
};

/* ---- what the box asks ---- */

/*
 * Over whatever is on the screen, with a bell: the box waits for this. Where nobody reads, it
 * is left out: `carrel ps` shows it too, and the box's limits must not wait for a reader.
 */
static void show_question(const struct steer *s, const char *host, uint16_t port)
{
	const bool bell = isatty(STDERR_FILENO);
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[2 * NAME_SIZE + 256]; /* the host is in it twice */

	snprintf(line, sizeof(line),
		"%s%scarrel: %s:%u is not in the list and waits for you: carrel allow %s %s:%u "
		"(or --deny)%s\n",
		s->raw ? "\r\n" : "", bell ? "\a" : "", host, port, s->plan->name, host, port,
		s->raw ? "\r" : "");

	if (poll(&room, 1, 0) <= 0 || !(room.revents & POLLOUT) ||
		write(STDERR_FILENO, line, strlen(line)) < 0)
		return;
}

static void begin_waiting(struct steer *s, const struct net_event *e)
{
	struct steer_waiting w = { .id = e->id, .port = e->port };
	char text[ADDRESS_SIZE];

	/* As in the entry that would answer: IPv6 in brackets. */
	address_format(&e->address, text);
	snprintf(w.host, sizeof(w.host), strchr(text, ':') ? "[%s]" : "%s", text);
	if (e->name[0])
		strcpy(w.host, e->name);
	/* A box that asks about more than anybody could answer is not shown them all. */
	if (s->n_waiting == STEER_WAITING)
		return;
	if (!is_among(s, s->n_waiting, &w))
		show_question(s, w.host, w.port);
	s->waiting[s->n_waiting++] = w;
}

void steer_event(void *ctx, const struct net_event *e)
{
	struct steer *s = ctx;

	if (e->kind == NET_HELD)
		begin_waiting(s, e);
	else if (e->kind == NET_LOST)
		s->n_waiting = 0;
	else if (e->kind == NET_CONNECT)
		for (unsigned int i = 0; i < s->n_waiting; i++)
			if (s->waiting[i].id == e->id)
				s->waiting[i--] = s->waiting[--s->n_waiting];
}

/* ---- its life ---- */

void steer_begin(struct steer *s)
{
	struct fault f = { 0 };

	s->since = (long long)time(NULL);
	/* A broker that is lost already has no ports, which will be told. */
	for (unsigned int i = 0; i < s->n_ports; i++)
		hand_over(s, &s->ports[i]);
	/* Without a runtime directory nobody can ask; the box runs all the same. */
	control_open(&s->control, s->plan->name, &ops, s, &f);
}

void steer_poll(const struct steer *s, struct pollfd *pfd)
{
	control_poll(&s->control, pfd);
}

void steer_serve(struct steer *s, const struct pollfd *pfd)
{
	control_serve(&s->control, pfd);
}

void steer_end(struct steer *s)
{
	control_close(&s->control);
	for (unsigned int i = 0; i < s->n_ports; i++)
		fd_close(&s->ports[i].listener);
}
