/*
 * net/policy/policy-parse.c - from entries to rules
 *
 * Theory of operation. The parser splits an entry into host and port, and brings the host into
 * canonical form with name_canon(). The result is one rule; a preset gives several. Anything it
 * does not understand is an error: an entry that is ignored or guessed at would allow too much
 * or deny nothing. Entries that can never have an effect are errors too (loopback, a preset
 * without its @).
 *
 * Runs before a box starts, and in the supervisor when a host is allowed later. Messages
 * allocate memory, rules do not.
 */
#include "net/policy/policy.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Why an entry is invalid: text to follow its name, and what to do. */
struct wrong {
	const char *why, *fix;
};

enum { SHOWN = 120 };

#define FIX_HOST "For a service on this machine write host.internal:PORT."

/* ---- messages ---- */

/* Entries come from files and may hold any bytes: shorten them and make them printable. */
static const char *shown_entry(const char *text)
{
	if (strlen(text) <= SHOWN)
		return str_visible(text);
	return mem_printf("%s...", str_visible(mem_strndup(text, SHOWN)));
}

static int complain(const struct policy_entry *e, const char *text, const struct wrong *w,
	struct fault *f)
{
	const char *in = e->text == text ? "" : mem_printf("%s: ", shown_entry(e->text));
	int r;

	r = fault_set(f, 0, "%s%s%s'%s' %s", e->origin ? shown_entry(e->origin) : "",
		e->origin ? ": " : "", in, shown_entry(text), w->why);
	return w->fix ? fault_fix(f, "%s", w->fix) : r;
}

/* ---- one entry ---- */

/* Host and port of an entry; port is NULL when there is none. */
struct parts {
	const char *host, *port;
	size_t host_len;
	bool bracket;
};

static bool split_bracket(const char *text, struct parts *ret, struct wrong *w)
{
	const char *end = strchr(text, ']');

	if (!end || (end[1] && end[1] != ':')) {
		w->why = "has no port after the bracket";
		w->fix = "Write [2001:db8::1]:443 or [2001:db8::/32]:443.";
		return false;
	}
	*ret = (struct parts){ .host = text + 1,
		.host_len = (size_t)(end - text - 1),
		.port = end[1] ? end + 2 : NULL,
		.bracket = true };
	if (memchr(ret->host, ':', ret->host_len))
		return true;
	w->why = "has no IPv6 address in its brackets";
	return false;
}

/* A text with two colons is an IPv6 address without a port. */
static bool split_entry(const char *text, struct parts *ret, struct wrong *w)
{
	const char *colon = strchr(text, ':');

	if (strstr(text, "://")) {
		w->why = "is a URL";
		w->fix = "Write the host alone, or host:port.";
		return false;
	}
	if (text[0] == '[')
		return split_bracket(text, ret, w);
	if (colon && strchr(colon + 1, ':'))
		colon = NULL;
	*ret = (struct parts){ .host = text,
		.host_len = colon ? (size_t)(colon - text) : strlen(text),
		.port = colon ? colon + 1 : NULL };
	return true;
}

/* Decimal, no sign, no leading zero, at most max. */
static bool parse_number(const char *s, size_t n, unsigned int max, unsigned int *ret)
{
	unsigned int value = 0;

	if (!n || n > 5 || (s[0] == '0' && n > 1))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		value = value * 10 + (unsigned int)(s[i] - '0');
	}
	if (value > max)
		return false;
	*ret = value;
	return true;
}

static bool parse_port(const char *port, struct policy_rule *r, struct wrong *w)
{
	unsigned int value;

	if (!port) {
		r->ports = r->deny ? PORTS_ALL : PORTS_WEB;
		return true;
	}
	if (!strcmp(port, "*")) {
		r->ports = PORTS_ALL;
		return true;
	}
	if (parse_number(port, strlen(port), 65535, &value) && value) {
		r->ports = PORTS_ONE;
		r->port = (uint16_t)value;
		return true;
	}
	w->why = "has no port from 1 to 65535, and no *, after its colon";
	if (strpbrk(port, ",-"))
		w->fix = "One port each: for more write more entries.";
	return false;
}

/* ---- addresses ---- */

/* A network inside a range that is never opened would only mislead. */
static bool check_network(const struct policy_rule *r, struct wrong *w)
{
	const struct address_range *range = address_range(&r->net);
	bool inside = range && r->bits >= range->bits &&
		(!range->inner || r->bits == address_bits(&r->net));

	if (r->deny || !inside || range->can_open)
		return true;
	w->why = mem_printf("is in a range that is never opened (%s)", range->name);
	if (!strcmp(range->name, "loopback") || !strcmp(range->name, "this network"))
		w->fix = FIX_HOST;
	return false;
}

static bool parse_network(const char *s, size_t n, const char *slash, struct policy_rule *r,
	struct wrong *w)
{
	size_t len = (size_t)(slash - s);
	unsigned int bits;
	char out[ADDRESS_SIZE];

