/*
 * net/policy.h - which hosts, addresses and ports a box may reach
 *
 * The parser turns entries into rules, in the supervisor and before anything starts; the
 * matcher looks through them, in the jailed broker. A policy is one flat struct without
 * pointers and can be copied or shared as it is. carrel-network(7) has the language.
 *
 *	host  *.host  address  network/bits     each with :PORT or :* or neither
 *	[v6]:PORT  [v6/bits]:PORT               IPv6 needs brackets for a port
 *	host.internal:PORT                      a service on the host's loopback
 *	@preset                                 the entries of a table
 *	*  *:PORT                               to deny only: whatever it is
 *
 * Without a port an entry allows 443 and 80, and denies all. A denial wins over what is
 * allowed, wherever it stands. Nothing is allowed that no entry allows, unless the policy
 * is open: then everything is but what is denied and what is not on the public Internet.
 * What is not public (net/name.h) is never reached by a name alone: an address entry must
 * cover it. Names given to the matcher are canonical (name_canon()).
 *
 * The matcher allocates nothing, calls nothing and takes time in proportion to the rules.
 */
#ifndef NET_POLICY_H
#define NET_POLICY_H

#include "net/name.h"

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
	RULE_ALL,      /* *, denied */
};

enum rule_ports { PORTS_WEB, PORTS_ONE, PORTS_ALL }; /* WEB: 443 and 80 */

struct policy_rule {
	uint8_t kind, ports; /* enum rule_kind, enum rule_ports */
	bool deny;
	uint8_t bits;
	uint16_t port;
	uint16_t entry; /* which of the entries that were ever added, from 0 */
	struct address net;
	char name[NAME_SIZE];
};

struct policy {
	bool open;
	uint16_t entries;
	unsigned int n, n_own;
	struct address own[POLICY_OWN];
	uint8_t own_bits[POLICY_OWN]; /* of the network that it is in; 0: of none */
	struct policy_rule rule[POLICY_RULES];
};

/* ---- making one: policy-parse.c ---- */

struct policy_entry {
	const char *text;
	const char *origin; /* for messages: "carrel.json:3:7: agents.x.network.allow" */
	bool deny;
};

/*
 * A preset that depends on the machine, "@npm" and "@debian": what the user's own
 * configuration says, as entries. One without entries that is asked for is an error, and
 * `missing` says why ("no registry in your npm configuration").
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

/* Is the same rule there, whichever entry it came of? */
bool policy_has(const struct policy *p, const struct policy_rule *rule);

/*
 * An address of the host: reached by an entry for exactly that address, and no other way. Of
 * the network that it is in, if it is one, others are reached by an entry inside of that.
 * False when there is no room: then the caller must not go on.
 */
bool policy_own(struct policy *p, const struct address *a, unsigned int bits);

/* The rule as an entry that would make it again. */
void policy_rule_text(const struct policy_rule *rule, char out[POLICY_TEXT]);

/* presets.c: the built-in table; NULL after the last. */
const struct policy_preset *policy_preset(size_t i);

/* ---- asking it: policy.c ---- */

enum policy_reason {
	POLICY_BY_RULE,  /* yes: a rule allows it */
	POLICY_OPEN,     /* yes: nothing speaks against it in an open policy */
	POLICY_DENIED,   /* no: a rule denies it */
	POLICY_UNLISTED, /* no: no rule is about this host */
	POLICY_PORT,     /* no: the host is allowed, on other ports */
	POLICY_PRIVATE,  /* no: not an address of the public Internet */
	POLICY_SELF,     /* no: an address of the host itself */
	POLICY_NEAR,     /* no: public, but of a network that the host is in */
	POLICY_NO_NAME,  /* no: not a host name */
	POLICY_DATAGRAM, /* no: UDP, whatever the host; the box's kernel says so */
};

struct verdict {
	bool allowed;
	uint8_t reason; /* enum policy_reason */
	int rule;       /* that decided, or -1 */
};

const char *policy_reason_text(enum policy_reason reason);

/*
 * Is all that the rule allows denied by others? On each port by one that is as wide: what
 * several narrower ones come to is not looked at.
 */
bool policy_is_vain(const struct policy *p, const struct policy_rule *rule);

/* May the name be looked up: is there a port on which it might be reached? */
struct verdict policy_name(const struct policy *p, const char *name);

/* May it be connected to, as far as its name says? */
struct verdict policy_connect(const struct policy *p, const char *name, uint16_t port);

/* The same for an address that the box dialled as such. */
struct verdict policy_address(const struct policy *p, const struct address *a, uint16_t port);

/*
 * The last word before dialling: may name be connected to at this address, which is what
 * it resolved to? Asks policy_connect() too. For host.internal the address is loopback.
 */
struct verdict policy_resolved(const struct policy *p, const char *name,
	const struct address *a, uint16_t port);

#endif
