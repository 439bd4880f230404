/*
 * harness/client-network.c - what an agent can reach
 *
 * An agent without a network section reaches its client's own hosts and no others: the mode is
 * allow, and the list is the client's. `network.allow` replaces that list, even if it is empty.
 * The command line adds to either. With mode none the lists only count if the command line sets
 * another mode. With mode host, lists, ports and limits could only mislead, and are refused.
 */
#include "harness/harness.h"
#include "harness/env-forms.h"
#include "manifest/manifest.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "base/str.h"

#include <string.h>

/* ---- what cannot be ---- */

static void refuse_in_host_mode(const struct agent *a, const char *key, problems *bad)
{
	manifest_problem(bad, manifest_at(a, key), manifest_field(a, key),
		"with mode \"host\" nothing is filtered: use \"allow\" or \"open\"");
}

static void check_host_mode(const struct agent *a, problems *bad)
{
	const struct {
		const char *key;
		bool said;
	} keys[] = {
		{ "network.allow", a->network.allow.n },
		{ "network.deny", a->network.deny.n },
		{ "network.ports", a->network.ports.n },
		{ "network.services", a->network.services.n },
		{ "network.proxy", a->network.proxy == FLAG_ON },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].said)
			refuse_in_host_mode(a, keys[i].key, bad);
	for (const struct limit_row *l = limit_first(LIMIT_OF_NETWORK); l; l = limit_next(l))
		if (limit_is_set(&a->limits, l))
			refuse_in_host_mode(a, mem_printf("limits.%s", l->name), bad);
}

void harness_check_network(const struct agent *a, problems *bad)
{
	enum network mode = harness_mode(a);

	if (mode == NETWORK_HOST)
		check_host_mode(a, bad);
	if (a->network.ask == FLAG_ON && (mode == NETWORK_HOST || mode == NETWORK_OPEN))
		manifest_problem(bad, a->network.mode.at, manifest_field(a, "network.ask"),
			"is for mode \"allow\": with \"%s\" no host is left to ask about",
			network_name(mode));
	vec_each(port, &a->network.ports) {
		struct port_pair pair;
		const char *problem = port_problem(port->text, &pair);

		if (problem)
			manifest_problem(bad, port->at, manifest_field(a, "network.ports"),
				"\"%s\": %s", str_visible(port->text), problem);
	}
	vec_each(service, &a->network.services) {
		unsigned short port;
		const char *problem = service_problem(service->text, &port);

		if (problem)
			manifest_problem(bad, service->at,
				manifest_field(a, "network.services"), "\"%s\": %s",
				str_visible(service->text), problem);
	}
}

/* ---- what is asked for ---- */

enum network harness_mode(const struct agent *a)
{
	const char *said = a->network.mode.text;

	for (int mode = NETWORK_NONE; said && mode <= NETWORK_HOST; mode++)
		if (!strcmp(said, network_name((enum network)mode)))
			return (enum network)mode;
	return NETWORK_ALLOW;
}

bool harness_says_hosts(const struct agent *a)
{
	return a->network.allow.v;
}

void harness_hosts(const struct harness *h, const struct job *job, name_vec *ret)
{
	if (h->add_hosts)
		h->add_hosts(job, ret);
	for (size_t i = 0; h->hosts && h->hosts[i]; i++)
		vec_push(ret, h->hosts[i]);
}

static void add_list(const struct agent *a, const said_vec *list, const char *key, bool deny,
	struct request *r)
{
	vec_each(entry, list)
		vec_push(&r->hosts,
			((struct request_host){ .entry = entry->text,
				.origin = env_where(entry, manifest_field(a, key)),
				.deny = deny }));
}

void harness_network(const struct harness *h, const struct job *job, struct request *r)
{
	const struct agent *a = job->agent;
	__typeof__(r->hosts) asked = r->hosts;
	enum network mode = r->network_said ? r->network : harness_mode(a);
	bool own = mode == NETWORK_ALLOW && !harness_says_hosts(a);
	name_vec hosts = { 0 };

	r->network = request_mode(r, mode);
	if (!network_is_brokered(r->network))
		return;
	memset(&r->hosts, 0, sizeof(r->hosts));
	if (own)
		harness_hosts(h, job, &hosts);
	vec_each(host, &hosts)
		vec_push(&r->hosts,
			((struct request_host){ .entry = *host, .origin = h->title }));
	add_list(a, &a->network.allow, "network.allow", false, r);
	add_list(a, &a->network.deny, "network.deny", true, r);
	vec_each(host, &asked)
		vec_push(&r->hosts, *host);
	r->proxy |= a->network.proxy == FLAG_ON;
	r->ask |= r->network == NETWORK_ALLOW && a->network.ask == FLAG_ON;
	vec_each(port, &a->network.ports)
		vec_push(&r->ports, port->text);
	vec_each(service, &a->network.services) {
		vec_push(&r->services, service->text);
		vec_push(&r->hosts,
			((struct request_host){
				.entry = mem_printf("host.internal:%s", service->text),
				.origin = env_where(service,
					manifest_field(a, "network.services")) }));
	}
}
