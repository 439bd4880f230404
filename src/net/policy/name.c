/*
 * net/policy/name.c - canonical host names and addresses
 *
 * Theory of operation. name_canon() decides by the first thing that settles it: a bracket
 * or a colon can only be IPv6; four decimal numbers are IPv4; the rest is a host name or
 * nothing. The order matters: "1.2.3.4" must not be a name, and "1.2.3" neither, because
 * inet_aton(3), and with it getaddrinfo(3), would make 1.2.0.3 of it.
 *
 * The ranges are a table. IPv6 is decided the safe way around: what is in no row and not
 * in 2000::/3, the only global unicast space there is (RFC 4291, IANA), is not public.
 *
 * Must not: allocate, call the kernel, or decode xn-- labels.
 */
#include "net/policy/name.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- address text ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four decimal numbers without leading zeros, and nothing else. */
static bool parse_quad(const char *s, size_t n, uint8_t out[4])
{
	size_t i = 0;

	for (int part = 0; part < 4; part++) {
		unsigned int value = 0;
		size_t start;

		if (part && (i >= n || s[i++] != '.'))
			return false;
		start = i;
		for (; i < n && is_digit(s[i]) && i - start < 3; i++)
			value = value * 10 + (unsigned int)(s[i] - '0');
		if (i == start || value > 255 || (s[start] == '0' && i - start > 1))
			return false;
		out[part] = (uint8_t)value;
	}
	return i == n;
}

/* One to four hex digits at s; how many there were, or 0. */
static size_t parse_group(const char *s, size_t n, uint8_t out[2])
{
	unsigned int value = 0;
	size_t i;

	for (i = 0; i < n && hex_value(s[i]) >= 0; i++) {
		if (i == 4)
			return 0;
		value = value << 4 | (unsigned int)hex_value(s[i]);
	}
	out[0] = (uint8_t)(value >> 8);
	out[1] = (uint8_t)value;
	return i;
}

/* After the last group: put zeros in the place of "::", which stands for at least one group. */
static bool fill_gap(uint8_t out[16], size_t len, size_t gap)
{
	size_t tail = len - gap;

	if (gap > 16)
		return len == 16;
	if (len > 14)
		return false;
	memmove(out + 16 - tail, out + gap, tail);
	memset(out + gap, 0, 16 - len);
	return true;
}

static bool parse_v6(const char *s, size_t n, uint8_t out[16])
{
	size_t i = 0, len = 0, gap = 17, taken;

	if (n >= 2 && s[0] == ':' && s[1] == ':') {
		gap = 0;
		i = 2;
	}
	while (i < n) {
		if (len <= 12 && parse_quad(s + i, n - i, out + len)) {
			len += 4;
			break;
		}
		taken = len <= 14 ? parse_group(s + i, n - i, out + len) : 0;
		if (!taken)
			return false;
		len += 2;
		i += taken;
		if (i == n)
			break;
		if (s[i++] != ':' || i == n)
			return false;
		if (s[i] != ':')
			continue;
		if (gap <= 16)
			return false;
		gap = len;
		i++;
	}
	return fill_gap(out, len, gap);
}

struct address address_v4(const uint8_t byte[4])
{
	struct address a = { .family = ADDRESS_V4 };

	memcpy(a.byte, byte, 4);
	return a;
}

