/*
 * plan/network-mode.c - modes of the network, and what can be asked for in each
 *
 * none    the box's own loopback
 * allow   through the broker: what an entry allows
 * open    through the broker: the public Internet, except what an entry denies
 * host    the host's own network; carrel filters nothing there, so lists are refused
 *
 * The mode decides which namespaces the box has, and the box is begun before there is a plan.
 * So the request settles it. The entries become rules in host/network-policy.c, because only
 * net/ knows the language; the plan gets their texts.
 */
#include "plan/internal.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/str.h"

#include <string.h>

/* ---- ports ---- */

/* Decimal, no sign, no leading zero, and not 0; returns the text that follows. */
static const char *port_number(const char *text, unsigned short *ret)
{
	unsigned int value = 0, n = 0;

	if (text[0] == '0')
		return NULL;
	for (; text[n] >= '0' && text[n] <= '9' && n < 5; n++)
		value = value * 10 + (unsigned int)(text[n] - '0');
	if (!n || value > 65535)
		return NULL;
	*ret = (unsigned short)value;
	return text + n;
}

bool port_parse(const char *text, struct port_pair *ret)
{
	struct port_pair p = { 0 };
	const char *rest = port_number(text, &p.host);

	p.box = p.host;
	if (rest && *rest == ':')
		rest = port_number(rest + 1, &p.box);
	if (!rest || *rest)
		return false;
	*ret = p;
	return true;
}

const char *port_problem(const char *text, struct port_pair *ret)
{
	if (!port_parse(text, ret))
		return "expected PORT or HOST:BOX, such as 3000 or 8080:80, each from 1 to "
		       "65535";
	return ret->box <= BROKERS_PORT ? "nothing in a box can listen on port 53 or below it"
					: NULL;
}

const char *service_problem(const char *text, unsigned short *ret)
{
	const char *rest = port_number(text, ret);

	if (!rest || *rest)
		return "expected a port, such as 5432, from 1 to 65535";
	return *ret <= BROKERS_PORT ? "ports up to 53 of a box are carrel's own" : NULL;
}

void request_services(const struct request *r, struct frame *ret)
{
	vec_each(text, &r->services) {
		unsigned short port = 0;
		bool known = service_problem(*text, &port) != NULL;

		for (unsigned int i = 0; i < ret->n_services; i++)
			known |= ret->services[i] == port;
		if (!known && ret->n_services < MOST_SERVICES)
			ret->services[ret->n_services++] = port;
	}
}

bool request_low_ports(const struct request *r)
{
	struct port_pair pair;

	vec_each(text, &r->ports)
		if (port_parse(*text, &pair) && pair.box < LOW_PORTS)
			return true;
	return false;
}

static int add_ports(const struct request *r, struct plan *p, struct fault *f)
{
	vec_each(text, &r->ports) {
		struct port_pair pair;
		const char *problem = port_problem(*text, &pair);
		bool known = false;

		if (problem)
			return fault_set(f, 0, "port '%s': %s", str_visible(*text), problem);
		vec_each(other, &p->ports) {
			if (other->host != pair.host)
				continue;
			if (other->box != pair.box)
				return fault_set(f, 0,
					"port %u of this machine cannot lead to both %u and %u "
					"of the box",
					pair.host, other->box, pair.box);
			known = true;
		}
		if (!known && p->ports.n == MOST_PORTS)
			return fault_set(f, 0, "port '%s' is one too many: a box can have %d",
				*text, MOST_PORTS);
		if (!known)
			vec_push(&p->ports, pair);
	}
	return 0;
}

/* ---- modes ---- */

static const struct request_host *first_host(const struct request *r, bool deny)
{
	vec_each(h, &r->hosts)
		if (h->deny == deny)
			return h;
	return NULL;
}

enum network request_mode(const struct request *r, enum network mode)
{
	bool needs = first_host(r, false) || r->ask || r->ports.n;

	return mode == NETWORK_NONE && !r->network_said && needs ? NETWORK_ALLOW : mode;
}

static int cannot(const struct request *r, const char *option, const char *needs,
	struct fault *f)
{
	static const char *const why[] = {
		[NETWORK_NONE] = "there is no network in this box",
		[NETWORK_ALLOW] = "the network is 'allow'",
		[NETWORK_OPEN] = "the network is 'open', where every other host is allowed",
		[NETWORK_HOST] = "the network is the host's own, where nothing is filtered",
	};

	fault_set(f, 0, "%s: %s", option, why[r->network]);
	return fault_fix(f, "It can be used with %s.", needs);
}

int request_settle(struct request *r, struct fault *f)
{
	const char *brokered = "--network allow or --network open";
	bool broker;

	r->network = request_mode(r, r->network);
	broker = network_is_brokered(r->network);
	if (!broker && r->hosts.n)
		return cannot(r,
			mem_printf("%s %s", r->hosts.v[0].origin,
				str_visible(r->hosts.v[0].entry)),
			brokered, f);
	if (!broker && r->proxy)
		return cannot(r, "--proxy", brokered, f);
	if (r->ask && r->network != NETWORK_ALLOW)
		return cannot(r, "--ask", "--network allow", f);
	for (const struct limit_row *l = limit_first(LIMIT_OF_NETWORK); l && !broker;
		l = limit_next(l))
		if (limit_is_set(&r->limits, l))
			return cannot(r, mem_printf("--limit %s", l->name), brokered, f);
	if (r->services.n && r->proxy)
		return fault_set(f, 0,
			"--service %s: with --proxy nothing comes to the broker by itself; ask "
			"the proxy for host.internal:%s",
			str_visible(r->services.v[0]), str_visible(r->services.v[0]));
	if (r->services.n > MOST_SERVICES)
		return fault_set(f, 0, "--service %s is one too many: a box can have %d",
			str_visible(r->services.v[MOST_SERVICES]), MOST_SERVICES);
	if (!broker && r->ports.n)
		return cannot(r, mem_printf("--port %s", str_visible(r->ports.v[0])), brokered,
			f);
	return 0;
}

int plan_add_network(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f)
{
	p->net_rules = h->net_rules;
	p->ask = r->ask;
	vec_each(host, &r->hosts)
		if (!host->deny && network_is_brokered(r->network))
			vec_push(&p->reaches, host->entry);
	return add_ports(r, p, f);
}
