/*
 * tests/unit/test_proxy.c - what clients say to a proxy, whole and in pieces
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/proto/proxy.h"

#define END " HTTP/1.1\r\n\r\n"

static struct proxy p;

/* From a buffer of exactly that size, so that a sanitizer sees a byte too far. */
static enum proxy_state read_exact(const void *bytes, size_t n, size_t *used)
{
	uint8_t *exact = malloc(n + !n);
	enum proxy_state state;

	memcpy(exact, bytes, n);
	state = proxy_read(&p, exact, n, used);
	free(exact);
	assert_true(*used <= n);
	return state;
}

static enum proxy_state read_new(const void *bytes, size_t n, size_t *used)
{
	memset(&p, 0, sizeof(p));
	return read_exact(bytes, n, used);
}

/* The same, a byte at a time; greetings are passed over. */
static enum proxy_state read_slowly(const char *bytes, size_t n, size_t *ret_used)
{
	enum proxy_state state = PROXY_MORE;
	size_t used;

	memset(&p, 0, sizeof(p));
	for (*ret_used = 0; *ret_used < n && state <= PROXY_GREET; *ret_used += used)
		state = read_exact(bytes + *ret_used, 1, &used);
	return state;
}

/* ---- CONNECT ---- */

static void target_is(const char *text, const char *name, enum name_kind kind, int port)
{
	char line[1024];
	size_t n = (size_t)snprintf(line, sizeof(line), "CONNECT %s" END, text), used;

	assert_int_equal(read_new(line, n, &used), PROXY_READY);
	assert_int_equal(used, n);
	assert_string_equal(p.name, name);
	assert_int_equal(p.kind, kind);
	assert_int_equal(p.port, port);
	assert_int_equal(read_slowly(line, n, &used), PROXY_READY);
	assert_int_equal(used, n);
	assert_string_equal(p.name, name);
}

static void test_targets(void **state)
{
	target_is("example.org:443", "example.org", NAME_HOST, 443);
	target_is("EXAMPLE.Org.:65535", "example.org", NAME_HOST, 65535);
	target_is("xn--bcher-kva.example:1", "xn--bcher-kva.example", NAME_HOST, 1);
	target_is("192.0.2.1:80", "192.0.2.1", NAME_IPV4, 80);
	assert_int_equal(p.address.family, ADDRESS_V4);
	assert_int_equal(p.address.byte[3], 1);
	target_is("[2001:DB8::0:1]:443", "2001:db8::1", NAME_IPV6, 443);
	assert_int_equal(p.address.family, ADDRESS_V6);
	target_is("[::ffff:127.0.0.1]:443", "127.0.0.1", NAME_IPV4, 443);
	target_is("[::1]:443", "::1", NAME_IPV6, 443); /* for the policy to refuse */
}

static void refused(const void *bytes, size_t n, enum proxy_answer answer)
{
	size_t used;

	assert_int_equal(read_new(bytes, n, &used), PROXY_BAD);
	assert_int_equal(p.answer, answer);
	assert_true(p.why[0]);
	assert_int_equal(read_slowly(bytes, n, &used), PROXY_BAD);
	assert_int_equal(p.answer, answer);
	assert_int_equal(read_exact(bytes, n, &used), PROXY_BAD); /* and stays so */
	assert_int_equal(used, 0);
}

static void test_bad_targets(void **state)
{
	static const char *const rows[] = { "example.org", "example.org:", "example.org:0",
		"example.org:080", "example.org:65536", "example.org:+1",
		"example.org:99999999", ":443", "127.1:80", "0x7f.0.0.1:80", "2130706433:80",
		"0177.0.0.1:80", "a..b:80", "example.org..:80",
		"b\xc3\xbc"
		"cher.example:80",
		"2001:db8::1:443", "[::1]", "[fe80::1%eth0]:80", "[example.org]:80", "[::1:80",
		"::1]:80", "user@example.org:80", "http://example.org:80", "example.org:80/",
		"a b:80", " example.org:80", "example.org:80 ", "*.example.org:80", "" };
	char line[1024];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int n = snprintf(line, sizeof(line), "CONNECT %s" END, rows[i]);

		refused(line, (size_t)n, PROXY_MALFORMED);
	}
	refused("CONNECT a\0b:80" END, sizeof("CONNECT a\0b:80" END) - 1, PROXY_MALFORMED);
	refused("CONNECT localhost:80" END, 20 + 13, PROXY_NO);
	refused("CONNECT a.LocalHost.:80" END, 23 + 13, PROXY_NO);
}

