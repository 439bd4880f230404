/*
 * supervise/broker-link.h - the supervisor's side of the broker
 *
 *	broker_expect(&l, plan, box.net);           from now on the box has a network
 *	broker_poll(&l, fds); poll(...); broker_serve(&l, fds);
 *	broker_ask_end(&l);                         the box is dead; other work may follow
 *	broker_end(&l);                             the last events
 *
 * The broker is started when the box first asks for anything, or when there is a message for
 * the broker. Many boxes never ask, and no command waits for a broker before it runs. Until
 * then the box's sockets are held here, and nothing is read from them.
 *
 * A struct broker_link of zeros stands for a box without a broker, and all calls are allowed on
 * it.
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
	unsigned int connections; /* connections that are open now */
	struct broker_moved moved;
	struct journal journal;

	/* Called with every event, after it was recorded; or NULL. */
	void (*tell)(void *ctx, const struct net_event *e);
	void *tell_ctx;
	/* The broker wants so many sockets of the box's network. */
	void (*need)(void *ctx, unsigned int n);
	void *need_ctx;

	/* Private. */
	bool expected;           /* start it when there is something to do */
	const struct plan *plan; /* this plan's policy and limits */
	int net[NET_ENDS];       /* the box's sockets, until the broker has them; or -1 */
	bool ready;              /* it has entered its jail */
	bool prompt;     /* it asks for sockets, or ends: then every message is read at once */
	long long until; /* ms: its events wait until then; 0: they do not wait */
	bool ending;     /* it knows that the box is dead */
	struct policy *parsed; /* room for one more entry, */
	struct policy *known;  /* and for all rules: a copy, once rules were added */
	unsigned int owed;     /* sockets that it asked for and has not received */
	int socket;
	pid_t pid;
};

/*
 * Takes the descriptors. Once the broker runs, only the broker has them. We keep a copy of the
 * listener, to refuse connections when the broker is gone.
 */
void broker_expect(struct broker_link *l, const struct plan *p, int net[NET_ENDS]);

/* Does the box have a broker, or is one expected? */
bool broker_is_there(const struct broker_link *l);

/* Start it, and wait until it has entered its jail: `carrel check` tests that. */
int broker_try(struct broker_link *l, const struct plan *p, struct fault *f);

enum { BROKER_FDS = NET_ENDS };

/* Fill in BROKER_FDS entries for poll(2). The timeout in ms; -1: none. */
int broker_timeout(const struct broker_link *l);
void broker_poll(const struct broker_link *l, struct pollfd *fds);
void broker_serve(struct broker_link *l, const struct pollfd *fds);

/* Add the rules of an entry to the running box's policy. */
int broker_allow(struct broker_link *l, const char *entry, bool deny, struct fault *f);

/* The current rules, without the addresses of this machine that only the broker knows. */
const struct policy *broker_rules(struct broker_link *l);

/* Forward a listener of the host to a port in the box; -1: stop that. Takes the descriptor. */
int broker_port(struct broker_link *l, int listener, struct port_pair pair);
void broker_spare(struct broker_link *l, int fd);

/* broker_ask_end() may be left out, or called again. */
void broker_ask_end(struct broker_link *l);
void broker_end(struct broker_link *l);
/* The box was never started. */
void broker_kill(struct broker_link *l);

#endif
