/*
 * net/own.c - is an address of this machine by now?
 *
 * Theory of operation. There is no netlink in the broker's jail. But a datagram socket that
 * is connected has been routed, without a packet being sent; and what goes to the machine
 * itself goes over loopback. Its largest packet is longer than that of any real network,
 * and as a rule it comes from the very address it goes to.
 *
 * The sockets for that are kept: to make and close one costs more than what is asked. One
 * that was connected has the source of that route, and would be routed from there again: so
 * it is disconnected before it is asked anything else, which also gives its port back.
 *
 * What was asked in this very millisecond of the broker's clock is not asked again: between
 * the question and the connection that it is for a machine can get an address anyhow.
 *
 * Must run: for an address, before the policy is asked about it.
 */
#include "net/own.h"
#include "net/policy.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANY_PORT = 9, LOOPBACK_MTU = 65535 };

static struct probe {
	int fd;
	bool asked;
} probes[2] = { { -1, false }, { -1, false } };

/* What was found last to be another machine's. */
static struct {
	struct address address;
	uint64_t when; /* ms; 0: nothing yet */
} other;

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

static void rest(struct probe *p)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	if (p->asked && connect(p->fd, &nobody, sizeof(nobody)) < 0)
		fd_close(&p->fd);
	p->asked = false;
}

bool own_learn(struct policy *p, const struct address *a, uint64_t now)
{
	const bool v4 = a->family == ADDRESS_V4;
	struct probe *probe = &probes[v4];
	struct address inner;
	bool own;

	if (other.when == now && address_equal(&other.address, a))
		return true;
	/* What leads to it through a gateway, if that turns it back. */
	if (address_embedded(a, &inner) && !own_learn(p, &inner, now))
		return false;
	rest(probe);
	if (probe->fd < 0)
		probe->fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* Without the family nothing can dial it; else something may, in a moment. */
	if (probe->fd < 0)
		return errno == EAFNOSUPPORT;
	probe->asked = true;
	own = v4 ? is_own_v4(probe->fd, a) : is_own_v6(probe->fd, a);
	if (own)
		return policy_own(p, a, 0);
	other.address = *a;
	other.when = now;
	return true;
}

void own_rest(void)
{
	rest(&probes[0]);
	rest(&probes[1]);
}

void own_idle(void)
{
	fd_close(&probes[0].fd);
	fd_close(&probes[1].fd);
	probes[0].asked = probes[1].asked = false;
}
