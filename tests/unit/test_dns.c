/*
 * tests/unit/test_dns.c - questions of all kinds, and answers as the C library reads them
 *
 * Answers are taken apart by libresolv's own parser, not by ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/proto/dns.h"

enum { ID = 0x1234, RD = 0x0100, CD = 0x0010, QR = 0x8000 };

struct message {
	uint8_t p[2048];
	size_t n;
};

static void add(struct message *m, const void *bytes, size_t n)
{
	assert_true(m->n + n <= sizeof(m->p));
	memcpy(m->p + m->n, bytes, n);
	m->n += n;
}

static void add_u16(struct message *m, unsigned int value)
{
	add(m, (uint8_t[]){ (uint8_t)(value >> 8), (uint8_t)value }, 2);
}

static void add_header(struct message *m, unsigned int flags, unsigned int questions,
	unsigned int additional)
{
	m->n = 0;
	add_u16(m, ID);
	add_u16(m, flags);
	add_u16(m, questions);
	add_u16(m, 0);
	add_u16(m, 0);
	add_u16(m, additional);
}

static void add_name(struct message *m, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		add(m, (uint8_t[]){ (uint8_t)n }, 1);
		add(m, name, n);
		name += n + (name[n] == '.');
	}
	add(m, "", 1);
}

static void add_question(struct message *m, const char *name, unsigned int type,
	unsigned int class)
{
	add_name(m, name);
	add_u16(m, type);
	add_u16(m, class);
}

static void add_opt(struct message *m, unsigned int size, unsigned int version,
	const char *options, size_t n)
{
	add(m, "", 1);
	add_u16(m, DNS_OPT);
	add_u16(m, size);
	add_u16(m, version);
	add_u16(m, 0);
	add_u16(m, (unsigned int)n);
	add(m, options, n);
}

static struct message ask(const char *name, unsigned int type)
{
	struct message m;

	add_header(&m, RD, 1, 0);
	add_question(&m, name, type, 1);
	return m;
}

static struct message ask_edns(const char *name, unsigned int type, unsigned int size)
{
	struct message m;

	add_header(&m, RD, 1, 1);
	add_question(&m, name, type, 1);
	add_opt(&m, size, 0, "", 0);
	return m;
}

static enum dns_rcode parse(const struct message *m, struct dns_query *q)
{
	uint8_t *exact = malloc(m->n + !m->n); /* so that a sanitizer sees a byte too far */
	enum dns_rcode rcode;

	memcpy(exact, m->p, m->n);
	rcode = dns_parse(exact, m->n, q);
	free(exact);
	return rcode;
}

/* ---- questions ---- */

static void test_question(void **state)
{
	struct message m = ask("wWw.eXample.ORG", DNS_AAAA);
	struct dns_query q;

	assert_int_equal(parse(&m, &q), DNS_NOERROR);
	assert_int_equal(q.id, ID);
	assert_int_equal(q.type, DNS_AAAA);
	assert_int_equal(q.class, 1);
	assert_int_equal(q.kind, NAME_HOST);
	assert_string_equal(q.name, "www.example.org");
	assert_true(q.rd && !q.cd && !q.edns);
	assert_int_equal(q.udp_size, 512);
	assert_int_equal(q.question_len, m.n - 12);
	assert_memory_equal(q.question, m.p + 12, q.question_len);
}

static void test_edns_sizes(void **state)
{
	static const unsigned int rows[][2] = { { 0, 512 }, { 511, 512 }, { 512, 512 },
		{ 1000, 1000 }, { 1232, 1232 }, { 4096, 1232 }, { 65535, 1232 } };
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct message m = ask_edns("example.org", DNS_A, rows[i][0]);

		assert_int_equal(parse(&m, &q), DNS_NOERROR);
		assert_true(q.edns);
		assert_int_equal(q.udp_size, rows[i][1]);
	}
}

