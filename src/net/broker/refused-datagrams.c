/*
 * net/broker/refused-datagrams.c - report datagrams that the box's kernel refused
 *
 * The kernel refuses them with or without the broker: no socket receives them, and there is no
 * way out. The broker only reports them, by name where the address stands for one. A program
 * may repeat a datagram for ever, so each destination is reported once in a while. A program
 * may also send to many destinations, so a limit covers all of them together (broker.c).
 *
 * What the box sends to itself is not reported, as with TCP.
 */
#include "net/broker/broker-state.h"
#include "net/proto/icmp-quote.h"

#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

enum {
	AT_ONCE = 64,     /* in one round */
	DROP_MOST = 1024, /* at once; the kernel queues about 300 */
	AGAIN_MS = 10000, /* before the same destination is reported again */
};

static bool is_told(const struct address *to, uint16_t port)
{
	for (unsigned int i = 0; i < REFUSALS; i++) {
		const struct refusal *r = &broker.refusals[i];

		if (r->told && broker.now - r->told < AGAIN_MS && r->port == port &&
			address_equal(&r->to, to))
			return true;
	}
	return false;
}

static void report_datagram(const struct address *to, uint16_t port)
{
	struct net_event e = {
		.kind = NET_DATAGRAM, .reason = POLICY_DATAGRAM, .address = *to, .port = port
	};
	const char *name = synth_lookup(&broker.synth, to);

	if (name)
		strcpy(e.name, name);
	broker_event(&e);
	broker.refusals[broker.refusal_next++ % REFUSALS] =
		(struct refusal){ .told = broker.now, .to = *to, .port = port };
	if (!--broker.tells.left)
		broker_limit(LIMIT_REFUSAL_RATE);
}

/* The kernel queues few of them, and drops the rest before the broker sees them. */
static void see_dropped(unsigned int i)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(info);

	if (getsockopt(broker.refused[i], SOL_SOCKET, SO_MEMINFO, info, &size) < 0 ||
		info[SK_MEMINFO_DROPS] == broker.refused_dropped[i])
		return;
	broker.refused_dropped[i] = info[SK_MEMINFO_DROPS];
	broker_limit(LIMIT_REFUSAL_RATE);
}

void refused_hear(unsigned int i)
{
	uint8_t bytes[QUOTE_MOST];
	struct address to;
	uint16_t port;

	see_dropped(i);
	for (int k = 0; k < AT_ONCE && broker.tells.left && broker.hears.left; k++) {
		ssize_t n = recv(broker.refused[i], bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n < 0)
			return;
		if (!--broker.hears.left)
			broker_limit(LIMIT_REFUSAL_RATE);
		if (quote_read(i ? ADDRESS_V6 : ADDRESS_V4, bytes, (size_t)n, &to, &port) &&
			!broker_is_box(&to) && !is_told(&to, port))
			report_datagram(&to, port);
	}
}

void refused_drop(unsigned int i)
{
	uint8_t byte;

	for (int k = 0; k < DROP_MOST; k++)
		if (recv(broker.refused[i], &byte, 1, MSG_DONTWAIT) < 0)
			return;
}
