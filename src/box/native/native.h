/*
 * box/native/native.h - the native engine's steps and what they share
 *
 * The box's own init builds it: one process, cloned into new namespaces, goes down the step
 * table in engine.c, then starts the command and stays as pid 1. A step that fails leaves a
 * fault, which init sends to the supervisor before it ends. All namespaces end with init, so a
 * failed start leaves nothing behind.
 */
#ifndef BOX_NATIVE_NATIVE_H
#define BOX_NATIVE_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct box;
struct box_io;
struct fault;
struct frame;
struct plan;

/* --- between init and supervisor: one datagram per message ---------------------- */

enum wire_type {
	WIRE_FAULT = 1, /* a step failed; followed by the struct fault */
	WIRE_TERMINAL,  /* carries the master side of the box's pty */
	WIRE_ROOT,      /* carries the box's own file system: its root directory */
	WIRE_STARTED,   /* the command's program runs */
	WIRE_STOPPED,   /* value: the signal that stopped the command */
	WIRE_EXITED,    /* value: status as from waitpid(2); nothing else lives in the box */
	WIRE_PLAN,      /* to init: the plan's address */
	WIRE_STUBS,     /* to init: the stubs exist and can be mounted on */
	WIRE_NET,       /* to init: carries the network namespace; or value, address: why not */
	WIRE_GO,        /* to init: the supervisor is ready */
	WIRE_SIGNAL,    /* to init: value, group */
	WIRE_SOCKET,    /* to init: make a TCP socket; from init: carries one */
	/* A further command, by the number in group; see exec-more.c. */
	WIRE_EXEC_STREAM,  /* to init: value: which; carries the end of a pipe for it */
	WIRE_EXEC,         /* to init: value: with a terminal; carries a file with the rest */
	WIRE_EXEC_SIGNAL,  /* to init: value: for its whole process group */
	WIRE_EXEC_STARTED, /* carries the master side of its pty */
	WIRE_EXEC_FAILED,  /* value: an errno */
	WIRE_EXEC_ENDED,   /* value: status as from waitpid(2) */
};

struct wire {
	uint32_t type;
	int32_t value;
	int32_t group;
	uint64_t address;
};

/* Descriptors that init keeps, at fixed numbers after the "fds" step. */
enum { FD_CONTROL = 3, FD_FIRST_FREE = 4 };

struct native {
	const struct frame *frame;
	const struct box_io *io;
	const struct plan *plan; /* NULL until the "plan" step */
	const void *shared;      /* the supervisor's memory, which will hold the plan */
	int control;             /* init's end of the socket to the supervisor */
	int root;                /* the box's root while it is being built */
	int terminal;            /* the box's end of its pty, or -1 */
	int ruleset;             /* Landlock's, or -1 */
	mode_t umask;            /* the user's, for the command */
	pid_t command;
	unsigned long long files; /* that a command may have open */
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
int step_limits(struct native *n, struct fault *f);     /* rlimits.c */
int step_terminal(struct native *n, struct fault *f);   /* terminal.c */
int step_rules(struct native *n, struct fault *f);      /* landlock.c */
int step_net(struct native *n, struct fault *f);        /* net.c */
int step_caps(struct native *n, struct fault *f);       /* caps.c */
int step_landlock(struct native *n, struct fault *f);   /* landlock.c */
int step_seccomp(struct native *n, struct fault *f);    /* engine.c, seccomp.c */
int step_renames(struct native *n, struct fault *f);    /* rename.c */
int step_await_go(struct native *n, struct fault *f);   /* engine.c */
int step_exec(struct native *n, struct fault *f);       /* exec.c */

/*
 * rlimits.c: raise this process's own limit of open files as far as possible, so that it can
 * send descriptors no matter how many a box of the same user has in flight.
 */
int limits_raise_files(struct fault *f);

/* The command's limit of open files; -1 and errno. rlimits.c */
int limits_of_files(unsigned long long files);

/* execvp(3) with that PATH; returns only with an errno. exec.c */
int exec_search(char *const *argv, char *const *envp, const char *path);

/* Run child, which shares our memory until it executes, and wait until then. exec.c */
pid_t exec_clone(int (*child)(void *arg), void *arg);

/* A pty of the box's own devpts; -1 and errno. terminal.c */
int terminal_open(unsigned short rows, unsigned short cols, int *ret_master);

/* Handle a message about a further command; a process ended: was it one? exec-more.c */
void exec_more_hear(const struct native *n, const struct wire *w, int *fd);
bool exec_more_ended(const struct native *n, pid_t pid, int status);

/* exec.c: give back the memory that was used to start the command. */
void exec_trim(void);

/*
 * net.c: make the box's network namespace while init goes on. init's step_net() receives it, or
 * the reason why there is none. The broker's sockets are in box->net.
 */
int net_make(struct box *box, struct fault *f);

/* init.c: reap, forward, report; ends with the box. */
void init_loop(struct native *n) __attribute__((noreturn));

/*
 * engine.c: receive the next message, which must be of that type; ret_fd as for wire_receive().
 */
int native_await(const struct native *n, enum wire_type type, struct wire *ret, int *ret_fd,
	struct fault *f);

/* engine.c: wait until the stubs exist. */
int native_await_stubs(const struct native *n, struct fault *f);

int wire_send(int socket, const struct wire *w);
int wire_send_fault(int socket, const struct fault *f);

/* Send a message with a descriptor, unless it is -1. */
int wire_send_fd(int socket, const struct wire *w, int fd);

/*
 * Receive a datagram into *w, and *f unless NULL. *ret_fd is the descriptor that came with it,
 * else -1. With a NULL ret_fd, no descriptor is accepted.
 */
ssize_t wire_receive(int socket, struct wire *w, struct fault *f, int *ret_fd, int flags);

#endif
