/*
 * tests/fuzz/fuzz_policy.c - entries and a question; the matcher against a slow second one
 *
 * The first line is the question, "NAME ADDRESS PORT". Every other line is an entry to
 * allow, or to deny behind a "-"; "=ADDRESS" is one of the host's own, "=ADDRESS/BITS" one in a
 * network that the host is in, "!" makes the policy open. What the parser takes is judged a second time here, from the text of the
 * entry and with addresses as strings of bits; both must agree.
 */
#include "fuzz.h"
#include "base/fault.h"
#include "net/policy/policy.h"

#include <arpa/inet.h>
#include <string.h>

enum { ENTRIES = 64, BITS = 130 };

struct entry {
	char text[300], host[300], prefix[BITS]; /* prefix: "" for what is no address */
	const char *port;                        /* "", "*" or a number */
	bool deny;
};

struct reference {
	struct entry entry[ENTRIES];
	char own[ENTRIES][BITS], net[ENTRIES][BITS]; /* net: "" for none */
	size_t n, n_own;
	bool open;
};

/* ---- addresses as "4" or "6" and their bits ---- */

static bool to_bits(const char *text, char out[BITS])
{
	uint8_t b[16];
	int n = inet_pton(AF_INET, text, b) == 1    ? 32
		: inet_pton(AF_INET6, text, b) == 1 ? 128
						    : 0;

	out[0] = n == 32 ? '4' : '6';
	for (int i = 0; i < n; i++)
		out[i + 1] = b[i / 8] >> (7 - i % 8) & 1 ? '1' : '0';
	out[n + 1] = '\0';
	if (n == 128 && strspn(out + 1, "0") == 80 && strspn(out + 81, "1") >= 16) {
		out[0] = '4';
		memmove(out + 1, out + 97, 33);
	}
	return n > 0;
}

/* "10.0.0.0/8" to the bits that all of it have in common. */
static bool to_prefix(const char *text, char out[BITS])
{
	char copy[300], *slash;

	snprintf(copy, sizeof(copy), "%s", text);
	slash = strchr(copy, '/');
	if (slash)
		*slash = '\0';
	if (!to_bits(copy, out))
		return false;
	if (slash)
		out[1 + atoi(slash + 1)] = '\0';
	return true;
}

static bool begins(const char *bits, const char *prefix)
{
	return !strncmp(bits, prefix, strlen(prefix));
}

static const struct {
	const char *net;
	bool can_open;
} special[] = {
	{ "0.0.0.0/8", false },
	{ "10.0.0.0/8", true },
	{ "100.64.0.0/10", true },
	{ "127.0.0.0/8", false },
	{ "168.63.129.16/32", true },
	{ "169.254.0.0/16", true },
	{ "172.16.0.0/12", true },
	{ "192.0.0.0/24", true },
	{ "192.0.2.0/24", true },
	{ "192.88.99.0/24", false },
	{ "192.168.0.0/16", true },
	{ "198.18.0.0/15", false },
	{ "198.51.100.0/24", true },
	{ "203.0.113.0/24", true },
	{ "224.0.0.0/4", false },
	{ "255.255.255.255/32", false },
	{ "240.0.0.0/4", true },
	{ "2001:db8::/32", true },
	{ "2001::/23", false },
	{ "3fff::/20", true },
	{ "fd63:6172:7265:6c00::/96", false },
	{ "fc00::/7", true },
};

/* The bits of all networks above, and then of these, once. */
enum { SPECIAL = sizeof(special) / sizeof(*special), NAT64 = SPECIAL, SIX, COMPATIBLE };

static const char *network(int i)
{
	static const char *const more[] = { "64:ff9b::/96", "2002::/16", "::/96" };
	static char prefix[COMPATIBLE + 1][BITS];

	if (!prefix[i][0])
		CHECK(to_prefix(i < SPECIAL ? special[i].net : more[i - SPECIAL], prefix[i]));
	return prefix[i];
}

