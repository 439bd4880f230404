/*
 * cli/full-screen.h - a program of ours that has the whole terminal
 *
 * Two processes: one runs the program, the other only waits for it. Whichever of them is
 * killed, the other one puts the terminal back, as it was found.
 *
 *	full_screen_run(program, ctx, &f);	in the program:
 *	    full_screen_show(s, &frame);	a frame of lines
 *	    key = full_screen_key(s, ms);	what was typed
 *	    full_screen_leave(s); ...; full_screen_enter(s);	somebody else has it
 */
#ifndef CLI_FULL_SCREEN_H
#define CLI_FULL_SCREEN_H

#include <stdbool.h>

struct fault;
struct full_screen;
struct str;

/* What full_screen_key() returns beside characters. */
enum full_screen_key {
	KEY_NONE = 0, /* nothing for so long, or another size: show a frame */
	KEY_ESCAPE = 27,
	KEY_RETURN = 13,
	KEY_UP = 256,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_GONE, /* a signal, or the terminal is: end now */
};

/* Run the program on this process's terminal. *ret is its result. */
int full_screen_run(int (*program)(struct full_screen *s, void *ctx), void *ctx, int *ret,
	struct fault *f);

/* Rows and columns, as they are now. */
void full_screen_size(const struct full_screen *s, unsigned int *rows, unsigned int *cols);

/* May a frame have colours? */
bool full_screen_colour(const struct full_screen *s);

/* Lines that end in \n, at most as many as there are rows; they may hold SGR sequences. */
void full_screen_show(struct full_screen *s, const struct str *frame);

int full_screen_key(struct full_screen *s, int ms);

/* The terminal as the user knows it, for another program; and ours again. */
void full_screen_leave(struct full_screen *s);
void full_screen_enter(struct full_screen *s);

/*
 * Wait for a child that has the terminal, or whose output we wait for. A signal that ends us
 * ends it. As waitpid(2): its status.
 */
int full_screen_wait(struct full_screen *s, int pid);

#endif