	if (!address_parse(s, len, &r->net)) {
		w->why = "has a slash, and no address before it";
		w->fix = "Write the host alone; paths cannot be told apart.";
		return false;
	}
	if (r->net.family == ADDRESS_V4 && memchr(s, ':', len)) {
		w->why = "is an IPv4 network in IPv6 form";
		w->fix = "Write it as IPv4.";
		return false;
	}
	if (!parse_number(slash + 1, n - len - 1, address_bits(&r->net), &bits)) {
		w->why = "has no number of bits after its slash that fits";
		return false;
	}
	if (!address_is_network(&r->net, bits)) {
		address_format(&r->net, out);
		w->why = mem_printf("has bits set after the first %u", bits);
		w->fix = mem_printf("For that one address write %s.", out);
		return false;
	}
	r->bits = (uint8_t)bits;
	return check_network(r, w);
}

/* ---- names ---- */

static bool parse_star(const char *s, size_t n, struct policy_rule *r, struct wrong *w)
{
	if (n == 1) {
		r->kind = RULE_ALL;
		if (r->deny)
			return true;
		w->why = "would allow every host";
		w->fix = "That is the mode \"open\".";
		return false;
	}
	if (s[0] != '*' || s[1] != '.' || memchr(s + 2, '*', n - 2)) {
		w->why = "has a * that is not all of its first part";
		w->fix = "Write *.example.org for all names that end in .example.org.";
		return false;
	}
	r->kind = RULE_BELOW;
	w->why = name_why(s + 2, n - 2);
	if (w->why)
		return false;
	if (name_canon(s + 2, n - 2, r->name) == NAME_HOST)
		return true;
	w->why = "has a * before an address";
	w->fix = "Write a network, such as 10.0.0.0/8.";
	return false;
}

static bool check_name(struct policy_rule *r, struct wrong *w)
{
	if (name_is_local(r->name) && !r->deny) {
		w->why = "is the box's own loopback, which needs no entry";
		w->fix = FIX_HOST;
		return false;
	}
	if (r->kind != RULE_NAME || strcmp(r->name, POLICY_HOST) != 0)
		return true;
	r->kind = RULE_INTERNAL;
	if (r->deny || r->ports == PORTS_ONE)
		return true;
	w->why = "needs the number of one port";
	w->fix = FIX_HOST;
	return false;
}

static bool parse_host(const struct parts *parts, struct policy_rule *r, struct wrong *w)
{
	const char *s = parts->host, *slash = memchr(s, '/', parts->host_len);
	size_t n = parts->host_len;
	enum name_kind kind;

	r->kind = RULE_NETWORK;
	if (slash)
		return parse_network(s, n, slash, r, w);
	if (memchr(s, '*', n))
		return parse_star(s, n, r, w) && check_name(r, w);
	w->why = name_why(s, n);
	if (w->why)
		return false;
	kind = name_canon(s, n, r->name);
	if (kind == NAME_HOST) {
		r->kind = RULE_NAME;
		return check_name(r, w);
	}
	address_parse(r->name, strlen(r->name), &r->net);
	memset(r->name, 0, sizeof(r->name));
	r->bits = (uint8_t)address_bits(&r->net);
	return check_network(r, w);
}

static bool parse_rule(const char *text, bool deny, struct policy_rule *ret, struct wrong *w)
{
	struct policy_rule r = { .deny = deny };
	struct parts parts;

	*w = (struct wrong){ 0 };
	if (!split_entry(text, &parts, w) || !parse_port(parts.port, &r, w) ||
		!parse_host(&parts, &r, w))
		return false;
	*ret = r;
	return true;
}

/* ---- lists ---- */

static bool same_rule(const struct policy_rule *a, const struct policy_rule *b)
{
	return a->kind == b->kind && a->ports == b->ports && a->deny == b->deny &&
		a->bits == b->bits && a->port == b->port && address_equal(&a->net, &b->net) &&
		!strcmp(a->name, b->name);
}

bool policy_has(const struct policy *p, const struct policy_rule *rule)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (same_rule(&p->rule[i], rule))
			return true;
	return false;
}

/* Skip a rule that exists already. */
static bool add_rule(struct policy *p, const struct policy_rule *rule, struct wrong *w)
{
	if (policy_has(p, rule))
		return true;
	if (p->n == POLICY_RULES) {
		w->why =
			mem_printf("is one too many: there is room for %d rules", POLICY_RULES);
		return false;
	}
	p->rule[p->n] = *rule;
	p->rule[p->n++].entry = p->entries;
	return true;
}

struct presets {
	const struct policy_preset *v;
	size_t n;
};

/* The caller's presets first, then the built-in ones. */
static const struct policy_preset *preset_at(const struct presets *own, size_t i)
{
	return i < own->n ? &own->v[i] : policy_preset(i - own->n);
}

static const struct policy_preset *find_preset(const struct presets *own, const char *name)
{
	const struct policy_preset *preset;

	for (size_t i = 0; (preset = preset_at(own, i)); i++)
		if (!strcmp(preset->name, name))
			return preset;
	return NULL;
}

