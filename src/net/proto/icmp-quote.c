/*
 * net/proto/icmp-quote.c - which datagram the kernel refused
 */
#include "net/proto/icmp-quote.h"

enum {
	VERSION_4 = 4,
	VERSION_6 = 6,
	PROTO_ICMP = 1,
	PROTO_UDP = 17,
	PORT_UNREACHABLE = 3 << 8 | 3,    /* type and code */
	PORT_UNREACHABLE_V6 = 1 << 8 | 4, /* the same of ICMPv6 */
	FRAGMENT = 0x1fff,                /* offset */
	IP_HEAD = 20,
	IP_HEAD_V6 = 40,
	ICMP_HEAD = 8,
	PORTS = 4, /* source and destination: the first bytes of a UDP header */
};

struct rest {
	const uint8_t *at;
	size_t n;
};

static const uint8_t *take_bytes(struct rest *r, size_t n)
{
	const uint8_t *at = r->at;

	if (n > r->n)
		return NULL;
	r->at += n;
	r->n -= n;
	return at;
}

static uint16_t number_at(const uint8_t byte[2])
{
	return (uint16_t)(byte[0] << 8 | byte[1]);
}

/* The IP header, with its options if there are any. */
static const uint8_t *take_ip(struct rest *r, uint8_t protocol)
{
	size_t n = r->n ? (r->at[0] & 15U) * 4 : 0;
	const uint8_t *ip = n < IP_HEAD ? NULL : take_bytes(r, n);

	if (!ip || ip[0] >> 4 != VERSION_4 || ip[9] != protocol || number_at(ip + 6) & FRAGMENT)
		return NULL;
	return ip;
}

static const uint8_t *take_ip_v6(struct rest *r, uint8_t protocol)
{
	const uint8_t *ip = take_bytes(r, IP_HEAD_V6);

	return ip && ip[0] >> 4 == VERSION_6 && ip[6] == protocol ? ip : NULL;
}

static bool take_icmp(struct rest *r, uint16_t what)
{
	const uint8_t *icmp = take_bytes(r, ICMP_HEAD);

	return icmp && number_at(icmp) == what;
}

bool quote_read(enum address_family family, const uint8_t *bytes, size_t n, struct address *ret,
	uint16_t *ret_port)
{
	const bool v6 = family == ADDRESS_V6;
	const uint8_t *ip = NULL, *ports;
	struct rest r = { bytes, n };

	if (v6 && take_icmp(&r, PORT_UNREACHABLE_V6))
		ip = take_ip_v6(&r, PROTO_UDP);
	else if (!v6 && take_ip(&r, PROTO_ICMP) && take_icmp(&r, PORT_UNREACHABLE))
		ip = take_ip(&r, PROTO_UDP);
	ports = ip ? take_bytes(&r, PORTS) : NULL;
	if (!ports)
		return false;
	*ret = v6 ? address_v6(ip + 24) : address_v4(ip + 16);
	*ret_port = number_at(ports + 2);
	return true;
}
