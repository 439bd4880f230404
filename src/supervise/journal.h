/*
 * supervise/journal.h - the record of what happened on a box's network
 *
 *	journal_open(&j, box, f);			its name is held
 *	journal_event(&j, &e);				e is sane: net/broker/broker-event.h
 *	timeout = journal_timeout(&j); poll(...); journal_tick(&j);
 *	journal_summary(&j, &out);
 *	journal_close(&j, code, f);
 *
 * JSON lines in state/boxes.h's events.jsonl; carrel-network(7) has their keys. A struct
 * journal of zeros records nothing, and all calls are allowed on it. A record never disturbs
 * the session: a disk that is full ends it, at a whole line, and journal_close() tells.
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
	JOURNAL_HOSTS = 256, /* that are told apart in the summary */
	JOURNAL_LIMITS = 6,  /* five of the broker, and that it was killed; */
	LIMIT_NAME = 32,     /* bytes of the name of one */
	JOURNAL_BUFFER = 32 * 1024,
};

/* The most of a journal, in bytes; the end is always written. */
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
	bool more;                 /* there was no room for all */
	struct journal_host *host; /* JOURNAL_HOSTS of them */
};

/* What the line at the end is made of. */
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
	int error;       /* the first errno of a write; nothing is written after it */
	bool is_full[2]; /* the limit was reached, and said; for what is cheap, and for all */
	size_t len;
	unsigned long long due;   /* CLOCK_MONOTONIC, ns: when the buffer must be written */
	unsigned long long good;  /* bytes of whole lines in the file */
	unsigned long long limit; /* JOURNAL_LIMIT; a test sets it lower */
	struct journal_sum sum;   /* here: to see that nothing happened takes no page more */
};

/* Create the record, in the place of an older one of that name, and write its first line. */
int journal_open(struct journal *j, const char *box, struct fault *f);

void journal_event(struct journal *j, const struct net_event *e);

/* Milliseconds until journal_tick() has something to do, or -1. */
int journal_timeout(const struct journal *j);
void journal_tick(struct journal *j);
void journal_flush(struct journal *j);

const char *journal_error_text(int error);

/* NULL while nothing is recorded. */
const struct journal_sum *journal_sum(const struct journal *j);

/*
 * What a person should know at the end, one line or two, each ended; nothing when nothing
 * was tried. Allocates.
 */
void journal_summary(const struct journal *j, struct str *out);

/* Write the last line and what is left. -errno and f when any of it could not be written. */
int journal_close(struct journal *j, int code, struct fault *f);

#endif
