/*
 * box/native/native.h - the native engine's steps and what they share
 *
 * The box is built by its own init: one process, cloned into new namespaces, goes
 * down the step table in engine.c, then starts the command and stays as pid 1.
 * Each step may fail with a fault, which init sends to the supervisor before it
 * ends; with it ends every namespace, so a failed start leaves nothing behind.
 */
#ifndef BOX_NATIVE_NATIVE_H
#define BOX_NATIVE_NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct box;
struct box_io;
struct fault;
struct frame;
struct plan;

/* --- between init and supervisor: a datagram for each word ---------------------- */

enum wire_type {
	WIRE_FAULT = 1, /* a step failed; followed by the struct fault */
	WIRE_TERMINAL,  /* carries the master side of the box's pty */
	WIRE_STARTED,   /* the command's program runs */
	WIRE_STOPPED,   /* value: the signal that stopped the command */
	WIRE_EXITED,    /* value: status as from waitpid(2); nothing else lives in the box */
	WIRE_PLAN,      /* to init: address */
	WIRE_STUBS,     /* to init: the stubs are there to be mounted on */
	WIRE_NET,       /* to init: carries the network namespace; or value, address: why not */
	WIRE_GO,        /* to init: all that was done meanwhile is done */
	WIRE_SIGNAL,    /* to init: value, group */
	WIRE_SOCKET,    /* to init: make a TCP socket; from it: carries one */
};

struct wire {
	uint32_t type;
	int32_t value;
	int32_t group;
	uint64_t address;
};

/* Descriptors that init keeps, at fixed places after the "fds" step. */
enum { FD_CONTROL = 3, FD_FIRST_FREE = 4 };

struct native {
	const struct frame *frame;
	const struct box_io *io;
	const struct plan *plan; /* NULL until the "plan" step */
	const void *shared;      /* the supervisor's memory, in which the plan will be */
	int control;             /* init's end of the socket to the supervisor */
	int root;                /* the box's root while it is being built */
	int terminal;            /* the box's end of its pty, or -1 */
	int ruleset;             /* Landlock's, or -1 */
	mode_t umask;            /* the user's, for the command */
	pid_t command;
};

/* In the order they run; see engine.c for the table. */
int step_fds(struct native *n, struct fault *f);        /* fds.c */
int step_namespaces(struct native *n, struct fault *f); /* engine.c */
int step_userns(struct native *n, struct fault *f);     /* userns.c */
int step_bounds(struct native *n, struct fault *f);     /* caps.c */
int step_await_plan(struct native *n, struct fault *f); /* engine.c */
int step_root(struct native *n, struct fault *f);       /* mount.c */
int step_own(struct native *n, struct fault *f);        /* mount.c */
int step_places(struct native *n, struct fault *f);     /* mount.c */
int step_pivot(struct native *n, struct fault *f);      /* mount.c */
int step_hostname(struct native *n, struct fault *f);   /* userns.c */
int step_limits(struct native *n, struct fault *f);     /* limits.c */
int step_terminal(struct native *n, struct fault *f);   /* terminal.c */
int step_rules(struct native *n, struct fault *f);      /* landlock.c */
int step_net(struct native *n, struct fault *f);        /* net.c */
int step_caps(struct native *n, struct fault *f);       /* caps.c */
int step_landlock(struct native *n, struct fault *f);   /* landlock.c */
int step_seccomp(struct native *n, struct fault *f);    /* engine.c, seccomp.c */
int step_await_go(struct native *n, struct fault *f);   /* engine.c */
int step_exec(struct native *n, struct fault *f);       /* exec.c */

/* Give back the memory that the command was started with. exec.c */
void exec_trim(void);

/*
 * Make the box's network namespace, while init does what it can without: step_net() of init
 * gets it, or why there is none. What the broker needs of it is in box->net. net.c
 */
int net_make(struct box *box, struct fault *f);

/* Reap, forward, report; ends with the box. init.c */
void init_loop(struct native *n) __attribute__((noreturn));

/* The next word, which must be of that type; ret_fd as of wire_receive(). engine.c */
int native_await(const struct native *n, enum wire_type type, struct wire *ret, int *ret_fd,
	struct fault *f);

/* Until the stubs are there to be mounted on. engine.c */
int native_await_stubs(const struct native *n, struct fault *f);

int wire_send(int socket, const struct wire *w);
int wire_send_fault(int socket, const struct fault *f);

/* A word that carries a descriptor, unless that is -1. */
int wire_send_fd(int socket, const struct wire *w, int fd);

/*
 * A datagram into *w, and *f unless NULL. *ret_fd is the descriptor that came along, else -1;
 * NULL takes none.
 */
ssize_t wire_receive(int socket, struct wire *w, struct fault *f, int *ret_fd, int flags);

#endif
