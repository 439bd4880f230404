/*
 * tests/unit/test_lookup.c - answers of honest and of hostile name servers; the host's files
 *
 * Our question is read by libresolv's own parser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/nameser.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/proto/dns.h"
#include "net/proto/lookup.h"

enum { ID = 0x1234, ANSWER = 0x8180, CNAME = 5, QNAME = 12 };
enum { AN = 6, NS = 8, AR = 10 }; /* where the counts are */

#define NAME     "www.example.org"
#define NAME_SOA "\7invalid\0\5admin\7invalid\0"

struct message {
	uint8_t p[66000];
	size_t n;
};

static struct message m;

static void add(const void *bytes, size_t n)
{
	assert_true(m.n + n <= sizeof(m.p));
	memcpy(m.p + m.n, bytes, n);
	m.n += n;
}

static void set_u16(size_t at, unsigned int value)
{
	m.p[at] = (uint8_t)(value >> 8);
	m.p[at + 1] = (uint8_t)value;
}

static void add_u16(unsigned int value)
{
	m.n += 2;
	set_u16(m.n - 2, value);
}

static void add_u32(uint32_t value)
{
	add_u16(value >> 16);
	add_u16(value & 0xffff);
}

static void add_name(const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		add((uint8_t[]){ (uint8_t)n }, 1);
		add(name, n);
		name += n + (name[n] == '.');
	}
	add("", 1);
}

/* Header and question. */
static void begin(unsigned int flags, const char *name, unsigned int type)
{
	m.n = 0;
	add_u16(ID);
	add_u16(flags);
	add_u16(1);
	add("\0\0\0\0\0", 6);
	add_name(name);
	add_u16(type);
	add_u16(1);
}

static void count(size_t section)
{
	set_u16(section, (m.p[section] << 8 | m.p[section + 1]) + 1u);
}

/* What every record has after its owner. */
static void add_rest(size_t section, unsigned int type, unsigned int class, uint32_t ttl,
	const void *data, size_t n)
{
	count(section);
	add_u16(type);
	add_u16(class);
	add_u32(ttl);
	add_u16((unsigned int)n);
	add(data, n);
}

static void add_a(const char *owner, uint32_t ttl, unsigned int last)
{
	add_name(owner);
	add_rest(AN, DNS_A, 1, ttl, (uint8_t[]){ 192, 0, 2, (uint8_t)last }, 4);
}

static void add_cname(const char *owner, uint32_t ttl, const char *target)
{
	size_t at;

	add_name(owner);
	add_rest(AN, CNAME, 1, ttl, "", 0);
	at = m.n;
	add_name(target);
	set_u16(at - 2, (unsigned int)(m.n - at));
}

static void add_soa(uint32_t ttl, uint32_t minimum)
{
	uint8_t data[sizeof(NAME_SOA) - 1 + 20] = NAME_SOA;

	for (int i = 0; i < 4; i++)
		data[sizeof(data) - 1 - (size_t)i] = (uint8_t)(minimum >> 8 * i);
	add_name("example.org");
	add_rest(NS, DNS_SOA, 1, ttl, data, sizeof(data));
}

static void add_opt(uint32_t ttl)
{
	add_name("");
	add_rest(AR, DNS_OPT, 1232, ttl, "", 0);
}

static enum lookup_result read_as(const char *name, unsigned int type, struct lookup_answer *a)
{
	uint8_t *exact = malloc(m.n + !m.n); /* so that a sanitizer sees a byte too far */
	enum lookup_result result;

	memcpy(exact, m.p, m.n);
	result = lookup_answer(name, (uint16_t)type, ID, exact, m.n, a);
	free(exact);
	return result;
}

static enum lookup_result read_it(struct lookup_answer *a)
{
	return read_as(NAME, DNS_A, a);
}

/* ---- questions ---- */

