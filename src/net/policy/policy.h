/*
 * net/policy/policy.h - which hosts, addresses and ports a box may reach
 *
 * The parser turns entries into rules, in the supervisor and before anything starts. The
 * matcher searches the rules, in the jailed broker. A policy is one flat struct without
 * pointers and can be copied or shared as it is. carrel-network(7) has the language.
 *
 *	host  *.host  address  network/bits     each with :PORT or :* or neither
 *	[v6]:PORT  [v6/bits]:PORT               IPv6 needs brackets for a port
 *	host.internal:PORT                      a service on the host's loopback
 *	@preset                                 the entries of a table
 *	*  *:PORT                               in denials only: everything
 *
 * Without a port an entry allows 443 and 80, and denies all ports. A denial wins over an
 * allowed entry, in any order. Only what an entry allows is allowed, unless the policy is open:
 * then everything is allowed that is on the public Internet and not denied. A name alone does
 * not reach an address that is not public (net/policy/name.h): an address entry must cover it.
 * Names given to the matcher are canonical (name_canon()).
 *
 * The matcher allocates nothing, makes no system call and takes time in proportion to the
 * rules.
 */
#ifndef NET_POLICY_POLICY_H
#define NET_POLICY_POLICY_H

#include "net/policy/name.h"

struct fault;

enum {
	POLICY_RULES = 1024,
	POLICY_OWN = 256, /* addresses of the host itself */
	POLICY_TEXT = NAME_SIZE + 16,
};

#define POLICY_HOST "host.internal"

enum rule_kind {
	RULE_NAME,     /* host */
	RULE_BELOW,    /* *.host */
	RULE_NETWORK,  /* address, network/bits */
	RULE_INTERNAL, /* host.internal */
	RULE_ALL,      /* *, in denials only */
};

enum rule_ports { PORTS_WEB, PORTS_ONE, PORTS_ALL }; /* WEB: 443 and 80 */

struct policy_rule {
	uint8_t kind, ports; /* enum rule_kind, enum rule_ports */
	bool deny;
	uint8_t bits;
	uint16_t port;
	uint16_t entry; /* the number of its entry, among all ever added, from 0 */
	struct address net;
	char name[NAME_SIZE];
};

struct policy {
	bool open;
	uint16_t entries;
	unsigned int n, n_own;
	struct address own[POLICY_OWN];
	uint8_t own_bits[POLICY_OWN]; /* prefix length of its network; 0: none */
	struct policy_rule rule[POLICY_RULES];
};

/* ---- making one: policy-parse.c ---- */

struct policy_entry {
	const char *text;
	const char *origin; /* for messages: "carrel.json:3:7: agents.x.network.allow" */
	bool deny;
};

/*
 * A preset that depends on the machine ("@npm", "@debian"): entries from the user's own
 * configuration. Using one without entries is an error, and `missing` says why ("no registry in
 * your npm configuration").
 */
struct policy_preset {
	const char *name; /* with the @ */
	const char *const *entry;
	size_t n;
	const char *missing;
};

void policy_init(struct policy *p, bool open);

/* Add the rules of all entries, or none and a fault that says which entry and why. */
int policy_parse(struct policy *p, const struct policy_entry *entry, size_t n,
	const struct policy_preset *preset, size_t n_preset, struct fault *f);

/* Does the policy have this rule, from any entry? */
bool policy_has(const struct policy *p, const struct policy_rule *rule);

/*
 * Add an address of the host. Only an entry for exactly that address reaches it. With bits,
 * other addresses of that network are reached only by an entry inside it. False when there is
 * no room: the caller must not go on.
 */
bool policy_own(struct policy *p, const struct address *a, unsigned int bits);

/* The rule as an entry that parses to the same rule. */
void policy_rule_text(const struct policy_rule *rule, char out[POLICY_TEXT]);

/* presets.c: the i-th built-in preset; NULL after the last. */
const struct policy_preset *policy_preset(size_t i);

/* ---- asking it: policy.c ---- */

enum policy_reason {
	POLICY_BY_RULE,  /* yes: a rule allows it */
	POLICY_OPEN,     /* yes: the policy is open, and nothing forbids it */
	POLICY_DENIED,   /* no: a rule denies it */
	POLICY_UNLISTED, /* no: no rule names this host */
	POLICY_PORT,     /* no: the host is allowed, on other ports */
	POLICY_PRIVATE,  /* no: not an address of the public Internet */
	POLICY_SELF,     /* no: an address of the host itself */
	POLICY_NEAR,     /* no: public, but in a network that the host is in */
	POLICY_NO_NAME,  /* no: not a host name */
	POLICY_DATAGRAM, /* no: UDP, to any host; the box's kernel refuses it */
};

struct verdict {
	bool allowed;
	uint8_t reason; /* enum policy_reason */
	int rule;       /* the rule that decided, or -1 */
};

const char *policy_reason_text(enum policy_reason reason);
/* Does the reason concern the address rather than the name? */
bool policy_is_about_address(enum policy_reason reason);

/*
 * Do denials cover all that the rule allows? Only a single denial as wide as the rule counts,
 * for each port; several narrower ones together are not considered.
 */
bool policy_is_vain(const struct policy *p, const struct policy_rule *rule);

/* May the name be looked up, because some port of it might be reached? */
struct verdict policy_name(const struct policy *p, const char *name);

/* May the name be connected to? Its addresses are judged separately. */
struct verdict policy_connect(const struct policy *p, const char *name, uint16_t port);

/* The same for an address that the box dialled directly. */
struct verdict policy_address(const struct policy *p, const struct address *a, uint16_t port);

/*
 * The final check before dialling: may name be connected to at this address, which it resolved
 * to? Includes policy_connect(). For host.internal the address is loopback.
 */
struct verdict policy_resolved(const struct policy *p, const char *name,
	const struct address *a, uint16_t port);

#endif
