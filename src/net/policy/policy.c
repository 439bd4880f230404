/*
 * net/policy/policy.c - the matcher: one verdict from rules, name, address and port
 *
 * Theory of operation. Denials first: the first that covers decides. Then, for addresses,
 * what they are: those of the host itself and those that are not public need a rule of
 * their own. Then the first rule that allows. A rule for a network opens addresses that
 * are not public only if it lies wholly inside such a range: 10.1.0.0/16 opens what it
 * says, 0.0.0.0/0 opens nothing, however wide it is (and with that neither 127.0.0.1 nor
 * the metadata service).
 *
 * Must not: allocate, or resolve a name itself; the caller hands in what was resolved, so
 * that the address judged is the address dialled (rebinding).
 */
#include "net/policy/policy.h"

#include <string.h>

static struct verdict verdict_of(enum policy_reason reason, int rule)
{
	return (struct verdict){ .allowed = reason == POLICY_BY_RULE || reason == POLICY_OPEN,
		.reason = (uint8_t)reason,
		.rule = rule };
}

const char *policy_reason_text(enum policy_reason reason)
{
	static const char *const text[] = {
		[POLICY_BY_RULE] = "allowed",
		[POLICY_OPEN] = "allowed: the network is open",
		[POLICY_DENIED] = "denied by an entry",
		[POLICY_UNLISTED] = "not in the list",
		[POLICY_PORT] = "not allowed on this port",
		[POLICY_PRIVATE] = "not a public address",
		[POLICY_SELF] = "an address of this machine",
		[POLICY_NEAR] = "an address of this machine's network",
		[POLICY_NO_NAME] = "not a host name",
		[POLICY_DATAGRAM] = "UDP is not passed on",
	};

	return text[reason];
}

bool policy_is_about_address(enum policy_reason reason)
{
	return reason == POLICY_PRIVATE || reason == POLICY_SELF || reason == POLICY_NEAR;
}

/* ---- one rule ---- */

static bool has_port(const struct policy_rule *r, uint16_t port)
{
	if (r->ports == PORTS_ALL)
		return true;
	if (r->ports == PORTS_ONE)
		return r->port == port;
	return port == 443 || port == 80;
}

/* A wildcard never allows host.internal: that is not a name but the host's loopback. */
static bool has_name(const struct policy_rule *r, const char *name)
{
	switch (r->kind) {
	case RULE_NAME:
	case RULE_INTERNAL:
		return !strcmp(r->name, name);
	case RULE_BELOW:
		return name_below(name, r->name) && (r->deny || strcmp(name, POLICY_HOST) != 0);
	case RULE_ALL:
		return r->deny;
	}
	return false;
}

static bool has_address(const struct policy_rule *r, const struct address *a)
{
	struct address inner;

	if (r->kind == RULE_ALL)
		return r->deny;
	if (r->kind != RULE_NETWORK)
		return false;
	if (address_within(a, &r->net, r->bits))
		return true;
	/* NAT64 or 6to4 leads to the same host, so it is denied there too. */
	return r->deny && address_embedded(a, &inner) &&
		address_within(&inner, &r->net, r->bits);
}

/* ---- the first rule that covers, or -1 ---- */

static int find_name(const struct policy *p, bool deny, const char *name, uint16_t port)
{
	for (unsigned int i = 0; i < p->n; i++) {
		const struct policy_rule *r = &p->rule[i];

		if (r->deny == deny && has_name(r, name) && has_port(r, port))
			return (int)i;
	}
	return -1;
}

static int find_address(const struct policy *p, bool deny, const struct address *a,
	uint16_t port)
{
	for (unsigned int i = 0; i < p->n; i++) {
		const struct policy_rule *r = &p->rule[i];

		if (r->deny == deny && has_address(r, a) && has_port(r, port))
			return (int)i;
	}
	return -1;
}

/* ---- names ---- */

static bool is_name(const char *name)
{
	char canonical[NAME_SIZE];
	size_t n = strnlen(name, NAME_SIZE);

	return name_canon(name, n, canonical) == NAME_HOST && !strcmp(name, canonical);
}