static void test_question(void **state)
{
	uint8_t out[LOOKUP_QUESTION_SIZE];
	size_t n = lookup_question(NAME, DNS_AAAA, ID, out, sizeof(out));
	ns_msg ns;
	ns_rr rr;

	assert_int_equal(n, 12 + 17 + 4);
	assert_int_equal(ns_initparse(out, (int)n, &ns), 0);
	assert_int_equal(ns_msg_id(ns), ID);
	assert_true(ns_msg_getflag(ns, ns_f_rd) && !ns_msg_getflag(ns, ns_f_qr));
	assert_int_equal(ns_msg_count(ns, ns_s_qd), 1);
	assert_int_equal(ns_parserr(&ns, ns_s_qd, 0, &rr), 0);
	assert_string_equal(ns_rr_name(rr), NAME);
	assert_int_equal(ns_rr_type(rr), DNS_AAAA);
	assert_int_equal(ns_rr_class(rr), 1);
	assert_int_equal(ns_msg_count(ns, ns_s_ar), 0);
	for (size_t size = 0; size < n; size++)
		assert_int_equal(lookup_question(NAME, DNS_A, ID, out, size), 0);
}

static void test_question_limits(void **state)
{
	uint8_t out[LOOKUP_QUESTION_SIZE];
	char name[NAME_SIZE], canonical[NAME_SIZE];

	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[253] = '\0';
	assert_int_equal(name_canon(name, 253, canonical), NAME_HOST);
	assert_int_equal(lookup_question(canonical, DNS_A, ID, out, sizeof(out)), 12 + 259);
	name[253] = 'a';
	name[254] = '\0';
	assert_int_equal(lookup_question(name, DNS_A, ID, out, sizeof(out)), 0);
	name[63] = 'a';
	assert_int_equal(lookup_question(name, DNS_A, ID, out, sizeof(out)), 0);
	assert_int_equal(lookup_question("", DNS_A, ID, out, sizeof(out)), 0);
	assert_int_equal(lookup_question("a..b", DNS_A, ID, out, sizeof(out)), 0);
	assert_int_equal(lookup_question(".a", DNS_A, ID, out, sizeof(out)), 0);
}

/* What we ask is what our own box's resolver can read. */
static void test_question_as_query(void **state)
{
	uint8_t out[LOOKUP_QUESTION_SIZE];
	size_t n = lookup_question(NAME, DNS_A, ID, out, sizeof(out));
	struct dns_query q;

	assert_int_equal(dns_parse(out, n, &q), DNS_NOERROR);
	assert_string_equal(q.name, NAME);
	assert_true(!q.edns && q.rd);
}

/* ---- answers ---- */

static void test_addresses(void **state)
{
	struct lookup_answer a;

	begin(ANSWER, "wWw.exAMPle.org", DNS_A);
	add_u16(0xc000 | QNAME);
	add_rest(AN, DNS_A, 1, 300, "\xc0\0\2\1", 4);
	add_a("WWW.example.ORG", 200, 2);
	add_a(NAME, 250, 2); /* the same again */
	add_opt(0);
	assert_int_equal(read_it(&a), LOOKUP_OK);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.ttl, 200);
	assert_int_equal(a.address[0].family, ADDRESS_V4);
	assert_memory_equal(a.address[0].byte, "\xc0\0\2\1", 4);
	assert_memory_equal(a.address[1].byte, "\xc0\0\2\2", 4);
}

static void test_ipv6(void **state)
{
	struct lookup_answer a;

	begin(ANSWER, NAME, DNS_AAAA);
	add_name(NAME);
	add_rest(AN, DNS_AAAA, 1, 0x80000001, "\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	add_name(NAME);
	add_rest(AN, DNS_AAAA, 1, 9, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\7", 16);
	add_a(NAME, 1, 1); /* not asked for */
	assert_int_equal(read_as(NAME, DNS_AAAA, &a), LOOKUP_OK);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.ttl, 0);
	assert_int_equal(a.address[0].family, ADDRESS_V6);
	assert_int_equal(a.address[1].family, ADDRESS_V4);
	assert_int_equal(read_it(&a), LOOKUP_IGNORE);
}

static void test_more_than_there_is_room_for(void **state)
{
	struct lookup_answer a;

	begin(ANSWER, NAME, DNS_A);
	for (unsigned int i = 0; i < 40; i++)
		add_a(NAME, 100 - i, i);
	assert_int_equal(read_it(&a), LOOKUP_OK);
	assert_int_equal(a.n, LOOKUP_MAX);
	assert_int_equal(a.ttl, 100 - 15);
}

static void test_aliases(void **state)
{
	struct lookup_answer a;

	begin(ANSWER, NAME, DNS_A);
	add_a("c.example.net", 100, 3); /* before what leads to it */
	add_cname("b.example.net", 50, "C.example.net");
	add_a("other.example.net", 1, 9); /* nobody asked */
	add_cname("x.example.net", 2, "other.example.net");
	add_cname(NAME, 70, "B.EXAMPLE.net");
	assert_int_equal(read_it(&a), LOOKUP_OK);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.ttl, 50);
	assert_int_equal(a.address[0].byte[3], 3);
}

