/*
 * net/lookup.h - how a name is looked up outside: questions to the host's own name server
 *
 * The client's side of DNS, for the broker, in pieces: the caller owns sockets, ports, time
 * and tries. Nothing here allocates, calls the kernel or keeps state. Names are canonical
 * (name_canon()) and of the kind NAME_HOST.
 *
 *	lookup_config(text of /etc/resolv.conf)
 *	lookup_hosts(text of /etc/hosts)           first, if it is there that is the answer
 *	lookup_index(), lookup_find()              the same, of one that is long
 *	n = lookup_question(name, DNS_A, id, ...)  id from getrandom(2), and a socket of its own
 *	lookup_answer(name, DNS_A, id, ...)        for every packet that comes from the server
 *
 * What decides about an answer:
 *
 *	no response, another id, another question   IGNORE: forged or late, go on waiting
 *	an error of the server, nonsense in it      FAILED: the next server
 *	TC                                          CUT: the same over TCP; there it is FAILED
 *	NXDOMAIN                                    NO_NAME
 *	no address of the type asked for            NONE
 */
#ifndef NET_LOOKUP_H
#define NET_LOOKUP_H

#include "net/name.h"

enum {
	LOOKUP_MAX = 16,            /* addresses that are taken of an answer */
	LOOKUP_SERVERS = 3,         /* as many as the C library asks */
	LOOKUP_QUESTION_SIZE = 300, /* room for any question */
};

/*
 * A question: recursion desired, and no EDNS, as the C library asks: there are servers that do
 * not know it, and what is too long comes over TCP. Returns its length, or 0 when name
 * is no name or there is no room for it: never, with a canonical name and
 * LOOKUP_QUESTION_SIZE.
 */
size_t lookup_question(const char *name, uint16_t type, uint16_t id, uint8_t *out, size_t size);

enum lookup_result {
	LOOKUP_OK,
	LOOKUP_NONE,    /* the name is there, without an address of that type */
	LOOKUP_NO_NAME, /* NXDOMAIN */
	LOOKUP_FAILED, /* SERVFAIL, REFUSED, ..., or not to be understood: try another server */
	LOOKUP_CUT,    /* ask the same server over TCP */
	LOOKUP_IGNORE, /* not an answer to this question: go on waiting */
};

struct lookup_answer {
	struct address address[LOOKUP_MAX]; /* no two the same; a mapped one is IPv4 */
	unsigned int n;
	uint32_t ttl; /* the smallest on the way; of an absence: what its SOA says, else 60 */
};

/*
 * Read what may be an answer, without the two bytes of length that it has over TCP. type is
 * DNS_A or DNS_AAAA. The addresses are those that the answer gives for the name itself or for
 * what its CNAMEs, in whatever order, lead to. ret is written for OK, NONE and NO_NAME.
 */
enum lookup_result lookup_answer(const char *name, uint16_t type, uint16_t id,
	const uint8_t *message, size_t n, struct lookup_answer *ret);

struct lookup_config {
	struct address server[LOOKUP_SERVERS];
	uint32_t zone[LOOKUP_SERVERS]; /* the interface where it is, or 0 */
	unsigned int n;                /* never 0 */
	unsigned int timeout;          /* seconds to wait for each server, 1 to 30 */
	unsigned int attempts;         /* rounds over all servers, 1 to 5 */
};

/*
 * The text of resolv.conf(5). The zone of a server (fe80::1%eth0) is a number, or zone_of says
 * which: if_nametoindex(3). A server in one that is not there is passed over, and so is
 * whatever is not understood. Without a server it is 127.0.0.1, as for the C library.
 */
void lookup_config(const char *resolv_conf, size_t n, unsigned int (*zone_of)(const char *name),
	struct lookup_config *ret);

/* The addresses of a name in the text of hosts(5), of both families; how many there are. */
unsigned int lookup_hosts(const char *text, size_t n, const char *name,
	struct address ret[LOOKUP_MAX]);

/*
 * A name in hosts(5), for who looks for many in a long one. The list is its own table: what
 * has the hash i, modulo its length, begins at first of entry i. Entries count from 1.
 */
struct lookup_name {
	uint32_t first, next;   /* 0: none; the order is that of the file */
	uint32_t name, address; /* where they begin in the text */
};

struct lookup_index {
	const char *text;
	size_t n;                  /* less than 4 GiB */
	struct lookup_name *names; /* NULL: there is no list, the text is read */
	size_t room;
};

/* As many names as there may be in it; never 0. */
size_t lookup_count(const char *text, size_t n);

/* Make the list, in room for as many as that, which are zeros. */
void lookup_index(struct lookup_index *x);

/* What lookup_hosts() would find. */
unsigned int lookup_find(const struct lookup_index *x, const char *name,
	struct address ret[LOOKUP_MAX]);

#endif