/* Well-formed DNS, but no name of a host. */
static void test_names_that_are_none(void **state)
{
	static const struct {
		const char *name;
		enum name_kind kind;
	} rows[] = {
		{ "example.org", NAME_HOST },
		{ "", NAME_BAD },
		{ "127.0.0.1", NAME_IPV4 },
		{ "127.1", NAME_BAD },
		{ "2130706433", NAME_BAD },
		{ "0x7f.0.0.1", NAME_BAD },
		{ "a b.example.org", NAME_BAD },
		{ "a\033.example.org", NAME_BAD },
		{ "\xc3\xbc.example.org", NAME_BAD },
		{ "*.example.org", NAME_BAD },
		{ "::1", NAME_IPV6 },
		{ "[::1]", NAME_IPV6 },
		{ "-x.example.org", NAME_BAD },
		{ "_x.example.org", NAME_HOST },
	};
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct message m = ask(rows[i].name, DNS_A);

		assert_int_equal(parse(&m, &q), DNS_NOERROR);
		assert_int_equal(q.kind, rows[i].kind);
		assert_string_equal(q.name, rows[i].kind == NAME_HOST ? rows[i].name : "");
		assert_true(q.question_len > 0);
	}
}

#define LABELS(text) (text), sizeof(text) - 1

/* A dot or a NUL inside of a label must not make another name of it. */
static void test_bytes_in_labels(void **state)
{
	static const struct {
		const char *labels;
		size_t n;
		enum name_kind kind;
	} rows[] = {
		{ LABELS("\7example\3org"), NAME_HOST },
		{ LABELS("\13example.org"), NAME_BAD },
		{ LABELS("\1a\13example.org"), NAME_BAD },
		{ LABELS("\10example.\3org"), NAME_BAD },
		{ LABELS("\10example\0\3org"), NAME_BAD },
		{ LABELS("\7exampl\0\3org"), NAME_BAD },
		{ LABELS("\1."), NAME_BAD },
		{ LABELS("\11"
			 "127.0.0.1"),
			NAME_BAD },
	};
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct message m;

		add_header(&m, RD, 1, 0);
		add(&m, rows[i].labels, rows[i].n);
		add(&m, "\0\0\1\0\1", 5);
		assert_int_equal(parse(&m, &q), DNS_NOERROR);
		assert_int_equal(q.kind, rows[i].kind);
	}
}

static void test_longest_name(void **state)
{
	struct dns_query q;
	char label[64] = "";

	memset(label, 'a', 63);
	for (int last = 61; last <= 62; last++) {
		struct message m;

		add_header(&m, RD, 1, 0);
		for (int i = 0; i < 3; i++) {
			add(&m, "\77", 1);
			add(&m, label, 63);
		}
		add(&m, (uint8_t[]){ (uint8_t)last }, 1);
		add(&m, label, (size_t)last);
		add(&m, "\0\0\1\0\1", 5);
		assert_int_equal(parse(&m, &q), last == 61 ? DNS_NOERROR : DNS_FORMERR);
	}
	/* More than 63 in a label cannot be, though the bytes are there. */
	for (unsigned int length = 63; length <= 64; length++) {
		struct message m;

		add_header(&m, RD, 1, 0);
		add(&m, (uint8_t[]){ (uint8_t)length }, 1);
		add(&m, label, 63);
		add(&m, "a", length - 63);
		add(&m, "\0\0\1\0\1", 5);
		assert_int_equal(parse(&m, &q), length == 63 ? DNS_NOERROR : DNS_FORMERR);
	}
	/* 127 labels of one character are as long as it gets. */
	for (int labels = 127; labels <= 128; labels++) {
		struct message m;

		add_header(&m, RD, 1, 0);
		for (int i = 0; i < labels; i++)
			add(&m, "\1a", 2);
		add(&m, "\0\0\1\0\1", 5);
		assert_int_equal(parse(&m, &q), labels == 127 ? DNS_NOERROR : DNS_FORMERR);
	}
	assert_int_equal(q.question_len, 0);
}