/* Names that differ only as text: a dot inside of a label. */
static void test_dot_in_a_label(void **state)
{
	struct lookup_answer a;

	begin(ANSWER, NAME, DNS_A);
	add("\xbwww.example\3org", 17);
	add_rest(AN, DNS_A, 1, 300, "\xc0\0\2\1", 4);
	assert_int_equal(read_it(&a), LOOKUP_NONE);
}

static void test_chain_length(void **state)
{
	struct lookup_answer a;
	char from[32], to[32];

	for (int links = 16; links <= 17; links++) {
		begin(ANSWER, NAME, DNS_A);
		add_cname(NAME, 60, "0.example.net");
		for (int i = 1; i < links; i++) {
			snprintf(from, sizeof(from), "%d.example.net", i - 1);
			snprintf(to, sizeof(to), "%d.example.net", i);
			add_cname(from, 60, to);
		}
		add_a(to, 60, 1);
		assert_int_equal(read_it(&a), links == 16 ? LOOKUP_OK : LOOKUP_FAILED);
	}
	begin(ANSWER, NAME, DNS_A);
	add_cname(NAME, 60, NAME);
	add_a(NAME, 60, 1);
	assert_int_equal(read_it(&a), LOOKUP_FAILED);
}

static void test_other_classes_and_owners(void **state)
{
	struct lookup_answer a;

	begin(ANSWER, NAME, DNS_A);
	add_name(NAME);
	add_rest(AN, DNS_A, 3, 300, "\xc0\0\2\1", 4);
	add_name(NAME);
	add_rest(AN, CNAME, 3, 300, "any", 3);
	add_a("example.org", 60, 1);
	add_a("a." NAME, 60, 1);
	add_a("", 60, 1);
	assert_int_equal(read_it(&a), LOOKUP_NONE);
	assert_int_equal(a.n, 0);
}

/* An address of the right name, but not among the answers. */
static void test_other_sections(void **state)
{
	struct lookup_answer a;

	begin(ANSWER, NAME, DNS_A);
	add_name(NAME);
	add_rest(AR, DNS_A, 1, 300, "\xc0\0\2\1", 4);
	assert_int_equal(read_it(&a), LOOKUP_NONE);
}

/* ---- absence ---- */

static void test_absence(void **state)
{
	static const struct {
		unsigned int flags;
		uint32_t ttl, minimum, expected;
		enum lookup_result result;
	} rows[] = {
		{ ANSWER, 900, 300, 300, LOOKUP_NONE },
		{ ANSWER, 300, 900, 300, LOOKUP_NONE },
		{ ANSWER, 0xffffffff, 900, 0, LOOKUP_NONE },
		{ ANSWER | 3, 900, 300, 300, LOOKUP_NO_NAME },
	};
	struct lookup_answer a;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin(rows[i].flags, NAME, DNS_A);
		add_soa(rows[i].ttl, rows[i].minimum);
		assert_int_equal(read_it(&a), rows[i].result);
		assert_int_equal(a.n, 0);
		assert_int_equal(a.ttl, rows[i].expected);
	}
	begin(ANSWER, NAME, DNS_A);
	add_cname(NAME, 5, "a.example.net");
	assert_int_equal(read_it(&a), LOOKUP_NONE);
	assert_int_equal(a.ttl, 60);
	begin(ANSWER | 3, NAME, DNS_A);
	add_a(NAME, 5, 1);
	assert_int_equal(read_it(&a), LOOKUP_NO_NAME);
	assert_int_equal(a.n, 0);
}

