/*
 * host/network-policy.h - the policy of a box's network, from what was asked for
 *
 * Made before the plan, which shows its rules; the broker is given the same struct.
 */
#ifndef HOST_NETWORK_POLICY_H
#define HOST_NETWORK_POLICY_H

#include "manifest/manifest.h"
#include "plan/request.h"

struct fault;
struct policy;

/*
 * The policy of a request, settled: request_settle(). NULL in *ret for a box without a broker
 * (none, host). Of its 300 KiB only the few pages that are used take memory.
 */
int egress_policy(const struct request *r, const struct policy **ret, struct fault *f);

/* The rules of one entry more, for a box that runs. */
int egress_entry(const char *text, bool deny, struct policy *ret, struct fault *f);

/* All entries of an agent that cannot be read, each with its place in the manifest. */
void egress_check(const struct agent *a, problems *bad);

/* Its rules as the plan has them; none of NULL. */
void egress_rules(const struct policy *p, net_rule_vec *ret);

#endif
