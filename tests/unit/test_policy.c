/*
 * tests/unit/test_policy.c - entries to rules, and rules to verdicts
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "net/policy/policy.h"

static const char *const npm_hosts[] = { "packages.example.org", "packages.example.org:8443" };

static const struct policy_preset own_presets[] = {
	{ .name = "@npm", .entry = npm_hosts, .n = ARRAY_SIZE(npm_hosts) },
	{ .name = "@debian", .missing = "no mirror in your apt configuration" },
};

/* "a b -c": allowed a and b, denied c. */
static int parse(struct policy *p, const char *text, struct fault *f)
{
	char *copy = mem_strdup(text), *word, *save = NULL;
	VEC(struct policy_entry) list = { 0 };

	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		bool deny = word[0] == '-';

		vec_push(&list, ((struct policy_entry){ word + deny, "--allow", deny }));
	}
	return policy_parse(p, list.v, list.n, own_presets, ARRAY_SIZE(own_presets), f);
}

static struct policy *policy(const char *text, bool open)
{
	struct policy *p = mem_alloc(sizeof(*p));
	struct fault f = { 0 };

	policy_init(p, open);
	if (parse(p, text, &f))
		fail_msg("'%s': %s", text, f.text);
	return p;
}

static struct address address(const char *text)
{
	struct address a;

	if (!address_parse(text, strlen(text), &a))
		fail_msg("'%s' is no address", text);
	return a;
}

/* ---- the language ---- */

