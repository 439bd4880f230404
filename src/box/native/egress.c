/*
 * box/native/egress.c - the inside of a network that ends at the broker
 *
 * Theory of operation. The namespace has loopback and nothing else: there is no way out for
 * a packet, whatever is done in the box. All addresses are routed to loopback (a local
 * route for everything), so that any connect(2) finds a route, and all that is sent arrives:
 *
 *	TCP, to wherever               nf_tables gives it to the listener, which the broker
 *	                               holds: as it is, for the address that was dialled
 *	UDP to port 53, to wherever    by itself at the resolver's socket, which it holds
 *	                               too, and which answers from the address that was asked
 *
 * but for the TCP that the box sends to itself: to 127.0.0.0/8, ::1 and the two addresses
 * that it has on loopback (programs ask whether there is one besides 127.0.0.1 before they
 * look names up). What is neither finds no socket, and the kernel refuses it at once: UDP
 * as unreachable, by an ICMP message that quotes what was refused. The broker has two raw
 * sockets that get a copy of those, and tells of them. It may believe them: nobody else in
 * the namespace can send ICMP, for which it takes a raw socket, and so a capability, or a ping
 * socket, which a new namespace gives to no group (net.ipv4.ping_group_range) and which
 * can only send echo requests. Nor does the kernel ration ICMP on loopback.
 *
 * Both sockets are bound to ports that nobody in the box may bind: below 1024, or in a box
 * that may have those, up to the resolver's. When the broker is gone the supervisor refuses in
 * its stead: with no listener at all a connection would find whoever in the box listens on the
 * port it was for.
 *
 * All of it is said over netlink in two batches. `ip` and `nft` would cost three times the
 * rest of a box's start. What is on the stack fits into one page.
 */
#include "box/native/egress.h"
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
	LOOPBACK = 1,             /* index */
	QUESTIONS_SIZE = 1 << 20, /* bytes of them that may wait */
	TRANSPARENT_V6 = 75,      /* IPV6_TRANSPARENT and */
	FREEBIND_V6 = 78,         /* IPV6_FREEBIND: not in every libc's headers */
	ICMP_TYPES = 1,           /* ICMP_FILTER, of both families: its header suits no libc */
	UNREACHABLE = 3,          /* type of ICMP */
	UNREACHABLE_V6 = 1,       /* of ICMPv6 */
	BATCH_SIZE = 1536,        /* what is written has a fixed length, which is less */
};

static const uint8_t own_v4[4] = { 198, 18, 0, 2 };
static const uint8_t own_v6[16] = { 0xfd, 0x63, 0x61, 0x72, 0x72, 0x65, 0x6c, [15] = 2 };

/* ---- writing netlink messages ---- */

struct batch {
	_Alignas(struct nlmsghdr) char buf[BATCH_SIZE];
	size_t n;
	struct nlmsghdr *message; /* that is being written */
	uint32_t count;
};

static void *put(struct batch *b, const void *bytes, size_t n)
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

static void begin(struct batch *b, uint16_t type, uint16_t flags, const void *head, size_t n)
{
	struct nlmsghdr h = { .nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_seq = ++b->count };

	b->message = (struct nlmsghdr *)(void *)(b->buf + b->n);
	put(b, &h, sizeof(h));
	put(b, head, n);
}

static void attr(struct batch *b, uint16_t type, const void *bytes, size_t n)
{
	const struct nlattr a = { (uint16_t)(sizeof(a) + n), type };

	put(b, &a, sizeof(a));
	put(b, bytes, n);
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

	return (size_t)((char *)put(b, &a, sizeof(a)) - b->buf);
}

static void nest_end(struct batch *b, size_t at)
{
	struct nlattr *a = (struct nlattr *)(void *)(b->buf + at);

	a->nla_len = (uint16_t)(b->n - at);
}

