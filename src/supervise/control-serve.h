/*
 * supervise/control-serve.h - what can be asked of a box that runs, and what it asks
 *
 *	steer_ports(&s, plan, f);      before the box: its ports of the host, or a fault
 *	steer_begin(&s);               it runs: from now on it can be asked
 *	steer_poll(&s, &fds[i]); poll(...); steer_serve(&s, &fds[i]);
 *	steer_end(&s);
 *
 * Over the control socket (supervise/control.h): the state, one more rule for the network,
 * one more port. The other way round, a host that the network's policy does not know is shown
 * to the user, who answers with `carrel allow`.
 */
#ifndef SUPERVISE_CONTROL_SERVE_H
#define SUPERVISE_CONTROL_SERVE_H

#include "supervise/broker-link.h"
#include "supervise/control.h"
#include "net/broker/broker.h"
#include "plan/request.h"

enum { STEER_FDS = CONTROL_FDS, STEER_QUESTIONS = 64 };

struct steer_port {
	struct port_pair pair;
	int listener; /* until the broker has it */
};

/* What the user is asked about, however many connections wait for the answer. */
struct steer_question {
	char name[NAME_SIZE];   /* "": the box dialled an address, */
	struct address address; /* this one */
	uint16_t port;
	unsigned int n; /* connections, never 0 */
};

struct steer {
	struct broker_link *broker;
	const struct plan *plan;
	struct streams *streams; /* the box's */
	struct execs *execs;
	pid_t init;         /* of the box, for `carrel ps` to find its processes, */
	const char *cgroup; /* and its control group; NULL: none */
	bool raw;           /* for the caller to set: the user's terminal needs CR */
	/* Somebody wants the box to end: politely, and after so many seconds at once. */
	void (*stop)(void *ctx, unsigned int seconds, bool restart);
	void *stop_ctx;

	/* Private. */
	struct control control;
	long long since;
	unsigned int n_ports, n_questions;
	struct steer_port ports[BROKER_PORTS];
	struct steer_question questions[STEER_QUESTIONS];
};

int steer_ports(struct steer *s, const struct plan *p, struct fault *f);
void steer_begin(struct steer *s);

/* Of the broker, each event; ctx is the struct steer. */
void steer_event(void *ctx, const struct net_event *e);

void steer_poll(const struct steer *s, struct pollfd *pfd);
void steer_serve(struct steer *s, const struct pollfd *pfd);
void steer_end(struct steer *s);

#endif
