/*
 * supervise/broker-link.h - the supervisor's side of the broker
 *
 *	broker_expect(&l, plan, box.net);           from now on the box has a network
 *	broker_poll(&l, fds); poll(...); broker_serve(&l, fds);
 *	broker_ask_end(&l);                         the box is dead; there is other work to do
 *	broker_end(&l);                             the last events
 *
 * The broker is started when the box first asks for anything, or when it is told anything:
 * many boxes never do, and none waits for it before its command runs. Until then the box's
 * sockets are held here and nothing is read from them.
 *
 * A struct broker_link of zeros is that of a box without a broker, and all calls are allowed
 * on it.
 */
#ifndef SUPERVISE_BROKER_LINK_H
#define SUPERVISE_BROKER_LINK_H

#include "net/broker/broker.h"
#include "supervise/journal.h"
#include "plan/request.h"
#include "base/fault.h"

#include <stdbool.h>
#include <sys/types.h>

struct net_event;
struct plan;
struct policy;
struct pollfd;
struct port_pair;

struct broker_link {
	/* For the caller to read. */
	bool on;                  /* it runs */
	bool lost;                /* it ended before the box did, or could not start: */
	struct fault fault;       /* why, if that is known */
	unsigned int connections; /* that are open now */
	struct broker_moved moved;
	struct journal journal;

	/* Called with every event, after it was recorded; or NULL. */
	void (*tell)(void *ctx, const struct net_event *e);
	void *tell_ctx;
	/* The broker wants so many sockets of the box's network. */
	void (*need)(void *ctx, unsigned int n);
	void *need_ctx;

	/* Private. */
	bool expected; /* it is to be started when there is something to do, and told */
	const struct plan *plan; /* this plan's policy and limits */
	int net[NET_ENDS];       /* the box's sockets, until the broker has them; or -1 */
	bool ready;              /* it has shut itself in */
	bool prompt;     /* it asks for sockets, or ends: then every word is heard at once */
	long long until; /* ms: until then its events wait; 0: they do not */
	bool ending;     /* it was told that the box is dead */
	struct policy *parsed; /* room for an entry more, */
	struct policy *known;  /* and for all rules: a copy, once there are more */
	unsigned int owed;     /* sockets that it asked for and has not got */
	int socket;
	pid_t pid;
};

/*
 * Takes the descriptors. From the moment it runs only the broker has them, but for a copy of
 * the listener: to refuse in its stead when it is gone.
 */
void broker_expect(struct broker_link *l, const struct plan *p, int net[NET_ENDS]);

/* Does the box have a broker, or is one expected? */
bool broker_is_there(const struct broker_link *l);

/* Start it, and wait until it has shut itself in: to see whether that works. */
int broker_try(struct broker_link *l, const struct plan *p, struct fault *f);

enum { BROKER_FDS = NET_ENDS };

/* What poll(2) is to wait for, BROKER_FDS of them, and how long at most; -1: for ever. */
int broker_timeout(const struct broker_link *l);
void broker_poll(const struct broker_link *l, struct pollfd *fds);
void broker_serve(struct broker_link *l, const struct pollfd *fds);

/* Add the rules of an entry to the running box's policy. */
int broker_allow(struct broker_link *l, const char *entry, bool deny, struct fault *f);

/* All rules of it by now, without the addresses that the broker knows to be this machine's. */
const struct policy *broker_rules(struct broker_link *l);

/* From a listener of the host to a port in the box; -1: no more. Takes the descriptor. */
int broker_port(struct broker_link *l, int listener, struct port_pair pair);
void broker_spare(struct broker_link *l, int fd);

/* Of which the first may be left out, or called again. */
void broker_ask_end(struct broker_link *l);
void broker_end(struct broker_link *l);
/* The box never came to be. */
void broker_kill(struct broker_link *l);

#endif