/* Every message that is cut anywhere is refused; only too short a header is not answered. */
static void test_cut_messages(void **state)
{
	struct message whole = ask_edns("www.example.org", DNS_A, 1232), m;
	struct dns_query q;

	assert_int_equal(parse(&whole, &q), DNS_NOERROR);
	for (size_t n = 0; n < whole.n; n++) {
		m = whole;
		m.n = n;
		assert_int_equal(parse(&m, &q), n < 12 ? DNS_DROP : DNS_FORMERR);
	}
	m = whole;
	add(&m, "x", 1);
	assert_int_equal(parse(&m, &q), DNS_FORMERR);
}

static void test_headers(void **state)
{
	static const struct {
		unsigned int flags, count[4]; /* questions, answers, authority, additional */
		enum dns_rcode rcode;
	} rows[] = {
		{ RD, { 1, 0, 0, 0 }, DNS_NOERROR },
		{ 0, { 1, 0, 0, 0 }, DNS_NOERROR },
		{ RD | CD | 0x20, { 1, 0, 0, 0 }, DNS_NOERROR },
		{ QR, { 1, 0, 0, 0 }, DNS_DROP },
		{ QR | RD, { 1, 1, 0, 0 }, DNS_DROP },
		{ 1 << 11, { 1, 0, 0, 0 }, DNS_NOTIMP },
		{ 4 << 11, { 1, 0, 0, 0 }, DNS_NOTIMP },
		{ 5 << 11, { 1, 0, 0, 0 }, DNS_NOTIMP },
		{ 15 << 11, { 0, 0, 0, 0 }, DNS_NOTIMP },
		{ RD, { 0, 0, 0, 0 }, DNS_FORMERR },
		{ RD, { 2, 0, 0, 0 }, DNS_FORMERR },
		{ RD, { 65535, 0, 0, 0 }, DNS_FORMERR },
		{ RD, { 1, 1, 0, 0 }, DNS_FORMERR },
		{ RD, { 1, 0, 1, 0 }, DNS_FORMERR },
		{ RD, { 1, 0, 0, 1 }, DNS_FORMERR },
		{ RD, { 1, 0, 0, 2 }, DNS_FORMERR },
	};
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct message m = { .n = 0 };

		add_u16(&m, ID);
		add_u16(&m, rows[i].flags);
		for (int k = 0; k < 4; k++)
			add_u16(&m, rows[i].count[k]);
		add_question(&m, "example.org", DNS_A, 1);
		assert_int_equal(parse(&m, &q), rows[i].rcode);
	}
}

static void test_types_and_classes(void **state)
{
	static const struct {
		unsigned int type, class;
		enum dns_rcode rcode;
	} rows[] = {
		{ DNS_A, 1, DNS_NOERROR },
		{ DNS_AAAA, 1, DNS_NOERROR },
		{ 65, 1, DNS_NOERROR },
		{ 12, 1, DNS_NOERROR },
		{ DNS_ANY, 1, DNS_NOERROR },
		{ 65535, 1, DNS_NOERROR },
		{ 0, 1, DNS_FORMERR },
		{ DNS_OPT, 1, DNS_FORMERR },
		{ 249, 1, DNS_NOTIMP },
		{ 250, 1, DNS_NOTIMP },
		{ 251, 1, DNS_NOTIMP },
		{ 252, 1, DNS_NOTIMP },
		{ DNS_A, 3, DNS_REFUSED },
		{ DNS_A, 255, DNS_REFUSED },
		{ DNS_A, 0, DNS_REFUSED },
	};
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct message m;

		add_header(&m, RD, 1, 0);
		add_question(&m, "example.org", rows[i].type, rows[i].class);
		assert_int_equal(parse(&m, &q), rows[i].rcode);
	}
}

