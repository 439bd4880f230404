/*
 * net/policy/name.h - the one form in which a host is named
 *
 * Whatever names a host (a policy entry, a DNS question, a CONNECT or SOCKS request, an
 * address the box dialled) is brought into one form here, once; verdict, route and dial
 * use that form and nothing else. Two spellings that some resolver would take for the
 * same host come out the same, or one of them is refused.
 *
 * A host name: ASCII letters (lower case), digits, hyphens and underscores in labels of 1
 * to 63 characters that neither begin nor end with a hyphen; 253 characters in all; the
 * one dot that may end it is taken off. Names in other scripts are refused in Unicode and
 * taken in their xn-- form, which is compared as it is and never decoded.
 *
 * An address: IPv4 as four decimal numbers without leading zeros and nothing else; IPv6 in
 * any form of RFC 4291, in brackets or not, without a zone; an IPv4-mapped IPv6 address is
 * the IPv4 address. The forms that inet_aton(3) also reads (127.1, 0x7f.0.0.1, 2130706433,
 * 0177.0.0.1) are neither address nor name: a last label that is a number is refused.
 *
 * Nothing here allocates, calls the kernel or keeps state.
 */
#ifndef NET_POLICY_NAME_H
#define NET_POLICY_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NAME_SIZE = 256, /* room for a name or an address and its NUL */
	NAME_LENGTH = 253,
	NAME_LABEL = 63,
	ADDRESS_SIZE = 46,
};

enum name_kind { NAME_BAD, NAME_HOST, NAME_IPV4, NAME_IPV6 };

/*
 * The canonical form of n bytes, NUL-terminated; an address is without brackets. out is
 * untouched when the kind is NAME_BAD, and may not overlap in.
 */
enum name_kind name_canon(const char *in, size_t n, char out[NAME_SIZE]);

/* What is wrong with it ("has an empty part between dots"), or NULL when it is valid. */
const char *name_why(const char *in, size_t n);

/* Does the canonical name end in .zone? The zone itself does not count. */
bool name_below(const char *name, const char *zone);

/* "localhost" and all below it: always the asker's own loopback (RFC 6761). */
bool name_is_local(const char *name);

/* ---- addresses ---- */

enum address_family { ADDRESS_NONE, ADDRESS_V4 = 4, ADDRESS_V6 = 6 };

struct address {
	uint8_t family;   /* enum address_family */
	uint8_t byte[16]; /* as on the wire; IPv4 in the first four, the rest zero */
};

/* From the bytes of a packet or a sockaddr. A mapped IPv4 address becomes IPv4. */
struct address address_v4(const uint8_t byte[4]);
struct address address_v6(const uint8_t byte[16]);

/* Strict text, no brackets, no port. A mapped IPv4 address becomes IPv4. */
bool address_parse(const char *text, size_t n, struct address *ret);

/* RFC 5952; the IPv6 forms with a dotted quad inside are written in hex. */
void address_format(const struct address *a, char out[ADDRESS_SIZE]);

bool address_equal(const struct address *a, const struct address *b);

/* Is a in net/bits? Never across families. */
bool address_within(const struct address *a, const struct address *net, unsigned int bits);

/* No bit of it set after the first `bits`. */
bool address_is_network(const struct address *net, unsigned int bits);

unsigned int address_bits(const struct address *a); /* 32 or 128 */

/* The IPv4 address that a NAT64, 6to4, IPv4-compatible or mapped address leads to. */
bool address_embedded(const struct address *a, struct address *ret);

/*
 * A range of addresses that are not hosts of the public Internet. If can_open, a policy entry
 * for a network inside the range may allow it; the others are never allowed (loopback,
 * multicast, the addresses that stand for names in a box, ...).
 */
struct address_range {
	struct address net;
	uint8_t bits;
	uint8_t inner; /* offset of an embedded IPv4 address whose own range decides; 0: none */
	bool can_open;
	const char *name; /* "loopback" */
};

/* The range of an address, or NULL when it is public. */
const struct address_range *address_range(const struct address *a);
/* Is it in a range for hosts of private networks (RFC 1918, RFC 4193)? */
bool address_is_site(const struct address *a);

#endif
