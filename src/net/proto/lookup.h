/*
 * net/proto/lookup.h - how a name is looked up outside: questions to the host's own name server
 *
 * The client's side of DNS, for the broker, in pieces: the caller owns sockets, ports, time and
 * tries. Nothing here allocates, calls the kernel or keeps state. Names are canonical
 * (name_canon()) and of the kind NAME_HOST.
 *
 *	lookup_config(text of /etc/resolv.conf)
 *	lookup_hosts(text of /etc/hosts)           first: a name found here is not asked
 *	lookup_index(), lookup_find()              the same for a long file
 *	n = lookup_question(name, DNS_A, id, ...)  id from getrandom(2), and a socket of its own
 *	lookup_answer(name, DNS_A, id, ...)        for every packet that comes from the server
 *
 * The result of an answer:
 *
 *	no response, another id, another question   IGNORE: forged or late, keep waiting
 *	an error of the server, nonsense in it      FAILED: ask the next server
 *	TC                                          CUT: retry over TCP; there it is FAILED
 *	NXDOMAIN                                    NO_NAME
 *	no address of the type asked for            NONE
 */
#ifndef NET_PROTO_LOOKUP_H
#define NET_PROTO_LOOKUP_H

#include "net/policy/name.h"

enum {
	LOOKUP_MAX = 16,            /* addresses that are used of one answer */
	LOOKUP_SERVERS = 3,         /* as many as the C library asks */
	LOOKUP_QUESTION_SIZE = 300, /* fits any question */
};

/*
 * Write a question, with recursion desired and without EDNS, as the C library does: some
 * servers do not know EDNS, and long answers come over TCP. Returns its length, or 0 when the
 * name is invalid or does not fit, which cannot happen with a canonical name and
 * LOOKUP_QUESTION_SIZE.
 */
size_t lookup_question(const char *name, uint16_t type, uint16_t id, uint8_t *out, size_t size);

enum lookup_result {
	LOOKUP_OK,
	LOOKUP_NONE,    /* the name exists, without an address of that type */
	LOOKUP_NO_NAME, /* NXDOMAIN */
	LOOKUP_FAILED,  /* SERVFAIL, REFUSED, ..., or not readable: try another server */
	LOOKUP_CUT,     /* ask the same server over TCP */
	LOOKUP_IGNORE,  /* not an answer to this question: keep waiting */
};

struct lookup_answer {
	struct address address[LOOKUP_MAX]; /* without duplicates; a mapped address is IPv4 */
	unsigned int n;
	uint32_t ttl; /* the smallest in the chain; without an address: its SOA's, or 60 */
};

/*
 * Read a possible answer, without the two bytes of length that precede it over TCP. type is
 * DNS_A or DNS_AAAA. The addresses are those of the name itself, or of the names that its
 * CNAMEs lead to in any order. ret is written for OK, NONE and NO_NAME.
 */
enum lookup_result lookup_answer(const char *name, uint16_t type, uint16_t id,
	const uint8_t *message, size_t n, struct lookup_answer *ret);

struct lookup_config {
	struct address server[LOOKUP_SERVERS];
	uint32_t zone[LOOKUP_SERVERS]; /* the server's interface, or 0 */
	unsigned int n;                /* never 0 */
	unsigned int timeout;          /* seconds to wait for each server, 1 to 30 */
	unsigned int attempts;         /* rounds over all servers, 1 to 5 */
};

/*
 * Parse the text of resolv.conf(5). The zone of a server (fe80::1%eth0) is a number, or zone_of
 * translates it: if_nametoindex(3). A server in an unknown zone is skipped, and so is anything
 * else that cannot be parsed. Without a server it is 127.0.0.1, as for the C library.
 */
void lookup_config(const char *resolv_conf, size_t n, unsigned int (*zone_of)(const char *name),
	struct lookup_config *ret);

/* The addresses of a name in the text of hosts(5), of both families; returns their number. */
unsigned int lookup_hosts(const char *text, size_t n, const char *name,
	struct address ret[LOOKUP_MAX]);

/*
 * An entry of an index over a long hosts(5). The list is its own hash table: names with the
 * hash i, modulo its length, begin at `first` of entry i. Entries count from 1.
 */
struct lookup_name {
	uint32_t first, next;   /* 0: none; the order is that of the file */
	uint32_t name, address; /* offsets in the text */
};

struct lookup_index {
	const char *text;
	size_t n;                  /* less than 4 GiB */
	struct lookup_name *names; /* NULL: there is no index, and the text is searched */
	size_t room;
};

/* An upper bound for the number of names; never 0. */
size_t lookup_count(const char *text, size_t n);

/* Build the index. names has room for lookup_count() entries, all zero. */
void lookup_index(struct lookup_index *x);

/* Finds what lookup_hosts() would find. */
unsigned int lookup_find(const struct lookup_index *x, const char *name,
	struct address ret[LOOKUP_MAX]);

#endif
