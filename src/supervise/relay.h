/*
 * supervise/relay.h - copy bytes from one descriptor to another, in an event loop
 *
 * One struct relay is one direction. The loop asks each relay what to wait for,
 * polls, and lets it move bytes:
 *
 *	relay_init(&r, from, to);
 *	relay_poll(&r, &pfd[k]);	(two entries; an unused one has fd -1)
 *	poll(pfd, n, timeout);
 *	relay_pump(&r, &pfd[k]);
 *	if (r.state == RELAY_EOF)	close `to`: the reader sees the end
 *	if (r.state == RELAY_BROKEN)	close `from`: the writer gets SIGPIPE
 *
 * A relay closes no descriptor, and keeps its buffer for as long as the process lives.
 * The process must ignore SIGPIPE, and SIGXFSZ when it writes to files.
 */
#ifndef SUPERVISE_RELAY_H
#define SUPERVISE_RELAY_H

#include <stdbool.h>
#include <stddef.h>

struct pollfd;

enum relay_state {
	RELAY_OPEN,
	RELAY_EOF,    /* the source ended (or was never open) and all is delivered */
	RELAY_BROKEN, /* the destination takes no more; err says why, EPIPE as a rule */
};

enum relay_kind { RELAY_PIPE, RELAY_FILE, RELAY_SOCKET, RELAY_TTY, RELAY_OTHER };

typedef void relay_tap_fn(void *ctx, const char *bytes, size_t n);

struct relay_end {
	int fd;
	enum relay_kind kind;
	bool blocks; /* its description has no O_NONBLOCK: touch it only when poll says so */
};

struct relay {
	/* For the caller to read. */
	enum relay_state state;
	int err; /* BROKEN: why; EOF: the read error that was taken for it, or 0 */
	unsigned long long moved; /* bytes delivered */

	/* For the caller to set: while true nothing is read (what was read is delivered). */
	bool hold;

	/* Private. */
	struct relay_end from, to;
	bool splice; /* the kernel moves the bytes; no buffer */
	bool full;   /* splice: the last try stopped at the destination */
	bool watch;  /* a lost reader shows as POLLERR while we wait for the source */
	bool grown;  /* the pipes were made larger */
	char *buf;   /* RELAY_BUFFER bytes, mapped when first needed */
	size_t start, len;
	relay_tap_fn *tap;
	void *tap_ctx;
};

/* from -1 is a source at its end, to -1 a destination that is gone. */
void relay_init(struct relay *r, int from, int to);

/* Show all bytes to tap, in order, before they are delivered. Before the first pump. */
void relay_tap(struct relay *r, relay_tap_fn *tap, void *ctx);

/* pfd has two entries: for the source and for the destination. */
void relay_poll(const struct relay *r, struct pollfd *pfd);
void relay_pump(struct relay *r, const struct pollfd *pfd);

/* Nothing flows at the moment: let go of the memory that a burst has touched. */
void relay_idle(struct relay *r);

/*
 * A descriptor of our own (O_CLOEXEC, the caller closes it) for a stream that we
 * were given and share with others: mode is O_RDONLY or O_WRONLY. Where the
 * kernel lets us, it has its own description with O_NONBLOCK, which the others do
 * not notice; else, and where it would not see the end, it is a plain duplicate. -1 when fd is
 * not open.
 */
int relay_reopen(int fd, int mode);

#endif