struct address address_v6(const uint8_t byte[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct address a = { .family = ADDRESS_V6 };

	if (!memcmp(byte, mapped, sizeof(mapped)))
		return address_v4(byte + 12);
	memcpy(a.byte, byte, 16);
	return a;
}

bool address_parse(const char *text, size_t n, struct address *ret)
{
	uint8_t byte[16] = { 0 };

	if (parse_quad(text, n, byte))
		*ret = address_v4(byte);
	else if (n && memchr(text, ':', n) && parse_v6(text, n, byte))
		*ret = address_v6(byte);
	else
		return false;
	return true;
}

/* The longest run of at least two zero groups, the first of equals; *ret_len 0: none. */
static int longest_run(const struct address *a, int *ret_len)
{
	int best = 0, best_len = 1;

	for (int i = 0; i < 8; i++) {
		int len = 0;

		while (i + len < 8 && !a->byte[2 * (i + len)] && !a->byte[2 * (i + len) + 1])
			len++;
		if (len > best_len) {
			best = i;
			best_len = len;
		}
	}
	*ret_len = best_len > 1 ? best_len : 0;
	return best;
}

void address_format(const struct address *a, char out[ADDRESS_SIZE])
{
	const uint8_t *b = a->byte;
	int run_len, run = longest_run(a, &run_len);
	char *p = out;

	if (a->family == ADDRESS_V4) {
		snprintf(out, ADDRESS_SIZE, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
		return;
	}
	for (int i = 0; i < 8; i++) {
		if (run_len && i == run) {
			p = stpcpy(p, i + run_len == 8 ? "::" : ":");
			i += run_len - 1;
			continue;
		}
		p += snprintf(p, 6, "%s%x", i ? ":" : "",
			(unsigned int)(b[2 * i] << 8 | b[2 * i + 1]));
	}
}

/* ---- networks ---- */

bool address_equal(const struct address *a, const struct address *b)
{
	return a->family == b->family && !memcmp(a->byte, b->byte, sizeof(a->byte));
}

unsigned int address_bits(const struct address *a)
{
	return a->family == ADDRESS_V4 ? 32 : 128;
}

bool address_within(const struct address *a, const struct address *net, unsigned int bits)
{
	unsigned int whole = bits / 8, rest = bits % 8;

	if (a->family != net->family || memcmp(a->byte, net->byte, whole) != 0)
		return false;
	return !rest || !((a->byte[whole] ^ net->byte[whole]) >> (8 - rest));
}

bool address_is_network(const struct address *net, unsigned int bits)
{
	for (unsigned int i = bits; i < address_bits(net); i++)
		if (net->byte[i / 8] & (0x80 >> i % 8))
			return false;
	return true;
}

#define V4(...)                                               \
	{                                                     \
		.family = ADDRESS_V4, .byte = { __VA_ARGS__ } \
	}
#define V6(...)                                               \
	{                                                     \
		.family = ADDRESS_V6, .byte = { __VA_ARGS__ } \
	}

/* The IANA registries of special addresses, RFC 6890 and after; first match decides. */
static const struct address_range ranges[] = {
	{ V4(0), 8, 0, false, "this network" }, /* connect() to 0.0.0.0 reaches loopback */
	{ V4(10), 8, 0, true, "private" },
	{ V4(100, 64), 10, 0, true, "shared (carrier NAT)" },
	{ V4(127), 8, 0, false, "loopback" },
	{ V4(168, 63, 129, 16), 32, 0, true, "cloud platform service" }, /* Azure's, public */
	{ V4(169, 254), 16, 0, true, "link-local" },
	{ V4(172, 16), 12, 0, true, "private" },
	{ V4(192, 0, 0), 24, 0, true, "protocol assignments" },
	{ V4(192, 0, 2), 24, 0, true, "documentation" },
	{ V4(192, 88, 99), 24, 0, false, "6to4 relays" },
	{ V4(192, 168), 16, 0, true, "private" },
	{ V4(198, 18), 15, 0, false, "benchmarking" }, /* names of a box: net/broker/synth.h */
	{ V4(198, 51, 100), 24, 0, true, "documentation" },
	{ V4(203, 0, 113), 24, 0, true, "documentation" },
	{ V4(224), 4, 0, false, "multicast" },
	{ V4(255, 255, 255, 255), 32, 0, false, "broadcast" },
	{ V4(240), 4, 0, true, "reserved" },

	{ V6(0), 128, 0, false, "unspecified" },
	{ V6([15] = 1), 128, 0, false, "loopback" },
	{ V6([10] = 0xff, [11] = 0xff), 96, 12, false, "IPv4-mapped" },
	{ V6(0), 96, 0, false, "IPv4-compatible" },
	{ V6(0, 0x64, 0xff, 0x9b), 96, 12, false, "NAT64 of a private address" },
	/*
	 * How a site embeds IPv4 here (RFC 8215) cannot be known, so the whole range is
	 * special.
	 */
	{ V6(0, 0x64, 0xff, 0x9b, 0, 1), 48, 0, false, "local NAT64" },
	{ V6(1), 64, 0, false, "discard" },
	{ V6(0x20, 1), 32, 0, false, "Teredo" },
	{ V6(0x20, 1, 0x0d, 0xb8), 32, 0, true, "documentation" },
	{ V6(0x20, 1), 23, 0, false, "protocol assignments" },
	{ V6(0x20, 2), 16, 2, false, "6to4 of a private address" },
	{ V6(0x3f, 0xff), 20, 0, true, "documentation" },
	{ V6(0xfd, 0x63, 0x61, 0x72, 0x72, 0x65, 0x6c), 96, 0, false, "names of a box" },
	{ V6(0xfc), 7, 0, true, "unique local" },
	{ V6(0xfe, 0x80), 10, 0, false, "link-local" }, /* needs a zone to be dialled */
	{ V6(0xfe, 0xc0), 10, 0, false, "site-local" },
	{ V6(0xff), 8, 0, false, "multicast" },
};

static const struct address_range not_unicast = { V6(0), 0, 0, false, "not global unicast" };

const struct address_range *address_range(const struct address *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		const struct address_range *r = &ranges[i];
		struct address inner;

		if (!address_within(a, &r->net, r->bits))
			continue;
		inner = address_v4(a->byte + r->inner);
		return r->inner && !address_range(&inner) ? NULL : r;
	}
	if (a->family == ADDRESS_V4 || (a->family == ADDRESS_V6 && a->byte[0] >> 5 == 1))
		return NULL;
	return &not_unicast;
}

bool address_is_site(const struct address *a)
{
	const struct address_range *range = address_range(a);

	return range &&
		(!strcmp(range->name, "private") || !strcmp(range->name, "unique local"));
}

bool address_embedded(const struct address *a, struct address *ret)
{
	static const struct address_range in[] = {
		{ V6([10] = 0xff, [11] = 0xff), 96, 12, false, "" },
		{ V6(0), 96, 12, false, "" },
		{ V6(0, 0x64, 0xff, 0x9b), 96, 12, false, "" },
		{ V6(0x20, 2), 16, 2, false, "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(in); i++) {
		if (!address_within(a, &in[i].net, in[i].bits))
			continue;
		*ret = address_v4(a->byte + in[i].inner);
		return true;
	}
	return false;
}

/* ---- names ---- */

/* NULL, or what is wrong with a label. */
static const char *check_label(const char *s, size_t n)
{
	if (!n)
		return "has an empty part between dots";
	if (n > NAME_LABEL)
		return "has a part of more than 63 characters";
	if (s[0] == '-' || s[n - 1] == '-')
		return "has a part that begins or ends with a hyphen";
	return NULL;
}

static const char *check_character(char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' ||
		c == '_' || c == '.')
		return NULL;
	if (c == '\0')
		return "has a NUL byte";
	if ((unsigned char)c >= 0x80)
		return "is not ASCII; write it in its xn-- form";
	if (c == ' ' || (unsigned char)c < 0x20 || c == 0x7f)
		return "has a space or control character";
	if (c == '%')
		return "has a percent sign; zones and escapes are not taken";
	return "has a character that no host name has";
}

/* 12, 0x1f, 0x: inet_aton(3) or a browser reads these as part of an address. */
static bool is_number(const char *s, size_t n)
{
	bool hex = n >= 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X');

	for (size_t i = hex ? 2 : 0; i < n; i++)
		if (hex ? hex_value(s[i]) < 0 : !is_digit(s[i]))
			return false;
	return true;
}

/* Check a name without its final dot. */
static const char *check_name(const char *s, size_t n)
{
	const char *why = NULL;
	size_t start = 0;

	for (size_t i = 0; i < n && !why; i++)
		why = check_character(s[i]);
	if (why)
		return why;
	if (n > NAME_LENGTH)
		return "has more than 253 characters";
	for (size_t i = 0; i <= n; i++) {
		if (i < n && s[i] != '.')
			continue;
		why = check_label(s + start, i - start);
		if (why)
			return why;
		if (i == n && is_number(s + start, i - start))
			return "ends in a number and is no address of four decimal numbers";
		start = i + 1;
	}
	return NULL;
}

/* Returns NULL and sets kind and out, or returns what is wrong. */
static const char *canon(const char *in, size_t n, enum name_kind *kind, char out[NAME_SIZE])
{
	bool bracket = n >= 2 && in[0] == '[' && in[n - 1] == ']';
	struct address a;
	const char *why;

	if (!n)
		return "is empty";
	if (bracket ? address_parse(in + 1, n - 2, &a) && memchr(in, ':', n)
		    : address_parse(in, n, &a)) {
		*kind = a.family == ADDRESS_V4 ? NAME_IPV4 : NAME_IPV6;
		address_format(&a, out);
		return NULL;
	}
	if (memchr(in, ':', n) || bracket)
		return memchr(in, '%', n) ? "has a zone, which is not taken"
					  : "is no IPv6 address";
	n -= in[n - 1] == '.';
	why = check_name(in, n);
	if (why)
		return why;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)(in[i] >= 'A' && in[i] <= 'Z' ? in[i] | 0x20 : in[i]);
	out[n] = '\0';
	*kind = NAME_HOST;
	return NULL;
}

enum name_kind name_canon(const char *in, size_t n, char out[NAME_SIZE])
{
	enum name_kind kind = NAME_BAD;

	canon(in, n, &kind, out);
	return kind;
}

const char *name_why(const char *in, size_t n)
{
	enum name_kind kind;
	char out[NAME_SIZE];

	return canon(in, n, &kind, out);
}

bool name_below(const char *name, const char *zone)
{
	size_t n = strlen(name), z = strlen(zone);

	return n > z + 1 && name[n - z - 1] == '.' && !memcmp(name + n - z, zone, z);
}

bool name_is_local(const char *name)
{
	return !strcmp(name, "localhost") || name_below(name, "localhost");
}
