/*
 * run/egress.c - the policy of a box's network, from what was asked for
 *
 * Every entry is read, or the box does not start. The addresses of this machine are added, so
 * that a box cannot reach its services by them either: those of the moment, all of them or
 * none at all is started. Of those that come later the broker learns when they are dialled
 * (net/own.h).
 */
#include "run/egress.h"
#include "run/host-presets.h"
#include "net/policy.h"
#include "base/fault.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

/* 300 KiB, of which a few pages are ever touched. */
static struct policy policy;

/* The two files of the user's are read only for whom they matter to. */
static const struct policy_preset unread[] = { { .name = "@npm" }, { .name = "@debian" } };

static bool is_of_host(const char *entry)
{
	for (size_t i = 0; i < ARRAY_SIZE(unread); i++)
		if (!strcmp(entry, unread[i].name))
			return true;
	return false;
}

static int parse(struct policy *p, const struct policy_entry *entry, size_t n, struct fault *f)
{
	struct policy_preset presets[ARRAY_SIZE(unread)];
	bool read = false;

	memcpy(presets, unread, sizeof(unread));
	for (size_t i = 0; i < n; i++)
		read |= is_of_host(entry[i].text);
	if (read)
		presets_of_host(presets);
	return policy_parse(p, entry, n, presets, ARRAY_SIZE(presets), f);
}

static int add_entries(const struct request *r, struct fault *f)
{
	VEC(struct policy_entry) entries = { 0 };

	vec_each(h, &r->hosts)
		vec_push(&entries,
			((struct policy_entry){
				.text = h->entry, .origin = h->origin, .deny = h->deny }));
	return parse(&policy, entries.v, entries.n, f);
}

int egress_entry(const char *text, bool deny, struct policy *ret, struct fault *f)
{
	const struct policy_entry entry = { .text = text, .deny = deny };

	policy_init(ret, false);
	return parse(ret, &entry, 1, f);
}

static void check_list(const struct agent *a, const said_vec *list, const char *key, bool deny,
	problems *bad)
{
	static struct policy unused;

	vec_each(entry, list) {
		struct fault f = { 0 };

		if (egress_entry(entry->text, deny, &unused, &f) < 0)
			manifest_problem(bad, entry->at, manifest_field(a, key), "%s%s%s",
				fault_line(&f), f.fix[0] ? ". " : "", f.fix);
	}
}

void egress_check(const struct agent *a, problems *bad)
{
	check_list(a, &a->network.allow, "network.allow", false, bad);
	check_list(a, &a->network.deny, "network.deny", true, bad);
}

static bool to_address(const struct sockaddr *from, struct address *ret)
{
	if (from && from->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, from, sizeof(in));
		*ret = address_v4((const uint8_t *)&in.sin_addr);
		return true;
	}
	if (from && from->sa_family == AF_INET6) {
		struct sockaddr_in6 in;

		memcpy(&in, from, sizeof(in));
		*ret = address_v6(in.sin6_addr.s6_addr);
		return true;
	}
	return false;
}

static int add_own(struct fault *f)
{
	struct ifaddrs *all;
	bool room = true;

	if (getifaddrs(&all) < 0)
		return fault_set(f, errno, "list the addresses of this machine");
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct address a;

		if (to_address(i->ifa_addr, &a))
			room = policy_own(&policy, &a) && room;
	}
	freeifaddrs(all);
	if (room)
		return 0;
	fault_set(f, 0,
		"this machine has more than %d addresses, which is more than carrel can "
		"keep a box from",
		POLICY_OWN);
	return fault_fix(f, "Use --network none or --network host.");
}

int egress_policy(const struct request *r, const struct policy **ret, struct fault *f)
{
	const struct policy *made = NULL;
	int rc = 0;

	if (network_is_brokered(r->network)) {
		policy_init(&policy, r->network == NETWORK_OPEN);
		rc = add_entries(r, f);
		if (rc == 0)
			rc = add_own(f);
		made = &policy;
	}
	if (rc == 0)
		*ret = made;
	return rc;
}

void egress_rules(const struct policy *p, net_rule_vec *ret)
{
	for (unsigned int i = 0; p && i < p->n; i++) {
		char text[POLICY_TEXT];

		policy_rule_text(&p->rule[i], text);
		vec_push(ret,
			((struct net_rule){
				.text = mem_strdup(text), .deny = p->rule[i].deny }));
	}
}