/*
 * A failure is always told; that all went well, only of the one that asks for it: the last. Of
 * the answer its head is enough.
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

	begin(b, RTM_NEWLINK, 0, &up, sizeof(up));
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

	begin(b, RTM_NEWADDR, NLM_F_CREATE, &address, sizeof(address));
	attr(b, IFA_LOCAL, own, bytes);
	attr(b, IFA_ADDRESS, own, bytes);
	begin(b, RTM_NEWROUTE, (uint16_t)(NLM_F_CREATE | flags), &route, sizeof(route));
	attr(b, RTA_OIF, &out, sizeof(out));
	attr(b, RTA_PREFSRC, own, bytes);
}

/*
 * A machine without IPv6 has a box without: nothing there could be left open. So has one
 * where it is compiled in, and switched off for this machine or for new namespaces.
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

	begin(b, (uint16_t)(batch_mark ? type : (NFNL_SUBSYS_NFTABLES << 8) | type), flags,
		&head, sizeof(head));
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

static void compare(struct batch *b, uint32_t how, const void *bytes, size_t n)
{
	struct expr e = expr(b, "cmp");

	attr_be32(b, NFTA_CMP_SREG, NFT_REG_1);
	attr_be32(b, NFTA_CMP_OP, how);
	put_value(b, NFTA_CMP_DATA, bytes, n);
	expr_end(b, e);
}

static void match_protocol(struct batch *b, uint8_t protocol)
{
	struct expr e = expr(b, "meta");

	attr_be32(b, NFTA_META_DREG, NFT_REG_1);
	attr_be32(b, NFTA_META_KEY, NFT_META_L4PROTO);
	expr_end(b, e);
	compare(b, NFT_CMP_EQ, &protocol, 1);
}

/* Where an address of n bytes is that it goes to: unless it begins so, or is the box's own. */
static void match_elsewhere(struct batch *b, uint32_t offset, const void *loopback,
	size_t loopback_n, const void *own, uint32_t n)
{
	struct expr e = expr(b, "payload");

	attr_be32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	attr_be32(b, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	attr_be32(b, NFTA_PAYLOAD_OFFSET, offset);
	attr_be32(b, NFTA_PAYLOAD_LEN, n);
	expr_end(b, e);
	compare(b, NFT_CMP_NEQ, loopback, loopback_n);
	compare(b, NFT_CMP_NEQ, own, n);
}

/* To a socket on that port, whatever port it was for: "transparently", nothing is rewritten. */
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

/*
 * TCP is taken, unless it goes to loopback or to the box's own address. One rule is for both
 * families, because every expression of a rule costs the start of a box more than a
 * microsecond, and asks both for either's destination: what stands in a packet of the other
 * there (half of its source; the TCP header) is no such address. Who makes it one, with options
 * or a source that is not theirs, is not taken, and so connects to nothing but their own box.
 */
static void put_rule(struct batch *b)
{
	static const uint8_t loopback_v6[16] = { [15] = 1 }, net_127 = 127;
	const uint32_t destination_v4 = 16, destination_v6 = 24;
	size_t at;

	nft(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK, false);
	attr_text(b, NFTA_RULE_TABLE, TABLE);
	attr_text(b, NFTA_RULE_CHAIN, CHAIN);
	at = nest(b, NFTA_RULE_EXPRESSIONS);
	match_protocol(b, IPPROTO_TCP);
	match_elsewhere(b, destination_v4, &net_127, 1, own_v4, sizeof(own_v4));
	match_elsewhere(b, destination_v6, loopback_v6, sizeof(loopback_v6), own_v6,
		sizeof(own_v6));
	give_to(b, LISTENER_PORT);
	nest_end(b, at);
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
	/* What was sent comes in again, by loopback: there it can be given to a socket. */
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
	put_rule(&b);
	nft(&b, NFNL_MSG_BATCH_END, 0, true);
	return transact(NETLINK_NETFILTER, &b, &which);
}

/* ---- sockets ---- */

/* For both families in one: a new namespace has no sysctl that says otherwise. */
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
 * The kernel's word on which address was asked, and its leave to answer from there: for IPv6
 * that takes more than a route. Whose question is lost asks again after seconds, so many may
 * wait; the kernel gives what it may.
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
 * What its connections inherit, from the first one on: nothing waits for more to send, to close
 * one is to reset it, and a server in the box may bind the port that was dialled.
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

/* The kernel's leave to answer for addresses that are not ours. */
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
 * Hears of what the kernel refuses, and of nothing else. It is for the record alone: a kernel
 * or a container that has no such socket refuses all the same, and has the box without it.
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
	/* Of each type that is not to be heard, a bit. */
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
	if (ends[END_LISTENER] < 0 && v6 && errno == EAFNOSUPPORT) { /* there, but not to us */
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
