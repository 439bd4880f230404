/*
 * net/proto/icmp-quote.h - which datagram the kernel refused
 *
 * When no socket receives a datagram, the kernel reports that to the sender by ICMP, and quotes
 * the beginning of the datagram: addresses and ports. A raw socket reads it as
 *
 *	IPv4    IP header, ICMP header, quoted: IP header, UDP header, ...
 *	IPv6               ICMP header, quoted: IP header, UDP header, ...
 *
 * The box chooses the addresses and ports, so every length is checked. There is no other header
 * between the quoted ones: the kernel does not let a sender without capabilities add one (Linux
 * 6.18: destination and hop-by-hop options need CAP_NET_RAW, segment routing is off in a new
 * namespace).
 */
#ifndef NET_PROTO_ICMP_QUOTE_H
#define NET_PROTO_ICMP_QUOTE_H

#include "net/policy/name.h"

enum { QUOTE_MOST = 256 }; /* bytes of a message that are read: all four headers with options */

/* The datagram's destination; false: the message is not about a refused datagram. */
bool quote_read(enum address_family family, const uint8_t *bytes, size_t n, struct address *ret,
	uint16_t *ret_port);

#endif
