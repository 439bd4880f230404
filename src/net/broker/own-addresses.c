/*
 * net/broker/own-addresses.c - has an address become this machine's own?
 *
 * Theory of operation. The jail allows no netlink. But connect(2) on a datagram socket looks up
 * the route without sending a packet, and packets to the machine itself go over loopback.
 * Loopback's MTU is larger than that of any real network, and the source address is then
 * usually the destination itself.
 *
 * Must run: for an address, before the policy judges it.
 */
#include "net/broker/own-addresses.h"
#include "net/policy/policy.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANY_PORT = 9, LOOPBACK_MTU = 65535 };

static bool is_over_loopback(int s, int level, int option)
{
	int mtu = 0;
	socklen_t size = sizeof(mtu);

	return getsockopt(s, level, option, &mtu, &size) == 0 && mtu >= LOOPBACK_MTU;
}

static bool is_own_v4(int s, const struct address *a)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(ANY_PORT) }, from;
	socklen_t size = sizeof(from);

	memcpy(&to.sin_addr, a->byte, 4);
	if (connect(s, (struct sockaddr *)&to, sizeof(to)) < 0)
		return false;
	return is_over_loopback(s, IPPROTO_IP, IP_MTU) ||
		(getsockname(s, (struct sockaddr *)&from, &size) == 0 &&
			!memcmp(&from.sin_addr, a->byte, 4));
}

static bool is_own_v6(int s, const struct address *a)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(ANY_PORT) },
			    from;
	socklen_t size = sizeof(from);

	memcpy(&to.sin6_addr, a->byte, 16);
	if (connect(s, (struct sockaddr *)&to, sizeof(to)) < 0)
		return false;
	return is_over_loopback(s, IPPROTO_IPV6, IPV6_MTU) ||
		(getsockname(s, (struct sockaddr *)&from, &size) == 0 &&
			!memcmp(&from.sin6_addr, a->byte, 16));
}

bool own_learn(struct policy *p, const struct address *a)
{
	const bool v4 = a->family == ADDRESS_V4;
	auto_close int s = -1;
	struct address inner;

	/* An IPv6 address may lead to an IPv4 address of this machine through a gateway. */
	if (address_embedded(a, &inner) && !own_learn(p, &inner))
		return false;
	s = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* Without the family nothing can dial it. With any other error, refuse it. */
	if (s < 0)
		return errno == EAFNOSUPPORT;
	if (v4 ? is_own_v4(s, a) : is_own_v6(s, a))
		return policy_own(p, a, 0);
	return true;
}