static void test_pointers_in_questions(void **state)
{
	static const struct {
		const char *name;
		size_t n;
	} rows[] = { { "\xc0\x0c", 2 }, { "\xc0\x00", 2 }, { "\1a\xc0\x0c", 4 }, { "\x40", 2 },
		{ "\x80", 2 }, { "\xff\xff", 2 } };
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct message m;

		add_header(&m, RD, 1, 0);
		add(&m, rows[i].name, rows[i].n);
		add(&m, "\0\1\0\1", 4);
		assert_int_equal(parse(&m, &q), DNS_FORMERR);
		assert_int_equal(q.question_len, 0);
	}
}

static void test_additional_records(void **state)
{
	static const struct {
		const char *record;
		size_t n;
		enum dns_rcode rcode;
		bool edns;
	} rows[] = {
		{ "\0\0\x29\x04\xd0\0\0\0\0\0\0", 11, DNS_NOERROR, true },
		{ "\0\0\x29\x04\xd0\0\0\x80\0\0\0", 11, DNS_NOERROR, true }, /* DO */
		{ "\0\0\x29\x04\xd0\0\1\0\0\0\0", 11, DNS_BADVERS, true },
		{ "\0\0\x29\x04\xd0\0\0\0\0\0\4\0\x0a\0\0", 15, DNS_NOERROR, true },
		{ "\0\0\x29\x04\xd0\0\0\0\0\0\6\0\x0c\0\2\0\0", 17, DNS_NOERROR, true },
		{ "\0\0\x29\x04\xd0\0\0\0\0\0\3\0\x0a\0", 14, DNS_FORMERR, false },
		{ "\0\0\x29\x04\xd0\0\0\0\0\0\4\0\x0a\0\1", 15, DNS_FORMERR, false },
		{ "\0\0\x29\x04\xd0\0\0\0\0\0\1", 11, DNS_FORMERR, false },
		{ "\1a\0\0\x29\x04\xd0\0\0\0\0\0\0", 13, DNS_FORMERR, false },
		{ "\xc0\x0c\0\x29\x04\xd0\0\0\0\0\0\0", 12, DNS_FORMERR, false },
		/* Not EDNS: passed over, if it is whole. */
		{ "\xc0\x0c\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 16, DNS_NOERROR, false },
		{ "\1a\0\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 17, DNS_NOERROR, false },
		{ "\x40\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 15, DNS_FORMERR, false },
		{ "\xc0\x0c\0\1\0\1\0\0\0\0\0\5\1\2\3\4", 16, DNS_FORMERR, false },
		{ "\xc0", 1, DNS_FORMERR, false },
	};
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct message m;

		add_header(&m, RD, 1, 1);
		add_question(&m, "example.org", DNS_A, 1);
		add(&m, rows[i].record, rows[i].n);
		assert_int_equal(parse(&m, &q), rows[i].rcode);
		assert_int_equal(q.edns, rows[i].edns);
		assert_string_equal(q.name, "example.org");
	}
}

/* ---- answers ---- */

static const struct address both[] = {
	{ .family = ADDRESS_V4, .byte = { 198, 18, 1, 0 } },
	{ .family = ADDRESS_V6, .byte = { 0xfd, 0x63, [15] = 1 } },
};

struct answer {
	struct message m;
	ns_msg ns;
};

static struct answer *answer(const struct message *query, struct dns_reply reply, size_t size)
{
	struct dns_query q;
	struct answer *a = mem_alloc(sizeof(*a));
	enum dns_rcode rcode = parse(query, &q);
	uint8_t *exact = malloc(size);

	if (rcode)
		reply.rcode = rcode;
	a->m.n = dns_write(&q, &reply, exact, size);
	assert_true(a->m.n >= 12 && a->m.n <= size);
	memcpy(a->m.p, exact, a->m.n);
	free(exact);
	if (ns_initparse(a->m.p, (int)a->m.n, &a->ns) < 0)
		fail_msg("libresolv cannot read the answer");
	assert_int_equal(ns_msg_id(a->ns), ID);
	assert_int_equal(ns_msg_getflag(a->ns, ns_f_qr), 1);
	assert_int_equal(ns_msg_getflag(a->ns, ns_f_aa), 0);
	assert_int_equal(ns_msg_getflag(a->ns, ns_f_ra), 1);
	assert_int_equal(ns_msg_getflag(a->ns, ns_f_ad), 0);
	return a;
}

static ns_rr record(struct answer *a, ns_sect section, int i)
{
	ns_rr rr;

	assert_int_equal(ns_parserr(&a->ns, section, i, &rr), 0);
	return rr;
}

static int count(struct answer *a, ns_sect section)
{
	return ns_msg_count(a->ns, section);
}

static int rcode_of(struct answer *a)
{
	return ns_msg_getflag(a->ns, ns_f_rcode);
}

static void expect_soa(struct answer *a, uint32_t ttl)
{
	ns_rr rr = record(a, ns_s_ns, 0);
	const uint8_t *minimum = ns_rr_rdata(rr) + ns_rr_rdlen(rr) - 4;

	assert_int_equal(count(a, ns_s_an), 0);
	assert_int_equal(count(a, ns_s_ns), 1);
	assert_int_equal(ns_rr_type(rr), ns_t_soa);
	assert_int_equal(ns_rr_ttl(rr), ttl);
	assert_int_equal(ns_get32(minimum), ttl);
	assert_string_equal(ns_rr_name(rr), ".");
	assert_int_equal(ns_rr_rdlen(rr), 22);
}

static void test_addresses(void **state)
{
	static const struct {
		unsigned int type;
		const struct address *want;
	} rows[] = { { DNS_A, &both[0] }, { DNS_AAAA, &both[1] } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct message m = ask("WwW.example.org", rows[i].type);
		struct answer *a =
			answer(&m, (struct dns_reply){ 0, both, 2, 60, -1, NULL }, 512);
		ns_rr rr = record(a, ns_s_an, 0);

		assert_int_equal(rcode_of(a), 0);
		assert_int_equal(count(a, ns_s_an), 1);
		assert_int_equal(count(a, ns_s_ns) + count(a, ns_s_ar), 0);
		assert_int_equal(ns_rr_type(rr), rows[i].type);
		assert_int_equal(ns_rr_class(rr), 1);
		assert_int_equal(ns_rr_ttl(rr), 60);
		assert_string_equal(ns_rr_name(rr), "WwW.example.org");
		assert_int_equal(ns_rr_rdlen(rr), address_bits(rows[i].want) / 8);
		assert_memory_equal(ns_rr_rdata(rr), rows[i].want->byte, ns_rr_rdlen(rr));
		/* The question is echoed in its own case. */
		rr = record(a, ns_s_qd, 0);
		assert_string_equal(ns_rr_name(rr), "WwW.example.org");
		assert_memory_equal(a->m.p + 12, m.p + 12, m.n - 12);
		assert_int_equal(ns_msg_getflag(a->ns, ns_f_rd), 1);
		assert_int_equal(ns_msg_getflag(a->ns, ns_f_cd), 0);
	}
}

static void test_no_data(void **state)
{
	static const unsigned int types[] = { 2, 5, 6, 12, 15, 16, 33, 35, 64, 65, 255, 257,
		65535 };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct message m = ask("example.org", types[i]);
		struct answer *a =
			answer(&m, (struct dns_reply){ 0, both, 2, 60, -1, NULL }, 512);

		assert_int_equal(rcode_of(a), 0);
		expect_soa(a, 60);
	}
	/* One family only. */
	for (int i = 0; i < 2; i++) {
		struct message m = ask("example.org", i ? DNS_A : DNS_AAAA);
		struct answer *a =
			answer(&m, (struct dns_reply){ 0, &both[i], 1, 60, -1, NULL }, 512);

		expect_soa(a, 60);
	}
}

static void test_refusals(void **state)
{
	static const int rcodes[] = { DNS_FORMERR, DNS_SERVFAIL, DNS_NXDOMAIN, DNS_NOTIMP,
		DNS_REFUSED };

	for (size_t i = 0; i < ARRAY_SIZE(rcodes); i++) {
		struct message m = ask("example.org", DNS_A);
		struct answer *a =
			answer(&m, (struct dns_reply){ rcodes[i], both, 2, 5, -1, NULL }, 512);

		assert_int_equal(rcode_of(a), rcodes[i]);
		assert_int_equal(count(a, ns_s_qd), 1);
		assert_int_equal(count(a, ns_s_an), 0);
		if (rcodes[i] == DNS_NXDOMAIN)
			expect_soa(a, 5);
		else
			assert_int_equal(count(a, ns_s_ns), 0);
	}
}

static void test_flags_are_echoed(void **state)
{
	struct message m;
	struct answer *a;

	add_header(&m, CD, 1, 0);
	add_question(&m, "example.org", DNS_A, 1);
	a = answer(&m, (struct dns_reply){ 0, both, 2, 60, -1, NULL }, 512);
	assert_int_equal(ns_msg_getflag(a->ns, ns_f_rd), 0);
	assert_int_equal(ns_msg_getflag(a->ns, ns_f_cd), 1);
	add_header(&m, RD | 4 << 11, 1, 0);
	add_question(&m, "example.org", DNS_A, 1);
	a = answer(&m, (struct dns_reply){ 0, both, 2, 60, -1, NULL }, 512);
	assert_int_equal(ns_msg_getflag(a->ns, ns_f_opcode), 4);
	assert_int_equal(rcode_of(a), DNS_NOTIMP);
	assert_int_equal(a->m.n, 12);
}

static void test_unreadable_question(void **state)
{
	struct message m;
	struct answer *a;

	add_header(&m, RD, 1, 0);
	add(&m, "\xc0\x0c\0\1\0\1", 6);
	a = answer(&m, (struct dns_reply){ 0, both, 2, 60, -1, NULL }, 512);
	assert_int_equal(rcode_of(a), DNS_FORMERR);
	assert_int_equal(a->m.n, 12);
	assert_int_equal(count(a, ns_s_qd), 0);
}

static void test_edns(void **state)
{
	struct message m = ask_edns("example.org", DNS_A, 1400);
	struct answer *a = answer(&m, (struct dns_reply){ 0, both, 2, 60, -1, NULL }, 1232);
	ns_rr rr = record(a, ns_s_ar, 0);

	assert_int_equal(count(a, ns_s_an), 1);
	assert_int_equal(count(a, ns_s_ar), 1);
	assert_int_equal(ns_rr_type(rr), ns_t_opt);
	assert_int_equal(ns_rr_class(rr), DNS_UDP_SIZE);
	assert_int_equal(ns_rr_ttl(rr), 0);
	assert_int_equal(ns_rr_rdlen(rr), 0);
}

static void test_extended_error(void **state)
{
	static const char why[] = "not in this box's list";
	struct dns_reply reply = { DNS_NXDOMAIN, NULL, 0, 5, DNS_EDE_BLOCKED, why };
	struct message m = ask_edns("example.org", DNS_A, 1232);
	struct answer *a = answer(&m, reply, 1232);
	ns_rr rr = record(a, ns_s_ar, 0);
	const uint8_t *option = ns_rr_rdata(rr);

	expect_soa(a, 5);
	assert_int_equal(ns_rr_rdlen(rr), 6 + strlen(why));
	assert_int_equal(ns_get16(option), 15);
	assert_int_equal(ns_get16(option + 2), 2 + strlen(why));
	assert_int_equal(ns_get16(option + 4), 15);
	assert_memory_equal(option + 6, why, strlen(why));
	/* Without a text, and never to one who did not ask. */
	reply.ede_text = NULL;
	a = answer(&m, reply, 1232);
	assert_int_equal(ns_rr_rdlen(record(a, ns_s_ar, 0)), 6);
	m = ask("example.org", DNS_A);
	a = answer(&m, reply, 1232);
	assert_int_equal(count(a, ns_s_ar), 0);
}

static void test_bad_version(void **state)
{
	struct message m;
	struct answer *a;
	ns_rr rr;

	add_header(&m, RD, 1, 1);
	add_question(&m, "example.org", DNS_A, 1);
	add_opt(&m, 1232, 1, "", 0);
	a = answer(&m, (struct dns_reply){ 0, both, 2, 60, -1, NULL }, 512);
	rr = record(a, ns_s_ar, 0);
	assert_int_equal(rcode_of(a), 0);
	assert_int_equal(ns_rr_ttl(rr) >> 24, 1); /* 1 << 4 | 0: BADVERS */
	assert_int_equal(count(a, ns_s_an), 0);
}

static void test_truncation(void **state)
{
	static struct address many[100];
	struct dns_reply reply = { 0, many, 100, 60, -1, NULL };
	struct message m = ask_edns("example.org", DNS_A, 512);
	struct answer *a;

	for (int i = 0; i < 100; i++)
		many[i] = (struct address){ ADDRESS_V4, { 1, 2, 3, (uint8_t)i } };
	a = answer(&m, reply, 512);
	assert_int_equal(ns_msg_getflag(a->ns, ns_f_tc), 1);
	assert_int_equal(rcode_of(a), 0);
	assert_int_equal(count(a, ns_s_qd), 1);
	assert_int_equal(count(a, ns_s_an), 0);
	assert_int_equal(count(a, ns_s_ar), 1);
	/* With room, as over TCP. */
	a = answer(&m, reply, 2000);
	assert_int_equal(ns_msg_getflag(a->ns, ns_f_tc), 0);
	assert_int_equal(count(a, ns_s_an), 100);
	assert_int_equal(count(a, ns_s_ar), 1);
}

/* At every size the answer is whole, cut, or not there. */
static void test_every_size(void **state)
{
	struct dns_reply replies[] = {
		{ 0, both, 2, 60, -1, NULL },
		{ DNS_NXDOMAIN, NULL, 0, 5, DNS_EDE_BLOCKED, "not in this box's list" },
	};
	struct message m = ask_edns("example.org", DNS_A, 512);
	struct dns_query q;
	size_t written = 0, cut = 0, nothing = 0;

	assert_int_equal(parse(&m, &q), DNS_NOERROR);
	for (size_t size = 0; size < 200; size++) {
		uint8_t *exact = malloc(size + !size);
		size_t n = dns_write(&q, &replies[size & 1], exact, size);
		ns_msg ns;

		assert_true(n <= size);
		nothing += !n;
		if (n) {
			assert_int_equal(ns_initparse(exact, (int)n, &ns), 0);
			written++;
			cut += (size_t)ns_msg_getflag(ns, ns_f_tc);
		}
		free(exact);
	}
	assert_true(nothing > 10 && cut > 10 && written > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question),
		cmocka_unit_test(test_edns_sizes),
		cmocka_unit_test(test_names_that_are_none),
		cmocka_unit_test(test_bytes_in_labels),
		cmocka_unit_test(test_longest_name),
		cmocka_unit_test(test_cut_messages),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_types_and_classes),
		cmocka_unit_test(test_pointers_in_questions),
		cmocka_unit_test(test_additional_records),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_no_data),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_flags_are_echoed),
		cmocka_unit_test(test_unreadable_question),
		cmocka_unit_test(test_edns),
		cmocka_unit_test(test_extended_error),
		cmocka_unit_test(test_bad_version),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_every_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
