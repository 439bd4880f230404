/*
 * box/engine.h - what the supervisor may ask of an engine
 *
 * An engine turns a plan into a running box. It decides nothing: what a plan asks
 * and the engine cannot do is a fault, never ignored.
 */
#ifndef BOX_ENGINE_H
#define BOX_ENGINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "plan/request.h"

struct fault;
struct frame;
struct plan;
struct stubs;
struct termios;

/* The box's ends of its standard streams; the engine takes copies, the caller closes. */
struct box_io {
	bool terminal;    /* make a pty in the box; in/out/err are then not used */
	bool err_apart;   /* with a terminal: stderr is not on it, but err */
	int in, out, err; /* pipes, or -1: the box gets its own /dev/null */
	unsigned short rows, cols;
	const struct termios *termios; /* to begin with; NULL: the defaults */
};

struct box {
	pid_t pid; /* the box's init, as seen from the host */
	int pidfd;
	const struct frame *frame; /* that it was begun with */
	int control;       /* messages from and to init; readable when there is an event */
	int terminal;      /* the master side of the box's pty, or -1 */
	int net[NET_ENDS]; /* of a brokered network; whoever takes them leaves -1 */
	struct stubs *stubs;
	const char *const *replaced; /* once released: absent names that no longer were */
};

enum box_event_type {
	BOX_NONE,    /* nothing to read now */
	BOX_EXITED,  /* the command ended and everything else in the box is dead */
	BOX_STOPPED, /* the command was stopped by a terminal signal (Ctrl-Z) */
	BOX_SOCKET,  /* a socket that was asked for */
	BOX_LOST,    /* init vanished without a word: killed from outside */
};

struct box_event {
	enum box_event_type type;
	int status; /* BOX_EXITED: as from waitpid(2); BOX_STOPPED: the signal */
	int fd;     /* BOX_SOCKET; -1: there is none to be had */
};

typedef int box_meanwhile_fn(void *ctx, struct fault *f);

struct engine {
	const char *name;

	/*
	 * Make the box's namespaces, nothing that anybody could see yet. init waits in
	 * them for the plan, which may be made meanwhile.
	 */
	int (*begin)(const struct frame *frame, const struct box_io *io, struct box *ret,
		struct fault *f);

	/*
	 * Build the box and start the command in it. Returns once the command's
	 * program is running. On failure nothing is left of the box, and f->step
	 * says which step failed; "exec" with ENOENT or EACCES means the command.
	 * The plan is in memory from mem.h, as all plans are. meanwhile, unless NULL, is
	 * called while the box is being built, and the command waits for it; when it fails,
	 * so does the start.
	 */
	int (*start)(struct box *box, const struct plan *p, box_meanwhile_fn *meanwhile,
		void *ctx, struct fault *f);

	/* Send sig to the command, or with group to its whole process group. */
	int (*signal)(struct box *box, int sig, bool group);

	/* Ask for a TCP socket of the box's network, which will come as an event. */
	int (*socket)(struct box *box);

	/* One event, without blocking. */
	void (*event)(struct box *box, struct box_event *ret);

	/* End everything in the box at once, and wait until it is over. */
	void (*kill)(struct box *box);

	/* The box is dead: close and remove what the supervisor holds of it. */
	void (*release)(struct box *box);
};

extern const struct engine engine_native;

#endif
