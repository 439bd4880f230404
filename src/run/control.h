/*
 * run/control.h - how other carrel commands ask and steer a running box
 *
 * A socket (SOCK_SEQPACKET) NAME.sock beside the lock of the box's name in the runtime
 * directory. A request is one message of JSON, and so is its reply:
 *
 *	{"ask": "status"}
 *	{"ask": "decide", "entry": "example.org:443", "deny": false}
 *	{"ask": "port", "spec": "8080:80", "remove": false}
 *
 *	{"ok": true}   {"ok": true, "status": {...}}
 *	{"ok": false, "error": "...", "fix": "..."}
 *
 * The supervisor's side lives in its poll loop and never blocks:
 *
 *	control_open(&c, name, &ops, ctx, f);		the name is held
 *	control_poll(&c, &fds[i]); poll(...); control_serve(&c, &fds[i]);
 *	control_close(&c);
 */
#ifndef RUN_CONTROL_H
#define RUN_CONTROL_H

#include <stdbool.h>

struct fault;
struct json;
struct json_value;
struct pollfd;

enum {
	CONTROL_CLIENTS = 4,
	CONTROL_FDS = CONTROL_CLIENTS + 1,
	CONTROL_REQUEST = 4096,     /* bytes */
	CONTROL_REPLY = 128 * 1024, /* what fits into a message */
};

/*
 * What can be asked. Memory that these allocate (base/mem.h) is gone when they return. An op
 * that is NULL is one that this box has not.
 */
struct control_ops {
	/*
	 * Write members of an object that is open; `carrel ps` knows "pid", "since" (seconds
	 * of the clock), "connections", "agent", "project", "network" and "waiting", a list
	 * of entries that `carrel allow` could answer with. What is not known is left out.
	 */
	void (*status)(void *ctx, struct json *j);
	/* An entry as for --allow or --deny, from now on. */
	int (*decide)(void *ctx, const char *entry, bool deny, struct fault *f);
	/* "3000", "8080:80": the host's loopback to the box's. */
	int (*port)(void *ctx, const char *spec, bool remove, struct fault *f);
};

struct control {
	/* Private. */
	bool open; /* a struct of zeros is closed, and all calls are allowed on it */
	int dir, listener;
	int client[CONTROL_CLIENTS]; /* the oldest first; -1 after the last */
	char file[80];
	const struct control_ops *ops;
	void *ctx;
};

/*
 * Make the socket, in the place of one that a killed box has left. -ENOENT: there is no
 * runtime directory, and so no way to be asked; a box runs without, too.
 */
int control_open(struct control *c, const char *name, const struct control_ops *ops, void *ctx,
	struct fault *f);

/* Fill in CONTROL_FDS entries, also when closed. */
void control_poll(const struct control *c, struct pollfd *pfd);

/* Serve what poll(2) found; pfd as control_poll() filled it in. */
void control_serve(struct control *c, const struct pollfd *pfd);

/* Close and remove the socket. */
void control_close(struct control *c);

/* ---- the other side ---- */

/*
 * Ask the box of that name. 0 and its reply, which says "ok"; a fault when there is no such
 * box, it cannot be asked, does not answer in time, or says no.
 */
int control_ask(const char *name, const char *request, int timeout_ms,
	const struct json_value **ret, struct fault *f);

/* Requests, as texts. */
const char *control_ask_status(void);
const char *control_ask_decide(const char *entry, bool deny);
const char *control_ask_port(const char *spec, bool remove);

#endif
