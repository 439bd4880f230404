/*
 * run/steer.h - what can be asked of a box that runs, and what it asks
 *
 *	steer_ports(&s, plan, f);      before the box: its ports of the host, or a fault
 *	steer_begin(&s);               it runs: from now on it can be asked
 *	steer_poll(&s, &fds[i]); poll(...); steer_serve(&s, &fds[i]);
 *	steer_end(&s);
 *
 * Over the box's control socket (run/control.h): its state, one more rule for its network,
 * one more port. The other way round, a host that the network's policy does not know is shown
 * to the user, who answers with `carrel allow`.
 */
#ifndef RUN_STEER_H
#define RUN_STEER_H

#include "run/broker-link.h"
#include "run/control.h"
#include "net/broker.h"
#include "plan/request.h"

enum { STEER_FDS = CONTROL_FDS, STEER_WAITING = 64 };

struct steer_port {
	struct port_pair pair;
	int listener; /* until the broker has it */
};

/* A connection that waits for the user's answer. */
struct steer_waiting {
	uint64_t id;
	uint16_t port;
	char host[NAME_SIZE]; /* a name, or an address */
};

struct steer {
	struct broker_link *broker;
	const struct plan *plan;
	bool raw; /* for the caller to set: the user's terminal needs CR */

	/* Private. */
	struct control control;
	long long since;
	unsigned int n_ports, n_waiting;
	struct steer_port ports[BROKER_PORTS];
	struct steer_waiting waiting[STEER_WAITING];
};

int steer_ports(struct steer *s, const struct plan *p, struct fault *f);
void steer_begin(struct steer *s);

/* Of the broker, each event; ctx is the struct steer. */
void steer_event(void *ctx, const struct net_event *e);

void steer_poll(const struct steer *s, struct pollfd *pfd);
void steer_serve(struct steer *s, const struct pollfd *pfd);
void steer_end(struct steer *s);

#endif