/* Where NAT64, 6to4 and the like lead to; false: it is none of them. */
static bool leads_to(const char *bits, char inner[BITS])
{
	int way = begins(bits, network(NAT64)) ? NAT64 : begins(bits, network(SIX)) ? SIX : 0;

	if (!way && !begins(bits, network(COMPATIBLE)))
		return false;
	snprintf(inner, BITS, "4%.32s", bits + (way == SIX ? 17 : 97));
	return true;
}

/* Public: "". Not public and can be opened by what is inside of it: that. Else "never". */
static const char *special_range(const char *bits)
{
	char inner[BITS];

	for (int i = 0; i < SPECIAL; i++)
		if (begins(bits, network(i)))
			return special[i].can_open ? network(i) : "never";
	if (leads_to(bits, inner) && !begins(bits, network(COMPATIBLE)))
		return *special_range(inner) ? "never" : "";
	return bits[0] == '4' || begins(bits, "6001") ? "" : "never";
}

/* ---- one entry ---- */

/* Host without case, end dot and brackets; returns its port: "", "*" or a number. */
static const char *host_of(const char *text, char host[300])
{
	const char *colon = strrchr(text, ':'), *port = "";
	size_t n = strlen(text);

	if (colon && (colon == strchr(text, ':') || (text[0] == '[' && colon[-1] == ']'))) {
		port = colon + 1;
		n = (size_t)(colon - text);
	}
	if (text[0] == '[') {
		text++;
		n -= 2;
	}
	snprintf(host, 300, "%.*s", (int)n, text);
	for (char *p = host; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p += 'a' - 'A';
	if (n && host[n - 1] == '.')
		host[n - 1] = '\0';
	return port;
}

static bool port_fits(const struct entry *e, int number)
{
	if (!strcmp(e->port, "*") || (!*e->port && e->deny))
		return true;
	return *e->port ? atoi(e->port) == number : number == 80 || number == 443;
}

static bool name_fits(const struct entry *e, const char *name)
{
	size_t n = strlen(name), h = strlen(e->host);

	if (!strcmp(e->host, "*"))
		return true;
	if (e->host[0] != '*')
		return !strcmp(e->host, name);
	if (!e->deny && !strcmp(name, "host.internal"))
		return false;
	return n >= h && !strcmp(name + n - h + 1, e->host + 1);
}

static bool address_fits(const struct entry *e, const char *bits)
{
	char inner[BITS];

	if (!strcmp(e->host, "*"))
		return true;
	if (!e->prefix[0])
		return false;
	return begins(bits, e->prefix) ||
		(e->deny && leads_to(bits, inner) && begins(inner, e->prefix));
}

/* ---- all entries ---- */

static bool any_name(const struct reference *r, bool deny, const char *name, int port)
{
	for (const struct entry *e = r->entry; e < r->entry + r->n; e++)
		if (e->deny == deny && name_fits(e, name) && port_fits(e, port))
			return true;
	return false;
}

static bool any_address(const struct reference *r, bool deny, const char *bits, int port,
	const char *within, bool exact)
{
	for (const struct entry *e = r->entry; e < r->entry + r->n; e++) {
		if (e->deny != deny || !address_fits(e, bits) || !port_fits(e, port))
			continue;
		if (deny || (begins(e->prefix, within) && (!exact || !strcmp(e->prefix, bits))))
			return true;
	}
	return false;
}

static bool may_connect(const struct reference *r, const char *name, int port)
{
	size_t n = strlen(name);

	if (any_name(r, true, name, port))
		return false;
	if (!strcmp(name, "localhost") || (n > 10 && !strcmp(name + n - 10, ".localhost")))
		return false;
	return any_name(r, false, name, port) ||
		(r->open && strcmp(name, "host.internal") != 0);
}

static bool is_own(const struct reference *r, const char *bits)
{
	char inner[BITS] = "";

	leads_to(bits, inner);
	for (size_t i = 0; i < r->n_own; i++)
		if (!strcmp(r->own[i], bits) || !strcmp(r->own[i], inner))
			return true;
	return false;
}

/* The narrowest of the host's networks that it is in, or itself if it leads into one; else "". */
static const char *near_range(const struct reference *r, const char *bits)
{
	const char *found = "";
	char inner[BITS];

	for (size_t i = 0; i < r->n_own; i++)
		if (begins(bits, r->net[i]) && strlen(r->net[i]) > strlen(found))
			found = r->net[i];
	return !*found && leads_to(bits, inner) && *near_range(r, inner) ? bits : found;
}

/* Nothing speaks against the address itself. */
static bool may_dial(const struct reference *r, const char *bits, int port)
{
	const char *special = special_range(bits);
	const char *range = *special ? special : near_range(r, bits);
	bool own = is_own(r, bits);

	if (any_address(r, true, bits, port, "", false) || !strcmp(range, "never"))
		return false;
	return (!*range && !own) || any_address(r, false, bits, port, range, own);
}

static bool may_address(const struct reference *r, const char *bits, int port)
{
	return may_dial(r, bits, port) &&
		(r->open || any_address(r, false, bits, port, "", false));
}

static bool may_resolve_to(const struct reference *r, const char *name, const char *bits,
	int port)
{
	char v4[BITS], v6[BITS];

	if (!may_connect(r, name, port))
		return false;
	if (strcmp(name, "host.internal") != 0)
		return may_dial(r, bits, port);
	to_bits("127.0.0.1", v4);
	to_bits("::1", v6);
	return !strcmp(bits, v4) || !strcmp(bits, v6);
}

/* All ports that any entry speaks of, and one that none does. */
static bool may_name(const struct reference *r, const char *name)
{
	int other = 1024;

	if (may_connect(r, name, 80) || may_connect(r, name, 443))
		return true;
	for (size_t i = 0; i < r->n; i++)
		if (atoi(r->entry[i].port) && may_connect(r, name, atoi(r->entry[i].port)))
			return true;
	for (size_t i = 0; i < r->n; i++)
		if (atoi(r->entry[i].port) == other) {
			other++;
			i = (size_t)-1;
		}
	return may_connect(r, name, other);
}

/* ---- the input ---- */

static void remember(struct reference *r, const char *text, bool deny)
{
	const struct policy_preset *preset;
	struct entry *e = &r->entry[r->n];

	for (size_t i = 0; text[0] == '@' && (preset = policy_preset(i)); i++)
		for (size_t k = 0; !strcmp(preset->name, text) && k < preset->n; k++)
			remember(r, preset->entry[k], deny);
	if (text[0] == '@')
		return;
	CHECK(r->n < ENTRIES && strlen(text) < sizeof(e->text));
	snprintf(e->text, sizeof(e->text), "%s", text);
	e->port = host_of(e->text, e->host);
	if (!to_prefix(e->host, e->prefix))
		e->prefix[0] = '\0';
	e->deny = deny;
	r->n++;
}

static void check_rule(const struct policy_rule *rule)
{
	static struct policy again;
	char text[POLICY_TEXT], back[POLICY_TEXT];
	struct policy_entry e = { text, NULL, rule->deny };
	struct fault f;

	policy_rule_text(rule, text);
	policy_init(&again, false);
	CHECK(policy_parse(&again, &e, 1, NULL, 0, &f) == 0 && again.n == 1);
	policy_rule_text(&again.rule[0], back);
	CHECK(!strcmp(text, back) && again.rule[0].kind == rule->kind);
}

/* The widest of an address's networks counts. */
static void remember_own(struct reference *r, const char bits[BITS], size_t n)
{
	size_t i = 0, known;

	while (i < r->n_own && strcmp(r->own[i], bits) != 0)
		i++;
	if (i == r->n_own) {
		strcpy(r->own[r->n_own++], bits);
		r->net[i][0] = '\0';
	}
	known = r->net[i][0] ? strlen(r->net[i]) - 1 : strlen(bits) - 1;
	if (n && n < known)
		snprintf(r->net[i], BITS, "%.*s", (int)n + 1, bits);
}

static void take_own(struct policy *p, struct reference *r, const char *line)
{
	char text[100] = "", bits[BITS];
	unsigned int n = 0;
	struct address a;

	sscanf(line, "%99[^/]/%3u", text, &n);
	if (r->n_own < ENTRIES && to_bits(text, bits) &&
		address_parse(text, strlen(text), &a)) {
		CHECK(policy_own(p, &a, n));
		remember_own(r, bits, n);
	}
}

static void take_line(struct policy *p, struct reference *r, const char *line)
{
	struct policy_entry e = { line + (line[0] == '-'), "line", line[0] == '-' };
	unsigned int n = p->n;
	struct fault f;

	if (!strcmp(line, "!")) {
		p->open = r->open = true;
	} else if (line[0] == '=') {
		take_own(p, r, line + 1);
	} else if (r->n < ENTRIES - 16 && strlen(line) < 290) {
		if (policy_parse(p, &e, 1, NULL, 0, &f) == 0) {
			remember(r, e.text, e.deny);
			for (; n < p->n; n++)
				check_rule(&p->rule[n]);
		} else {
			CHECK(p->n == n && valid_output(f.text) && valid_output(f.fix));
			CHECK(strstr(f.text, "line: '"));
		}
	}
}

/* What is called vain never decides for a yes. */
static bool is_allowed(const struct policy *p, struct verdict v)
{
	CHECK(!v.allowed || v.rule < 0 || !policy_is_vain(p, &p->rule[v.rule]));
	return v.allowed;
}

static void check_name(const struct policy *p, const struct reference *r, const char *host,
	uint16_t port)
{
	char name[NAME_SIZE];

	if (name_canon(host, strlen(host), name) != NAME_HOST) {
		CHECK(!policy_connect(p, host, port).allowed && !policy_name(p, host).allowed);
		return;
	}
	CHECK(is_allowed(p, policy_connect(p, name, port)) == may_connect(r, name, port));
	CHECK(policy_name(p, name).allowed == may_name(r, name));
}

static void check_address(const struct policy *p, const struct reference *r, const char *host,
	const char *address, uint16_t port)
{
	char name[NAME_SIZE], bits[BITS];
	struct address a;

	if (!to_bits(address, bits) || !address_parse(address, strlen(address), &a))
		return;
	CHECK((address_range(&a) != NULL) == (*special_range(bits) != '\0'));
	CHECK(is_allowed(p, policy_address(p, &a, port)) == may_address(r, bits, port));
	if (name_canon(host, strlen(host), name) == NAME_HOST)
		CHECK(policy_resolved(p, name, &a, port).allowed ==
			may_resolve_to(r, name, bits, port));
}

/* Beside the question itself, what the entries are about and what is always of interest. */
static void ask(const struct policy *p, const struct reference *r, const char *question)
{
	static const char *const addresses[] = { "127.0.0.1", "::1", "0.0.0.0", "10.0.0.1",
		"172.31.255.255", "172.32.0.0", "169.254.169.254", "198.18.1.0", "8.8.8.8",
		"::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8", "2002:808:808::1",
		"2002:a00:1::1", "fd00::1", "fe80::1", "2001:db8::1", "2606:4700::1",
		"ff02::1" };
	char host[300] = "", address[100] = "", other[300];
	uint16_t ports[] = { 443, 22, 80 };

	sscanf(question, "%299s %99s %hu", host, address, &ports[0]);
	ports[0] += !ports[0];

	for (int k = 0; k < 3; k++) {
		check_name(p, r, host, ports[k]);
		check_address(p, r, host, address, ports[k]);
		for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
			check_address(p, r, host, addresses[i], ports[k]);
		for (size_t i = 0; i < r->n && i < 8; i++) {
			snprintf(other, sizeof(other), "%s", r->entry[i].host);
			check_name(p, r, other + (other[0] == '*' && other[1]) * 2, ports[k]);
			other[strcspn(other, "/")] = '\0';
			check_address(p, r, host, other, ports[k]);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy p;
	static struct reference r;
	char *text = strndup((const char *)data, size), *rest = text, *question, *line;

	policy_init(&p, false);
	r.n = r.n_own = 0;
	r.open = false;
	question = strsep(&rest, "\n");
	while ((line = strsep(&rest, "\n")))
		take_line(&p, &r, line);
	ask(&p, &r, question);
	free(text);
	memory_reset();
	return 0;
}
