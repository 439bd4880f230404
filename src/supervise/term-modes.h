/*
 * supervise/term-modes.h - the modes that a stream of output has set on a terminal
 *
 * A program sets modes of the terminal (mouse, focus, paste, alternate screen, cursor, keyboard
 * protocols, title) and may never reset them. It also asks the terminal questions, and the
 * answers arrive as if they had been typed. This code reads the escape sequences in the output,
 * so that the modes can be undone, or set again on another terminal.
 *
 *	term_follow(&t, bytes, n);			the bytes go to a terminal as they are
 *	n = term_filter(&t, bytes, n, out);		or without what asks and answers
 *	n = term_reset(&t, out);			undo all that is set
 *
 * A struct term of zeros is a terminal that nobody has changed. The bytes are hostile: the
 * state has a fixed size, and a sequence that is too long passes unread.
 */
#ifndef SUPERVISE_TERM_MODES_H
#define SUPERVISE_TERM_MODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TERM_HELD = 256,   /* bytes of one sequence that are kept until it is known */
	TERM_TITLE = 128,  /* bytes of a title */
	TERM_RESET = 1024, /* term_reset() and term_set() write no more */
};

enum term_state { TERM_GROUND, TERM_ESCAPE, TERM_CSI, TERM_STRING, TERM_STRING_ESCAPE };

struct term {
	/* For the caller to read. */
	/* a bit for each row of the table in term-modes.c that differs from a plain terminal */
	uint64_t modes;
	unsigned int shape; /* of the cursor, DECSCUSR; 0: the terminal's own */
	bool asked;         /* a question was asked; the caller resets it */
	/* the bell rang, or a notification was sent; the caller resets it */
	bool bell;
	/* it says that it works: by a spinner in its title, or by its progress */
	bool spins, progress;
	bool titled; /* the title was set, to this: */
	char title[TERM_TITLE];
	bool keyboard;        /* a keyboard protocol was turned on */
	bool region, charset; /* scrolling margins; another character set */

	/* Private. */
	enum term_state state;
	size_t n;     /* bytes in held, which is the sequence so far */
	bool passing; /* the sequence was too long, and passes unread */
	bool led;     /* the first byte of a character that may be a control character */
	unsigned char held[TERM_HELD];
};

void term_follow(struct term *t, const char *bytes, size_t n);

/*
 * The same, and copy the bytes to `out` for another terminal: without questions, because the
 * screen answers them, and without keyboard protocols, because they would hide the keys that
 * detach. out has room for n + TERM_HELD bytes.
 */
size_t term_filter(struct term *t, const char *bytes, size_t n, char *out);

/*
 * Write the sequences that set a plain terminal to these modes, or undo them. out has
 * TERM_RESET bytes.
 */
size_t term_set(const struct term *t, char *out);
size_t term_reset(const struct term *t, char *out);

/* May answers or reports of the terminal still be in flight? */
bool term_reports(const struct term *t);

/* Is the alternate screen shown? */
bool term_alternate(const struct term *t);

#endif
