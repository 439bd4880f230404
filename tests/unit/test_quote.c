/*
 * tests/unit/test_quote.c - which datagram an ICMP message is about
 *
 * The messages are the kernel's own: what a raw socket read when a datagram was refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/proto/icmp-quote.h"

enum { OUTER = 0, ICMP = 20, INNER = 28, UDP = 48 };

/* From 198.18.0.2 to 93.184.216.34 port 443, "x". */
static const uint8_t v4[] = { 0x45, 0xc0, 0, 57, 0xa1, 0x46, 0, 0, 64, 1, 0, 0, 93, 184, 216,
	34, 198, 18, 0, 2,            /* */
	3, 3, 0x6c, 0x72, 0, 0, 0, 0, /* */
	0x45, 0, 0, 29, 0x6b, 0x2d, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 2, 93, 184, 216,
	34, /* */
	0x9c, 0x41, 0x01, 0xbb, 0, 9, 0, 0, 'x' };

/* From fd63:...::2 to 2606:2800:220::34 port 8443, "x". */
static const uint8_t v6[] = { 1, 4, 0x12, 0x34, 0, 0, 0, 0,                  /* */
	0x60, 0, 0, 0, 0, 9, 17, 64,                                         /* */
	0xfd, 0x63, 0x61, 0x72, 0x72, 0x65, 0x6c, 0, 0, 0, 0, 0, 0, 0, 0, 2, /* */
	0x26, 0x06, 0x28, 0, 0x02, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x34,    /* */
	0x9c, 0x41, 0x20, 0xfb, 0, 9, 0, 0, 'x' };

/* In memory of exactly that size: reading on is seen by the sanitizer. */
static const char *read_n(enum address_family family, const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n + !n);
	struct address to = { 0 };
	char text[ADDRESS_SIZE];
	uint16_t port = 0;
	bool is;

	memcpy(copy, bytes, n);
	is = quote_read(family, copy, n, &to, &port);
	free(copy);
	if (!is) {
		assert_int_equal(to.family, ADDRESS_NONE);
		assert_int_equal(port, 0);
		return "none";
	}
	address_format(&to, text);
	return mem_printf("%s %u", text, port);
}

static const char *changed(size_t at, uint8_t byte)
{
	uint8_t copy[sizeof(v4)];

	memcpy(copy, v4, sizeof(v4));
	copy[at] = byte;
	return read_n(ADDRESS_V4, copy, sizeof(copy));
}

static const char *changed_v6(size_t at, uint8_t byte)
{
	uint8_t copy[sizeof(v6)];

	memcpy(copy, v6, sizeof(v6));
	copy[at] = byte;
	return read_n(ADDRESS_V6, copy, sizeof(copy));
}

static void test_the_kernels_own(void **state)
{
	(void)state;
	assert_string_equal(read_n(ADDRESS_V4, v4, sizeof(v4)), "93.184.216.34 443");
	assert_string_equal(read_n(ADDRESS_V6, v6, sizeof(v6)), "2606:2800:220::34 8443");
	/* Of the other family they are nothing. */
	assert_string_equal(read_n(ADDRESS_V6, v4, sizeof(v4)), "none");
	assert_string_equal(read_n(ADDRESS_V4, v6, sizeof(v6)), "none");
}

/* The ports are the last that is needed. */
static void test_cut(void **state)
{
	(void)state;
	for (size_t n = 0; n <= sizeof(v4); n++)
		assert_string_equal(read_n(ADDRESS_V4, v4, n),
			n < UDP + 4 ? "none" : "93.184.216.34 443");
	for (size_t n = 0; n <= sizeof(v6); n++)
		assert_string_equal(read_n(ADDRESS_V6, v6, n),
			n < UDP + 4 ? "none" : "2606:2800:220::34 8443");
}

static void test_other_messages(void **state)
{
	(void)state;
	assert_string_equal(changed(ICMP, 8), "none");      /* an echo request */
	assert_string_equal(changed(ICMP + 1, 2), "none");  /* a protocol is unreachable */
	assert_string_equal(changed(OUTER + 9, 6), "none"); /* not ICMP */
	assert_string_equal(changed(INNER + 9, 6), "none"); /* about TCP */
	assert_string_equal(changed(INNER, 0x65), "none");  /* not IPv4 */
	assert_string_equal(changed(INNER, 0x44), "none");  /* a header that is none */
	assert_string_equal(changed(INNER, 0x4f), "none");  /* one longer than all there is */
	assert_string_equal(changed(OUTER, 0x4f), "none");  /* the same outside */
	assert_string_equal(changed(OUTER, 0x40), "none");  /* one of no length */
	assert_string_equal(changed(INNER + 7, 1), "none"); /* a later fragment: no ports */
	assert_string_equal(changed_v6(0, 2), "none");      /* the packet is too big */
	assert_string_equal(changed_v6(1, 3), "none");      /* an address is unreachable */
	assert_string_equal(changed_v6(8, 0x45), "none");   /* not IPv6 */
	assert_string_equal(changed_v6(14, 6), "none");     /* about TCP */
	assert_string_equal(changed_v6(14, 44), "none");    /* a fragment */
	assert_string_equal(changed(UDP + 3, 80), "93.184.216.34 336");
}

/* A sender may add options, without a privilege; the kernel repeats them in both headers. */
static void test_options(void **state)
{
	static const uint8_t no_operation[40] = { [0 ... 38] = 1 };
	uint8_t copy[sizeof(v4) + 80], *p = copy;

	(void)state;
	p = memcpy(copy, v4, ICMP);
	memcpy(p + ICMP, no_operation, 40);
	memcpy(p + ICMP + 40, v4 + ICMP, UDP - ICMP);
	memcpy(p + UDP + 40, no_operation, 40);
	memcpy(p + UDP + 80, v4 + UDP, sizeof(v4) - UDP);
	copy[OUTER] = copy[INNER + 40] = 0x4f;
	assert_string_equal(read_n(ADDRESS_V4, copy, sizeof(copy)), "93.184.216.34 443");
	assert_true(UDP + 80 + 4 <= QUOTE_MOST);
	for (size_t n = 0; n < UDP + 80 + 4; n++)
		assert_string_equal(read_n(ADDRESS_V4, copy, n), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_kernels_own),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_other_messages),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
