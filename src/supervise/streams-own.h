/*
 * supervise/streams-own.h - the streams of this process: its terminal, or pipes and files
 */
#ifndef SUPERVISE_STREAMS_OWN_H
#define SUPERVISE_STREAMS_OWN_H

#include "supervise/relay.h"
#include "supervise/streams.h"
#include "supervise/term-modes.h"
#include "supervise/tty.h"

struct streams_own {
	struct streams base;
	struct tty tty;

	/* Private. */
	struct relay relay[3];
	int host[3];      /* our own descriptors for the user's streams */
	int ends[3];      /* our ends of the box's */
	struct term term; /* the modes that the box has set on our terminal */
	int terminal;
};

/* Find out whether there is a terminal. Changes nothing. */
void streams_own_init(struct streams_own *s, struct record *record);

#endif
