/*
 * host/network-policy.h - from a request to the policy of a box's network
 *
 * Made before the plan, which shows its rules. The broker gets the same struct.
 */
#ifndef HOST_NETWORK_POLICY_H
#define HOST_NETWORK_POLICY_H

#include "manifest/manifest.h"
#include "plan/request.h"

struct fault;
struct policy;

/*
 * The policy of a request that request_settle() has settled. *ret is NULL for a box without a
 * broker (none, host). The struct has 300 KiB, but only the few pages in use take memory.
 */
int egress_policy(const struct request *r, const struct policy **ret, struct fault *f);

/* The rules of one more entry, for a running box. */
int egress_entry(const char *text, bool deny, struct policy *ret, struct fault *f);

/* Report every entry of an agent that cannot be read, with its place in the manifest. */
void egress_check(const struct agent *a, problems *bad);

/* Its rules as the plan has them; NULL has none. */
void egress_rules(const struct policy *p, net_rule_vec *ret);

#endif