static void test_long_names(void **state)
{
	char line[1024], name[300];
	size_t n, used;

	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[253] = '\0';
	n = (size_t)snprintf(line, sizeof(line), "CONNECT %s:443" END, name);
	assert_int_equal(read_new(line, n, &used), PROXY_READY);
	name[253] = 'a';
	name[254] = '\0';
	n = (size_t)snprintf(line, sizeof(line), "CONNECT %s:443" END, name);
	refused(line, n, PROXY_MALFORMED);
	memset(line, 'a', sizeof(line));
	memcpy(line, "CONNECT ", 8);
	memcpy(line + 1000, END, strlen(END));
	refused(line, 1000 + strlen(END), PROXY_LONG);
}

static void test_request_lines(void **state)
{
	static const struct {
		const char *text;
		enum proxy_answer answer;
	} rows[] = {
		{ "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
			PROXY_METHOD },
		{ "POST / HTTP/1.1\r\n\r\n", PROXY_METHOD },
		{ "CONNECTED a:1 HTTP/1.1\r\n\r\n", PROXY_METHOD },
		{ "Connect a:1 HTTP/1.1\r\n\r\n", PROXY_METHOD },
		{ "CONNECT\ta:1 HTTP/1.1\r\n\r\n", PROXY_METHOD },
		{ "CONNECT a:1\r\n\r\n", PROXY_MALFORMED },
		{ "CONNECT a:1 HTTP/2.0\r\n\r\n", PROXY_MALFORMED },
		{ "CONNECT a:1 HTTP/1.\r\n\r\n", PROXY_MALFORMED },
		{ "CONNECT a:1 HTTP/1.10\r\n\r\n", PROXY_MALFORMED },
		{ "CONNECT a:1 HTTP/1.x\r\n\r\n", PROXY_MALFORMED },
		{ "CONNECT a:1 http/1.1\r\n\r\n", PROXY_MALFORMED },
		{ "CONNECT  HTTP/1.1\r\n\r\n", PROXY_MALFORMED },
		{ "CONNECT \r\n\r\n", PROXY_MALFORMED },
		{ "CONN\r\n\r\n", PROXY_MALFORMED },
		{ "CONNECT a:1 HTTP/1.1\n\n", PROXY_MALFORMED },
		{ "CONNECT a:1 HTTP/1.1\r\rX", PROXY_MALFORMED },
		{ "CONNECT a:1 HTTP/1.1\r\nA: b\n", PROXY_MALFORMED },
		{ "CONNECT a:1 HTTP/1.1\r\nA: \1\r\n\r\n", PROXY_MALFORMED },
		{ "CONNECT a:1 HTTP/1.1\r\nA: \x7f\r\n\r\n", PROXY_MALFORMED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		refused(rows[i].text, strlen(rows[i].text), rows[i].answer);
}

/* Nothing of a head but its first line is looked at, and what follows is not ours. */
static void test_head_and_what_follows(void **state)
{
	static const char text[] = "CONNECT example.org:443 HTTP/1.0\r\n"
				   "Host: other.example:80\r\n"
				   "Proxy-Authorization: Basic \xc3\xa4\r\n"
				   "\tfolded\r\n"
				   "\r\n"
				   "\x16\x03\x01 hello\r\n\r\n";
	size_t used, head = (size_t)(strstr(text, "\x16") - text);

	assert_int_equal(read_new(text, sizeof(text) - 1, &used), PROXY_READY);
	assert_int_equal(used, head);
	assert_string_equal(p.name, "example.org");
	assert_int_equal(read_slowly(text, sizeof(text) - 1, &used), PROXY_READY);
	assert_int_equal(used, head);
	assert_int_equal(read_exact(text, 5, &used), PROXY_READY);
	assert_int_equal(used, 0);
	for (size_t n = 0; n < head; n++)
		assert_int_equal(read_new(text, n, &used), PROXY_MORE);
}

static void test_head_limit(void **state)
{
	static const char first[] = "CONNECT a:1 HTTP/1.1\r\nX: ";
	char text[PROXY_HEAD + 1];
	size_t used;

	memset(text, 'x', sizeof(text));
	memcpy(text, first, sizeof(first) - 1);
	memcpy(text + PROXY_HEAD - 4, "\r\n\r\n", 4);
	assert_int_equal(read_new(text, PROXY_HEAD, &used), PROXY_READY);
	memset(text + PROXY_HEAD - 4, 'x', 4);
	assert_int_equal(read_new(text, PROXY_HEAD, &used), PROXY_MORE);
	refused(text, PROXY_HEAD + 1, PROXY_LONG);
}

/* ---- SOCKS ---- */

#define GREETING    "\5\1\0"
#define BYTES(text) text, sizeof(text) - 1

static enum proxy_state ask_socks(const char *request, size_t n, size_t *used)
{
	char all[600] = GREETING;
	enum proxy_state slow, fast;

	memcpy(all + 3, request, n);
	slow = read_slowly(all, 3 + n, used);
	assert_int_equal(read_new(all, 3 + n, used), PROXY_GREET);
	assert_int_equal(*used, 3);
	fast = read_exact(request, n, used);
	assert_int_equal(slow, fast);
	return fast;
}

static void test_socks_targets(void **state)
{
	size_t used;

	assert_int_equal(ask_socks(BYTES("\5\1\0\3\xbwww.Example\x01\xbb rest"), &used),
		PROXY_READY);
	assert_int_equal(used, 4 + 1 + 11 + 2);
	assert_string_equal(p.name, "www.example");
	assert_int_equal(p.kind, NAME_HOST);
	assert_int_equal(p.port, 443);
	assert_int_equal(ask_socks(BYTES("\5\1\0\1\xc0\0\2\1\0\x50"), &used), PROXY_READY);
	assert_string_equal(p.name, "192.0.2.1");
	assert_int_equal(p.kind, NAME_IPV4);
	assert_int_equal(p.port, 80);
	assert_int_equal(ask_socks(BYTES("\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\x50"),
				 &used),
		PROXY_READY);
	assert_string_equal(p.name, "2001:db8::1");
	assert_int_equal(
		ask_socks(BYTES("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1\0\x50"), &used),
		PROXY_READY);
	assert_string_equal(p.name, "127.0.0.1");
	assert_int_equal(p.kind, NAME_IPV4);
	/* An address where a name may stand is an address. */
	assert_int_equal(ask_socks(BYTES("\5\1\0\3\x09"
					 "127.0.0.1\0\x50"),
				 &used),
		PROXY_READY);
	assert_int_equal(p.kind, NAME_IPV4);
	assert_int_equal(p.address.byte[0], 127);
}

static void test_socks_pieces(void **state)
{
	static const char request[] = "\5\1\0\3\4a.bc\0\x50";
	size_t used;

	for (size_t n = 1; n < sizeof(request) - 1; n++)
		assert_int_equal(ask_socks(request, n, &used), PROXY_MORE);
	assert_int_equal(read_new(BYTES("\5"), &used), PROXY_MORE);
	assert_int_equal(read_exact(BYTES("\3\1\2"), &used), PROXY_MORE);
	assert_int_equal(read_exact(BYTES("\0\5"), &used), PROXY_GREET);
	assert_int_equal(used, 1);
}

static void socks_refused(const char *request, size_t n, enum proxy_answer answer, int code)
{
	uint8_t out[PROXY_REPLY];
	size_t used;

	assert_int_equal(ask_socks(request, n, &used), PROXY_BAD);
	assert_int_equal(p.answer, answer);
	assert_int_equal(proxy_reply(&p, p.answer, p.why, out), 10);
	assert_int_equal(out[0], 5);
	assert_int_equal(out[1], code);
	assert_memory_equal(out + 2, "\0\1\0\0\0\0\0\0", 8);
}

static void test_socks_refused(void **state)
{
	socks_refused(BYTES("\5\2\0\1\xc0\0\2\1\0\x50"), PROXY_METHOD, 7);
	socks_refused(BYTES("\5\3\0\1\xc0\0\2\1\0\x50"), PROXY_METHOD, 7);
	socks_refused(BYTES("\5\1\0\2"), PROXY_ADDRESS, 8);
	socks_refused(BYTES("\5\1\1\1\xc0\0\2\1\0\x50"), PROXY_MALFORMED, 1);
	socks_refused(BYTES("\4\1\0\1\xc0\0\2\1\0\x50"), PROXY_MALFORMED, 1);
	socks_refused(BYTES("\5\1\0\1\xc0\0\2\1\0\0"), PROXY_MALFORMED, 1);
	socks_refused(BYTES("\5\1\0\3\0\0\x50"), PROXY_MALFORMED, 1);
	socks_refused(BYTES("\5\1\0\3\3a\0b\0\x50"), PROXY_MALFORMED, 1);
	socks_refused(BYTES("\5\1\0\3\5"
			    "127.1\0\x50"),
		PROXY_MALFORMED, 1);
	socks_refused(BYTES("\5\1\0\3\x09localhost\0\x50"), PROXY_NO, 2);
}

static void test_socks_longest_name(void **state)
{
	char request[4 + 1 + 255 + 2] = "\5\1\0\3\xff";
	size_t used;

	memset(request + 5, 'a', 257);
	assert_int_equal(ask_socks(request, sizeof(request), &used), PROXY_BAD);
	assert_int_equal(p.answer, PROXY_MALFORMED);
	request[4] = (char)253;
	request[5 + 63] = request[5 + 127] = request[5 + 191] = '.';
	assert_int_equal(ask_socks(request, sizeof(request) - 2, &used), PROXY_READY);
	assert_int_equal(strlen(p.name), 253);
}

static void test_other_protocols(void **state)
{
	uint8_t out[PROXY_REPLY];

	refused(BYTES("\5\0"), PROXY_LOGIN);
	assert_int_equal(proxy_reply(&p, p.answer, p.why, out), 2);
	assert_memory_equal(out, "\5\xff", 2);
	refused(BYTES("\5\2\1\2"), PROXY_LOGIN);
	assert_int_equal(proxy_reply(&p, p.answer, p.why, out), 2);
	refused(BYTES("\4\1\0\x50\xc0\0\2\1\0"), PROXY_METHOD);
	assert_int_equal(proxy_reply(&p, p.answer, p.why, out), 8);
	assert_memory_equal(out, "\0\x5b\0\0\0\0\0\0", 8);
	refused(BYTES("\x16\3\1\2\0\1"), PROXY_MALFORMED);
	assert_int_equal(proxy_reply(&p, p.answer, p.why, out), 0);
	refused(BYTES("\r\nCONNECT a:1" END), PROXY_MALFORMED);
	assert_int_equal(proxy_greeting(out), 2);
	assert_memory_equal(out, "\5\0", 2);
}

/* ---- replies ---- */

static void reply_is(enum proxy_answer answer, const char *why, const char *expected)
{
	uint8_t out[PROXY_REPLY];
	size_t n = proxy_reply(&p, answer, why, out);

	assert_int_equal(n, strlen(expected));
	assert_memory_equal(out, expected, n);
}

static void test_http_replies(void **state)
{
	size_t used;

	assert_int_equal(read_new(BYTES("CONNECT a:1" END), &used), PROXY_READY);
	reply_is(PROXY_YES, NULL, "HTTP/1.1 200 Connection established\r\n\r\n");
	reply_is(PROXY_NO, "a:1 is not in the list",
		"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n"
		"Content-Length: 31\r\nConnection: close\r\n\r\n"
		"carrel: a:1 is not in the list\n");
	reply_is(PROXY_REFUSED, "x\r\ny\x1b\xc3",
		"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\n"
		"Content-Length: 15\r\nConnection: close\r\n\r\n"
		"carrel: x??y??\n");
	for (int i = PROXY_YES; i <= PROXY_LOGIN; i++) {
		uint8_t out[PROXY_REPLY];
		char why[1000];

		memset(why, 'w', sizeof(why));
		why[999] = '\0';
		assert_in_range(proxy_reply(&p, (enum proxy_answer)i, why, out), 20,
			PROXY_REPLY - 1);
	}
}

static void test_http_refusals(void **state)
{
	static const char get[] = "GET http://example.org/ HTTP/1.1\r\n\r\n";
	size_t used;

	/* Not before its head is over, so that the client reads the reply. */
	assert_int_equal(read_new(get, sizeof(get) - 2, &used), PROXY_MORE);
	assert_int_equal(read_exact("\n", 1, &used), PROXY_BAD);
	reply_is(p.answer, p.why,
		"HTTP/1.1 501 Not Implemented\r\nContent-Type: text/plain\r\n"
		"Content-Length: 54\r\nConnection: close\r\n\r\n"
		"carrel: this proxy takes no other method than CONNECT\n");
	assert_int_equal(read_new(BYTES("CONNECT a..b:1" END), &used), PROXY_BAD);
	assert_string_equal(p.why, "the host in the request has an empty part between dots");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_bad_targets),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_request_lines),
		cmocka_unit_test(test_head_and_what_follows),
		cmocka_unit_test(test_head_limit),
		cmocka_unit_test(test_socks_targets),
		cmocka_unit_test(test_socks_pieces),
		cmocka_unit_test(test_socks_refused),
		cmocka_unit_test(test_socks_longest_name),
		cmocka_unit_test(test_other_protocols),
		cmocka_unit_test(test_http_replies),
		cmocka_unit_test(test_http_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
