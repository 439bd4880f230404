#include "supervise/control-serve.h"
#include "supervise/execs.h"
#include "supervise/streams.h"
#include "net/policy/policy.h"
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

enum { BACKLOG = 512, QUESTION_SIZE = NAME_SIZE + sizeof("[]:65535") };

/* ---- ports of the host ---- */

/*
 * On the host's loopback alone: servers in a box are for its user, not for the local network.
 */
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

/*
 * Do the rules decide it by now? The broker decides in the same way (conn_policy_changed()). It
 * reports the connections later, when they are made or have failed.
 */
static bool is_answered(struct steer *s, const struct steer_question *q)
{
	const struct policy *p = broker_rules(s->broker);
	struct verdict v = q->name[0] ? policy_connect(p, q->name, q->port)
				      : policy_address(p, &q->address, q->port);

	return v.allowed || (v.reason != POLICY_UNLISTED && v.reason != POLICY_PORT);
}

/* Keep their order, because `carrel ps` shows it. */
static void drop_question(struct steer *s, struct steer_question *q)
{
	const size_t behind = (size_t)(&s->questions[s->n_questions--] - (q + 1));

	memmove(q, q + 1, behind * sizeof(*q));
}

static void drop_answered(struct steer *s)
{
	for (unsigned int i = s->n_questions; i-- > 0;)
		if (is_answered(s, &s->questions[i]))
			drop_question(s, &s->questions[i]);
}

/* Written as in the entry that would answer: IPv6 in brackets. */
static void question_text(const struct steer_question *q, char out[QUESTION_SIZE])
{
	char address[ADDRESS_SIZE];
	const char *host = q->name[0] ? q->name : address;

	address_format(&q->address, address);
	snprintf(out, QUESTION_SIZE, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, q->port);
}

static void put_questions(const struct steer *s, struct json *j)
{
	char text[QUESTION_SIZE];

	json_open(j, "waiting", '[');
	for (unsigned int i = 0; i < s->n_questions; i++) {
		question_text(&s->questions[i], text);
		json_string(j, NULL, text);
	}
	json_close(j, ']');
}

/* carrel knows nothing about the machine's own network, so leave the member out. */
static void put_counts(const struct steer *s, struct json *j)
{
	if (s->plan->frame.network == NETWORK_HOST)
		return;
	json_number(j, "connections", s->broker->lost ? 0 : s->broker->connections);
	json_count(j, "sent", s->broker->moved.sent);
	json_count(j, "received", s->broker->moved.received);
}

/* Only a box with a terminal that we see can be known to wait. */
static void put_terminal(const struct steer *s, struct json *j)
{
	const struct streams_ops *ops = s->streams->ops;
	const bool detached = ops->attach;

	json_bool(j, "detached", detached);
	json_string(j, "state",
		detached && ops->waits(s->streams) ? "waits for input" : "running");
	if (detached)
		json_number(j, "viewers", ops->viewers(s->streams));
}

static void put_status(void *ctx, struct json *j)
{
	const struct steer *s = ctx;
	const struct plan *p = s->plan;

	json_number(j, "pid", getpid());
	json_number(j, "init", s->init);
	json_string(j, "cgroup", s->cgroup);
	put_terminal(s, j);
	json_string(j, "agent", p->agent ? p->agent->name : NULL);
	json_string(j, "project", p->project ? p->project : p->workspace);
	json_number(j, "since", s->since);
	json_string(j, "network", network_name(p->frame.network));
	json_open(j, "reaches", '[');
	vec_each(entry, &p->reaches)
		json_string(j, NULL, *entry);
	json_close(j, ']');
	json_bool(j, "lost", s->broker->lost);
	put_counts(s, j);
	put_questions(s, j);
	json_open(j, "ports", '[');
	for (unsigned int i = 0; i < s->n_ports && !s->broker->lost; i++)
		json_string(j, NULL,
			mem_printf("%u:%u", s->ports[i].pair.host, s->ports[i].pair.box));
	json_close(j, ']');
}

static int decide_entry(void *ctx, const char *entry, bool deny, struct fault *f)
{
	struct steer *s = ctx;
	int rc;

	if (!network_is_brokered(s->plan->frame.network))
		return fault_set(f, 0,
			"its network is \"%s\": there is nothing to allow or deny",
			network_name(s->plan->frame.network));
	rc = broker_allow(s->broker, entry, deny, f);
	drop_answered(s);
	return rc;
}

/* "8092" alone does not say which port of the box is meant. */
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

