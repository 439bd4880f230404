/*
 * net/broker/broker-state.h - what the parts of the broker share
 *
 *	broker.c              start, loop, messages from the supervisor
 *	resolver.c            questions from the box
 *	outside-lookup.c      questions to the host's name servers
 *	refused-datagrams.c   datagrams that the box's kernel refused
 *	conn-admit.c, dial.c, conn.c   connections: judge, dial, relay: net/broker/conn.h
 *
 * The whole state is one static struct of fixed tables. The broker allocates nothing, so the
 * table sizes bound what a box can make it hold. The tables begin as zeros, and a page that is
 * never used costs nothing.
 *
 * One epoll(7) watches everything. Connections are edge-triggered. The box's listener, its
 * questions and the refusals are level-triggered, so that the broker reads a flood in parts.
 * The slot of a closed connection is not reused before all events of one epoll_wait(2) are
 * handled, because a later event may still name it. Slots of lookups are reused at once: an
 * event for the old lookup then only causes a read that finds nothing.
 */
#ifndef NET_BROKER_BROKER_STATE_H
#define NET_BROKER_BROKER_STATE_H

#include "net/broker/broker.h"
#include "net/proto/dns.h"
#include "net/broker/machine.h"
#include "net/proto/proxy.h"
#include "net/broker/pump.h"
#include "net/broker/synth.h"

#include <netinet/in.h>
#include <sys/epoll.h>

enum watch {
	WATCH_SUPERVISOR,
	WATCH_LISTENER,
	WATCH_RESOLVER,
	WATCH_CLIENT, /* a connection's side that asked for it */
	WATCH_DIAL,   /* the other side, from the first attempt to dial it */
	WATCH_QUERY,
	WATCH_DNS_TCP,
	WATCH_PORT,
	WATCH_REFUSED,
};

/* Edge-triggered: code that stops before EAGAIN must watch the socket again. */
enum { TO_ACCEPT = EPOLLIN | EPOLLET };

enum {
	ACCEPTS = 64,        /* connections that one round accepts */
	DIALS = 3,           /* simultaneous attempts for one connection */
	CANDIDATES = 8,      /* addresses of a name that the broker tries */
	QUERIES = 128,       /* names that the broker looks up at once */
	WAITERS = 2048,      /* questions from the box that wait for a lookup */
	DNS_CLIENTS = 32,    /* clients that ask the resolver over TCP */
	PROXY_HEADS = 256,   /* clients of the explicit proxy that have no answer yet */
	DNS_TCP_MOST = 1024, /* bytes of a question over TCP */
	REFUSALS = 64,       /* destinations that were reported already */
	NONE = -1,
};

/* Limits that are reported as events. */
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
	CONN_HEAD,      /* explicit proxy: the request is not complete */
	CONN_HELD,      /* waits for the user's answer */
	CONN_RESOLVING, /* waits for a lookup of its name */
	CONN_WAITING,   /* inbound: waits for a socket of the box */
	CONN_DIALLING,
	CONN_OPEN,
	CONN_OVER, /* closed; the slot becomes free after this round */
};

struct dial {
	struct address candidate[CANDIDATES];
	uint8_t n, next;
	int fd[DIALS];
	struct address to[DIALS];
	uint64_t began[DIALS]; /* ms */
	int error;             /* of the last attempt that failed */
};

struct conn {
	uint8_t state;  /* enum conn_state */
	uint8_t reason; /* enum policy_reason: why it is allowed, or held */
	bool inbound;
	bool put_off;  /* RESOLVING: its lookup waits until others are done */
	bool ready;    /* in the list of connections with more to relay */
	uint16_t port; /* the port that was dialled */
	int client, server;
	uint32_t client_watch,
		server_watch; /* epoll events that each side is watched for; 0: none */
	int head;         /* the request to the explicit proxy, until it is answered; or NONE */
	const char *name; /* the name that was dialled; NULL: an address */
	struct address address;
	uint64_t id, began; /* ns */
	uint64_t due;       /* ms: HELD, DIALLING: the next deadline */
	uint64_t give_up;   /* ms: the last deadline */
	int prev, next;     /* in the list of its state */
	int next_ready;
	struct flow up, down;
	struct dial dial;
};

struct conn_list {
	int first, last; /* the oldest and the newest; or NONE */
};

/* ---- lookups ---- */

/* A question from the box that waits for its answer. */
struct waiter {
	bool used;
	int next;
	int tcp;                  /* the DNS client over TCP, or NONE */
	struct sockaddr_in6 from; /* or a sockaddr_in */
	socklen_t from_size;
	char info[64]; /* the control message that says which of our addresses was asked */
	size_t info_size;
	uint64_t began; /* ns */
	uint64_t due;   /* ms: when a deferred question is given up */
	uint8_t reason; /* enum policy_reason: why the name is allowed */
	struct dns_query query;
};

struct query {
	bool used;
	char name[NAME_SIZE];
	int fd;
	uint16_t id[2]; /* ids of the questions for A and AAAA */
	bool have[2];
	bool failed[2]; /* this server failed */
	bool tcp;       /* an answer was truncated: ask again over TCP */
	bool sent;      /* TCP: the questions are sent */
	struct lookup_answer answer[2];
	enum lookup_result result[2];
	unsigned int tries;
	uint64_t due;
	int waiters;    /* the first of a list */
	uint64_t asked; /* ms: when the questions were last sent */
	unsigned int first,
		server; /* indexes of name servers: the first one asked, and the current one */
	size_t heard_n;
	uint8_t heard[2 + 65535]; /* an answer, perhaps incomplete; last: mostly unused */
};

/* The addresses of a name; the index is its number in the synth table. */
struct resolved {
	struct address address[CANDIDATES];
	uint8_t n;
	uint64_t until; /* ms */
};

