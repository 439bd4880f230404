/*
 * tests/unit/test_name.c - one form for every host, and which addresses are not public
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/policy/name.h"

static void expect(const char *in, size_t n, enum name_kind kind, const char *want)
{
	char out[NAME_SIZE] = "untouched", again[NAME_SIZE];
	enum name_kind got = name_canon(in, n, out);

	if (got != kind || strcmp(out, kind == NAME_BAD ? "untouched" : want) != 0)
		fail_msg("'%s' is %d '%s', not %d '%s'", in, (int)got, out, (int)kind, want);
	assert_true((name_why(in, n) == NULL) == (kind != NAME_BAD));
	if (kind == NAME_BAD)
		return;
	assert_int_equal(name_canon(out, strlen(out), again), kind);
	assert_string_equal(again, out);
}

struct row {
	const char *in;
	enum name_kind kind;
	const char *out;
};

static void expect_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		expect(rows[i].in, strlen(rows[i].in), rows[i].kind, rows[i].out);
}

static void test_names(void **state)
{
	static const struct row rows[] = {
		{ "example.org", NAME_HOST, "example.org" },
		{ "Example.ORG", NAME_HOST, "example.org" },
		{ "example.org.", NAME_HOST, "example.org" },
		{ "example.org..", NAME_BAD, NULL },
		{ ".example.org", NAME_BAD, NULL },
		{ "example..org", NAME_BAD, NULL },
		{ ".", NAME_BAD, NULL },
		{ "", NAME_BAD, NULL },
		{ "intranet", NAME_HOST, "intranet" },
		{ "a", NAME_HOST, "a" },
		{ "a.b.c.d.e.f.g", NAME_HOST, "a.b.c.d.e.f.g" },
		{ "_dmarc.example.org", NAME_HOST, "_dmarc.example.org" },
		{ "r3---sn-4g5e.example.org", NAME_HOST, "r3---sn-4g5e.example.org" },
		{ "-a.example.org", NAME_BAD, NULL },
		{ "a-.example.org", NAME_BAD, NULL },
		{ "a-b.example.org", NAME_HOST, "a-b.example.org" },
		{ "-", NAME_BAD, NULL },
		{ "xn--bcher-kva.example", NAME_HOST, "xn--bcher-kva.example" },
		{ "XN--Bcher-KVA.example", NAME_HOST, "xn--bcher-kva.example" },
		{ "b\xc3\xbc"
		  "cher.example",
			NAME_BAD, NULL },
		{ "ex\xe2\x80\xa4org", NAME_BAD, NULL },      /* one dot leader */
		{ "example\xe3\x80\x82org", NAME_BAD, NULL }, /* ideographic full stop */
		{ "\xd0\xb0pple.com", NAME_BAD, NULL },       /* a Cyrillic a */
		{ "example.org\x80", NAME_BAD, NULL },
		{ "exam ple.org", NAME_BAD, NULL },
		{ " example.org", NAME_BAD, NULL },
		{ "example.org ", NAME_BAD, NULL },
		{ "example.org\n", NAME_BAD, NULL },
		{ "example.org\r", NAME_BAD, NULL },
		{ "example\torg", NAME_BAD, NULL },
		{ "example.org\x7f", NAME_BAD, NULL },
		{ "example.org\x1b[1m", NAME_BAD, NULL },
		{ "example%2eorg", NAME_BAD, NULL },
		{ "user@example.org", NAME_BAD, NULL },
		{ "example.org/x", NAME_BAD, NULL },
		{ "example.org?x", NAME_BAD, NULL },
		{ "example.org#x", NAME_BAD, NULL },
		{ "example\\.org", NAME_BAD, NULL },
		{ "*.example.org", NAME_BAD, NULL },
		{ "example.org:80", NAME_BAD, NULL },
		{ "[example.org]", NAME_BAD, NULL },
		{ "127.0.0.1.example.org", NAME_HOST, "127.0.0.1.example.org" },
		{ "1e100.net", NAME_HOST, "1e100.net" },
		{ "3com.com", NAME_HOST, "3com.com" },
		{ "0xcafe.org", NAME_HOST, "0xcafe.org" },
		{ "example.0xg", NAME_HOST, "example.0xg" },
		{ "example.x0", NAME_HOST, "example.x0" },
	};

	expect_rows(rows, ARRAY_SIZE(rows));
	expect("example.org\0.evil.example", 24, NAME_BAD, NULL);
	expect("\0example.org", 12, NAME_BAD, NULL);
	expect("example.org\0", 12, NAME_BAD, NULL);
	expect("example.org\0", 11, NAME_HOST, "example.org");
}

