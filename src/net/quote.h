/*
 * net/quote.h - which datagram the kernel refused
 *
 * Where there is no socket for a datagram the kernel tells its sender so by ICMP, and quotes
 * the beginning of what was sent: addresses and ports. Read from a raw socket that is
 *
 *	IPv4    IP header, ICMP header, quoted: IP header, UDP header, ...
 *	IPv6               ICMP header, quoted: IP header, UDP header, ...
 *
 * The addresses and ports are the box's to choose, so every length is checked. Between the
 * quoted headers there is no other: none that the kernel takes from a sender without a
 * capability and then lets through (Linux 6.18: destination and hop-by-hop options need
 * CAP_NET_RAW, segment routing is off in a new namespace).
 */
#ifndef NET_QUOTE_H
#define NET_QUOTE_H

#include "net/name.h"

enum { QUOTE_MOST = 256 }; /* bytes of a message that are looked at: all four with options */

/* Where it was meant to go; false: this is not about a refused datagram. */
bool quote_read(enum address_family family, const uint8_t *bytes, size_t n, struct address *ret,
	uint16_t *ret_port);

#endif
