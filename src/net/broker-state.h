/*
 * net/broker-state.h - what the parts of the broker share
 *
 *	broker.c     start, loop, the supervisor's words
 *	resolver.c   the box's questions
 *	query.c      ours to the host's name servers
 *	refused.c    datagrams that the box's kernel refused
 *	admit.c, dial.c, conn.c   connections: judge, dial, relay: net/conn.h
 *
 * All of it is one static struct of fixed tables: nothing is allocated, and what a box
 * can make the broker hold is bounded by their sizes. They begin as zeros, and a page of
 * them that is never used costs nothing.
 *
 * Everything waits in one epoll(7): connections edge-triggered; the box's listener, questions
 * and refusals by level, so that a flood is read a part at a time. A connection's slot that was
 * freed is not given out again before all events of one wait are handled, since some may still
 * be about it; those of lookups are, and whoever reads there for nothing finds nothing.
 */
#ifndef NET_BROKER_STATE_H
#define NET_BROKER_STATE_H

#include "net/broker.h"
#include "net/dns.h"
#include "net/machine.h"
#include "net/proxy.h"
#include "net/pump.h"
#include "net/synth.h"

#include <netinet/in.h>
#include <sys/epoll.h>

enum watch {
	WATCH_SUPERVISOR,
	WATCH_LISTENER,
	WATCH_RESOLVER,
	WATCH_CLIENT, /* of a connection: the side that asked for it */
	WATCH_DIAL,   /* and the other, from the attempt to reach it on */
	WATCH_QUERY,
	WATCH_DNS_TCP,
	WATCH_PORT,
	WATCH_REFUSED,
};

/* Edge-triggered: who stops before there is nothing left watches it anew. */
enum { TO_ACCEPT = EPOLLIN | EPOLLET };

enum {
	ACCEPTS = 64,        /* connections that are taken in one round */
	DIALS = 3,           /* attempts at once, for one connection */
	CANDIDATES = 8,      /* addresses of a name that are tried */
	QUERIES = 128,       /* names that are being looked up */
	WAITERS = 2048,      /* questions of the box that wait for them, or for their turn */
	DNS_CLIENTS = 32,    /* of the resolver over TCP */
	PROXY_HEADS = 256,   /* clients of the explicit proxy that have no answer yet */
	DNS_TCP_MOST = 1024, /* bytes of a question over TCP */
	REFUSALS = 64,       /* destinations of which it is known that they were told of */
	NONE = -1,
};

/* Of which the record says that they were reached. */
enum limit {
	LIMIT_CONNECTIONS,
	LIMIT_CONNECTION_RATE,
	LIMIT_LOOKUP_RATE,
	LIMIT_TRAFFIC,
	LIMIT_REFUSAL_RATE,
	LIMITS,
};

/* ---- connections ---- */

enum conn_state {
	CONN_FREE,
	CONN_HEAD,      /* of the explicit proxy: has not said yet what it wants */
	CONN_HELD,      /* waits for the user's answer */
	CONN_RESOLVING, /* waits for its name */
	CONN_WAITING,   /* inbound: waits for a socket of the box */
	CONN_DIALLING,
	CONN_OPEN,
	CONN_OVER, /* closed; its slot is free after this round */
};

struct dial {
	struct address candidate[CANDIDATES];
	uint8_t n, next;
	int fd[DIALS];
	struct address to[DIALS];
	uint64_t began[DIALS]; /* ms */
	int error;             /* of the last one that failed */
};

struct conn {
	uint8_t state;  /* enum conn_state */
	uint8_t reason; /* enum policy_reason: why it is allowed, or held */
	bool inbound;
	bool put_off;  /* RESOLVING: its lookup has to wait until others are done */
	bool ready;    /* in the list of those with more to do */
	uint16_t port; /* that was dialled */
	int client, server;
	uint32_t client_watch, server_watch; /* events that each is waited for with; 0: none */
	int head; /* what it said to the explicit proxy, while an answer is due; or NONE */
	const char *name; /* that was dialled; NULL: an address */
	struct address address;
	uint64_t id, began; /* ns */
	uint64_t due;       /* ms: HELD, DIALLING: the next thing to happen */
	uint64_t give_up;   /* ms: the last */
	int prev, next;     /* in the list of its state */
	int next_ready;
	struct flow up, down;
	struct dial dial;
};

