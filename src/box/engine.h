/*
 * box/engine.h - what the supervisor may ask of an engine
 *
 * An engine turns a plan into a running box. It decides nothing: a plan that it cannot execute
 * is a fault, and nothing in it is ignored.
 */
#ifndef BOX_ENGINE_H
#define BOX_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/cgroup.h"
#include "plan/request.h"

struct fault;
struct frame;
struct plan;
struct stubs;
struct termios;

/* The box's ends of its standard streams. The engine copies them; the caller closes its own. */
struct box_io {
	bool terminal;    /* make a pty in the box; in/out/err are then not used */
	bool err_apart;   /* with a terminal: stderr is not the terminal, but `err` */
	int in, out, err; /* pipes, or -1: the box gets its own /dev/null */
	unsigned short rows, cols;
	const struct termios *termios; /* initial settings; NULL: the defaults */
};

struct box {
	pid_t pid; /* the box's init, as seen from the host */
	int pidfd;
	const struct frame *frame; /* the frame it was begun with */
	int control;  /* messages from and to init; readable when there is an event */
	int terminal; /* the master side of the box's pty, or -1 */
	int root; /* the root of the box's own file system, which exists while this is open */
	int net[NET_ENDS]; /* of a brokered network; a caller that takes them leaves -1 */
	struct cgroup cgroup;
	struct stubs *stubs;
	const char *const
		*replaced; /* once released: protected names that were absent and exist now */
};

enum { BOX_EXECS = 8 };

/* A further command in a running box. */
struct box_exec {
	int number; /* names it in events and signals */
	const char *workdir;
	const char *const *argv; /* NULL-terminated, passed on unchanged */
	const char *const *envp;
	struct box_io io; /* termios is not used */
};

/* The head of the message that gives init the command's words. */
struct box_exec_head {
	uint32_t argc, envc;
	uint16_t rows, cols;
};

enum box_event_type {
	BOX_NONE,         /* nothing to read now */
	BOX_EXITED,       /* the command ended and everything else in the box is dead */
	BOX_STOPPED,      /* the command was stopped by a terminal signal (Ctrl-Z) */
	BOX_SOCKET,       /* a socket that the supervisor asked for */
	BOX_EXEC_STARTED, /* number; fd: the master side of its pty, or -1 */
	BOX_EXEC_FAILED,  /* number; status: an errno */
	BOX_EXEC_ENDED,   /* number; status */
	BOX_LOST,         /* init vanished without a message: it was killed from outside */
};

struct box_event {
	enum box_event_type type;
	int status; /* BOX_EXITED: as from waitpid(2); BOX_STOPPED: the signal */
	int fd;     /* BOX_SOCKET; -1: init could not make one */
	int number; /* of a further command */
};

typedef int box_meanwhile_fn(void *ctx, struct fault *f);

struct engine {
	const char *name;

	/*
	 * Make the box's namespaces, and nothing visible yet. init waits in them for the plan;
	 * the caller may make it meanwhile.
	 */
	int (*begin)(const struct frame *frame, const struct box_io *io, struct box *ret,
		struct fault *f);

	/*
	 * Build the box and start the command in it. Returns once the command's program is
	 * running. On failure nothing is left of the box, and f->step says which step failed;
	 * "exec" with ENOENT or EACCES means the command. The plan is in memory from mem.h, as
	 * all plans are. If `meanwhile` is not NULL, it is called while the box is being built.
	 * The command waits for it, and the start fails if it fails.
	 */
	int (*start)(struct box *box, const struct plan *p, box_meanwhile_fn *meanwhile,
		void *ctx, struct fault *f);

	/* Send sig to the command, or with group to its whole process group. */
	int (*signal)(struct box *box, int sig, bool group);

	/* Ask init for a TCP socket of the box's network. It arrives as an event. */
	int (*socket)(struct box *box);

	/*
	 * Start a further command, confined as the first one is. The streams are copied. An
	 * event reports whether it started.
	 */
	int (*exec)(struct box *box, const struct box_exec *e, struct fault *f);

	/* Send sig to the process group of a further command. */
	int (*exec_signal)(struct box *box, int number, int sig);

	/* One event, without blocking. */
	void (*event)(struct box *box, struct box_event *ret);

	/* Kill everything in the box, and wait until it is dead. */
	void (*kill)(struct box *box);

	/* The box is dead: close and remove what the supervisor holds of it. */
	void (*release)(struct box *box);
};

/* ---- box/engines.c ---- */

/*
 * The engine of that name. NULL if this version has none; the fault then lists those it has.
 * MANIFEST_ENGINES lists the same names for the manifest and the plan, which may not include
 * this file.
 */
const struct engine *engine_find(const char *name, struct fault *f);

/* ---- rows of its table ---- */

extern const struct engine engine_native;

#endif
