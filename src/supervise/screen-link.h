/*
 * supervise/screen-link.h - the supervisor's side of a detached box's screen
 *
 *	screen_start(&l, name, size, f);	before the box
 *	screen_output(&l, bytes, n);		false: no room now
 *	screen_draw(&l);			a picture will come
 *	screen_hear(&l, &event);		when it is readable
 *	screen_end(&l);
 *
 * If a screen ends before its box, the box goes on without it. All calls are still allowed, and
 * do nothing.
 */
#ifndef SUPERVISE_SCREEN_LINK_H
#define SUPERVISE_SCREEN_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "screen/screen.h"

struct fault;

struct screen_link {
	bool on;
	int socket;
	pid_t pid;
};

struct screen_event {
	enum screen_letter what; /* 0: nothing now, or it was lost */
	size_t n;
	char bytes[1 + SCREEN_PACKET];
};

/* Start it and wait until it has entered its jail. The caller holds the box's name. */
int screen_start(struct screen_link *l, const char *name, struct screen_size size,
	struct fault *f);

bool screen_output(struct screen_link *l, const char *bytes, size_t n);
void screen_resize(struct screen_link *l, struct screen_size size);
bool screen_draw(struct screen_link *l);

/* Read one message; its data begin at ret->bytes + 1. */
void screen_hear(struct screen_link *l, struct screen_event *ret);

/* Give it a moment to write the rest of its log. */
void screen_end(struct screen_link *l);

#endif