struct conn_list {
	int first, last; /* the oldest, the newest; or NONE */
};

/* ---- lookups ---- */

/* A question of the box that waits for the answer. */
struct waiter {
	bool used;
	int next;
	int tcp;                  /* the DNS client over TCP, or NONE */
	struct sockaddr_in6 from; /* or a sockaddr_in */
	socklen_t from_size;
	char info[64]; /* the control message that says which of our addresses it asked */
	size_t info_size;
	uint64_t began; /* ns */
	uint64_t due;   /* ms: of one that was put off */
	uint8_t reason; /* enum policy_reason: why it may be asked */
	struct dns_query query;
};

struct query {
	bool used;
	char name[NAME_SIZE];
	int fd;
	uint16_t id[2]; /* of the questions for A and AAAA */
	bool have[2];
	bool failed[2]; /* by this server */
	bool tcp;       /* an answer was cut: the rest over TCP */
	bool sent;      /* TCP: the questions */
	struct lookup_answer answer[2];
	enum lookup_result result[2];
	unsigned int tries;
	uint64_t due;
	int waiters;                /* first of a list */
	uint64_t asked;             /* ms: the last time */
	unsigned int first, server; /* of the servers: with which it began, and that is asked */
	size_t heard_n;
	uint8_t heard[2 + 65535]; /* an answer, or what there is of it; last: mostly unused */
};

/* What a name resolved to; by its number in the synth table. */
struct resolved {
	struct address address[CANDIDATES];
	uint8_t n;
	uint64_t until; /* ms */
};

struct dns_client {
	bool used, busy; /* busy: a question of its waits */
	bool reading;    /* its questions, further up the stack */
	int fd;
	uint64_t until;
	size_t have;
	uint8_t buf[2 + DNS_TCP_MOST];
};

struct port {
	int listener; /* NONE: unused */
	uint16_t host, box;
};

/* A datagram that was told of: the same again is not, for a while. */
struct refusal {
	uint64_t told; /* ms; 0: none */
	struct address to;
	uint16_t port;
};

/* What it was told, and what it found out before it shut itself in. */
struct broker_config {
	struct lookup_config dns;
	uint64_t seed;   /* for tables that the box must not foresee */
	bool proxy, ask; /* as in struct broker_terms, and so are these: */
	uint32_t ask_seconds;
	uint32_t connections; /* and no more than there may be descriptors for */
	uint64_t bytes, rate;
	char box[BROKER_NAME];
	struct policy policy; /* last: most of it is never touched */
};

/* So many of something may be done now; with time there are more. */
struct bucket {
	uint64_t left;
	uint64_t filled; /* ms: when more were added */
};

struct broker {
	/* Its tables are whole pages: what follows them is at the beginning of one. */
	struct synth synth;

	struct broker_config *config; /* the one below */
	struct lookup_index hosts;
	int epoll, supervisor, listener, resolver;
	int refused[2]; /* where the kernel says what it refused: IPv4, IPv6; or NONE */
	bool ending;
	bool trimmed;           /* nothing happened since memory was given back */
	uint64_t now;           /* ms, CLOCK_MONOTONIC, of this round */
	bool brisk;             /* what was waited for came soon, the last time */
	uint64_t awake, waited; /* ns: that may be spent awake, as of that moment */
	uint64_t rounds;
	uint64_t last_id;
	unsigned int untold; /* events, of those below */

	uint64_t bytes_left;         /* of the limit */
	uint64_t limit_told[LIMITS]; /* ms: the last time, of each */

	struct bucket rate;    /* bytes that may go through now */
	struct bucket accepts; /* connections of the box that may be taken now */
	bool paused;           /* there are none, and the listener is not listened to */
	unsigned int at_once;  /* as many as were taken in the round before, */
	uint64_t accepted;     /* if it was that one */
	struct bucket asks;    /* names that may be asked for outside now */
	struct bucket tells;   /* refused datagrams that may be told of now, */
	struct bucket hears;   /* and that may be read: most are told of already */
	bool deaf;             /* there are none, and nobody listens where they come from */

