/*
 * box/native/redirect.c - the inside of a network that ends at the broker
 *
 * Theory of operation. The namespace has loopback and nothing else, so no packet can leave it,
 * whatever the box does. A local route sends all addresses to loopback, so any connect(2) finds
 * a route, and every packet arrives:
 *
 *	TCP, to any address            nf_tables gives it to the broker's listener unchanged,
 *	                               with the address that was dialled
 *	UDP to port 53, any address    arrives at the broker's resolver socket, which answers
 *	                               from the address that was asked
 *
 * TCP that the box sends to itself stays there: to 127.0.0.0/8, ::1 and the two addresses that
 * it has on loopback (programs check for an address besides 127.0.0.1 before they look names
 * up). Other packets find no socket, and the kernel refuses them at once: UDP as unreachable,
 * by an ICMP message that quotes the packet. Two raw sockets of the broker receive copies of
 * these messages, and the broker reports them. It can trust them, because nothing else in the
 * namespace can send such ICMP: a raw socket needs a capability, and a ping socket, which a new
 * namespace allows to no group (net.ipv4.ping_group_range), only sends echo requests. The
 * kernel does not rate-limit ICMP on loopback.
 *
 * Both sockets are bound to ports that nobody in the box may bind: below 1024 or, in a box that
 * may use those, up to the resolver's. When the broker is gone, the supervisor refuses
 * connections in its place: without a listener, a connection would reach any server in the box
 * that listens on its port.
 *
 * All of this takes two batches over netlink; `ip` and `nft` would cost three times the rest of
 * a box's start. The stack use fits into one page.
 */
#include "box/native/redirect.h"
#include "base/fault.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LISTENER_PORT = 1,
	RESOLVER_PORT = BROKERS_PORT,
	BACKLOG = 4096,
	LOOPBACK = 1,             /* its interface index */
	QUESTIONS_SIZE = 1 << 20, /* bytes of questions that may be queued */
	TRANSPARENT_V6 = 75,      /* IPV6_TRANSPARENT */
	FREEBIND_V6 = 78,         /* IPV6_FREEBIND: not in every libc's headers */
	ICMP_TYPES = 1,           /* ICMP_FILTER, for both families: its header fits no libc */
	UNREACHABLE = 3,          /* type of ICMP */
	UNREACHABLE_V6 = 1,       /* the same of ICMPv6 */
	BATCH_SIZE = 2048,        /* the batches have fixed lengths below this */
};

static const uint8_t own_v4[4] = { 198, 18, 0, 2 };
static const uint8_t own_v6[16] = { 0xfd, 0x63, 0x61, 0x72, 0x72, 0x65, 0x6c, [15] = 2 };

/* ---- writing netlink messages ---- */

struct batch {
	_Alignas(struct nlmsghdr) char buf[BATCH_SIZE];
	size_t n;
	struct nlmsghdr *message; /* the message being written */
	uint32_t count;
};

static void *put_bytes(struct batch *b, const void *bytes, size_t n)
{
	char *at = b->buf + b->n;

	if (NLMSG_ALIGN(n) > sizeof(b->buf) - b->n)
		BUG("a batch of %zu bytes", b->n + n);
	memcpy(at, bytes, n);
	memset(at + n, 0, NLMSG_ALIGN(n) - n);
	b->n += NLMSG_ALIGN(n);
	b->message->nlmsg_len = (uint32_t)(b->buf + b->n - (char *)b->message);
	return at;
}

static void begin_message(struct batch *b, uint16_t type, uint16_t flags, const void *head,
	size_t n)
{
	struct nlmsghdr h = { .nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_seq = ++b->count };

	b->message = (struct nlmsghdr *)(void *)(b->buf + b->n);
	put_bytes(b, &h, sizeof(h));
	put_bytes(b, head, n);
}

static void attr(struct batch *b, uint16_t type, const void *bytes, size_t n)
{
	const struct nlattr a = { (uint16_t)(sizeof(a) + n), type };

	put_bytes(b, &a, sizeof(a));
	put_bytes(b, bytes, n);
}