static void test_lengths(void **state)
{
	char text[400];

	memset(text, 'a', sizeof(text));
	expect(text, 63, NAME_HOST,
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	expect(text, 64, NAME_BAD, NULL);
	text[63] = '.';
	text[127] = '.';
	text[191] = '.';
	text[253] = '\0';
	expect(text, 253, NAME_HOST, text);
	text[253] = '.';
	assert_int_equal(name_canon(text, 254, (char[NAME_SIZE]){ 0 }), NAME_HOST);
	text[253] = 'a';
	expect(text, 254, NAME_BAD, NULL);
	text[254] = '.';
	expect(text, 255, NAME_BAD, NULL);
}

/* What inet_aton(3) would read is an address in the strict form, or nothing. */
static void test_ipv4(void **state)
{
	static const struct row rows[] = {
		{ "127.0.0.1", NAME_IPV4, "127.0.0.1" }, { "0.0.0.0", NAME_IPV4, "0.0.0.0" },
		{ "255.255.255.255", NAME_IPV4, "255.255.255.255" },
		{ "1.2.3.4", NAME_IPV4, "1.2.3.4" }, { "127.0.0.1.", NAME_BAD, NULL },
		{ "127.1", NAME_BAD, NULL }, { "127.0.1", NAME_BAD, NULL },
		{ "127.0.0.0.1", NAME_BAD, NULL }, { "2130706433", NAME_BAD, NULL },
		{ "0", NAME_BAD, NULL }, { "0.", NAME_BAD, NULL },
		{ "0x7f.0.0.1", NAME_BAD, NULL }, { "0X7F.0.0.1", NAME_BAD, NULL },
		{ "0x7f000001", NAME_BAD, NULL }, { "0x", NAME_BAD, NULL },
		{ "127.0.0.0x1", NAME_BAD, NULL }, { "0177.0.0.1", NAME_BAD, NULL },
		{ "0177.0.0.01", NAME_BAD, NULL }, { "127.0.0.01", NAME_BAD, NULL },
		{ "127.0.0.00", NAME_BAD, NULL }, { "127.00.0.1", NAME_BAD, NULL },
		{ "017700000001", NAME_BAD, NULL }, { "256.0.0.1", NAME_BAD, NULL },
		{ "1.2.3.999", NAME_BAD, NULL }, { "1.2.3.4294967297", NAME_BAD, NULL },
		{ "1.2.3", NAME_BAD, NULL }, { "1.2.3.", NAME_BAD, NULL },
		{ ".1.2.3.4", NAME_BAD, NULL }, { "1..2.3", NAME_BAD, NULL },
		{ "+1.2.3.4", NAME_BAD, NULL }, { "1.2.3.-4", NAME_BAD, NULL },
		{ "1.2.3.4 ", NAME_BAD, NULL }, { "1.2.3.4 x", NAME_BAD, NULL },
		{ "example.1", NAME_BAD, NULL }, { "example.0x1", NAME_BAD, NULL },
		{ "example.0X1", NAME_BAD, NULL }, { "0X7f000001", NAME_BAD, NULL },
		{ "127.0.0.0X1", NAME_BAD, NULL }, { "example.0X", NAME_BAD, NULL },
		{ "example.0Xg", NAME_HOST, "example.0xg" }, { "[1.2.3.4]", NAME_BAD, NULL },
		{ "\xef\xbc\x91.2.3.4", NAME_BAD, NULL }, /* a full-width digit one */
		{ "\xe2\x91\xa0.2.3.4", NAME_BAD, NULL }, /* a circled digit one */
	};

	expect_rows(rows, ARRAY_SIZE(rows));
}

static void test_ipv6(void **state)
{
	static const struct row rows[] = {
		{ "::1", NAME_IPV6, "::1" },
		{ "[::1]", NAME_IPV6, "::1" },
		{ "::", NAME_IPV6, "::" },
		{ "[::]", NAME_IPV6, "::" },
		{ "0:0:0:0:0:0:0:1", NAME_IPV6, "::1" },
		{ "0000:0000:0000:0000:0000:0000:0000:0001", NAME_IPV6, "::1" },
		{ "2001:DB8::A", NAME_IPV6, "2001:db8::a" },
		{ "2001:db8:0:0:1:0:0:1", NAME_IPV6, "2001:db8::1:0:0:1" },
		{ "2001:db8:0:1:1:1:1:1", NAME_IPV6, "2001:db8:0:1:1:1:1:1" },
		{ "2001:0:0:1:0:0:0:1", NAME_IPV6, "2001:0:0:1::1" },
		{ "2001:db8::", NAME_IPV6, "2001:db8::" },
		{ "1::2:3:4:5:6:7", NAME_IPV6, "1:0:2:3:4:5:6:7" },
		{ "1:2:3:4:5:6:7::", NAME_IPV6, "1:2:3:4:5:6:7:0" },
		{ "::ffff:127.0.0.1", NAME_IPV4, "127.0.0.1" },
		{ "::FFFF:7f00:1", NAME_IPV4, "127.0.0.1" },
		{ "[::ffff:10.0.0.1]", NAME_IPV4, "10.0.0.1" },
		{ "0:0:0:0:0:ffff:1.2.3.4", NAME_IPV4, "1.2.3.4" },
		{ "::1.2.3.4", NAME_IPV6, "::102:304" },
		{ "64:ff9b::1.2.3.4", NAME_IPV6, "64:ff9b::102:304" },
		{ "::ffff:127.1", NAME_BAD, NULL },
		{ "::ffff:0x7f.0.0.1", NAME_BAD, NULL },
		{ "::ffff:127.0.0.01", NAME_BAD, NULL },
		{ "1.2.3.4::", NAME_BAD, NULL },
		{ "::1.2.3.4:5", NAME_BAD, NULL },
		{ "1:2:3:4:5:6:7:1.2.3.4", NAME_BAD, NULL },
		{ "1:2:3:4:5:6:7", NAME_BAD, NULL },
		{ "1:2:3:4:5:6:7:8:9", NAME_BAD, NULL },
		{ "1:2:3:4:5:6:7:8::", NAME_BAD, NULL },
		{ "::1:2:3:4:5:6:7:8", NAME_BAD, NULL },
		{ "1::2::3", NAME_BAD, NULL },
		{ ":::", NAME_BAD, NULL },
		{ ":", NAME_BAD, NULL },
		{ ":1", NAME_BAD, NULL },
		{ "1:", NAME_BAD, NULL },
		{ "1::2:", NAME_BAD, NULL },
		{ "12345::", NAME_BAD, NULL },
		{ "00001::", NAME_BAD, NULL },
		{ "g::", NAME_BAD, NULL },
		{ "fe80::1%eth0", NAME_BAD, NULL },
		{ "fe80::1%1", NAME_BAD, NULL },
		{ "[fe80::1%25eth0]", NAME_BAD, NULL },
		{ "fe80::1", NAME_IPV6, "fe80::1" },
		{ "[::1", NAME_BAD, NULL },
		{ "::1]", NAME_BAD, NULL },
		{ "[[::1]]", NAME_BAD, NULL },
		{ "[]", NAME_BAD, NULL },
		{ "[::1].", NAME_BAD, NULL },
		{ "::1.", NAME_BAD, NULL },
		{ " ::1", NAME_BAD, NULL },
	};

	expect_rows(rows, ARRAY_SIZE(rows));
}

static void test_reasons(void **state)
{
	static const char *const rows[][2] = {
		{ "b\xc3\xbc"
		  "cher.example",
			"xn--" },
		{ "a b", "space" },
		{ "a%41", "percent" },
		{ "a..b", "empty part" },
		{ "-a", "hyphen" },
		{ "127.1", "ends in a number" },
		{ "fe80::1%eth0", "zone" },
		{ "1:2", "IPv6" },
		{ "", "empty" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_non_null(strstr(name_why(rows[i][0], strlen(rows[i][0])), rows[i][1]));
	assert_non_null(strstr(name_why("a\0b", 3), "NUL"));
	assert_null(name_why("example.org", 11));
}

static void test_below(void **state)
{
	assert_true(name_below("a.example.org", "example.org"));
	assert_true(name_below("a.b.example.org", "example.org"));
	assert_false(name_below("example.org", "example.org"));
	assert_false(name_below("badexample.org", "example.org"));
	assert_false(name_below("example.org.evil", "example.org"));
	assert_false(name_below("org", "example.org"));
	assert_true(name_is_local("localhost"));
	assert_true(name_is_local("a.localhost"));
	assert_false(name_is_local("notlocalhost"));
	assert_false(name_is_local("localhost.example.org"));
}

/* ---- addresses ---- */

static struct address address(const char *text)
{
	struct address a;

	if (!address_parse(text, strlen(text), &a))
		fail_msg("'%s' is no address", text);
	return a;
}

/* The first and last address of each range, and the public neighbours of both. */
static void test_private(void **state)
{
	static const struct {
		const char *text, *range; /* NULL: public */
	} rows[] = {
		{ "0.0.0.0", "this network" },
		{ "0.255.255.255", "this network" },
		{ "1.0.0.0", NULL },
		{ "9.255.255.255", NULL },
		{ "10.0.0.0", "private" },
		{ "10.255.255.255", "private" },
		{ "11.0.0.0", NULL },
		{ "100.63.255.255", NULL },
		{ "100.64.0.0", "shared (carrier NAT)" },
		{ "100.100.100.200", "shared (carrier NAT)" },
		{ "100.127.255.255", "shared (carrier NAT)" },
		{ "100.128.0.0", NULL },
		{ "126.255.255.255", NULL },
		{ "127.0.0.0", "loopback" },
		{ "127.0.0.1", "loopback" },
		{ "127.255.255.255", "loopback" },
		{ "128.0.0.0", NULL },
		{ "168.63.129.15", NULL },
		{ "168.63.129.16", "cloud platform service" },
		{ "168.63.129.17", NULL },
		{ "169.253.255.255", NULL },
		{ "169.254.0.0", "link-local" },
		{ "169.254.169.254", "link-local" },
		{ "169.254.255.255", "link-local" },
		{ "169.255.0.0", NULL },
		{ "172.15.255.255", NULL },
		{ "172.16.0.0", "private" },
		{ "172.31.255.255", "private" },
		{ "172.32.0.0", NULL },
		{ "191.255.255.255", NULL },
		{ "192.0.0.0", "protocol assignments" },
		{ "192.0.0.192", "protocol assignments" },
		{ "192.0.1.0", NULL },
		{ "192.0.2.0", "documentation" },
		{ "192.0.2.255", "documentation" },
		{ "192.0.3.0", NULL },
		{ "192.88.98.255", NULL },
		{ "192.88.99.1", "6to4 relays" },
		{ "192.88.100.0", NULL },
		{ "192.167.255.255", NULL },
		{ "192.168.0.0", "private" },
		{ "192.168.255.255", "private" },
		{ "192.169.0.0", NULL },
		{ "198.17.255.255", NULL },
		{ "198.18.0.0", "benchmarking" },
		{ "198.19.255.255", "benchmarking" },
		{ "198.20.0.0", NULL },
		{ "198.51.99.255", NULL },
		{ "198.51.100.0", "documentation" },
		{ "198.51.101.0", NULL },
		{ "203.0.112.255", NULL },
		{ "203.0.113.255", "documentation" },
		{ "203.0.114.0", NULL },
		{ "223.255.255.255", NULL },
		{ "224.0.0.0", "multicast" },
		{ "239.255.255.255", "multicast" },
		{ "240.0.0.0", "reserved" },
		{ "255.255.255.254", "reserved" },
		{ "255.255.255.255", "broadcast" },
		{ "::", "unspecified" },
		{ "::1", "loopback" },
		{ "::2", "IPv4-compatible" },
		{ "::127.0.0.1", "IPv4-compatible" },
		{ "::8.8.8.8", "IPv4-compatible" },
		{ "::ffff:127.0.0.1", "loopback" },
		{ "::ffff:169.254.169.254", "link-local" },
		{ "::ffff:8.8.8.8", NULL },
		{ "::ffff:0:8.8.8.8", "not global unicast" }, /* translated, RFC 2765 */
		{ "64:ff9b::127.0.0.1", "NAT64 of a private address" },
		{ "64:ff9b::10.0.0.1", "NAT64 of a private address" },
		{ "64:ff9b::a9fe:a9fe", "NAT64 of a private address" },
		{ "64:ff9b::8.8.8.8", NULL },
		{ "64:ff9b:1::8.8.8.8", "local NAT64" },
		{ "64:ff9b:1:ffff:ffff:ffff:a00:1", "local NAT64" },
		{ "64:ff9b:2::8.8.8.8", "not global unicast" },
		{ "100::1", "discard" },
		{ "100:0:0:1::1", "not global unicast" },
		{ "1fff:ffff::1", "not global unicast" },
		{ "2000::1", NULL },
		{ "2001::1", "Teredo" },
		{ "2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo" },
		{ "2001:2::1", "protocol assignments" },
		{ "2001:1ff:ffff::1", "protocol assignments" },
		{ "2001:200::1", NULL },
		{ "2001:4860:4860::8888", NULL },
		{ "2001:db7:ffff::1", NULL },
		{ "2001:db8::", "documentation" },
		{ "2001:db8:ffff::1", "documentation" },
		{ "2001:db9::1", NULL },
		{ "2002:7f00:1::1", "6to4 of a private address" },
		{ "2002:a00:1::1", "6to4 of a private address" },
		{ "2002:c0a8:101::", "6to4 of a private address" },
		{ "2002:808:808::1", NULL },
		{ "2003::1", NULL },
		{ "2606:4700::1111", NULL },
		{ "3ffe:ffff::1", NULL },
		{ "3fff::1", "documentation" },
		{ "3fff:fff:ffff::1", "documentation" },
		{ "3fff:1000::1", NULL },
		{ "4000::1", "not global unicast" },
		{ "5f00::1", "not global unicast" },
		{ "fbff::1", "not global unicast" },
		{ "fc00::1", "unique local" },
		{ "fd00:ec2::254", "unique local" },
		{ "fd63:6172:7265:6c00::100", "names of a box" },
		{ "fd63:6172:7265:6c00:0:1::100", "unique local" },
		{ "fdff:ffff::1", "unique local" },
		{ "fe00::1", "not global unicast" },
		{ "fe80::1", "link-local" },
		{ "febf::1", "link-local" },
		{ "fec0::1", "site-local" },
		{ "feff::1", "site-local" },
		{ "ff00::", "multicast" },
		{ "ff02::1", "multicast" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct address a = address(rows[i].text);
		const struct address_range *range = address_range(&a);
		const char *want = rows[i].range ? rows[i].range : "public";

		if (strcmp(range ? range->name : "public", want) != 0)
			fail_msg("%s: %s, not %s", rows[i].text, range ? range->name : "public",
				want);
	}
}

/* An address nobody has parsed is not public, and one mapped by hand is what it maps. */
static void test_unparsed(void **state)
{
	struct address a = { .family = ADDRESS_V6,
		.byte = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };

	assert_non_null(address_range(&a));
	a.byte[12] = 8;
	assert_null(address_range(&a));
	a = (struct address){ .byte = { 0x20, 8 } };
	assert_non_null(address_range(&a));
	a.family = ADDRESS_V6;
	assert_null(address_range(&a));
}

static void test_format(void **state)
{
	static const char *const rows[] = { "0.0.0.0", "1.2.3.4", "255.255.255.255",
		"::", "::1", "1::", "2001:db8::1", "1:2:3:4:5:6:7:8", "1:0:3:4:5:6:7:8",
		"1:0:0:4::8", "1::4:0:0:7:8", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct address a = address(rows[i]);
		char out[ADDRESS_SIZE], libc[INET6_ADDRSTRLEN];

		address_format(&a, out);
		assert_string_equal(out, rows[i]);
		inet_ntop(a.family == ADDRESS_V4 ? AF_INET : AF_INET6, a.byte, libc,
			sizeof(libc));
		assert_string_equal(out, libc);
	}
}

static void test_within(void **state)
{
	static const struct {
		const char *address, *net;
		unsigned int bits;
		bool in;
	} rows[] = {
		{ "10.1.2.3", "10.0.0.0", 8, true },
		{ "11.1.2.3", "10.0.0.0", 8, false },
		{ "11.1.2.3", "10.0.0.0", 7, true },
		{ "1.2.3.4", "0.0.0.0", 0, true },
		{ "1.2.3.4", "1.2.3.4", 32, true },
		{ "1.2.3.5", "1.2.3.4", 32, false },
		{ "1.2.3.5", "1.2.3.4", 31, true },
		{ "::1", "0.0.0.0", 0, false },
		{ "1.2.3.4", "::", 0, false },
		{ "2001:db8::1", "2001:db8::", 32, true },
		{ "2001:db9::1", "2001:db8::", 32, false },
		{ "2001:db9::1", "2001:db8::", 31, true },
		{ "::2", "::1", 128, false },
		{ "::1", "::1", 128, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct address a = address(rows[i].address), net = address(rows[i].net);

		assert_int_equal(address_within(&a, &net, rows[i].bits), rows[i].in);
	}
	assert_true(address_is_network(&(struct address){ 4, { 10 } }, 8));
	assert_false(address_is_network(&(struct address){ 4, { 10 } }, 6));
	assert_true(address_is_network(&(struct address){ 4, { 0 } }, 0));
	assert_false(address_is_network(&(struct address){ 6, { [15] = 1 } }, 127));
	assert_true(address_is_network(&(struct address){ 6, { [15] = 1 } }, 128));
}

static void test_embedded(void **state)
{
	static const char *const rows[][2] = { { "64:ff9b::1.2.3.4", "1.2.3.4" },
		{ "2002:102:304::1", "1.2.3.4" }, { "::1.2.3.4", "1.2.3.4" },
		{ "2001:db8::1.2.3.4", NULL }, { "1.2.3.4", NULL } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct address a = address(rows[i][0]), inner, want;

		assert_int_equal(address_embedded(&a, &inner), rows[i][1] != NULL);
		if (!rows[i][1])
			continue;
		want = address(rows[i][1]);
		assert_true(address_equal(&inner, &want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_ipv4),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_private),
		cmocka_unit_test(test_unparsed),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_embedded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