static int stop_box(void *ctx, unsigned int seconds, bool restart, struct fault *f)
{
	struct steer *s = ctx;

	if (restart && !s->streams->ops->attach)
		return fault_set(f, 0,
			"it was not started with -d, and would have no terminal");
	s->stop(s->stop_ctx, seconds, restart);
	return 0;
}

static int type_text(void *ctx, const char *text, struct fault *f)
{
	struct streams *streams = ((struct steer *)ctx)->streams;

	return streams->ops->type(streams, text, strlen(text), f);
}

static int attach(void *ctx, int *fd, const struct streams_client *c, struct fault *f)
{
	struct streams *streams = ((struct steer *)ctx)->streams;

	return streams->ops->attach(streams, fd, c, f);
}

static int add_command(void *ctx, int *fd, const char *const *argv, const struct box_io *io,
	const char *term, struct fault *f)
{
	return execs_start(((struct steer *)ctx)->execs, fd, argv, io, term, f);
}

static const struct control_ops own_ops = { .status = put_status,
	.decide = decide_entry,
	.port = change_port,
	.stop = stop_box,
	.exec = add_command };

static const struct control_ops detached_ops = { .status = put_status,
	.decide = decide_entry,
	.port = change_port,
	.stop = stop_box,
	.exec = add_command,
	.type = type_text,
	.attach = attach };

/* ---- what the box asks ---- */

/*
 * Print over whatever is on the screen, with a bell, because the box waits for the answer. If
 * nobody reads the terminal, drop the message: `carrel ps` shows the question too, and the
 * box's limits must not wait for a reader.
 */
static void show_question(const struct steer *s, const struct steer_question *q)
{
	const bool bell = isatty(STDERR_FILENO);
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
	char what[QUESTION_SIZE], line[2 * QUESTION_SIZE + 256];

	question_text(q, what);
	snprintf(line, sizeof(line),
		"%s%scarrel: %s is not in the list and waits for you: carrel allow %s %s "
		"(or --deny)%s\n",
		s->raw ? "\r\n" : "", bell ? "\a" : "", what, s->plan->name, what,
		s->raw ? "\r" : "");

	if (poll(&room, 1, 0) <= 0 || !(room.revents & POLLOUT) ||
		write(STDERR_FILENO, line, strlen(line)) < 0)
		return;
}

/*
 * The question about a connection that is held, or is no longer held; NULL: there is none. If
 * the question is about a name, the address does not matter: it changes once the name was
 * looked up.
 */
static struct steer_question *find_question(struct steer *s, const struct net_event *e)
{
	for (unsigned int i = 0; i < s->n_questions; i++) {
		struct steer_question *q = &s->questions[i];

		if (q->port == e->port && !strcmp(q->name, e->name) &&
			(e->name[0] || address_equal(&q->address, &e->address)))
			return q;
	}
	return NULL;
}

static void begin_waiting(struct steer *s, const struct net_event *e)
{
	struct steer_question *q = find_question(s, e);

	if (q) {
		/* No box has more connections, whatever its broker says. */
		q->n += q->n < BROKER_CONNECTIONS;
		return;
	}
	/* Do not show more questions than a person could answer. */
	if (s->n_questions == STEER_QUESTIONS)
		return;
	q = &s->questions[s->n_questions];
	*q = (struct steer_question){ .address = e->address, .port = e->port, .n = 1 };
	strcpy(q->name, e->name);
	/* The question may have been asked just before the answer arrived. */
	if (is_answered(s, q))
		return;
	s->n_questions++;
	show_question(s, q);
}

/* While a question is open, each further connection to the host was held as well. */
static void end_waiting(struct steer *s, const struct net_event *e)
{
	struct steer_question *q = e->inbound ? NULL : find_question(s, e);

	if (q && !--q->n)
		drop_question(s, q);
}

void steer_event(void *ctx, const struct net_event *e)
{
	struct steer *s = ctx;

	if (e->kind == NET_HELD)
		begin_waiting(s, e);
	else if (e->kind == NET_LOST)
		s->n_questions = 0;
	else if (e->kind == NET_CONNECT)
		end_waiting(s, e);
}

/* ---- its life ---- */

void steer_begin(struct steer *s)
{
	struct fault f = { 0 };

	s->since = (long long)time(NULL);
	/* A broker that is lost already serves no ports; the end of the run reports that. */
	for (unsigned int i = 0; i < s->n_ports; i++)
		hand_over(s, &s->ports[i]);
	/* Without a runtime directory there is no control socket; the box runs all the same. */
	control_open(&s->control, s->plan->name,
		s->streams->ops->attach ? &detached_ops : &own_ops, s, &f);
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