static void attr_text(struct batch *b, uint16_t type, const char *text)
{
	attr(b, type, text, strlen(text) + 1);
}

static void attr_be32(struct batch *b, uint16_t type, uint32_t value)
{
	value = htonl(value);
	attr(b, type, &value, sizeof(value));
}

static size_t nest(struct batch *b, uint16_t type)
{
	const struct nlattr a = { sizeof(a), (uint16_t)(type | NLA_F_NESTED) };

	return (size_t)((char *)put_bytes(b, &a, sizeof(a)) - b->buf);
}

static void nest_end(struct batch *b, size_t at)
{
	struct nlattr *a = (struct nlattr *)(void *)(b->buf + at);

	a->nla_len = (uint16_t)(b->n - at);
}

/*
 * The kernel always reports a failure. It reports success only for a message that asks for it:
 * the last. The head of the answer is enough.
 */
static int transact(int protocol, const struct batch *b, uint32_t *ret_which)
{
	auto_close int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
	} answer;

	*ret_which = 0;
	if (s < 0 || send(s, b->buf, b->n, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(s, &answer, sizeof(answer), 0);

		if (n < 0)
			return -errno;
		if (n < (ssize_t)sizeof(answer) || answer.head.nlmsg_type != NLMSG_ERROR)
			continue;
		*ret_which = answer.head.nlmsg_seq;
		return answer.body.error;
	}
}

/* ---- loopback, its addresses and routes ---- */

static void put_loopback(struct batch *b)
{
	const struct ifinfomsg up = { .ifi_family = AF_UNSPEC,
		.ifi_index = LOOPBACK,
		.ifi_flags = IFF_UP,
		.ifi_change = IFF_UP };

	begin_message(b, RTM_NEWLINK, 0, &up, sizeof(up));
}

static void put_family(struct batch *b, uint8_t family, const void *own, uint8_t bytes,
	uint16_t flags)
{
	const struct ifaddrmsg address = { .ifa_family = family,
		.ifa_prefixlen = (uint8_t)(bytes * 8),
		.ifa_flags = IFA_F_NODAD,
		.ifa_index = LOOPBACK };
	const struct rtmsg route = { .rtm_family = family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = RT_SCOPE_HOST,
		.rtm_type = RTN_LOCAL };
	const uint32_t out = LOOPBACK;

	begin_message(b, RTM_NEWADDR, NLM_F_CREATE, &address, sizeof(address));
	attr(b, IFA_LOCAL, own, bytes);
	attr(b, IFA_ADDRESS, own, bytes);
	begin_message(b, RTM_NEWROUTE, (uint16_t)(NLM_F_CREATE | flags), &route, sizeof(route));
	attr(b, RTA_OIF, &out, sizeof(out));
	attr(b, RTA_PREFSRC, own, bytes);
}

/*
 * On a machine without IPv6 the box has none either, and nothing is left open. The same holds
 * where IPv6 is compiled in but switched off, for the machine or for new namespaces.
 */
static bool lacks_v6(int rc)
{
	return rc == -EOPNOTSUPP || rc == -EAFNOSUPPORT || rc == -EACCES || rc == -EPERM ||
		rc == -EINVAL;
}

static int make_addresses(bool *ret_v6)
{
	struct batch b = { 0 };
	uint32_t failed, of_v4;
	int rc;

	put_loopback(&b);
	put_family(&b, AF_INET, own_v4, sizeof(own_v4), 0);
	of_v4 = b.count;
	put_family(&b, AF_INET6, own_v6, sizeof(own_v6), NLM_F_ACK);
	rc = transact(NETLINK_ROUTE, &b, &failed);
	*ret_v6 = rc == 0;
	return failed > of_v4 && lacks_v6(rc) ? 0 : rc;
}

/* ---- nf_tables ---- */

#define TABLE "carrel"
#define CHAIN "in"