static void test_errors(void **state)
{
	struct lookup_answer a = { .n = 77 };

	for (unsigned int rcode = 0; rcode < 16; rcode++) {
		if (rcode == DNS_NOERROR || rcode == DNS_NXDOMAIN)
			continue;
		begin(ANSWER | rcode, NAME, DNS_A);
		add_a(NAME, 60, 1);
		assert_int_equal(read_it(&a), LOOKUP_FAILED);
		m.n = 12;
		set_u16(4, 0);
		set_u16(AN, 0);
		assert_int_equal(read_it(&a), LOOKUP_FAILED);
	}
	begin(ANSWER, NAME, DNS_A);
	add_opt(1u << 24); /* BADVERS: only the upper bits say it */
	assert_int_equal(read_it(&a), LOOKUP_FAILED);
	assert_int_equal(a.n, 77);
}

static void test_cut(void **state)
{
	struct lookup_answer a;

	begin(ANSWER | 0x0200, NAME, DNS_A);
	add_a(NAME, 60, 1);
	assert_int_equal(read_it(&a), LOOKUP_CUT);
	m.n -= 3;
	assert_int_equal(read_it(&a), LOOKUP_CUT);
	begin(ANSWER | 0x0202, NAME, DNS_A);
	assert_int_equal(read_it(&a), LOOKUP_FAILED);
}

/* ---- not ours ---- */

static void test_ignored(void **state)
{
	struct lookup_answer a = { .n = 77 };

	begin(ANSWER, NAME, DNS_A);
	add_a(NAME, 60, 1);
	assert_int_equal(lookup_answer(NAME, DNS_A, ID + 1, m.p, m.n, &a), LOOKUP_IGNORE);
	assert_int_equal(read_as("ww.example.org", DNS_A, &a), LOOKUP_IGNORE);
	assert_int_equal(read_as("wwx.example.org", DNS_A, &a), LOOKUP_IGNORE);
	assert_int_equal(read_as("www.example.orh", DNS_A, &a), LOOKUP_IGNORE);
	assert_int_equal(read_as("www.example.or", DNS_A, &a), LOOKUP_IGNORE);
	assert_int_equal(read_as("www.example.orga", DNS_A, &a), LOOKUP_IGNORE);
	assert_int_equal(read_as(NAME, DNS_AAAA, &a), LOOKUP_IGNORE);
	assert_int_equal(read_as("", DNS_A, &a), LOOKUP_IGNORE);
	assert_int_equal(a.n, 77);
	assert_int_equal(read_it(&a), LOOKUP_OK); /* the same, asked for */
	set_u16(2, 0x0180);                       /* a question */
	assert_int_equal(read_it(&a), LOOKUP_IGNORE);
	set_u16(2, ANSWER | 0x2000); /* NOTIFY */
	assert_int_equal(read_it(&a), LOOKUP_IGNORE);
	set_u16(2, ANSWER);
	set_u16(4, 2);
	assert_int_equal(read_it(&a), LOOKUP_IGNORE);
	set_u16(4, 0);
	assert_int_equal(read_it(&a), LOOKUP_IGNORE);
	set_u16(4, 1);
	set_u16(12 + 17 + 2, 3); /* class */
	assert_int_equal(read_it(&a), LOOKUP_IGNORE);
}

/* ---- broken ---- */

/* Wherever it is cut off, it is not an answer. */
static void test_every_length(void **state)
{
	struct lookup_answer a;
	size_t whole, question = 12 + 17 + 4;

	begin(ANSWER, NAME, DNS_A);
	add_cname(NAME, 60, "a.example.net");
	add_a("a.example.net", 60, 1);
	add_soa(60, 60);
	add_opt(0);
	whole = m.n;
	assert_int_equal(read_it(&a), LOOKUP_OK);
	for (m.n = 0; m.n < whole; m.n++)
		assert_int_equal(read_it(&a), m.n < question ? LOOKUP_IGNORE : LOOKUP_FAILED);
}