/* What an entry is read as, by the entry that would make the same rule. */
static void test_entries(void **state)
{
	static const struct {
		const char *entry;
		enum rule_kind kind;
		const char *text;
	} rows[] = {
		{ "example.org", RULE_NAME, "example.org" },
		{ "Example.ORG.", RULE_NAME, "example.org" },
		{ "example.org:22", RULE_NAME, "example.org:22" },
		{ "example.org.:22", RULE_NAME, "example.org:22" },
		{ "example.org:*", RULE_NAME, "example.org:*" },
		{ "example.org:1", RULE_NAME, "example.org:1" },
		{ "example.org:65535", RULE_NAME, "example.org:65535" },
		{ "intranet", RULE_NAME, "intranet." },
		{ "intranet:80", RULE_NAME, "intranet:80" },
		{ "github.", RULE_NAME, "github." },
		{ "github:443", RULE_NAME, "github:443" },
		{ "xn--bcher-kva.example", RULE_NAME, "xn--bcher-kva.example" },
		{ "*.example.org", RULE_BELOW, "*.example.org" },
		{ "*.Example.org.:8080", RULE_BELOW, "*.example.org:8080" },
		{ "*.example.org:*", RULE_BELOW, "*.example.org:*" },
		{ "*.corp", RULE_BELOW, "*.corp" },
		{ "1.2.3.4", RULE_NETWORK, "1.2.3.4" },
		{ "1.2.3.4/32", RULE_NETWORK, "1.2.3.4" },
		{ "1.2.3.4:22", RULE_NETWORK, "1.2.3.4:22" },
		{ "10.0.0.0/8", RULE_NETWORK, "10.0.0.0/8" },
		{ "10.0.0.0/8:5432", RULE_NETWORK, "10.0.0.0/8:5432" },
		{ "10.0.0.0/8:*", RULE_NETWORK, "10.0.0.0/8:*" },
		{ "0.0.0.0/0", RULE_NETWORK, "0.0.0.0/0" },
		{ "169.254.169.254", RULE_NETWORK, "169.254.169.254" },
		{ "2001:db8::1", RULE_NETWORK, "2001:db8::1" },
		{ "2001:DB8::/32", RULE_NETWORK, "2001:db8::/32" },
		{ "[2001:db8::1]", RULE_NETWORK, "2001:db8::1" },
		{ "[2001:db8::1]:443", RULE_NETWORK, "[2001:db8::1]:443" },
		{ "[2001:db8::/32]:443", RULE_NETWORK, "[2001:db8::/32]:443" },
		{ "[2001:db8::/32]:*", RULE_NETWORK, "[2001:db8::/32]:*" },
		{ "2001:db8::1:443", RULE_NETWORK, "2001:db8::1:443" }, /* all address */
		{ "::/0", RULE_NETWORK, "::/0" },
		{ "::ffff:1.2.3.4", RULE_NETWORK, "1.2.3.4" },
		{ "64:ff9b::/96", RULE_NETWORK, "64:ff9b::/96" },
		{ "host.internal:5432", RULE_INTERNAL, "host.internal:5432" },
		{ "Host.Internal.:5432", RULE_INTERNAL, "host.internal:5432" },
		{ "a.host.internal", RULE_NAME, "a.host.internal" },
		{ "-example.org", RULE_NAME, "example.org:*" },
		{ "-example.org:80", RULE_NAME, "example.org:80" },
		{ "-*.example.org", RULE_BELOW, "*.example.org:*" },
		{ "-10.0.0.0/8", RULE_NETWORK, "10.0.0.0/8:*" },
		{ "-2001:db8::/32", RULE_NETWORK, "[2001:db8::/32]:*" },
		{ "-host.internal", RULE_INTERNAL, "host.internal:*" },
		{ "-127.0.0.1", RULE_NETWORK, "127.0.0.1:*" },
		{ "-localhost", RULE_NAME, "localhost:*" },
		{ "-*", RULE_ALL, "*:*" },
		{ "-*:25", RULE_ALL, "*:25" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy *p = policy(rows[i].entry, false), *again;
		bool deny = rows[i].entry[0] == '-';
		char text[POLICY_TEXT], back[POLICY_TEXT];

		assert_int_equal(p->n, 1);
		assert_int_equal(p->rule[0].kind, rows[i].kind);
		assert_int_equal(p->rule[0].deny, deny);
		policy_rule_text(&p->rule[0], text);
		assert_string_equal(text, rows[i].text);
		again = policy(mem_printf("%s%s", deny ? "-" : "", text), false);
		policy_rule_text(&again->rule[0], back);
		assert_string_equal(back, text);
	}
}

static void test_refused_entries(void **state)
{
	static const struct {
		const char *entry, *why, *fix;
	} rows[] = {
		{ "*", "every host", "\"open\"" },
		{ "*:443", "every host", "\"open\"" },
		{ "*.", "empty", "" },
		{ "*example.org", "first part", "*.example.org" },
		{ "a.*.org", "first part", "*.example.org" },
		{ "*.*.org", "first part", "*.example.org" },
		{ "**.example.org", "first part", "*.example.org" },
		{ "example.*", "first part", "*.example.org" },
		{ "*.1.2.3.4", "before an address", "10.0.0.0/8" },
		{ ".example.org", "empty part", "" },
		{ "example.org:", "1 to 65535", "" },
		{ "example.org:0", "1 to 65535", "" },
		{ "example.org:65536", "1 to 65535", "" },
		{ "example.org:080", "1 to 65535", "" },
		{ "example.org:+80", "1 to 65535", "" },
		{ "example.org:https", "1 to 65535", "" },
		{ "example.org:80,443", "1 to 65535", "more entries" },
		{ "example.org:80-90", "1 to 65535", "more entries" },
		{ "example.org:**", "1 to 65535", "" },
		{ "example.org:80:90", "IPv6", "" },
		{ "https://example.org", "URL", "host" },
		{ "https://example.org:80/x", "URL", "host" },
		{ "example.org/path", "no address before it", "paths" },
		{ "user@example.org", "character", "" },
		{ "!example.org", "character", "" },
		{ "exam\033ple.org", "control", "" },
		{ "b\xc3\xbc"
		  "cher.example",
			"xn--", "" },
		{ "127.1", "ends in a number", "" },
		{ "0x7f.0.0.1", "ends in a number", "" },
		{ "2130706433:80", "ends in a number", "" },
		{ "127.0.0.1:8080", "loopback", "host.internal:PORT" },
		{ "127.0.0.0/8", "loopback", "host.internal:PORT" },
		{ "[::1]:8080", "loopback", "host.internal:PORT" },
		{ "::ffff:127.0.0.1", "loopback", "host.internal:PORT" },
		{ "0.0.0.0", "this network", "host.internal:PORT" },
		{ "localhost:8080", "own loopback", "host.internal:PORT" },
		{ "*.localhost", "own loopback", "host.internal:PORT" },
		{ "198.18.0.0/15", "never opened", "" },
		{ "198.18.1.0:80", "never opened", "" },
		{ "224.0.0.1", "multicast", "" },
		{ "255.255.255.255", "broadcast", "" },
		{ "fe80::1", "link-local", "" },
		{ "fe80::1%eth0", "zone", "" },
		{ "64:ff9b::10.0.0.1", "NAT64", "" },
		{ "5f00::/16", "never opened", "" },
		{ "fd63:6172:7265:6c00::/96", "never opened", "" },
		{ "10.0.0.1/8", "bits set after the first 8", "10.0.0.1" },
		{ "10.0.0.0/33", "bits", "" },
		{ "10.0.0.0/", "bits", "" },
		{ "10.0.0.0/08", "bits", "" },
		{ "10.0.0.0/-1", "bits", "" },
		{ "10.0.0.0/8/8", "bits", "" },
		{ "10.0.0/8", "no address before it", "" },
		{ "2001:db8::/129", "bits", "" },
		{ "::ffff:10.0.0.0/104", "IPv4 network in IPv6 form", "IPv4" },
		{ "[2001:db8::1", "bracket", "[2001:db8::1]:443" },
		{ "[2001:db8::]/32", "bracket", "[2001:db8::/32]:443" },
		{ "[2001:db8::1]443", "bracket", "[2001:db8::1]:443" },
		{ "[10.0.0.1]:80", "no IPv6", "" },
		{ "[example.org]:80", "no IPv6", "" },
		{ "host.internal", "one port", "host.internal:PORT" },
		{ "host.internal:*", "one port", "host.internal:PORT" },
		{ "@githb", "preset", "Did you mean @github?" },
		{ "@nmp", "preset", "Did you mean @npm?" },
		{ "@GitHub", "preset", "Did you mean @github?" },
		{ "@github:22", "own ports", "@github" },
		{ "@", "preset", "" },
		{ "@nothing-like-it", "preset", "@anthropic" },
		{ "@debian", "no mirror in your apt configuration", "" },
		{ "github", "without its @", "@github" },
		{ "npm", "without its @", "@npm" },
		{ "-@githb", "preset", "@github" },
		{ "-example.org:0", "1 to 65535", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy *p = policy("ok.example", false);
		struct fault f = { 0 };

		if (parse(p, mem_printf("fine.example %s", rows[i].entry), &f) >= 0)
			fail_msg("'%s' was taken", rows[i].entry);
		if (!strstr(f.text, rows[i].why) || !strstr(f.fix, rows[i].fix))
			fail_msg("'%s': %s / %s", rows[i].entry, f.text, f.fix);
		assert_non_null(strstr(f.text, "--allow: "));
		assert_null(strchr(f.text, '\033'));
		/* All or none. */
		assert_int_equal(p->n, 1);
		assert_int_equal(p->entries, 1);
	}
}

static void test_empty_text_and_long_text(void **state)
{
	struct policy *p = policy("", false);
	struct fault f = { 0 };
	char text[4000];

	assert_true(policy_parse(p, &(struct policy_entry){ "", NULL, false }, 1, NULL, 0, &f) <
		0);
	assert_string_equal(f.text, "'' is empty");
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_true(policy_parse(p, &(struct policy_entry){ text, NULL, false }, 1, NULL, 0,
			    &f) < 0);
	assert_non_null(strstr(f.text, "...' has"));
	assert_int_equal(policy_connect(p, "aaa", 443).allowed, false);
}

static void test_preset_tables(void **state)
{
	static const char *const names[] = { "@anthropic", "@openai", "@google", "@github",
		"@pypi", "@crates", "@go" };
	const struct policy_preset *preset;
	size_t n = 0;

	for (; (preset = policy_preset(n)); n++) {
		struct policy *p = policy(preset->name, false);

		assert_string_equal(preset->name, names[n]);
		assert_int_equal(p->n, preset->n);
		assert_int_equal(p->entries, 1);
		for (unsigned int i = 0; i < p->n; i++) {
			assert_int_equal(p->rule[i].kind, RULE_NAME);
			assert_int_equal(p->rule[i].entry, 0);
		}
	}
	assert_int_equal(n, ARRAY_SIZE(names));
	assert_true(policy_connect(policy("@anthropic", false), "api.anthropic.com", 443)
			    .allowed);
	assert_true(policy_connect(policy("@github", false), "github.com", 22).allowed);
	assert_false(policy_connect(policy("@github", false), "api.github.com", 22).allowed);
	assert_true(policy_connect(policy("@npm", false), "packages.example.org", 8443)
			    .allowed);
	assert_false(policy_connect(policy("@npm -@npm", false), "packages.example.org", 443)
			     .allowed);
	/* Denied are all ports of an entry without one. */
	assert_false(policy_connect(policy("github.com:* -@github", false), "github.com", 9418)
			     .allowed);
	assert_true(policy_connect(policy("github.com:*", false), "github.com", 9418).allowed);
}

static void test_broken_own_preset(void **state)
{
	const char *hosts[] = { "ok.example", "http://packages.example.org/x" };
	struct policy_preset bad = { "@npm", hosts, 2, NULL };
	struct policy_entry e = { "@npm", "carrel.json:1:2", false };
	struct policy *p = policy("", false);
	struct fault f = { 0 };

	assert_true(policy_parse(p, &e, 1, &bad, 1, &f) < 0);
	assert_string_equal(f.text,
		"carrel.json:1:2: @npm: 'http://packages.example.org/x' is a URL");
	assert_int_equal(p->n, 0);
	/* No preset inside of a preset. */
	hosts[1] = "@github";
	assert_true(policy_parse(p, &e, 1, &bad, 1, &f) < 0);
	hosts[1] = "other.example";
	assert_int_equal(policy_parse(p, &e, 1, &bad, 1, &f), 0);
}

static void test_limits(void **state)
{
	struct policy *p = policy("", false);
	struct fault f = { 0 };

	for (int i = 0; i < POLICY_RULES; i++)
		assert_int_equal(parse(p, mem_printf("a%d.example", i), &f), 0);
	assert_int_equal(parse(p, "a7.example", &f), 0); /* there already */
	assert_int_equal(p->n, POLICY_RULES);
	assert_true(parse(p, "more.example", &f) < 0);
	assert_non_null(strstr(f.text, "1024"));
	assert_true(policy_connect(p, "a1023.example", 443).allowed);
	assert_false(policy_connect(p, "more.example", 443).allowed);
}

/* ---- verdicts ---- */

struct question {
	const char *entries; /* "open: ..." for an open policy */
	const char *name;
	uint16_t port;
	enum policy_reason reason;
	int rule;
};

static struct policy *policy_of(const char *entries)
{
	bool open = !strncmp(entries, "open:", 5);

	return policy(entries + (open ? 5 : 0), open);
}

static void expect(const char *what, const char *entries, struct verdict v,
	enum policy_reason reason, int rule)
{
	if (v.reason != reason || v.rule != rule)
		fail_msg("%s with '%s': %s, rule %d", what, entries,
			policy_reason_text(v.reason), v.rule);
	assert_int_equal(v.allowed, reason == POLICY_BY_RULE || reason == POLICY_OPEN);
}

static void test_connect(void **state)
{
	static const struct question rows[] = {
		{ "", "example.org", 443, POLICY_UNLISTED, -1 },
		{ "example.org", "example.org", 443, POLICY_BY_RULE, 0 },
		{ "example.org", "example.org", 80, POLICY_BY_RULE, 0 },
		{ "example.org", "example.org", 22, POLICY_PORT, 0 },
		{ "example.org", "example.org", 8443, POLICY_PORT, 0 },
		{ "example.org:22", "example.org", 22, POLICY_BY_RULE, 0 },
		{ "example.org:22", "example.org", 443, POLICY_PORT, 0 },
		{ "example.org:22 example.org", "example.org", 443, POLICY_BY_RULE, 1 },
		{ "example.org:*", "example.org", 1, POLICY_BY_RULE, 0 },
		{ "example.org", "a.example.org", 443, POLICY_UNLISTED, -1 },
		{ "example.org", "badexample.org", 443, POLICY_UNLISTED, -1 },
		{ "example.org", "example.org.evil.example", 443, POLICY_UNLISTED, -1 },
		{ "example.org", "example.com", 443, POLICY_UNLISTED, -1 },
		{ "*.example.org", "a.example.org", 443, POLICY_BY_RULE, 0 },
		{ "*.example.org", "a.b.example.org", 443, POLICY_BY_RULE, 0 },
		{ "*.example.org", "example.org", 443, POLICY_UNLISTED, -1 },
		{ "*.example.org", "badexample.org", 443, POLICY_UNLISTED, -1 },
		{ "*.example.org", "a.example.org", 22, POLICY_PORT, 0 },
		{ "*.example.org:22", "a.example.org", 22, POLICY_BY_RULE, 0 },
		/* Not canonical, or not a name: never. */
		{ "example.org", "EXAMPLE.org", 443, POLICY_NO_NAME, -1 },
		{ "example.org", "example.org.", 443, POLICY_NO_NAME, -1 },
		{ "example.org", "", 443, POLICY_NO_NAME, -1 },
		{ "open:", "127.0.0.1", 443, POLICY_NO_NAME, -1 },
		{ "open:", "0x7f.1", 443, POLICY_NO_NAME, -1 },
		{ "open:", "::1", 443, POLICY_NO_NAME, -1 },
		{ "open:", "example.org", 443, POLICY_OPEN, -1 },
		/* Denials win, wherever they stand. */
		{ "example.org -example.org", "example.org", 443, POLICY_DENIED, 1 },
		{ "-example.org example.org", "example.org", 443, POLICY_DENIED, 0 },
		{ "*.example.org -a.example.org", "a.example.org", 443, POLICY_DENIED, 1 },
		{ "*.example.org -a.example.org", "b.example.org", 443, POLICY_BY_RULE, 0 },
		{ "*.example.org -a.example.org", "c.a.example.org", 443, POLICY_BY_RULE, 0 },
		{ "a.example.org -*.example.org", "a.example.org", 443, POLICY_DENIED, 1 },
		{ "example.org:* -example.org:22", "example.org", 22, POLICY_DENIED, 1 },
		{ "example.org:* -example.org:22", "example.org", 23, POLICY_BY_RULE, 0 },
		{ "example.org:* -example.org", "example.org", 23, POLICY_DENIED, 1 },
		{ "example.org:25 -*:25", "example.org", 25, POLICY_DENIED, 1 },
		{ "example.org -*:25", "example.org", 443, POLICY_BY_RULE, 0 },
		{ "example.org -*", "example.org", 443, POLICY_DENIED, 1 },
		{ "open:-evil.example", "evil.example", 443, POLICY_DENIED, 0 },
		{ "open:-evil.example", "good.example", 443, POLICY_OPEN, -1 },
		{ "open:-*:25", "good.example", 25, POLICY_DENIED, 0 },
		{ "open:-*:25", "good.example", 587, POLICY_OPEN, -1 },
		{ "open: example.org:22", "example.org", 9999, POLICY_OPEN, -1 },
		{ "open: example.org:22", "example.org", 22, POLICY_BY_RULE, 0 },
		/* Networks are not about names. */
		{ "0.0.0.0/0 ::/0", "example.org", 443, POLICY_UNLISTED, -1 },
		/* The host's loopback. */
		{ "host.internal:5432", "host.internal", 5432, POLICY_BY_RULE, 0 },
		{ "host.internal:5432", "host.internal", 5433, POLICY_PORT, 0 },
		{ "host.internal:5432", "a.host.internal", 5432, POLICY_UNLISTED, -1 },
		{ "*.internal:*", "host.internal", 5432, POLICY_UNLISTED, -1 },
		{ "*.internal:*", "other.internal", 5432, POLICY_BY_RULE, 0 },
		{ "open:", "host.internal", 5432, POLICY_UNLISTED, -1 },
		{ "open: host.internal:5432", "host.internal", 5432, POLICY_BY_RULE, 0 },
		{ "host.internal:5432 -host.internal", "host.internal", 5432, POLICY_DENIED,
			1 },
		{ "host.internal:5432 -*.internal", "host.internal", 5432, POLICY_DENIED, 1 },
		{ "open:", "localhost", 443, POLICY_PRIVATE, -1 },
		{ "open:", "a.localhost", 443, POLICY_PRIVATE, -1 },
		{ "open:", "localhost.example", 443, POLICY_OPEN, -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect(rows[i].name, rows[i].entries,
			policy_connect(policy_of(rows[i].entries), rows[i].name, rows[i].port),
			rows[i].reason, rows[i].rule);
}

static void test_name(void **state)
{
	static const struct question rows[] = {
		{ "", "example.org", 0, POLICY_UNLISTED, -1 },
		{ "example.org:22", "example.org", 0, POLICY_BY_RULE, 0 },
		{ "*.example.org", "a.example.org", 0, POLICY_BY_RULE, 0 },
		{ "*.example.org", "example.org", 0, POLICY_UNLISTED, -1 },
		{ "example.org -example.org:443", "example.org", 0, POLICY_BY_RULE, 0 },
		{ "example.org -example.org:80 -*:443", "example.org", 0, POLICY_DENIED, 0 },
		{ "example.org:22 -example.org:22", "example.org", 0, POLICY_DENIED, 0 },
		{ "example.org:22 -example.org:22 example.org:23", "example.org", 0,
			POLICY_BY_RULE, 2 },
		{ "example.org:* -example.org:22", "example.org", 0, POLICY_BY_RULE, 0 },
		{ "example.org:* -example.org", "example.org", 0, POLICY_DENIED, 1 },
		{ "example.org:* -*", "example.org", 0, POLICY_DENIED, 1 },
		{ "-example.org", "example.org", 0, POLICY_DENIED, 0 },
		{ "open:", "example.org", 0, POLICY_OPEN, -1 },
		{ "open:-example.org", "example.org", 0, POLICY_DENIED, 0 },
		{ "open:-example.org:443", "example.org", 0, POLICY_OPEN, -1 },
		{ "open:", "localhost", 0, POLICY_PRIVATE, -1 },
		{ "open:", "1.2.3.4", 0, POLICY_NO_NAME, -1 },
		{ "open:", "host.internal", 0, POLICY_UNLISTED, -1 },
		{ "host.internal:1", "host.internal", 0, POLICY_BY_RULE, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect(rows[i].name, rows[i].entries,
			policy_name(policy_of(rows[i].entries), rows[i].name), rows[i].reason,
			rows[i].rule);
}

static void test_address(void **state)
{
	static const struct question rows[] = {
		{ "", "1.2.3.4", 443, POLICY_UNLISTED, -1 },
		{ "1.2.3.4", "1.2.3.4", 443, POLICY_BY_RULE, 0 },
		{ "1.2.3.4", "1.2.3.4", 80, POLICY_BY_RULE, 0 },
		{ "1.2.3.4", "1.2.3.4", 22, POLICY_PORT, 0 },
		{ "1.2.3.4", "1.2.3.5", 443, POLICY_UNLISTED, -1 },
		{ "1.2.3.4", "::ffff:1.2.3.4", 443, POLICY_BY_RULE, 0 },
		{ "1.2.3.0/24:22", "1.2.3.255", 22, POLICY_BY_RULE, 0 },
		{ "1.2.3.0/24:22", "1.2.4.0", 22, POLICY_UNLISTED, -1 },
		{ "example.org", "1.2.3.4", 443, POLICY_UNLISTED, -1 },
		{ "0.0.0.0/0:*", "1.2.3.4", 1, POLICY_BY_RULE, 0 },
		{ "0.0.0.0/0:*", "2606:4700::1", 1, POLICY_UNLISTED, -1 },
		{ "::/0", "2606:4700::1", 443, POLICY_BY_RULE, 0 },
		{ "[2606:4700::/32]:853", "2606:4700::1", 853, POLICY_BY_RULE, 0 },
		{ "[2606:4700::/32]:853", "2606:4701::1", 853, POLICY_UNLISTED, -1 },
		/* However wide, it opens nothing that is not public. */
		{ "0.0.0.0/0:*", "127.0.0.1", 80, POLICY_PRIVATE, -1 },
		{ "0.0.0.0/0:*", "10.0.0.1", 80, POLICY_PRIVATE, -1 },
		{ "0.0.0.0/0:*", "169.254.169.254", 80, POLICY_PRIVATE, -1 },
		{ "0.0.0.0/1:*", "127.0.0.1", 80, POLICY_PRIVATE, -1 },
		{ "10.0.0.0/7:*", "10.0.0.1", 80, POLICY_PRIVATE, -1 },
		{ "10.0.0.0/7:*", "11.0.0.1", 80, POLICY_BY_RULE, 0 },
		{ "::/0", "::1", 80, POLICY_PRIVATE, -1 },
		{ "::/0", "fd00::1", 80, POLICY_PRIVATE, -1 },
		{ "::/0", "64:ff9b::10.0.0.1", 80, POLICY_PRIVATE, -1 },
		{ "64:ff9b::/96", "64:ff9b::10.0.0.1", 80, POLICY_PRIVATE, -1 },
		{ "64:ff9b::/96", "64:ff9b::8.8.8.8", 80, POLICY_BY_RULE, 0 },
		/* A network inside of such a range says what it means. */
		{ "10.0.0.0/8", "10.1.2.3", 443, POLICY_BY_RULE, 0 },
		{ "10.0.0.0/8", "10.1.2.3", 22, POLICY_PRIVATE, -1 },
		{ "10.1.0.0/16:22", "10.1.2.3", 22, POLICY_BY_RULE, 0 },
		{ "10.1.0.0/16:22", "10.2.2.3", 22, POLICY_PRIVATE, -1 },
		{ "169.254.169.254:80", "169.254.169.254", 80, POLICY_BY_RULE, 0 },
		{ "169.254.169.254:80", "169.254.169.253", 80, POLICY_PRIVATE, -1 },
		{ "fd00::/8", "fd12::1", 443, POLICY_BY_RULE, 0 },
		{ "fd00::/8", "fd63:6172:7265:6c00::100", 443, POLICY_PRIVATE, -1 },
		{ "open:", "1.2.3.4", 22, POLICY_OPEN, -1 },
		{ "open:", "2606:4700::1", 22, POLICY_OPEN, -1 },
		{ "open:", "127.0.0.1", 22, POLICY_PRIVATE, -1 },
		{ "open:", "10.0.0.1", 22, POLICY_PRIVATE, -1 },
		{ "open:", "169.254.169.254", 80, POLICY_PRIVATE, -1 },
		{ "open:", "::ffff:10.0.0.1", 22, POLICY_PRIVATE, -1 },
		{ "open:", "198.18.1.0", 443, POLICY_PRIVATE, -1 },
		{ "open: 10.0.0.1:22", "10.0.0.1", 22, POLICY_BY_RULE, 0 },
		{ "open: host.internal:22", "127.0.0.1", 22, POLICY_PRIVATE, -1 },
		/* Denials, also by the ways around. */
		{ "open:-1.2.3.0/24", "1.2.3.4", 22, POLICY_DENIED, 0 },
		{ "open:-1.2.3.0/24:25", "1.2.3.4", 22, POLICY_OPEN, -1 },
		{ "open:-1.2.3.0/24", "::ffff:1.2.3.4", 22, POLICY_DENIED, 0 },
		{ "open:-1.2.3.0/24", "64:ff9b::1.2.3.4", 22, POLICY_DENIED, 0 },
		{ "open:-1.2.3.0/24", "2002:102:304::1", 22, POLICY_DENIED, 0 },
		{ "open:-1.2.3.0/24", "64:ff9b::1.2.4.4", 22, POLICY_OPEN, -1 },
		{ "open:-2606::/16", "2606:4700::1", 22, POLICY_DENIED, 0 },
		{ "open:-*:25", "1.2.3.4", 25, POLICY_DENIED, 0 },
		{ "open:-*:25", "1.2.3.4", 26, POLICY_OPEN, -1 },
		{ "1.2.3.0/24 -1.2.3.4", "1.2.3.4", 443, POLICY_DENIED, 1 },
		{ "1.2.3.0/24 -1.2.3.4", "1.2.3.5", 443, POLICY_BY_RULE, 0 },
		/* An allowance is not for the ways around. */
		{ "1.2.3.4", "64:ff9b::1.2.3.4", 443, POLICY_UNLISTED, -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct address a = address(rows[i].name);

		expect(rows[i].name, rows[i].entries,
			policy_address(policy_of(rows[i].entries), &a, rows[i].port),
			rows[i].reason, rows[i].rule);
	}
}

/* What a name resolved to: rebinding, and denied networks. */
static void test_resolved(void **state)
{
	static const struct {
		const char *entries, *name, *address;
		uint16_t port;
		enum policy_reason reason;
		int rule;
	} rows[] = {
		{ "example.org", "example.org", "1.2.3.4", 443, POLICY_BY_RULE, 0 },
		{ "example.org", "example.org", "2606:4700::1", 443, POLICY_BY_RULE, 0 },
		{ "example.org", "example.org", "1.2.3.4", 22, POLICY_PORT, 0 },
		{ "example.org", "example.com", "1.2.3.4", 443, POLICY_UNLISTED, -1 },
		{ "example.org", "example.org", "127.0.0.1", 443, POLICY_PRIVATE, -1 },
		{ "example.org", "example.org", "::1", 443, POLICY_PRIVATE, -1 },
		{ "example.org", "example.org", "0.0.0.0", 443, POLICY_PRIVATE, -1 },
		{ "example.org", "example.org", "10.0.0.1", 443, POLICY_PRIVATE, -1 },
		{ "example.org", "example.org", "169.254.169.254", 80, POLICY_PRIVATE, -1 },
		{ "example.org", "example.org", "::ffff:10.0.0.1", 443, POLICY_PRIVATE, -1 },
		{ "example.org", "example.org", "64:ff9b::a00:1", 443, POLICY_PRIVATE, -1 },
		{ "example.org", "example.org", "fd00::1", 443, POLICY_PRIVATE, -1 },
		{ "example.org", "example.org", "198.18.1.0", 443, POLICY_PRIVATE, -1 },
		{ "example.org 10.0.0.0/8", "example.org", "10.0.0.1", 443, POLICY_BY_RULE, 1 },
		{ "example.org 10.0.0.0/8:22", "example.org", "10.0.0.1", 443, POLICY_PRIVATE,
			-1 },
		{ "example.org:22 10.0.0.0/8", "example.org", "10.0.0.1", 443, POLICY_PORT, 0 },
		{ "10.0.0.0/8", "example.org", "10.0.0.1", 443, POLICY_UNLISTED, -1 },
		{ "example.org 0.0.0.0/0", "example.org", "10.0.0.1", 443, POLICY_PRIVATE, -1 },
		{ "example.org -1.2.3.0/24", "example.org", "1.2.3.4", 443, POLICY_DENIED, 1 },
		{ "example.org -1.2.3.0/24", "example.org", "1.2.4.4", 443, POLICY_BY_RULE, 0 },
		{ "example.org -1.2.3.4:22", "example.org", "1.2.3.4", 443, POLICY_BY_RULE, 0 },
		{ "open:", "example.org", "1.2.3.4", 443, POLICY_OPEN, -1 },
		{ "open:", "example.org", "127.0.0.1", 443, POLICY_PRIVATE, -1 },
		{ "open:", "example.org", "10.0.0.1", 443, POLICY_PRIVATE, -1 },
		{ "open: 10.0.0.1:443", "example.org", "10.0.0.1", 443, POLICY_BY_RULE, 0 },
		{ "open:-1.2.3.4", "example.org", "1.2.3.4", 443, POLICY_DENIED, 0 },
		{ "host.internal:80", "host.internal", "127.0.0.1", 80, POLICY_BY_RULE, 0 },
		{ "host.internal:80", "host.internal", "::1", 80, POLICY_BY_RULE, 0 },
		{ "host.internal:80", "host.internal", "127.0.0.1", 81, POLICY_PORT, 0 },
		{ "host.internal:80", "host.internal", "127.0.0.2", 80, POLICY_PRIVATE, -1 },
		{ "host.internal:80", "host.internal", "10.0.0.1", 80, POLICY_PRIVATE, -1 },
		{ "host.internal:80", "host.internal", "1.2.3.4", 80, POLICY_PRIVATE, -1 },
		{ "host.internal:80 example.org", "example.org", "127.0.0.1", 80,
			POLICY_PRIVATE, -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct address a = address(rows[i].address);

		expect(rows[i].address, rows[i].entries,
			policy_resolved(policy_of(rows[i].entries), rows[i].name, &a,
				rows[i].port),
			rows[i].reason, rows[i].rule);
	}
}

/* The host's own addresses are reached by an entry for exactly them, and no other way. */
static void test_own(void **state)
{
	static const struct {
		const char *entries, *address;
		enum policy_reason reason;
	} rows[] = {
		{ "open:", "8.8.4.4", POLICY_OPEN },
		{ "open:", "8.8.8.8", POLICY_SELF },
		{ "open:", "::ffff:8.8.8.8", POLICY_SELF },
		{ "open:", "64:ff9b::8.8.8.8", POLICY_SELF },
		{ "open: 8.8.0.0/16", "8.8.8.8", POLICY_SELF },
		{ "open: 8.8.8.8", "8.8.8.8", POLICY_BY_RULE },
		{ "8.8.8.8", "8.8.8.8", POLICY_BY_RULE },
		{ "10.0.0.0/8", "10.0.0.5", POLICY_SELF },
		{ "10.0.0.0/8", "10.0.0.6", POLICY_BY_RULE },
		{ "10.0.0.5", "10.0.0.5", POLICY_BY_RULE },
		{ "open:", "2606:4700::1", POLICY_SELF },
		{ "open: 2606:4700::1", "2606:4700::1", POLICY_BY_RULE },
		{ "open:-8.8.8.8 8.8.8.8", "8.8.8.8", POLICY_DENIED },
	};
	static const char *const own[] = { "8.8.8.8", "10.0.0.5", "2606:4700::1" };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy *p = policy_of(rows[i].entries);
		struct address a = address(rows[i].address);

		for (size_t k = 0; k < ARRAY_SIZE(own); k++) {
			struct address mine = address(own[k]);

			assert_true(policy_own(p, &mine, 0));
		}
		assert_int_equal(policy_address(p, &a, 443).reason, rows[i].reason);
	}
}

/* The networks that the host is in are not for everybody, whoever they belong to. */
static void test_near(void **state)
{
	static const struct {
		const char *entries, *address;
		enum policy_reason reason;
	} rows[] = {
		{ "open:", "8.8.8.1", POLICY_NEAR },
		{ "open:", "8.8.9.1", POLICY_OPEN },
		{ "open:", "8.8.8.8", POLICY_SELF },
		{ "open:", "8.9.9.9", POLICY_SELF },
		{ "open:", "8.9.9.8", POLICY_OPEN },
		{ "open:", "10.1.2.4", POLICY_PRIVATE },
		{ "open:", "2606:4700::ffff", POLICY_NEAR },
		{ "open:", "2606:4700:0:1::1", POLICY_OPEN },
		{ "open:", "64:ff9b::808:801", POLICY_NEAR },
		{ "open:", "64:ff9b::808:901", POLICY_OPEN },
		{ "open: 64:ff9b::808:801", "64:ff9b::808:801", POLICY_BY_RULE },
		{ "open: 8.8.0.0/16", "8.8.8.1", POLICY_NEAR },
		{ "open: 8.8.8.0/24", "8.8.8.1", POLICY_BY_RULE },
		{ "open: 8.8.8.1", "8.8.8.1", POLICY_BY_RULE },
		{ "open: 8.8.8.1", "8.8.8.2", POLICY_NEAR },
		{ "open:-8.8.8.1 8.8.8.1", "8.8.8.1", POLICY_DENIED },
		{ "8.8.0.0/16", "8.8.8.1", POLICY_NEAR },
		{ "8.8.0.0/16", "8.8.9.1", POLICY_BY_RULE },
		/* A range that is nobody's is opened as ever, also where the host is in it. */
		{ "open: 10.0.0.0/8", "10.1.2.4", POLICY_BY_RULE },
		{ "open: 10.0.0.0/8", "10.1.2.3", POLICY_SELF },
	};
	static const struct {
		const char *address;
		unsigned int bits;
	} own[] = { { "8.8.8.8", 32 }, { "8.8.8.8", 24 }, { "8.8.8.8", 28 }, { "8.8.8.8", 0 },
		{ "8.9.9.9", 32 }, { "10.1.2.3", 24 }, { "2606:4700::1", 64 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy *p = policy_of(rows[i].entries);
		struct address a = address(rows[i].address);

		for (size_t k = 0; k < ARRAY_SIZE(own); k++) {
			struct address mine = address(own[k].address);

			assert_true(policy_own(p, &mine, own[k].bits));
		}
		assert_int_equal(policy_address(p, &a, 443).reason, rows[i].reason);
	}
}

static void test_own_is_limited(void **state)
{
	struct policy *p = policy("", true);
	struct address a = address("1.0.0.0"), mapped = { .family = ADDRESS_V6 };

	for (int i = 0; i < POLICY_OWN; i++) {
		a.byte[3] = (uint8_t)i;
		assert_true(policy_own(p, &a, 0));
	}
	assert_true(policy_own(p, &a, 0));
	memcpy(mapped.byte + 12, a.byte, 4);
	mapped.byte[10] = mapped.byte[11] = 0xff;
	assert_true(policy_own(p, &mapped, 0));
	a.byte[2] = 1;
	assert_false(policy_own(p, &a, 0));
}

static void test_vain(void **state)
{
	static const struct {
		const char *denials, *entry;
		bool vain;
	} rows[] = {
		{ "", "a.org", false },
		{ "-a.org", "a.org", true },
		{ "-a.org", "a.org:*", true },
		{ "-a.org", "b.org", false },
		{ "-a.org", "*.a.org", false },
		{ "-*.a.org", "*.a.org", true },
		{ "-*.a.org", "*.b.a.org:*", true },
		{ "-*.b.a.org", "*.a.org", false },
		{ "-*.a.org", "*.xa.org", false },
		{ "-*.a.org", "a.org", false },
		{ "-*.a.org:443", "*.a.org", false },
		{ "-*.a.org:443 -*.org:80", "*.a.org", true },
		{ "-*:443", "*.a.org:443", true },
		{ "-*", "*.a.org:*", true },
		{ "-0.0.0.0/0", "*.a.org", false },
		{ "-*.a.org", "x.a.org:22", true },
		{ "-*", "a.org", true },
		{ "-a.org:443", "a.org", false },
		{ "-a.org:443 -a.org:80", "a.org", true },
		{ "-a.org:443 -a.org:80", "a.org:*", false },
		{ "-a.org:22", "a.org:22", true },
		{ "-a.org:22", "a.org:23", false },
		{ "-10.0.0.0/8", "10.1.2.3:5432", true },
		{ "-10.0.0.0/8:22", "10.1.2.3:5432", false },
		{ "-10.0.0.0/8", "10.1.0.0/16", true },
		{ "-10.0.0.0/8", "10.0.0.0/8:*", true },
		{ "-10.1.0.0/16", "10.0.0.0/8", false },
		{ "-10.0.0.0/8", "11.0.0.0/16", false },
		{ "-10.0.0.0/8:22", "10.1.0.0/16", false },
		{ "-10.0.0.0/8:443 -10.1.0.0/16:80", "10.1.0.0/16", true },
		{ "-10.1.0.0/16:443 -10.1.0.0/17:80", "10.1.0.0/16", false },
		{ "-*", "10.1.0.0/16:*", true },
		{ "-*:22", "10.1.0.0/16:22", true },
		{ "-::/0", "10.1.0.0/16", false },
		{ "-2001:db8::/32", "2001:db8:1::/48", true },
		/* By way of NAT64 it is that host; of a network only a part might be. */
		{ "-1.2.3.0/24", "64:ff9b::102:304", true },
		{ "-1.0.0.0/24", "64:ff9b::100:0/104", false },
		{ "-host.internal", "host.internal:80", true },
		{ "a.org", "a.org", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct policy *p = policy(rows[i].denials, false);
		const struct policy *more = policy(rows[i].entry, false);

		assert_int_equal(policy_is_vain(p, &more->rule[0]), rows[i].vain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_refused_entries),
		cmocka_unit_test(test_empty_text_and_long_text),
		cmocka_unit_test(test_preset_tables),
		cmocka_unit_test(test_broken_own_preset),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_name),
		cmocka_unit_test(test_address),
		cmocka_unit_test(test_resolved),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_own_is_limited),
		cmocka_unit_test(test_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
