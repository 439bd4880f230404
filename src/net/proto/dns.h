/*
 * net/proto/dns.h - the box's resolver: reading questions, writing answers
 *
 * A stub resolver that asks nobody: the caller (the broker) reads a query, decides, and writes
 * an answer into its own buffer. The caller also handles framing over TCP (two bytes of length
 * before each message). Nothing here allocates, calls the kernel or keeps state.
 *
 *	rcode = dns_parse(message, n, &q);
 *	if (rcode == DNS_DROP)
 *		return;                              no answer
 *	reply.rcode = rcode ? rcode : what the policy says of q.name
 *	n = dns_write(&q, &reply, out, tcp ? sizeof(out) : q.udp_size);
 *
 * Every question is answered at once, so that a client goes on to its next try:
 *
 *	A, AAAA               the address of that family in the reply, else NODATA
 *	any other type        NODATA: HTTPS, SVCB, TXT, MX, SRV, PTR, ANY, ...
 *	NODATA, NXDOMAIN      with an SOA of the root whose minimum is the reply's TTL, so
 *	                      that clients may cache it (RFC 2308)
 *	EDNS in the question  EDNS in the answer, and an extended error if there is one
 */
#ifndef NET_PROTO_DNS_H
#define NET_PROTO_DNS_H

#include "net/policy/name.h"

enum {
	DNS_UDP_MIN = 512,
	DNS_UDP_SIZE = 1232, /* the most we send or ask for over UDP */
	DNS_QUESTION = 255 + 4,
	DNS_EDE_TEXT = 128, /* the longest text of an extended error that is used */
};

enum dns_rcode {
	DNS_DROP = -1, /* no answer at all: the message is an answer, or too short for an id */
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16, /* needs EDNS */
};

enum dns_type { DNS_A = 1, DNS_SOA = 6, DNS_AAAA = 28, DNS_OPT = 41, DNS_ANY = 255 };

enum dns_ede { DNS_EDE_NONE = -1, DNS_EDE_BLOCKED = 15, DNS_EDE_NOT_READY = 14 };

struct dns_query {
	uint16_t id, type, class;
	uint8_t opcode;
	bool rd, cd;       /* recursion desired, checking disabled: echoed */
	bool edns;         /* the answer has an OPT record too */
	uint16_t udp_size; /* 512 to DNS_UDP_SIZE: the room for an answer over UDP */
	enum name_kind kind;
	char name[NAME_SIZE];           /* canonical when kind is NAME_HOST, else "" */
	uint8_t question[DNS_QUESTION]; /* as it came, for the echo: 0x20 case and all */
	uint16_t question_len;          /* 0 when it could not be read */
};

/*
 * Read a query. DNS_NOERROR: use q->kind and q->name. DNS_DROP: do not answer. Any other code
 * is the answer, and q has what dns_write() needs for it. A name that is valid DNS but not a
 * host name (an address, a byte that no host name has, the root) is not an error here: kind
 * says so, and the answer is DNS_NXDOMAIN.
 */
enum dns_rcode dns_parse(const uint8_t *message, size_t n, struct dns_query *q);

struct dns_reply {
	int rcode; /* enum dns_rcode */
	/* The answer has those whose family the question asks for. */
	const struct address *address;
	size_t n;
	uint32_t ttl;         /* of the addresses, or of the absence of any */
	int ede;              /* enum dns_ede, or any other code of RFC 8914; -1: none */
	const char *ede_text; /* or NULL */
};

/*
 * Write the answer and return its length, at most size. An answer that does not fit is reduced
 * to header and question with TC set, so that the client retries over TCP. 0 when not even
 * those fit, which cannot happen if size is at least DNS_UDP_MIN.
 */
size_t dns_write(const struct dns_query *q, const struct dns_reply *reply, uint8_t *out,
	size_t size);

#endif
