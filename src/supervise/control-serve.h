/*
 * supervise/control-serve.h - requests to a running box, and its questions to the user
 *
 *	steer_ports(&s, plan, f);      before the box: its ports of the host, or a fault
 *	steer_begin(&s);               the box runs: accept requests
 *	steer_poll(&s, &fds[i]); poll(...); steer_serve(&s, &fds[i]);
 *	steer_end(&s);
 *
 * Over the control socket (supervise/control.h): the state, one more rule for the network, one
 * more port. In the other direction, the user is asked about hosts that the policy does not
 * know, and answers with `carrel allow`.
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

/* One question to the user, however many connections wait for the answer. */
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
	bool raw;           /* set by the caller: the user's terminal needs CR */
	/* A request to end the box: by a signal, and by force after so many seconds. */
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

/* Called with each event of the broker; ctx is the struct steer. */
void steer_event(void *ctx, const struct net_event *e);

void steer_poll(const struct steer *s, struct pollfd *pfd);
void steer_serve(struct steer *s, const struct pollfd *pfd);
void steer_end(struct steer *s);

#endif