static void test_lying_counts(void **state)
{
	static const size_t sections[] = { AN, NS, AR };
	struct lookup_answer a;

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		begin(ANSWER, NAME, DNS_A);
		add_a(NAME, 60, 1);
		assert_int_equal(read_it(&a), LOOKUP_OK);
		set_u16(sections[i], 0xffff);
		assert_int_equal(read_it(&a), LOOKUP_FAILED);
	}
	set_u16(AR, 0);
	set_u16(AN, 0); /* a record there, but not said to be */
	assert_int_equal(read_it(&a), LOOKUP_NONE);
}

static void test_wrong_lengths(void **state)
{
	static const struct {
		unsigned int type;
		size_t n;
		const char *data;
	} rows[] = {
		{ DNS_A, 0, "" },
		{ DNS_A, 3, "\1\2\3" },
		{ DNS_A, 5, "\1\2\3\4\5" },
		{ DNS_A, 16, "\0\0\0\0\0\0\0\0\0\0\xff\xff\1\2\3\4" },
		{ DNS_AAAA, 4, "\1\2\3\4" },
		{ CNAME, 0, "" },
		{ CNAME, 2, "\1a" },
		{ CNAME, 4, "\1a\0\0" },
		{ CNAME, 2, "\5a" },
		{ CNAME, 1, "\xc0" },
		{ DNS_SOA, 2, "\0\0" },
		{ DNS_SOA, 21, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" },
	};
	struct lookup_answer a;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin(ANSWER, NAME, DNS_A);
		add_name(NAME);
		add_rest(AN, rows[i].type, 1, 60, rows[i].data, rows[i].n);
		add_a(NAME, 60, 1);
		assert_int_equal(read_it(&a), LOOKUP_FAILED);
	}
}

static void test_pointers(void **state)
{
	size_t here = 12 + 17 + 4;
	struct {
		unsigned int pointer;
		enum lookup_result result;
	} rows[] = {
		{ 0xc000 | QNAME, LOOKUP_OK },
		{ 0xc000 | (QNAME + 4), LOOKUP_NONE },          /* example.org */
		{ 0xc000 | (QNAME + 16), LOOKUP_NONE },         /* the root */
		{ 0xc000 | (unsigned int)here, LOOKUP_FAILED }, /* itself */
		{ 0xc000 | (unsigned int)(here + 2), LOOKUP_FAILED },
		{ 0xc000 | 11, LOOKUP_FAILED }, /* into the header */
		{ 0xc000, LOOKUP_FAILED },
		{ 0xffff, LOOKUP_FAILED },
		{ 0x8000 | QNAME, LOOKUP_FAILED },
		{ 0x4000 | QNAME, LOOKUP_FAILED },
	};
	struct lookup_answer a;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin(ANSWER, NAME, DNS_A);
		assert_int_equal(m.n, here);
		add_u16(rows[i].pointer);
		add_rest(AN, DNS_A, 1, 60, "\xc0\0\2\1", 4);
		assert_int_equal(read_it(&a), rows[i].result);
	}
}

/* a → a's own label again: each turn would be one byte longer, and never end. */
static void test_pointer_loops(void **state)
{
	struct lookup_answer a;
	size_t first;

	begin(ANSWER, NAME, DNS_A);
	first = m.n;
	add("\1a", 2);
	add_u16(0xc000 | (unsigned int)first);
	add_rest(AN, DNS_A, 1, 60, "\xc0\0\2\1", 4);
	assert_int_equal(read_it(&a), LOOKUP_FAILED);

	/* Two that lead to each other. */
	begin(ANSWER, NAME, DNS_A);
	first = m.n;
	add_u16(0xc000 | (unsigned int)(first + 16));
	add_rest(AN, DNS_A, 1, 60, "\xc0\0\2\1", 4);
	add_u16(0xc000 | (unsigned int)first);
	add_rest(AN, DNS_A, 1, 60, "\xc0\0\2\1", 4);
	assert_int_equal(read_it(&a), LOOKUP_FAILED);
}

