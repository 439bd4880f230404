/*
 * overlay/patch-binary.c - binary data in a patch, as `git apply` reads it
 *
 * A literal is a zlib stream in base 85, 52 bytes a line. The stream has stored blocks only:
 * it is longer than a compressed one, and needs no library.
 */
#include "overlay/patch.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 65535, LINE = 52, ADLER = 65521 };

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			     "!#$%&()*+-;<=>?@^_`{|}~";

static uint32_t adler32(const char *bytes, size_t n)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < n; i++) {
		a = (a + (unsigned char)bytes[i]) % ADLER;
		b = (b + a) % ADLER;
	}
	return b << 16 | a;
}

static void add_stored(struct str *out, const char *bytes, size_t n)
{
	uint32_t sum = adler32(bytes, n);
	size_t at = 0;

	str_addn(out, "\x78\x01", 2);
	do {
		size_t len = n - at < BLOCK ? n - at : BLOCK;
		const unsigned char head[] = { at + len == n, len & 255,
			(unsigned char)(len >> 8), ~len & 255, (unsigned char)(~len >> 8) };

		str_addn(out, (const char *)head, sizeof(head));
		str_addn(out, bytes + at, len);
		at += len;
	} while (at < n);
	for (int shift = 24; shift >= 0; shift -= 8)
		str_addc(out, (char)(sum >> shift & 255));
}

/* Four bytes become five digits; the last four are padded with zeros. */
static void add_base85(struct str *out, const char *bytes, size_t n)
{
	for (size_t at = 0; at < n; at += 4) {
		uint32_t value = 0;
		char group[5];

		for (size_t i = 0; i < 4; i++)
			value = value << 8 | (at + i < n ? (unsigned char)bytes[at + i] : 0);
		for (int i = 4; i >= 0; i--, value /= 85)
			group[i] = digits[value % 85];
		str_addn(out, group, sizeof(group));
	}
}

static void add_literal(struct str *out, const char *bytes, size_t n)
{
	struct str stream = { 0 };

	add_stored(&stream, bytes, n);
	str_addf(out, "literal %zu\n", n);
	for (size_t at = 0; at < stream.len; at += LINE) {
		size_t len = stream.len - at < LINE ? stream.len - at : LINE;

		str_addc(out, (char)(len <= 26 ? 'A' + len - 1 : 'a' + len - 27));
		add_base85(out, stream.p + at, len);
		str_addc(out, '\n');
	}
	str_addc(out, '\n');
}

void patch_add_binary(struct str *out, const char *old, size_t old_n, const char *new,
	size_t new_n)
{
	str_add(out, "GIT binary patch\n");
	add_literal(out, new ? new : "", new ? new_n : 0);
	add_literal(out, old ? old : "", old ? old_n : 0);
}