struct dns_client {
	bool used, busy; /* busy: one of its questions waits for an answer */
	bool reading;    /* a caller further up the stack reads its questions */
	int fd;
	uint64_t until;
	size_t have;
	uint8_t buf[2 + DNS_TCP_MOST];
};

struct port {
	int listener; /* NONE: unused */
	uint16_t host, box;
};

/* A datagram that was reported. The same destination is not reported again for a while. */
struct refusal {
	uint64_t told; /* ms of the last report; 0: none */
	struct address to;
	uint16_t port;
};

/* The configuration, and what the broker reads from the machine before it enters its jail. */
struct broker_config {
	struct lookup_config dns;
	uint64_t seed;   /* for hash tables that the box must not be able to predict */
	bool proxy, ask; /* these and the next ones: as in struct broker_terms */
	uint32_t ask_seconds;
	uint32_t connections; /* at most as many as there are descriptors for */
	uint64_t bytes, rate;
	char box[BROKER_NAME];
	struct policy policy; /* last: most of it is never touched */
};

/* A token bucket. */
struct bucket {
	uint64_t left;
	uint64_t filled; /* ms: when tokens were last added */
};

struct broker {
	/* The tables of synth are whole pages, so what follows them begins a page. */
	struct synth synth;

	struct broker_config *config; /* points to `known` below */
	struct lookup_index hosts;
	int epoll, supervisor, listener, resolver;
	int refused[2]; /* raw sockets that receive refusals: IPv4, IPv6; or NONE */
	bool ending;
	bool trimmed; /* no event since memory was given back */
	uint64_t now; /* ms, CLOCK_MONOTONIC, at the start of this round */
	uint64_t last_id;

	uint64_t bytes_left;         /* of the traffic limit */
	uint64_t limit_told[LIMITS]; /* ms: when each was last reported */

	struct bucket rate;    /* bytes that may be relayed now */
	struct bucket accepts; /* connections of the box that may be accepted now */
	bool paused;           /* the bucket is empty and the listener is not watched */
	struct bucket asks;    /* names that may be asked outside now */
	struct bucket tells;   /* refused datagrams that may be reported now */
	struct bucket
		hears; /* refused datagrams that may be read now; most were reported before */
	bool deaf;     /* a bucket is empty and the raw sockets are not watched */

	struct broker_moved moved, moved_told;
	uint64_t moved_due; /* ms: not reported again before */
	unsigned int open;  /* connections in use */
	unsigned int used;  /* slots that were ever used */
	int free, over;
	int ready, ready_last; /* connections with more to relay: the next and the last */
	struct conn_list heads, held, resolving, waiting, dialling;

	unsigned int lookups;
	uint64_t mute
		[LOOKUP_SERVERS];  /* ms: until then other servers are asked before this one */
	int put_off, put_off_last; /* waiters whose lookup is deferred, in order */

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
	unsigned int refusal_next; /* the oldest */
	uint32_t refused_dropped
		[2]; /* datagrams that the kernel dropped, as of the last report */
};

extern struct broker broker;

/* broker.c */
uint64_t broker_clock(int clock); /* ns */
int broker_watch(int fd, enum watch what, unsigned int index, uint32_t events);
int broker_rewatch(int fd, enum watch what, unsigned int index, uint32_t events);
void broker_event(const struct net_event *e); /* sets its time */
void broker_limit(enum limit
		which); /* report that a limit was reached, at most once a second */
uint64_t broker_due(uint64_t a, uint64_t b); /* the earlier of two deadlines; 0: none */

/* resolver.c */
void resolver_init(void);
void resolver_questions(void);        /* read the UDP socket */
void resolver_take(int fd);           /* a new client over TCP */
void resolver_client(unsigned int i); /* a client over TCP is readable */
void resolver_idle(void);
void resolver_close(void);                      /* report the questions that have no answer */
void resolver_answered(int waiters, int error); /* answer a list of waiters */
void resolver_tick(void);                       /* handle deadlines */
uint64_t resolver_due(void);                    /* the next deadline in ms, or 0 */

/* Does this address belong to the box itself? */
bool broker_is_box(const struct address *a);

/* refused-datagrams.c */
void refused_hear(unsigned int i);
void refused_drop(unsigned int i); /* drop what is queued */

/* outside-lookup.c */
/*
 * The query for a name: a running one, or a new one that is not started. NULL: too many
 * queries, at once or per second. A query that was started calls conn_resolved(), perhaps at
 * once.
 */
struct query *query_get(const char *name);
void query_start(struct query *q);
void query_answer(unsigned int i); /* a name server's socket is readable */
void query_tick(void);
void query_close(void); /* end all queries without an answer */
uint64_t query_due(
	void); /* separate from query_tick(), because an answer may start a new query */

/* conn-admit.c */
void conn_accept(void);
void conn_resolved(const char *name, int error);
void conn_policy_changed(void);

/* dial.c */
void conn_accept_port(unsigned int i);
void conn_spare(void);        /* use the spare sockets, and ask for more */
void conn_spare_came(int fd); /* a socket of the box's network, or NONE: init cannot make one */
void conn_dialled(unsigned int i, unsigned int attempt, uint32_t events);

/* conn.c */
void conn_init(void);
void conn_tune(int fd); /* set TCP_NODELAY, and make close(2) a reset */
void conn_ready(unsigned int i, uint32_t events);
void conn_run(void);   /* relay for connections that have more to do */
void conn_sweep(void); /* free the slots of closed connections */
bool conn_all_sent(void);
void conn_close_all(void);
void conn_idle(void); /* only when no connection is open */
uint64_t conn_tick(void);

#endif