/* Backwards all the way, and yet too long a name. */
static void test_long_names(void **state)
{
	struct lookup_answer a;
	uint8_t label[64] = { 63 };
	size_t at = QNAME + 16;

	memset(label + 1, 'a', 63);
	for (int labels = 1; labels <= 4; labels++) {
		begin(ANSWER, NAME, DNS_A);
		at = QNAME + 16;
		for (int i = 0; i < labels; i++) {
			size_t start = m.n;

			add(label, sizeof(label));
			add_u16(0xc000 | (unsigned int)at);
			add_rest(AN, DNS_A, 1, 60, "\xc0\0\2\1", 4);
			at = start;
		}
		assert_int_equal(read_it(&a), labels < 4 ? LOOKUP_NONE : LOOKUP_FAILED);
	}
}

/* As many records as a message holds, and names as hard to compare as can be. */
static void test_the_largest_answer(void **state)
{
	struct lookup_answer a;

	begin(ANSWER, NAME, DNS_A);
	for (int i = 0; m.n < 65000; i++) {
		add_u16(0xc000 | QNAME);
		add_rest(AN, i ? CNAME : 16, 1, 60, "\xc0\x10", 2);
	}
	assert_int_equal(read_it(&a), LOOKUP_NONE);
	begin(ANSWER, NAME, DNS_A);
	for (int i = 0; m.n < 65000; i++)
		add_a("other.example.org", 60, 1);
	add_a(NAME, 60, 1);
	assert_int_equal(read_it(&a), LOOKUP_NONE);
}

static void test_trailing_garbage(void **state)
{
	struct lookup_answer a;

	begin(ANSWER, NAME, DNS_A);
	add_a(NAME, 60, 1);
	add("\xff\xff\xff", 3);
	assert_int_equal(read_it(&a), LOOKUP_OK);
	assert_int_equal(a.n, 1);
}

/* ---- resolv.conf ---- */

static unsigned int zone_of(const char *name)
{
	assert_in_range(strlen(name), 1, 15);
	return !strcmp(name, "eth0") ? 7 : !strcmp(name, "a-name-of-15-ch") ? 8 : 0;
}

static void config_is(const char *text, const char *servers, unsigned int timeout,
	unsigned int attempts)
{
	struct lookup_config c;
	char all[256] = "", one[ADDRESS_SIZE], zone[16];

	lookup_config(text, strlen(text), zone_of, &c);
	assert_in_range(c.n, 1, LOOKUP_SERVERS);
	for (unsigned int i = 0; i < c.n; i++) {
		address_format(&c.server[i], one);
		strcat(all, i ? " " : "");
		strcat(all, one);
		snprintf(zone, sizeof(zone), "%%%u", c.zone[i]);
		strcat(all, c.zone[i] ? zone : "");
	}
	assert_string_equal(all, servers);
	assert_int_equal(c.timeout, timeout);
	assert_int_equal(c.attempts, attempts);
}

static void test_config(void **state)
{
	config_is("", "127.0.0.1", 5, 2);
	config_is("nameserver 192.0.2.1", "192.0.2.1", 5, 2);
	config_is("# nameserver 192.0.2.1\n;nameserver 192.0.2.2\nsearch example.org\n"
		  "\tnameserver\t2001:db8::1 # here\r\n"
		  "options edns0 timeout:3 attempts:4 trust-ad\n",
		"2001:db8::1", 3, 4);
	config_is("nameserver 1.1.1.1\nnameserver 2.2.2.2\nnameserver 3.3.3.3\n"
		  "nameserver 4.4.4.4\n",
		"1.1.1.1 2.2.2.2 3.3.3.3", 5, 2);
	config_is("nameserver\nnameserver example.org\nnameserver 127.1\nnameservers 1.1.1.1\n",
		"127.0.0.1", 5, 2);
	config_is("options timeout:0 attempts:0\n", "127.0.0.1", 1, 1);
	config_is("options timeout:99999999999999999999 attempts:42\n", "127.0.0.1", 30, 5);
	config_is("options timeout: attempts:x timeout:-1\n", "127.0.0.1", 5, 2);
}

