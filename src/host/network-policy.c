/*
 * host/network-policy.c - from a request to the policy of a box's network
 *
 * If an entry cannot be read, the box does not start. The broker adds the addresses of this
 * machine (net/broker/machine.h), so that a box cannot reach its services by those either.
 */
#include "host/network-policy.h"
#include "host/host-presets.h"
#include "net/policy/policy.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>

/* Reads the user's two files only if an entry needs them. */
static const struct policy_preset unread[] = { { .name = "@npm" }, { .name = "@debian" } };

static bool is_of_host(const char *entry)
{
	for (size_t i = 0; i < ARRAY_SIZE(unread); i++)
		if (!strcmp(entry, unread[i].name))
			return true;
	return false;
}

static int parse_entries(struct policy *p, const char *workspace,
	const struct policy_entry *entry, size_t n, struct fault *f)
{
	struct policy_preset presets[ARRAY_SIZE(unread)];
	const char *real;
	bool read = false;

	memcpy(presets, unread, sizeof(unread));
	for (size_t i = 0; i < n; i++)
		read |= is_of_host(entry[i].text);
	if (read) {
		real = fd_real_path(workspace ? workspace : ".");
		if (!real)
			return fault_set(f, errno, "find the workspace");
		presets_of_host(real, presets);
	}
	return policy_parse(p, entry, n, presets, ARRAY_SIZE(presets), f);
}

static int add_entries(const struct request *r, struct policy *policy, struct fault *f)
{
	VEC(struct policy_entry) entries = { 0 };

	vec_each(h, &r->hosts)
		vec_push(&entries,
			((struct policy_entry){
				.text = h->entry, .origin = h->origin, .deny = h->deny }));
	return parse_entries(policy, r->workspace, entries.v, entries.n, f);
}

int egress_entry(const char *text, bool deny, struct policy *ret, struct fault *f)
{
	const struct policy_entry entry = { .text = text, .deny = deny };

	policy_init(ret, false);
	return parse_entries(ret, NULL, &entry, 1, f);
}

static void check_list(const struct agent *a, const said_vec *list, const char *key, bool deny,
	problems *bad)
{
	static struct policy *unused;

	if (!unused)
		unused = mem_alloc(sizeof(*unused));
	vec_each(entry, list) {
		struct fault f = { 0 };

		if (egress_entry(entry->text, deny, unused, &f) < 0)
			manifest_problem(bad, entry->at, manifest_field(a, key), "%s%s%s",
				fault_line(&f), f.fix[0] ? ". " : "", f.fix);
	}
}

void egress_check(const struct agent *a, problems *bad)
{
	check_list(a, &a->network.allow, "network.allow", false, bad);
	check_list(a, &a->network.deny, "network.deny", true, bad);
}

int egress_policy(const struct request *r, const struct policy **ret, struct fault *f)
{
	struct policy *made = NULL;
	int rc = 0;

	if (network_is_brokered(r->network)) {
		made = mem_alloc(sizeof(*made));
		policy_init(made, r->network == NETWORK_OPEN);
		rc = add_entries(r, made, f);
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
