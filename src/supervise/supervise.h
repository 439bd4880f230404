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
	bool scratch_full;           /* its own file system had no room left at the end */
	struct cgroup_counts counts; /* limits of its control group that it reached */
	bool killed;                 /* the box's init was killed from outside */
	bool stopped;                /* somebody asked it to end, */
	bool restart;                /* and to begin again */
	int record_error;            /* errno of a recording that is incomplete, or 0 */
	bool net_lost; /* the broker ended before the box did, or could not start */
	const struct fault *net_fault; /* why it could not, or NULL */
	int net_error; /* errno of a record of network events that is incomplete, or 0 */
	const char *net_summary; /* lines for the person about the network; "" or NULL: none */
	const char *const *replaced; /* see struct box */
};

/*
 * Begins as zeros, in memory of mem.h: that is shared with init, which lets go of it, where
 * static memory would be copied for it page by page.
 */
struct supervisor {
	/*
	 * Between supervise_loop() and supervise_end() box.root is the root of the box's own
	 * file system, in which nothing lives any more. What is in it the box wrote.
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
	int signals;
	long long time_up; /* ms; 0: no limit */
	long long
		active; /* ms: when something last went in or out; with a limit of idle time */
	long long kill_at; /* ms; 0: nobody asked the box to end */
	bool over;         /* the command ended; only output is left */
	bool quiet;        /* nothing happened for a while */
	bool rested;       /* and memory was given back, since the last event */
	struct outcome outcome;
	struct steer steer; /* last: most of it is never used */
};

/*
 * Make the box's namespaces. record is the file to write the session to, or NULL. frame and
 * streams must live as long as the box.
 */
int supervise_begin(struct supervisor *s, const struct frame *frame, struct streams *streams,
	const char *record, struct fault *f);

/* There will be no plan: end what was begun. */
void supervise_abandon(struct supervisor *s);

/* Build the box and start its command. The plan's frame is that of supervise_begin(). */
int supervise_start(struct supervisor *s, const struct plan *p, struct fault *f);

/* Stay until the command has ended and its output is delivered. */
void supervise_loop(struct supervisor *s);

/*
 * Remove what is left of the box on the host. The kernel takes its mounts down from the
 * moment the command has ended, and a stub that is still mounted on is removed ten times
 * slower: do what else there is to do before.
 */
void supervise_end(struct supervisor *s, struct outcome *ret);

#endif
