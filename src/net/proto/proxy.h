/*
 * net/proto/proxy.h - requests to an explicit proxy: HTTP CONNECT and SOCKS5
 *
 * The caller feeds bytes in pieces of any size. The result is a canonical host and a port, or a
 * refusal and its reason. The caller owns sockets and time. Nothing here allocates or calls the
 * kernel.
 *
 *	struct proxy p = { 0 };
 *	switch (proxy_read(&p, bytes, n, &used)) {
 *	case PROXY_MORE:   all bytes were used; read more
 *	case PROXY_GREET:  write proxy_greeting(), then go on with the bytes after `used`
 *	case PROXY_READY:  judge p.name and p.port, dial, write proxy_reply() with the result;
 *	                   the bytes after `used` are for the other side
 *	case PROXY_BAD:    write proxy_reply(&p, p.answer, p.why, ...) and close
 *	}
 *
 * Accepted: "CONNECT host:port HTTP/1.x" with a head of up to 8 KiB, of which only that line
 * counts; SOCKS5 (RFC 1928) without authentication, CONNECT to an IPv4 or IPv6 address or a
 * name. Other methods, BIND, UDP and SOCKS4 are refused in their own protocol. Anything else
 * (TLS, say) gets no answer.
 *
 * An address written in the place of a name (127.0.0.1 as a SOCKS domain) is an address. A name
 * that name_canon() refuses is refused, and so is localhost, which would not be the client's
 * own. The policy judges addresses of all kinds.
 */
#ifndef NET_PROTO_PROXY_H
#define NET_PROTO_PROXY_H

#include "net/policy/name.h"

enum {
	PROXY_LINE = 512,  /* the longest first line */
	PROXY_HEAD = 8192, /* the first line with all headers */
	PROXY_WHY = 128,
	PROXY_REPLY = 640, /* fits any reply */
};

enum proxy_state { PROXY_MORE, PROXY_GREET, PROXY_READY, PROXY_BAD };

/* The result, as far as the protocols can express it. */
enum proxy_answer {
	PROXY_YES,
	PROXY_NO,          /* not allowed: by the policy, or never */
	PROXY_NO_HOST,     /* the name is not known */
	PROXY_UNREACHABLE, /* the network or host cannot be reached */
	PROXY_REFUSED,     /* nobody listens there */
	PROXY_LATE,        /* no answer in time */
	PROXY_FAILED,      /* anything else */
	/* For requests that are malformed or not supported, with PROXY_BAD: */
	PROXY_MALFORMED,
	PROXY_METHOD,  /* not CONNECT */
	PROXY_ADDRESS, /* an address of an unknown type */
	PROXY_LONG,
	PROXY_LOGIN, /* SOCKS: no method that we support */
};

struct proxy {
	/* READY: */
	char name[NAME_SIZE];   /* canonical; the text of an address */
	uint8_t kind;           /* enum name_kind: NAME_HOST, NAME_IPV4 or NAME_IPV6 */
	struct address address; /* unless kind is NAME_HOST */
	uint16_t port;

	/* BAD: */
	uint8_t answer;      /* enum proxy_answer */
	char why[PROXY_WHY]; /* a sentence about the request that quotes nothing of it */

	/* Private. */
	uint8_t protocol, step;
	bool after_cr; /* HTTP: the last byte was a carriage return */
	bool in_line;  /* HTTP: the header line has a byte already */
	uint16_t len;  /* bytes in line */
	uint16_t seen; /* HTTP: bytes of the head */
	uint8_t line[PROXY_LINE];
};

/* A zeroed struct is new. *used is how many of the bytes belong to the request. */
enum proxy_state proxy_read(struct proxy *p, const uint8_t *bytes, size_t n, size_t *used);

/* "No authentication", to write after PROXY_GREET. Returns 2. */
size_t proxy_greeting(uint8_t out[PROXY_REPLY]);

/*
 * The reply in the client's protocol. The body of an HTTP refusal is one line of plain text,
 * "carrel: " and why; SOCKS has a code. Returns its length, 0 when there is no reply.
 */
size_t proxy_reply(const struct proxy *p, enum proxy_answer answer, const char *why,
	uint8_t out[PROXY_REPLY]);

#endif
