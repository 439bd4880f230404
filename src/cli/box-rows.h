/*
 * cli/box-rows.h - what is known of the boxes, for ps and top
 */
#ifndef CLI_BOX_ROWS_H
#define CLI_BOX_ROWS_H

#include <stdbool.h>

#include "host/box-use.h"
#include "base/mem.h"

struct fault;

enum { BOX_SAMPLES = 1024 };

/*
 * Processor time of each box at the last look, so that the next one can tell what was used
 * since. All zeros: there was none. It needs no memory of the arena.
 */
struct box_sample {
	long init;
	unsigned long long cpu_usec;
	long long at; /* ms */
};

struct box_samples {
	struct box_sample v[BOX_SAMPLES];
	unsigned int n;
};

typedef VEC(const char *) box_texts;

struct box_row {
	const char *name;
	bool answered;
	long pid;
	struct box_use use;
	long long cpu;                         /* percent of one processor; -1: not known */
	const char *agent, *project, *network; /* NULL: not known */
	const char *state;                     /* in words */
	long long viewers;                     /* of a detached box; -1: nobody can attach */
	long long since;                       /* seconds of the clock; 0: not known */
	long long connections;                 /* that are open; -1: not known */
	long long sent, received;              /* bytes of all connections; -1: not known */
	bool ended;                            /* only its record is there */
	bool recent;              /* it was detached and ended by itself not long ago */
	long long code, ended_at; /* of such a one, as far as it is known; -1 */
	const char *changes;      /* of its overlay workspace; NULL: none */
	bool lost;                /* its network ended before it did */
	box_texts waiting;        /* hosts that the user is asked about */
	box_texts reaches;        /* hosts that it was given */
	box_texts limits;         /* that it reached, once it has ended */
	box_texts ports;          /* ports of this machine that lead into it: HOST:BOX */
};
typedef VEC(struct box_row) box_rows;

/*
 * All boxes that run, and those that were detached and ended by themselves in the last day;
 * or with `all` every one that left a record. The texts are as the boxes say: hostile.
 */
int box_rows_read(bool all, struct box_samples *before, box_rows *ret, struct fault *f);

/* For a person, safe to print. */
const char *box_state(const struct box_row *r); /* "waits for input", "ended 0" */
const char *box_age(const struct box_row *r);   /* "2h10m": since it began, or ended */
const char *box_agent(const struct box_row *r);
const char *box_project(const struct box_row *r); /* the last part of its path */
const char *box_network(const struct box_row *r); /* "@github +2", "1 held: a.example:443" */
const char *box_cpu(const struct box_row *r);
const char *box_memory(const struct box_row *r);

#endif