static void unknown_preset(const struct presets *own, const char *text, struct wrong *w)
{
	VEC(const char *) names = { 0 };
	const struct policy_preset *preset;
	struct str all = { 0 };
	const char *near;

	for (size_t i = 0; (preset = preset_at(own, i)); i++) {
		vec_push(&names, preset->name);
		str_addf(&all, "%s%s", i ? ", " : "", preset->name);
	}
	w->why = "is not the name of a preset";
	if (strchr(text, ':'))
		w->why = "is not the name of a preset, which has its own ports";
	near = str_nearest(text, names.v, names.n);
	w->fix = near ? mem_printf("Did you mean %s?", near)
		      : mem_printf("There are %s.", all.p);
}

static int add_preset(struct policy *p, const struct policy_entry *e, const struct presets *own,
	struct fault *f)
{
	const struct policy_preset *preset = find_preset(own, e->text);
	struct policy_rule rule;
	struct wrong w = { 0 };

	if (!preset) {
		unknown_preset(own, e->text, &w);
		return complain(e, e->text, &w, f);
	}
	if (!preset->n) {
		w.why = preset->missing ? mem_printf("is empty: %s", preset->missing)
					: "is empty on this machine";
		return complain(e, e->text, &w, f);
	}
	for (size_t i = 0; i < preset->n; i++)
		if (!parse_rule(preset->entry[i], e->deny, &rule, &w) ||
			!add_rule(p, &rule, &w))
			return complain(e, preset->entry[i], &w, f);
	return 0;
}

/* "github" is a valid host, but nobody means it; "github." is accepted. */
static bool forgot_at(const struct presets *own, const char *text, struct wrong *w)
{
	const char *name = mem_printf("@%s", text);

	if (!find_preset(own, name))
		return false;
	w->why = "is the name of a preset without its @";
	w->fix = mem_printf("Write %s, or %s. with a dot for a host of that name.", name, text);
	return true;
}

static int add_entry(struct policy *p, const struct policy_entry *e, const struct presets *own,
	struct fault *f)
{
	struct policy_rule rule;
	struct wrong w = { 0 };

	if (e->text[0] == '@')
		return add_preset(p, e, own, f);
	if (forgot_at(own, e->text, &w) || !parse_rule(e->text, e->deny, &rule, &w) ||
		!add_rule(p, &rule, &w))
		return complain(e, e->text, &w, f);
	return 0;
}

void policy_init(struct policy *p, bool open)
{
	p->open = open;
	p->entries = 0;
	p->n = p->n_own = 0;
}

int policy_parse(struct policy *p, const struct policy_entry *entry, size_t n,
	const struct policy_preset *preset, size_t n_preset, struct fault *f)
{
	struct presets own = { preset, n_preset };
	struct wrong full = { .why = "is one too many: there is room for 65535 entries" };
	uint16_t entries = p->entries;
	unsigned int rules = p->n;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		r = p->entries < UINT16_MAX ? add_entry(p, &entry[i], &own, f)
					    : complain(&entry[i], entry[i].text, &full, f);
		if (!r)
			p->entries++;
	}
	if (r) {
		p->n = rules;
		p->entries = entries;
	}
	return r;
}

bool policy_own(struct policy *p, const struct address *a, unsigned int bits)
{
	struct address own = a->family == ADDRESS_V6 ? address_v6(a->byte) : *a;
	unsigned int i = 0;

	while (i < p->n_own && !address_equal(&p->own[i], &own))
		i++;
	if (i == POLICY_OWN)
		return false;
	if (i == p->n_own) {
		p->own[p->n_own++] = own;
		p->own_bits[i] = 0;
	}
	/* If the address is in two networks, on two interfaces, the wider one counts. */
	if (bits && bits < address_bits(&own) && (!p->own_bits[i] || bits < p->own_bits[i]))
		p->own_bits[i] = (uint8_t)bits;
	return true;
}

/* ---- and back ---- */

static void network_text(const struct policy_rule *r, char out[POLICY_TEXT])
{
	bool bracket = r->net.family == ADDRESS_V6 && r->ports != PORTS_WEB;
	char address[ADDRESS_SIZE], bits[8] = "";

	address_format(&r->net, address);
	if (r->bits != address_bits(&r->net))
		snprintf(bits, sizeof(bits), "/%u", r->bits);
	snprintf(out, POLICY_TEXT, "%s%s%s%s", bracket ? "[" : "", address, bits,
		bracket ? "]" : "");
}

void policy_rule_text(const struct policy_rule *r, char out[POLICY_TEXT])
{
	/* A single word looks like a preset without its @; a final dot marks it as a host. */
	bool word = r->kind == RULE_NAME && r->ports == PORTS_WEB && !strchr(r->name, '.');
	size_t n;

	if (r->kind == RULE_NETWORK)
		network_text(r, out);
	else
		snprintf(out, POLICY_TEXT, "%s%s%s",
			r->kind == RULE_BELOW         ? "*."
				: r->kind == RULE_ALL ? "*"
						      : "",
			r->name, word ? "." : "");
	n = strlen(out);
	if (r->ports == PORTS_ONE)
		snprintf(out + n, POLICY_TEXT - n, ":%u", r->port);
	else if (r->ports == PORTS_ALL)
		snprintf(out + n, POLICY_TEXT - n, ":*");
}
