/*
 * supervise/execs.h - further commands in the box, and the clients that wait for them
 *
 * A client asks over the control socket, and sends the ends of its pipes with the request, or
 * gets the master side of a terminal. It moves the bytes itself. On the connection each packet
 * is a letter and its data. When a client disconnects, its command is ended.
 */
#ifndef SUPERVISE_EXECS_H
#define SUPERVISE_EXECS_H

#include "box/engine.h"

struct plan;
struct pollfd;

enum exec_letter {
	EXEC_STARTED = 's', /* carries the master side of its terminal, if it has one */
	EXEC_FAILED = 'f',  /* int32_t: an errno */
	EXEC_ENDED = 'e',   /* int32_t: an exit code */
	EXEC_SIGNAL = 'k',  /* from the client; int32_t */
};

struct execs {
	const struct engine *engine;
	struct box *box;
	const struct plan *plan;

	/* Private. */
	int numbers; /* given out so far */
	struct {
		int fd; /* of the client; -1: none */
		int number;
	} client[BOX_EXECS];
};

void execs_init(struct execs *s, const struct engine *engine, struct box *box,
	const struct plan *p);

/* *client is taken. term: the TERM of a terminal, or NULL. */
int execs_start(struct execs *s, int *client, const char *const *argv, const struct box_io *io,
	const char *term, struct fault *f);

void execs_event(struct execs *s, struct box_event *e);

/* BOX_EXECS entries. */
void execs_poll(const struct execs *s, struct pollfd *fds);
void execs_serve(struct execs *s, const struct pollfd *fds);

/* The box is dead. */
void execs_end(struct execs *s, int code);

#endif
