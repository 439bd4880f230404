/*
 * run/broker-link.h - the supervisor's side of the broker
 *
 *	broker_start(&l, f);                   beside the making of the box
 *	broker_configure(&l, policy, p, f);
 *	journal_open(&l.journal, box, f);      or its events are not recorded; meanwhile
 *	broker_ready(&l, f);                   it has shut itself in
 *	broker_listen(&l, box.net);            from now on the box has a network
 *	broker_poll(&l, &pfd); poll(...); broker_serve(&l, &pfd);
 *	broker_ask_end(&l);                    the box is dead; there is other work to do
 *	broker_end(&l);                        the last events
 *
 * A struct broker_link of zeros is that of a box without a broker, and all calls but
 * broker_start() are allowed on it.
 */
#ifndef RUN_BROKER_LINK_H
#define RUN_BROKER_LINK_H

#include "run/journal.h"

#include <stdbool.h>
#include <sys/types.h>

struct fault;
struct net_event;
struct plan;
struct policy;
struct pollfd;
struct port_pair;

struct broker_link {
	/* For the caller to read. */
	bool on;
	bool lost;                /* it ended before the box did */
	unsigned int connections; /* that are open now */
	struct journal journal;

	/* Called with every event, after it was recorded; or NULL. */
	void (*tell)(void *ctx, const struct net_event *e);
	void *tell_ctx;
	/* The broker wants so many sockets of the box's network. */
	void (*need)(void *ctx, unsigned int n);
	void *need_ctx;

	/* Private. */
	bool prompt;        /* it asks for sockets, or ends: then every word is heard at once */
	long long until;    /* ms: until then its events wait; 0: they do not */
	bool ending;        /* it was told that the box is dead */
	unsigned int rules; /* that its policy has by now */
	unsigned int owed;  /* sockets that it asked for and has not got */
	int socket;
	pid_t pid;
};

int broker_start(struct broker_link *l, struct fault *f);
int broker_configure(struct broker_link *l, const struct policy *policy, const struct plan *p,
	struct fault *f);
int broker_ready(struct broker_link *l, struct fault *f);

/* Takes the descriptors: they are closed here, and only the broker has them. */
int broker_listen(struct broker_link *l, int net[2], struct fault *f);

/* What poll(2) is to wait for, and how long at most; -1: for ever. */
int broker_timeout(const struct broker_link *l);
void broker_poll(const struct broker_link *l, struct pollfd *pfd);
void broker_serve(struct broker_link *l, const struct pollfd *pfd);

/* Add the rules of an entry to the running box's policy. */
int broker_allow(struct broker_link *l, const char *entry, bool deny, struct fault *f);

/* From a listener of the host to a port in the box; -1: no more. Takes the descriptor. */
int broker_port(struct broker_link *l, int listener, struct port_pair pair);
void broker_spare(struct broker_link *l, int fd);

/* Of which the first may be left out, or called again. */
void broker_ask_end(struct broker_link *l);
void broker_end(struct broker_link *l);
/* The box never came to be. */
void broker_kill(struct broker_link *l);

#endif