/* A server on an interface, and what is none: it takes nobody's place. */
static void test_config_with_zone(void **state)
{
	config_is("nameserver fe80::1%eth0\nnameserver 192.0.2.1", "fe80::1%7 192.0.2.1", 5, 2);
	config_is("nameserver fe80::1%a-name-of-15-ch # here", "fe80::1%8", 5, 2);
	config_is("nameserver fe80::1%3\nnameserver fe80::2%4294967295\nnameserver fe80::3",
		"fe80::1%3 fe80::2%4294967295 fe80::3", 5, 2);
	config_is("nameserver fe80::1%eth1", "127.0.0.1", 5, 2);
	config_is("nameserver fe80::1%a-name-of-15-chars\nnameserver fe80::2%\n"
		  "nameserver fe80::3%eth0%eth0\nnameserver fe80::4%0\n"
		  "nameserver fe80::5%4294967296\nnameserver fe80::6%-1\n"
		  "nameserver 192.0.2.1%eth0\nnameserver ::ffff:192.0.2.2%eth0\n"
		  "nameserver %eth0\nnameserver fe80::7 %eth0\n",
		"fe80::7", 5, 2);
}

static void test_config_with_nul(void **state)
{
	static const char text[] = "name\0server 1.1.1.1\n\0\nnameserver 192.0.2.1\0\n"
				   "nameserver fe80::1%eth0\0\nnameserver 192.0.2.2";
	struct lookup_config c;
	char *exact = malloc(sizeof(text) - 1);

	memcpy(exact, text, sizeof(text) - 1);
	lookup_config(exact, sizeof(text) - 1, zone_of, &c);
	free(exact);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.server[0].byte[3], 2);
}

/* ---- hosts ---- */

static const char hosts[] = "# 192.0.2.9 www.example.org\n"
			    "127.0.0.1\tlocalhost\n"
			    "::1 localhost ip6-localhost\r\n"
			    "\n"
			    "   192.0.2.1   first.example.org WWW.Example.ORG\n"
			    "2001:db8::1 www.example.org\r\n"
			    "192.0.2.1 www.example.org # again\n"
			    "192.0.2.2 other #www.example.org\n"
			    "192.0.2.3 www.example.org.evil xwww.example.org www.example\n"
			    "fe80::1%eth0 www.example.org\n"
			    "192.0.2 www.example.org\n"
			    "www.example.org 192.0.2.4\n"
			    "192.0.2.5";

static void test_hosts(void **state)
{
	struct address a[LOOKUP_MAX];

	assert_int_equal(lookup_hosts(hosts, sizeof(hosts) - 1, NAME, a), 2);
	assert_int_equal(a[0].family, ADDRESS_V4);
	assert_int_equal(a[0].byte[3], 1);
	assert_int_equal(a[1].family, ADDRESS_V6);
	assert_int_equal(lookup_hosts(hosts, sizeof(hosts) - 1, "localhost", a), 2);
	assert_int_equal(lookup_hosts(hosts, sizeof(hosts) - 1, "other", a), 1);
	assert_int_equal(lookup_hosts(hosts, sizeof(hosts) - 1, "absent", a), 0);
	assert_int_equal(lookup_hosts(hosts, 0, NAME, a), 0);
}

static void test_many_hosts(void **state)
{
	struct address a[LOOKUP_MAX];
	char text[2048];
	size_t n = 0;

	for (int i = 0; i < 40; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "192.0.2.%d " NAME "\n", i);
	assert_int_equal(lookup_hosts(text, n, NAME, a), LOOKUP_MAX);
	assert_int_equal(a[15].byte[3], 15);
}

static struct lookup_index index_of(const char *text, size_t n)
{
	struct lookup_index x = { .text = text, .n = n, .room = lookup_count(text, n) };

	x.names = calloc(x.room, sizeof(*x.names));
	assert_non_null(x.names);
	lookup_index(&x);
	return x;
}

/* The same addresses in the same order as who reads all of it; how many. */
static unsigned int same_found(const struct lookup_index *x, const char *name)
{
	struct address a[LOOKUP_MAX], b[LOOKUP_MAX];
	const unsigned int n = lookup_hosts(x->text, x->n, name, a);

	assert_int_equal(lookup_find(x, name, b), n);
	for (unsigned int i = 0; i < n; i++)
		assert_true(address_equal(&a[i], &b[i]));
	return n;
}

