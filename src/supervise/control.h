/*
 * supervise/control.h - how other carrel commands ask and steer a running box
 *
 * A socket (SOCK_SEQPACKET) NAME.sock beside the lock of the box's name in the runtime
 * directory. A request is one message of JSON, and so is its reply:
 *
 *	{"ask": "status"}
 *	{"ask": "decide", "entry": "example.org:443", "deny": false}
 *	{"ask": "port", "spec": "8080:80", "remove": false}
 *	{"ask": "stop", "seconds": 10, "restart": false}
 *	{"ask": "type", "text": "go on\r"}
 *	{"ask": "exec", "argv": ["git", "log"], "terminal": true, "streams": 0,
 *	 "rows": 24, "cols": 80, "term": "xterm"}; the ends of its pipes come along: "streams"
 *	 has a bit for each
 *	{"ask": "attach", "rows": 24, "cols": 80, "readonly": false}
 *
 *	{"ok": true}   {"ok": true, "status": {...}}
 *	{"ok": false, "error": "...", "fix": "..."}
 *
 * After the reply to "attach", streams-detached.h describes the connection; after the reply to
 * "exec", execs.h does. A status has a "version". A supervisor refuses a request that it does
 * not know, and ignores members that it does not know.
 *
 * The supervisor's side lives in its poll loop and never blocks:
 *
 *	control_open(&c, name, &ops, ctx, f);		the name is held
 *	control_poll(&c, &fds[i]); poll(...); control_serve(&c, &fds[i]);
 *	control_close(&c);
 */
#ifndef SUPERVISE_CONTROL_H
#define SUPERVISE_CONTROL_H

#include "base/sock.h"

#include <stdbool.h>

struct box_io;
struct fault;
struct json;
struct json_value;
struct pollfd;
struct streams_client;

enum {
	CONTROL_VERSION = 1,
	CONTROL_CLIENTS = 4,
	CONTROL_FDS = CONTROL_CLIENTS + 1,
	CONTROL_REQUEST = 32 * 1024, /* bytes */
	CONTROL_REPLY = 128 * 1024,  /* what fits into a message */
};

/*
 * The requests. Memory that these functions allocate (base/mem.h) is freed when they return.
 * NULL: this box does not support the request.
 */
struct control_ops {
	/*
	 * Write members of an object that is open; `carrel ps` knows "pid", "since" (seconds of
	 * the clock), "connections", "agent", "project", "network" and "waiting", a list of
	 * entries that `carrel allow` could answer with. Unknown values are left out.
	 */
	void (*status)(void *ctx, struct json *j);
	/* An entry as for --allow or --deny, from now on. */
	int (*decide)(void *ctx, const char *entry, bool deny, struct fault *f);
	/* "3000", "8080:80": the host's loopback to the box's. */
	int (*port)(void *ctx, const char *spec, bool remove, struct fault *f);
	/* End the box: by a signal, and by force after so many seconds. */
	int (*stop)(void *ctx, unsigned int seconds, bool restart, struct fault *f);
	/* Type the text into the box's terminal. */
	int (*type)(void *ctx, const char *text, struct fault *f);
	/* Keep the connection, and set *fd to -1. The reply is sent before anything else. */
	int (*attach)(void *ctx, int *fd, const struct streams_client *c, struct fault *f);
	/* The same. The caller closes the streams in io. */
	int (*exec)(void *ctx, int *fd, const char *const *argv, const struct box_io *io,
		const char *term, struct fault *f);
};

struct control {
	/* Private. */
	bool open; /* a struct of zeros is closed, and all calls are allowed on it */
	int dir, listener;
	int client[CONTROL_CLIENTS]; /* the oldest first; -1 after the last */
	int asking;                  /* the current caller, */
	int given[SOCK_FDS];         /* the descriptors it sent, */
	size_t n_given;
	bool kept; /* and whether its connection was handed over */
	char file[80];
	const struct control_ops *ops;
	void *ctx;
};

/*
 * Make the socket, replacing one that a killed box has left. -ENOENT: there is no runtime
 * directory, so no requests are possible; a box runs without, too.
 */
int control_open(struct control *c, const char *name, const struct control_ops *ops, void *ctx,
	struct fault *f);

/* Fill in CONTROL_FDS entries, also when closed. */
void control_poll(const struct control *c, struct pollfd *pfd);

/* Serve the entries that control_poll() filled in, after poll(2). */
void control_serve(struct control *c, const struct pollfd *pfd);

/* Close and remove the socket. */
void control_close(struct control *c);

/* ---- the other side ---- */

/*
 * Send a request to the box of that name. 0 and its reply, which has "ok"; a fault if there is
 * no such box, if it cannot be reached, does not answer in time, or refuses.
 */
int control_ask(const char *name, const char *request, int timeout_ms,
	const struct json_value **ret, struct fault *f);

/* Make the text of a request. */
const char *control_ask_status(void);
const char *control_ask_decide(const char *entry, bool deny);
const char *control_ask_port(const char *spec, bool remove);
const char *control_ask_stop(unsigned int seconds, bool restart);
const char *control_ask_type(const char *text);
const char *control_ask_attach(const struct streams_client *c);

const char *control_ask_exec(const char *const *argv, const struct box_io *io,
	const char *term);

/* The same as control_ask(), but send descriptors with the request, and keep the connection. */
int control_keep(const char *name, const char *request, int timeout_ms, const int *fds,
	size_t n_fds, int *ret_fd, struct fault *f);

#endif