static void nft(struct batch *b, uint16_t type, uint16_t flags, bool batch_mark)
{
	const struct nfgenmsg head = { .nfgen_family = batch_mark ? AF_UNSPEC : NFPROTO_INET,
		.version = NFNETLINK_V0,
		.res_id = batch_mark ? htons(NFNL_SUBSYS_NFTABLES) : 0 };

	begin_message(b, (uint16_t)(batch_mark ? type : (NFNL_SUBSYS_NFTABLES << 8) | type),
		flags, &head, sizeof(head));
}

struct expr {
	size_t element, data;
};

static struct expr expr(struct batch *b, const char *name)
{
	struct expr e;

	e.element = nest(b, NFTA_LIST_ELEM);
	attr_text(b, NFTA_EXPR_NAME, name);
	e.data = nest(b, NFTA_EXPR_DATA);
	return e;
}

static void expr_end(struct batch *b, struct expr e)
{
	nest_end(b, e.data);
	nest_end(b, e.element);
}

static void put_value(struct batch *b, uint16_t type, const void *bytes, size_t n)
{
	size_t at = nest(b, type);

	attr(b, NFTA_DATA_VALUE, bytes, n);
	nest_end(b, at);
}

static void add_compare(struct batch *b, uint32_t how, const void *bytes, size_t n)
{
	struct expr e = expr(b, "cmp");

	attr_be32(b, NFTA_CMP_SREG, NFT_REG_1);
	attr_be32(b, NFTA_CMP_OP, how);
	put_value(b, NFTA_CMP_DATA, bytes, n);
	expr_end(b, e);
}

static void load_meta(struct batch *b, uint32_t key)
{
	struct expr e = expr(b, "meta");

	attr_be32(b, NFTA_META_DREG, NFT_REG_1);
	attr_be32(b, NFTA_META_KEY, key);
	expr_end(b, e);
}

static void load_bytes(struct batch *b, uint32_t base, uint32_t offset, uint32_t n)
{
	struct expr e = expr(b, "payload");

	attr_be32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	attr_be32(b, NFTA_PAYLOAD_BASE, base);
	attr_be32(b, NFTA_PAYLOAD_OFFSET, offset);
	attr_be32(b, NFTA_PAYLOAD_LEN, n);
	expr_end(b, e);
}

static void match_protocol(struct batch *b, uint8_t protocol)
{
	load_meta(b, NFT_META_L4PROTO);
	add_compare(b, NFT_CMP_EQ, &protocol, 1);
}

/*
 * Give the packet to the socket on that port, whatever its own port is. Nothing is rewritten.
 */
