/*
 * supervise/supervise.h - the life of one running box
 *
 *	supervise_begin(&s, &frame, streams, record, f);  its namespaces; nothing else yet
 *	supervise_start(&s, plan, f);                     the plan's command runs
 *	supervise_loop(&s);                               until it has ended
 *	... look at s.box.root ...
 *	supervise_end(&s, &outcome);
 *
 * The plan may be made between the first two, while init builds what needs no plan; if that
 * fails, supervise_abandon(). A function that fails leaves nothing of the box.
 */
#ifndef SUPERVISE_SUPERVISE_H
#define SUPERVISE_SUPERVISE_H

#include "supervise/broker-link.h"
#include "supervise/asciicast.h"
#include "supervise/control-serve.h"
#include "supervise/disk-watch.h"
#include "supervise/execs.h"
#include "supervise/streams.h"
#include "supervise/stub-watch.h"
#include "box/engine.h"

#include <stdbool.h>

struct fault;
struct frame;
struct plan;

struct outcome {
	int code;                    /* what carrel exits with */
	bool time_is_up;             /* the time limit ended it, */
	bool idle;                   /* or that of idle time */
	bool disk_full;              /* or what it wrote to its layers; also if it had ended */
	bool scratch_full;           /* its own file system had no room left at the end */
	struct cgroup_counts counts; /* limits of its control group that it reached */
	bool killed;                 /* the box's init was killed from outside */
	bool stopped;                /* a request ended it, */
	bool restart;                /* and asked to start it again */
	int record_error;            /* errno of a recording that is incomplete, or 0 */
	bool net_lost; /* the broker ended before the box did, or could not start */
	const struct fault *net_fault; /* why it could not, or NULL */
	int net_error; /* errno of a record of network events that is incomplete, or 0 */
	const char *net_summary; /* lines for the user about the network; "" or NULL: none */
	const char *const *replaced; /* see struct box */
};

/*
 * Begins as zeros, in memory of mem.h. init shares that memory and unmaps it. Static memory
 * would be copied for init page by page.
 */
struct supervisor {
	/*
	 * Between supervise_loop() and supervise_end(), box.root is the root of the box's own
	 * file system. No process of the box is left. The box wrote its contents.
	 */
	struct box box;

	/* Private. */
	const struct frame *frame;
	const struct plan *plan;
	const struct engine *engine;
	struct streams *streams;
	struct record record;
	struct broker_link broker;
	struct stub_watch stubs;
	struct execs execs;
	struct disk_watch disk;
	unsigned long long full_at; /* bytes in its layers when that ended it */
	int signals;
	long long time_up; /* ms; 0: no limit */
	long long
		active; /* ms: when something last went in or out; with a limit of idle time */
	long long kill_at; /* ms; 0: there was no request to end */
	bool over;         /* the command ended; only output is left */
	bool quiet;        /* nothing happened for a while */
	bool rested;       /* memory was given back since the last event */
	struct outcome outcome;
	struct steer steer; /* last: most of it is never used */
};

/*
 * Make the box's namespaces. record is the file to write the session to, or NULL. frame and
 * streams must live as long as the box.
 */
int supervise_begin(struct supervisor *s, const struct frame *frame, struct streams *streams,
	const char *record, struct fault *f);

/* The plan failed: end what was begun. */
void supervise_abandon(struct supervisor *s);

/* Build the box and start its command. The plan's frame is that of supervise_begin(). */
int supervise_start(struct supervisor *s, const struct plan *p, struct fault *f);

/* Stay until the command has ended and its output is delivered. */
void supervise_loop(struct supervisor *s);

/*
 * Remove what is left of the box on the host. Call this last: the kernel removes the box's
 * mounts in the background once the command has ended, and removing a stub that is still a
 * mount point is ten times slower.
 */
void supervise_end(struct supervisor *s, struct outcome *ret);

#endif
