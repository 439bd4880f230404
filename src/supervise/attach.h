/*
 * supervise/attach.h - the client's side of a detached box's terminal
 */
#ifndef SUPERVISE_ATTACH_H
#define SUPERVISE_ATTACH_H

#include <stdbool.h>
#include <stddef.h>

struct fault;

enum { ATTACH_KEYS = 8 };

struct attach_options {
	bool read_only;
	unsigned char keys[ATTACH_KEYS]; /* typed one after the other they detach */
	size_t n_keys;                   /* 0: nothing does */
};

enum attach_end {
	ATTACH_DETACHED, /* by its keys, or by a signal */
	ATTACH_ENDED,    /* the box has, with an exit code */
	ATTACH_LOST,     /* the supervisor is gone */
};

/* "ctrl-p,ctrl-q", "ctrl-]", "q"; "" for none. A fault says what is expected. */
int attach_parse_keys(const char *text, struct attach_options *o, struct fault *f);

/*
 * Show the box on our terminal, which both standard input and output must be, until one of the
 * two has enough. The terminal is left as it was found, also if somebody kills us.
 */
int attach_box(const char *name, const struct attach_options *o, enum attach_end *ret,
	int *ret_code, struct fault *f);

#endif