struct verdict policy_connect(const struct policy *p, const char *name, uint16_t port)
{
	int rule;

	if (!is_name(name))
		return verdict_of(POLICY_NO_NAME, -1);
	rule = find_name(p, true, name, port);
	if (rule >= 0)
		return verdict_of(POLICY_DENIED, rule);
	if (name_is_local(name))
		return verdict_of(POLICY_PRIVATE, -1);
	rule = find_name(p, false, name, port);
	if (rule >= 0)
		return verdict_of(POLICY_BY_RULE, rule);
	if (p->open && strcmp(name, POLICY_HOST) != 0)
		return verdict_of(POLICY_OPEN, -1);
	for (unsigned int i = 0; i < p->n; i++)
		if (!p->rule[i].deny && has_name(&p->rule[i], name))
			return verdict_of(POLICY_PORT, (int)i);
	return verdict_of(POLICY_UNLISTED, -1);
}

/* Is every port denied? Rules for single ports cannot do that: there are too few of them. */
static int find_full_denial(const struct policy *p, const char *name)
{
	for (unsigned int i = 0; i < p->n; i++) {
		const struct policy_rule *r = &p->rule[i];

		if (r->deny && r->ports == PORTS_ALL && has_name(r, name))
			return (int)i;
	}
	return -1;
}

/* Is there a port that this rule allows and no other denies? */
static bool leaves_a_port(const struct policy *p, const struct policy_rule *r, const char *name)
{
	if (r->ports == PORTS_ALL)
		return true;
	if (r->ports == PORTS_ONE)
		return find_name(p, true, name, r->port) < 0;
	return find_name(p, true, name, 443) < 0 || find_name(p, true, name, 80) < 0;
}

struct verdict policy_name(const struct policy *p, const char *name)
{
	int denied, shadowed = -1;

	if (!is_name(name))
		return verdict_of(POLICY_NO_NAME, -1);
	denied = find_full_denial(p, name);
	if (denied >= 0)
		return verdict_of(POLICY_DENIED, denied);
	if (name_is_local(name))
		return verdict_of(POLICY_PRIVATE, -1);
	for (unsigned int i = 0; i < p->n; i++) {
		if (p->rule[i].deny || !has_name(&p->rule[i], name))
			continue;
		if (leaves_a_port(p, &p->rule[i], name))
			return verdict_of(POLICY_BY_RULE, (int)i);
		shadowed = (int)i;
	}
	if (p->open && strcmp(name, POLICY_HOST) != 0)
		return verdict_of(POLICY_OPEN, -1);
	return verdict_of(shadowed < 0 ? POLICY_UNLISTED : POLICY_DENIED, shadowed);
}

/* ---- addresses ---- */

static bool is_own(const struct policy *p, const struct address *a)
{
	struct address inner = *a;
	bool embedded = address_embedded(a, &inner);

	for (unsigned int i = 0; i < p->n_own; i++)
		if (address_equal(&p->own[i], a) ||
			(embedded && address_equal(&p->own[i], &inner)))
			return true;
	return false;
}

/* The prefix length of the narrowest network of the host that contains it; 0: none does. */
static unsigned int near_bits(const struct policy *p, const struct address *a)
{
	struct address inner;
	unsigned int bits = 0;

	for (unsigned int i = 0; i < p->n_own; i++)
		if (p->own_bits[i] > bits && address_within(a, &p->own[i], p->own_bits[i]))
			bits = p->own_bits[i];
	if (!bits && address_embedded(a, &inner) && near_bits(p, &inner))
		bits = address_bits(a);
	return bits;
}

/*
 * The first rule that opens this address: it covers the address and has at least so many bits.
 */
static int find_opening(const struct policy *p, const struct address *a, uint16_t port,
	unsigned int bits)
{
	for (unsigned int i = 0; i < p->n; i++) {
		const struct policy_rule *r = &p->rule[i];

		if (!r->deny && has_address(r, a) && has_port(r, port) && r->bits >= bits)
			return (int)i;
	}
	return -1;
}