	struct broker_moved moved, moved_told;
	uint64_t moved_due; /* ms: not told again before */
	unsigned int open;  /* connections in use */
	unsigned int used;  /* slots that were ever used */
	int free, over;
	int ready, ready_last; /* with more to do: the one whose turn it is, and the last */
	struct conn_list heads, held, resolving, waiting, dialling;

	unsigned int lookups;
	uint64_t mute[LOOKUP_SERVERS]; /* ms: until then others are asked before this server */
	int put_off, put_off_last;     /* waiters whose name is not looked up yet, in order */

	int spare[BROKER_SPARE];
	unsigned int spares, wanted;
	struct port ports[BROKER_PORTS];
	unsigned int dns_open; /* DNS clients over TCP */

	char hosts_room[MACHINE_SHORT];
	struct broker_config known;

	struct resolved resolved[SYNTH_NAMES];
	struct conn conns[BROKER_CONNECTIONS];
	struct query queries[QUERIES];
	struct waiter waiters[WAITERS];
	struct dns_client dns_clients[DNS_CLIENTS];
	bool head_used[PROXY_HEADS];
	struct proxy head[PROXY_HEADS];
	struct refusal refusals[REFUSALS];
	struct net_event events[BROKER_EVENTS]; /* that are told together */
	unsigned int refusal_next;              /* the oldest */
	uint32_t refused_dropped[2];            /* by the kernel, as far as that was told */
};

extern struct broker broker;

/* broker.c */
uint64_t broker_clock(int clock); /* ns */
int broker_watch(int fd, enum watch what, unsigned int index, uint32_t events);
int broker_rewatch(int fd, enum watch what, unsigned int index, uint32_t events);
int broker_unwatch(int fd);
void broker_event(const struct net_event *e); /* its time is now */
void broker_limit(enum limit which);          /* was reached: an event, now and then */
uint64_t broker_due(uint64_t a, uint64_t b);  /* the earlier; 0: never */

/* resolver.c */
void resolver_init(void);
void resolver_questions(void);        /* on the UDP socket */
void resolver_take(int fd);           /* a client over TCP */
void resolver_client(unsigned int i); /* it is readable */
void resolver_idle(void);
void resolver_close(void);                      /* and tell of what is not answered yet */
void resolver_answered(int waiters, int error); /* a list of them */
void resolver_tick(void);                       /* what is due */
uint64_t resolver_due(void);                    /* when the next is, ms, or 0 */

/* Is it the box itself that has this address? */
bool broker_is_box(const struct address *a);

/* refused.c */
void refused_hear(unsigned int i);
void refused_drop(unsigned int i); /* what waits there */

/* query.c */
/*
 * The query for a name: one that runs, or a new one that does not yet. NULL: too many, at once
 * or in a while. When it was started conn_resolved() follows, perhaps at once.
 */
struct query *query_get(const char *name);
void query_start(struct query *q);
void query_answer(unsigned int i); /* a name server has said something */
void query_tick(void);
void query_close(void);   /* all of them, unanswered */
uint64_t query_due(void); /* apart: who is answered in a tick may begin the next one */

/* admit.c */
void conn_accept(void);
void conn_resolved(const char *name, int error);
void conn_policy_changed(void);

/* dial.c */
void conn_accept_port(unsigned int i);
void conn_spare(void);        /* use those that there are, and ask for more */
void conn_spare_came(int fd); /* a socket of the box's network, or NONE: none to be had */
void conn_dialled(unsigned int i, unsigned int attempt, uint32_t events);
void conn_prepare(void); /* what the next one will need */
void conn_unprepare(void);

/* conn.c */
void conn_init(void);
void conn_tune(int fd); /* no waiting for more to send; to close it is to reset it */
void conn_ready(unsigned int i, uint32_t events);
void conn_run(void);   /* those that have more to do */
void conn_sweep(void); /* slots of what is over become free */
bool conn_all_sent(void);
void conn_close_all(void);
void conn_idle(void); /* only when none is open */
uint64_t conn_tick(void);

#endif
