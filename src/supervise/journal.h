/*
 * supervise/journal.h - the record of what happened on a box's network
 *
 *	journal_open(&j, &box, f);			its name is held
 *	journal_event(&j, &e);				e is sane: net/broker/broker-event.h
 *	timeout = journal_timeout(&j); poll(...); journal_tick(&j);
 *	journal_summary(&j, &out);
 *	journal_close(&j, code, f);
 *
 * JSON lines in state/boxes.h's events.jsonl; carrel-network(7) has their keys. A struct
 * journal of zeros records nothing, and all calls are allowed on it. A record never disturbs
 * the session. A full disk ends it after a whole line, and journal_close() reports it.
 */
#ifndef SUPERVISE_JOURNAL_H
#define SUPERVISE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/policy/name.h"

struct fault;
struct net_event;
struct str;

#define JOURNAL_FILE "events.jsonl"

enum {
	JOURNAL_FORMAT = 1,
	JOURNAL_HOSTS = 256, /* hosts that the summary distinguishes */
	JOURNAL_LIMITS = 6,  /* five of the broker, and one for its end; */
	LIMIT_NAME = 32,     /* bytes of the name of one */
	JOURNAL_BUFFER = 32 * 1024,
};

/* The largest journal, in bytes; the last line is always written. */
#define JOURNAL_LIMIT (64ull << 20)

struct journal_host {
	char name[NAME_SIZE]; /* or an address */
	bool is_address;
	uint16_t port;          /* of one that was refused; 0: only its lookup was */
	uint8_t why;            /* it was refused: enum policy_reason; it failed: errno */
	struct address address; /* that was refused; family NONE: its name or port was */
};

struct journal_hosts {
	unsigned int n;
	bool more;                 /* there was no room for all hosts */
	struct journal_host *host; /* JOURNAL_HOSTS of them */
};

/* The contents of the last line. */
struct journal_sum {
	struct journal_hosts reached, refused, failed;
	uint64_t sent, received;
	char limit[JOURNAL_LIMITS][LIMIT_NAME]; /* those that were reached; "" after the last */
	bool lost;                              /* the broker, and the network with it */
};

struct journal_memory {
	char buf[JOURNAL_BUFFER];
	struct journal_host host[3][JOURNAL_HOSTS];
};

struct journal {
	/* Private. */
	struct journal_memory *memory; /* NULL: not recording */
	int fd;
	int error; /* the first errno of a write; nothing is written after it */
	/*
	 * the limit was reached, and the file says so: for lookups and datagrams, and for all
	 * events
	 */
	bool is_full[2];
	size_t len;
	unsigned long long due;   /* CLOCK_MONOTONIC, ns: when the buffer must be written */
	unsigned long long good;  /* bytes of whole lines in the file */
	unsigned long long limit; /* JOURNAL_LIMIT; a test sets it lower */
	struct journal_sum sum;   /* here, so that checking for events touches no other page */
};

struct journal_box {
	const char *name, *agent, *workspace; /* no agent: NULL */
};

/* Create the record, replacing an older one of that name, and write its first line. */
int journal_open(struct journal *j, const struct journal_box *box, struct fault *f);

void journal_event(struct journal *j, const struct net_event *e);

/* Milliseconds until journal_tick() has something to do, or -1. */
int journal_timeout(const struct journal *j);
void journal_tick(struct journal *j);
void journal_flush(struct journal *j);

const char *journal_error_text(int error);

/* NULL if nothing is recorded. */
const struct journal_sum *journal_sum(const struct journal *j);

/*
 * Add one or two lines for a person, each with its newline; none if the box tried nothing.
 * Allocates.
 */
void journal_summary(const struct journal *j, struct str *out);

/* Write the last line and what is left. -errno and f when any of it could not be written. */
int journal_close(struct journal *j, int code, struct fault *f);

#endif
