/*
 * supervise/streams-detached.h - the terminal of a detached box, and its clients
 *
 * A client attaches over the box's control socket (supervise/control.h). After the reply, each
 * packet is a letter and its data.
 */
#ifndef SUPERVISE_STREAMS_DETACHED_H
#define SUPERVISE_STREAMS_DETACHED_H

#include "supervise/screen-link.h"
#include "supervise/streams.h"
#include "supervise/term-modes.h"

enum viewer_letter {
	/* From the client. */
	VIEWER_INPUT = 'i', /* bytes that were typed */
	VIEWER_SIZE = 's',  /* struct screen_size: its terminal has a new size */
	/* To the client. */
	VIEWER_OUTPUT = 'o', /* bytes for its terminal */
	VIEWER_ANEW = 'n',   /* the screen is drawn anew: undo all modes first */
	VIEWER_END = 'e',    /* the box has ended; int32_t: its exit code */
};

enum { VIEWER_PACKET = SCREEN_PACKET + TERM_HELD };

struct viewer {
	int fd; /* -1: nobody */
	bool read_only;
	bool stale;          /* it has missed output, and needs a picture */
	unsigned int failed; /* pictures that it failed to take */
	struct screen_size size;
};

struct streams_detached {
	struct streams base;

	/* Private. */
	int terminal;
	bool ended; /* of the terminal */
	struct screen_link screen;
	struct term term;
	struct screen_size size;
	struct viewer viewer[STREAMS_VIEWERS];
	int drawing; /* the client that gets the picture being drawn; -1: none */
	long long draw_until, silent_since;
	bool rang; /* since somebody last typed */
	size_t n_unsent, n_input;
	char unsent[SCREEN_PACKET]; /* output that the screen had no room for */
	char input[SCREEN_PACKET];  /* for the box, which had none */
};

/* size: until a client attaches. */
void streams_detached_init(struct streams_detached *s, struct record *record,
	struct screen_size size);

#endif
