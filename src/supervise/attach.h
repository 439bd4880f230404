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
	unsigned char keys[ATTACH_KEYS]; /* typed one after the other, they detach */
	size_t n_keys;                   /* 0: no keys detach */
};

enum attach_end {
	ATTACH_DETACHED, /* detached by its keys, or by a signal */
	ATTACH_ENDED,    /* the box ended, with an exit code */
	ATTACH_LOST,     /* the supervisor is gone */
};

/* "ctrl-p,ctrl-q", "ctrl-]", "q"; "" for none. A fault says what is expected. */
int attach_parse_keys(const char *text, struct attach_options *o, struct fault *f);

/*
 * Show the box on our terminal until the user detaches or the box ends. Standard input and
 * output must both be the terminal. It is restored afterwards, even if this process is killed.
 */
int attach_box(const char *name, const struct attach_options *o, enum attach_end *ret,
	int *ret_code, struct fault *f);

#endif