static void give_to(struct batch *b, uint16_t port)
{
	struct expr e = expr(b, "immediate");

	port = htons(port);
	attr_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	put_value(b, NFTA_IMMEDIATE_DATA, &port, sizeof(port));
	expr_end(b, e);
	e = expr(b, "tproxy");
	attr_be32(b, NFTA_TPROXY_FAMILY, NFPROTO_UNSPEC);
	attr_be32(b, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	expr_end(b, e);
}

/* One address family: where a packet has its destination, and which addresses the box has. */
struct family {
	uint8_t number;
	uint8_t size;   /* bytes of an address */
	uint8_t offset; /* of the destination in the header */
	uint8_t loopback_size;
	uint8_t loopback[16]; /* the first bytes of its addresses on loopback */
	const uint8_t *own;
};

static const struct family families[] = {
	{ NFPROTO_IPV4, 4, 16, 1, { 127 }, own_v4 },
	{ NFPROTO_IPV6, 16, 24, 16, { [15] = 1 }, own_v6 },
};

/* Begin a rule for the TCP of one family, with the destination in the register. */
static size_t begin_rule(struct batch *b, const struct family *family, bool last)
{
	size_t at;

	nft(b, NFT_MSG_NEWRULE,
		(uint16_t)(NLM_F_CREATE | NLM_F_APPEND | (last ? NLM_F_ACK : 0)), false);
	attr_text(b, NFTA_RULE_TABLE, TABLE);
	attr_text(b, NFTA_RULE_CHAIN, CHAIN);
	at = nest(b, NFTA_RULE_EXPRESSIONS);
	load_meta(b, NFT_META_NFPROTO);
	add_compare(b, NFT_CMP_EQ, &family->number, 1);
	match_protocol(b, IPPROTO_TCP);
	load_bytes(b, NFT_PAYLOAD_NETWORK_HEADER, family->offset, family->size);
	return at;
}

/* The listener gets all TCP except to loopback and to the box's own address. */
static void put_rule(struct batch *b, const struct family *family, bool last)
{
	size_t at = begin_rule(b, family, last);

	add_compare(b, NFT_CMP_NEQ, family->loopback, family->loopback_size);
	add_compare(b, NFT_CMP_NEQ, family->own, family->size);
	give_to(b, LISTENER_PORT);
	nest_end(b, at);
}

/* The listener gets the TCP to one loopback address and one port. */
static void put_service(struct batch *b, const struct family *family, const void *address,
	uint16_t port, bool last)
{
	const uint16_t wire_port = htons(port);
	size_t at = begin_rule(b, family, last);

	add_compare(b, NFT_CMP_EQ, address, family->size);
	load_bytes(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(wire_port));
	add_compare(b, NFT_CMP_EQ, &wire_port, sizeof(wire_port));
	give_to(b, LISTENER_PORT);
	nest_end(b, at);
}

const char *egress_service(unsigned short port)
{
	static const uint8_t v4[4] = { 127, 0, 0, 1 }, v6[16] = { [15] = 1 };
	struct batch b = { 0 };
	uint32_t which;
	int rc;

	nft(&b, NFNL_MSG_BATCH_BEGIN, 0, true);
	put_service(&b, &families[0], v4, port, false);
	put_service(&b, &families[1], v6, port, true);
	nft(&b, NFNL_MSG_BATCH_END, 0, true);
	rc = transact(NETLINK_NETFILTER, &b, &which);
	errno = -rc;
	return rc < 0 ? "take the connections to a service with nf_tables" : NULL;
}

static void put_chain(struct batch *b)
{
	size_t hook;

	nft(b, NFT_MSG_NEWTABLE, NLM_F_CREATE, false);
	attr_text(b, NFTA_TABLE_NAME, TABLE);
	nft(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE, false);
	attr_text(b, NFTA_CHAIN_TABLE, TABLE);
	attr_text(b, NFTA_CHAIN_NAME, CHAIN);
	hook = nest(b, NFTA_CHAIN_HOOK);
	/* Packets come in again over loopback, and only there can they be given to a socket. */
	attr_be32(b, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	attr_be32(b, NFTA_HOOK_PRIORITY, 0);
	nest_end(b, hook);
	attr_text(b, NFTA_CHAIN_TYPE, "filter");
}

static int make_rules(void)
{
	struct batch b = { 0 };
	uint32_t which;

	nft(&b, NFNL_MSG_BATCH_BEGIN, 0, true);
	put_chain(&b);
	put_rule(&b, &families[0], false);
	put_rule(&b, &families[1], true);
	nft(&b, NFNL_MSG_BATCH_END, 0, true);
	return transact(NETLINK_NETFILTER, &b, &which);
}

/* ---- sockets ---- */

/* One socket for both families: a new namespace has the default sysctl for that. */
static int bind_socket(int type, uint16_t port, bool v6)
{
	const struct sockaddr_in6 any_v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(port) };
	const struct sockaddr_in any_v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	auto_close int s =
		socket(v6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (s < 0 ||
		bind(s, v6 ? (const void *)&any_v6 : (const void *)&any_v4,
			v6 ? sizeof(any_v6) : sizeof(any_v4)) < 0)
		return -1;
	return take_fd(&s);
}

/*
 * The kernel reports which address was asked, and lets the socket answer from there; IPv6 needs
 * FREEBIND for that. A client retries a lost question only after seconds, so many may be
 * queued, as far as the kernel allows.
 */
static int bind_resolver(bool v6)
{
	const int yes = 1, questions = QUESTIONS_SIZE;
	auto_close int s = bind_socket(SOCK_DGRAM, RESOLVER_PORT, v6);
	int rc;

	if (s < 0)
		return -1;
	if (v6)
		rc = setsockopt(s, IPPROTO_IPV6, IPV6_RECVPKTINFO, &yes, sizeof(yes)) < 0 ||
			setsockopt(s, IPPROTO_IPV6, FREEBIND_V6, &yes, sizeof(yes)) < 0;
	else
		rc = setsockopt(s, IPPROTO_IP, IP_PKTINFO, &yes, sizeof(yes)) < 0;
	setsockopt(s, SOL_SOCKET, SO_RCVBUF, &questions, sizeof(questions));
	return rc ? -1 : take_fd(&s);
}

/*
 * Options that accepted connections inherit: no delay, close(2) resets, and a server in the box
 * may bind the port that was dialled.
 */
static int listen_tuned(int s)
{
	const struct linger reset = { .l_onoff = 1 };
	const int yes = 1;

	if (setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0 ||
		setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) < 0 ||
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0)
		return -1;
	return listen(s, BACKLOG);
}

/* Let the socket answer for addresses that are not ours. */
static int bind_listener(bool v6)
{
	const int yes = 1;
	auto_close int s = bind_socket(SOCK_STREAM, LISTENER_PORT, v6);

	if (s < 0 ||
		setsockopt(s, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
			v6 ? TRANSPARENT_V6 : IP_TRANSPARENT, &yes, sizeof(yes)) < 0 ||
		listen_tuned(s) < 0)
		return -1;
	return take_fd(&s);
}

/*
 * Receives what the kernel refuses, and nothing else. It is only for the journal: without such
 * a socket, on some kernels and in some containers, the kernel still refuses.
 */
static int open_refused(int family, int protocol, const uint32_t *filter, socklen_t size)
{
	int s = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (s >= 0 &&
		setsockopt(s, family == AF_INET ? SOL_RAW : IPPROTO_ICMPV6, ICMP_TYPES, filter,
			size) < 0)
		fd_close(&s);
	return s;
}

static void hear_refusals(bool v6, int ends[NET_ENDS])
{
	/* One bit for each type that the socket does not receive. */
	const uint32_t all = ~0U, only_v4 = ~(1U << UNREACHABLE),
		       only_v6[8] = { ~(1U << UNREACHABLE_V6), all, all, all, all, all, all,
			       all };

	ends[END_REFUSED_V4] = open_refused(AF_INET, IPPROTO_ICMP, &only_v4, sizeof(only_v4));
	if (v6 && ends[END_REFUSED_V4] >= 0)
		ends[END_REFUSED_V6] =
			open_refused(AF_INET6, IPPROTO_ICMPV6, only_v6, sizeof(only_v6));
}

const char *egress_make(int ends[NET_ENDS])
{
	const char *what = "route the box's addresses to its loopback";
	bool v6 = false;
	int rc = make_addresses(&v6);

	if (rc == 0) {
		what = "take connections with nf_tables";
		rc = make_rules();
	}
	if (rc < 0) {
		errno = -rc;
		return what;
	}
	ends[END_LISTENER] = bind_listener(v6);
	if (ends[END_LISTENER] < 0 && v6 &&
		errno == EAFNOSUPPORT) { /* IPv6 exists, but not for us */
		v6 = false;
		ends[END_LISTENER] = bind_listener(v6);
	}
	if (ends[END_LISTENER] < 0)
		return "bind the sockets of the box's network";
	ends[END_RESOLVER] = bind_resolver(v6);
	if (ends[END_RESOLVER] < 0)
		return "bind the sockets of the box's network";
	hear_refusals(v6, ends);
	return NULL;
}

const char *egress_low_ports(void)
{
	char from[8];
	auto_close int s =
		open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);

	snprintf(from, sizeof(from), "%d", BROKERS_PORT + 1);
	if (s < 0 || write(s, from, strlen(from)) < 0)
		return "let the box listen on ports below 1024";
	return NULL;
}

const char *egress_make_proxy(unsigned short port, int *ret_listener)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*ret_listener = s;
	return s < 0 || bind(s, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
			listen_tuned(s) < 0
		? "open the proxy's port in the box"
		: NULL;
}