/*
 * Judge an address by itself, without a name. POLICY_BY_RULE: that rule opens it. POLICY_OPEN:
 * it is an ordinary public address. Any other reason refuses it.
 */
static struct verdict judge_address(const struct policy *p, const struct address *a,
	uint16_t port)
{
	const struct address_range *range = address_range(a);
	const bool own = is_own(p, a);
	const unsigned int near = range ? range->bits : near_bits(p, a);
	int rule = find_address(p, true, a, port);

	if (rule >= 0)
		return verdict_of(POLICY_DENIED, rule);
	if (range && !range->can_open)
		return verdict_of(POLICY_PRIVATE, -1);
	if (!range && !own && !near)
		return verdict_of(POLICY_OPEN, -1);
	rule = find_opening(p, a, port, own ? address_bits(a) : near);
	if (rule >= 0)
		return verdict_of(POLICY_BY_RULE, rule);
	return verdict_of(own ? POLICY_SELF : range ? POLICY_PRIVATE : POLICY_NEAR, -1);
}

/* The parsers unwrap mapped addresses; this is for addresses that were not parsed. */
static struct address plain(const struct address *a)
{
	return a->family == ADDRESS_V6 ? address_v6(a->byte) : *a;
}

struct verdict policy_address(const struct policy *p, const struct address *addr, uint16_t port)
{
	struct address a = plain(addr);
	struct verdict v = judge_address(p, &a, port);
	int rule;

	if (v.reason != POLICY_OPEN)
		return v;
	rule = find_address(p, false, &a, port);
	if (rule >= 0)
		return verdict_of(POLICY_BY_RULE, rule);
	if (p->open)
		return v;
	for (unsigned int i = 0; i < p->n; i++)
		if (!p->rule[i].deny && has_address(&p->rule[i], &a))
			return verdict_of(POLICY_PORT, (int)i);
	return verdict_of(POLICY_UNLISTED, -1);
}

static bool is_loopback(const struct address *a)
{
	static const uint8_t v4[4] = { 127, 0, 0, 1 }, v6[16] = { [15] = 1 };
	struct address one = address_v4(v4), other = address_v6(v6);

	return address_equal(a, &one) || address_equal(a, &other);
}

struct verdict policy_resolved(const struct policy *p, const char *name,
	const struct address *addr, uint16_t port)
{
	struct verdict by_name = policy_connect(p, name, port), v;
	struct address a = plain(addr);

	if (!by_name.allowed)
		return by_name;
	if (!strcmp(name, POLICY_HOST))
		return is_loopback(&a) ? by_name : verdict_of(POLICY_PRIVATE, -1);
	v = judge_address(p, &a, port);
	return v.reason == POLICY_OPEN ? by_name : v;
}

/* ---- rules ---- */

/* Does the denial cover each host of the rule? */
static bool covers(const struct policy_rule *denial, const struct policy_rule *r)
{
	if (denial->kind == RULE_ALL)
		return true;
	if (r->kind == RULE_BELOW)
		return denial->kind == RULE_BELOW &&
			(!strcmp(r->name, denial->name) || name_below(r->name, denial->name));
	if (r->kind != RULE_NETWORK)
		return has_name(denial, r->name);
	if (r->bits == address_bits(&r->net))
		return has_address(denial, &r->net);
	return denial->kind == RULE_NETWORK && denial->bits <= r->bits &&
		address_within(&r->net, &denial->net, denial->bits);
}

static bool is_denied(const struct policy *p, const struct policy_rule *r, uint16_t port)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (p->rule[i].deny && has_port(&p->rule[i], port) && covers(&p->rule[i], r))
			return true;
	return false;
}

bool policy_is_vain(const struct policy *p, const struct policy_rule *rule)
{
	/* Only a rule that denies all ports denies port 0. */
	const uint16_t first = rule->ports == PORTS_ONE ? rule->port
		: rule->ports == PORTS_WEB              ? 443
							: 0;

	return is_denied(p, rule, first) &&
		(rule->ports != PORTS_WEB || is_denied(p, rule, 80));
}
