/*
 * supervise/streams.h - where the standard streams of a box lead
 *
 * The supervisor's loop knows only this interface. Behind it are the supervisor's own terminal,
 * pipes and files (streams-own.h), or clients that attach to the box (streams-detached.h).
 *
 *	s->ops->open(s, &io, f);		the box's ends, before it is begun
 *	s->ops->prepare(s, name, f);
 *	s->ops->start(s, box.terminal);		it runs
 *	s->ops->poll(s, fds, over); poll(...); s->ops->serve(s, fds, over);
 *	s->ops->close(s, code);			it is over
 */
#ifndef SUPERVISE_STREAMS_H
#define SUPERVISE_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

struct box_io;
struct fault;
struct pollfd;
struct record;
struct streams;

enum { STREAMS_VIEWERS = 8, STREAMS_FDS = 2 + STREAMS_VIEWERS };

/* A client that wants to attach. */
struct streams_client {
	unsigned short rows, cols; /* of its terminal */
	bool read_only;
};

struct streams_ops {
	/* Fill in what the box gets; the caller closes its ends when the box has them. */
	int (*open)(struct streams *s, struct box_io *io, struct fault *f);

	/* The plan is made and the box's name is held; the box is about to start. */
	int (*prepare)(struct streams *s, const char *name, struct fault *f);

	/* The box runs; terminal is the master side of its pty, or -1. */
	void (*start)(struct streams *s, int terminal);

	/* Milliseconds until serve() has something to do, or -1. Called before each poll(). */
	int (*timeout)(struct streams *s);

	/* Fill in STREAMS_FDS entries. over: the command ended and only output is left. */
	void (*poll)(const struct streams *s, struct pollfd *fds, bool over);
	void (*serve)(struct streams *s, const struct pollfd *fds, bool over);

	/* Is all output delivered, or is there no reader left? */
	bool (*done)(const struct streams *s);

	/* The user's terminal may have a new size, or we are in its foreground again. */
	void (*refresh)(struct streams *s);

	/*
	 * All processes of the box are stopped. Return when it shall continue. group: also stop
	 * the other processes of our job; else a signal has stopped them already.
	 */
	void (*suspend)(struct streams *s, bool group);

	/* Nothing happens for a while: give memory back. */
	void (*rest)(struct streams *s);

	/* The box has ended with this exit code: restore the user's terminal. */
	void (*close)(struct streams *s, int code);

	/* The rest is NULL if nobody can attach. */

	/* Take the connection of a client (streams-detached.h), and set *fd to -1. */
	int (*attach)(struct streams *s, int *fd, const struct streams_client *c,
		struct fault *f);

	/* Type the text into the box's terminal. */
	int (*type)(struct streams *s, const char *bytes, size_t n, struct fault *f);

	/* Does the box seem to wait for input? How many clients are attached? */
	bool (*waits)(const struct streams *s);
	unsigned int (*viewers)(const struct streams *s);
};

struct streams {
	const struct streams_ops *ops;
	struct record *record; /* shown all output; or NULL */
	bool raw;              /* what is written to the user's terminal needs CR */
};

#endif