static void test_index(void **state)
{
	struct lookup_index x = index_of(hosts, sizeof(hosts) - 1);

	assert_int_equal(same_found(&x, NAME), 2);
	assert_int_equal(same_found(&x, "ip6-localhost"), 1);
	assert_int_equal(same_found(&x, "192.0.2.4"), 0);
	assert_int_equal(same_found(&x, "absent"), 0);
	free(x.names);
	x.names = NULL;
	assert_int_equal(same_found(&x, NAME), 2);
	x = index_of("", 0);
	assert_int_equal(same_found(&x, NAME), 0);
	free(x.names);
}

/* Pieces of lines in any order: the whole is read by both, and nothing after its end. */
static void test_index_of_random_text(void **state)
{
	static const char *const piece[] = { "192.0.2.1", "192.0.2.2", "2001:db8::1", "::1",
		"0.0.0.0", " ", " ", " ", "\t", "\r", "\n", "\n0.0.0.0 ", "\n::1 ", "\n::2 ",
		" a ", "#", "a", "A", "b", "www.example.org", "WWW.example.ORG", "example", ".",
		"1.2.3" };
	static const char *const name[] = { "a", "b", "aa", "ab", "www.example.org", "example",
		"a.b", "192.0.2.1", "ba", "0.0.0.0" };
	unsigned int found = 0;

	srandom(1);
	for (int round = 0; round < 20000; round++) {
		char text[1024] = "", *exact;
		struct lookup_index x;

		for (long left = random() % 50; left > 0; left--)
			strcat(text, piece[(size_t)random() % ARRAY_SIZE(piece)]);
		exact = malloc(strlen(text) + 1);
		memcpy(exact, text, strlen(text));
		if (*text && round % 7 == 0)
			exact[(size_t)random() % strlen(text)] = '\0';
		x = index_of(exact, strlen(text));
		for (size_t i = 0; i < ARRAY_SIZE(name); i++)
			found += same_found(&x, name[i]);
		free(x.names);
		free(exact);
	}
	assert_true(found > 20000);
}

/* One name in every line, and every name in one line. */
static void test_index_of_the_same_again(void **state)
{
	enum { LINES = 100000, ROOM = LINES * 32 };
	char *text = malloc(ROOM), one[32];
	struct lookup_index x;
	size_t n = 0;

	for (int i = 0; i < LINES; i++)
		n += (size_t)snprintf(text + n, ROOM - n, "192.0.2.%d " NAME "\n",
			i * 8 / LINES);
	x = index_of(text, n);
	assert_int_equal(same_found(&x, NAME), 8);
	free(x.names);
	n = (size_t)snprintf(text, ROOM, "::1");
	for (int i = 0; i < LINES; i++)
		n += (size_t)snprintf(text + n, ROOM - n, " n%d", i);
	x = index_of(text, n);
	for (int i = 0; i < LINES; i++) {
		struct address a[LOOKUP_MAX];

		snprintf(one, sizeof(one), "n%d", i);
		assert_int_equal(lookup_find(&x, one, a), 1);
	}
	assert_int_equal(same_found(&x, "n100000"), 0);
	free(x.names);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question),
		cmocka_unit_test(test_question_limits),
		cmocka_unit_test(test_question_as_query),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_more_than_there_is_room_for),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_dot_in_a_label),
		cmocka_unit_test(test_chain_length),
		cmocka_unit_test(test_other_classes_and_owners),
		cmocka_unit_test(test_other_sections),
		cmocka_unit_test(test_absence),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_ignored),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_lying_counts),
		cmocka_unit_test(test_wrong_lengths),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_pointer_loops),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_the_largest_answer),
		cmocka_unit_test(test_trailing_garbage),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_config_with_zone),
		cmocka_unit_test(test_config_with_nul),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_many_hosts),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_index_of_random_text),
		cmocka_unit_test(test_index_of_the_same_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
