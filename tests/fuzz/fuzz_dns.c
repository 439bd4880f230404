/*
 * tests/fuzz/fuzz_dns.c - any bytes as a query; answers as libresolv reads them
 */
#include "fuzz.h"
#include "net/proto/dns.h"

#include <arpa/nameser.h>
#include <ctype.h>
#include <resolv.h>
#include <string.h>

/* Every record of every section must be readable. */
static void check_records(ns_msg *ns)
{
	ns_rr rr;

	for (int section = ns_s_qd; section < ns_s_max; section++)
		for (int i = 0; i < ns_msg_count(*ns, section); i++)
			CHECK(ns_parserr(ns, (ns_sect)section, i, &rr) == 0);
}

static void check_answer(const struct dns_query *q, const struct dns_reply *reply,
	const uint8_t *out, size_t n)
{
	ns_msg ns;

	CHECK(n >= 12 && ns_initparse(out, (int)n, &ns) == 0);
	check_records(&ns);
	CHECK(ns_msg_id(ns) == q->id && ns_msg_getflag(ns, ns_f_qr));
	CHECK(ns_msg_getflag(ns, ns_f_ra) && !ns_msg_getflag(ns, ns_f_aa));
	CHECK(ns_msg_getflag(ns, ns_f_opcode) == q->opcode);
	CHECK(ns_msg_getflag(ns, ns_f_rcode) == (reply->rcode & 15));
	CHECK(!ns_msg_getflag(ns, ns_f_rd) == !q->rd);
	CHECK(ns_msg_count(ns, ns_s_qd) == (q->question_len > 0));
	CHECK(!memcmp(out + 12, q->question, q->question_len));
	CHECK(ns_msg_count(ns, ns_s_ar) == q->edns);
	CHECK(ns_msg_count(ns, ns_s_an) <= 1);
	if (ns_msg_count(ns, ns_s_an))
		CHECK(reply->rcode == 0 && (q->type == DNS_A || q->type == DNS_AAAA));
	/* A no is said with its SOA, unless it was cut. */
	if (q->question_len && (reply->rcode == 0 || reply->rcode == DNS_NXDOMAIN))
		CHECK(ns_msg_count(ns, ns_s_an) + ns_msg_count(ns, ns_s_ns) == 1 ||
			ns_msg_getflag(ns, ns_f_tc));
}

/* What we took for the name is what libresolv reads. */
static void check_name(const struct dns_query *q, const uint8_t *data, size_t size)
{
	char theirs[NS_MAXDNAME], ours[NAME_SIZE];

	CHECK(q->kind != NAME_HOST || name_canon(q->name, strlen(q->name), ours) == NAME_HOST);
	if (q->kind != NAME_HOST) {
		CHECK(!q->name[0]);
		return;
	}
	CHECK(ns_name_uncompress(data, data + size, data + 12, theirs, sizeof(theirs)) > 0);
	for (char *p = theirs; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	CHECK(!strcmp(theirs, q->name));
}

static void write_answers(const struct dns_query *q, int rcode, size_t odd)
{
	static const struct address both[] = { { ADDRESS_V4, { 198, 18, 1 } },
		{ ADDRESS_V6, { 0xfd, [15] = 1 } } };
	const struct dns_reply replies[] = {
		{ rcode, both, 2, 60, -1, NULL },
		{ rcode ? rcode : DNS_NXDOMAIN, NULL, 0, 5, DNS_EDE_BLOCKED,
			"not in the list" },
		{ rcode ? rcode : DNS_SERVFAIL, both, 2, 0, DNS_EDE_NOT_READY, NULL },
	};
	const size_t sizes[] = { q->udp_size, odd, 65535 };

	for (int i = 0; i < 9; i++) {
		size_t size = sizes[i / 3], n;
		uint8_t *out = malloc(size + !size);

		n = dns_write(q, &replies[i % 3], out, size);
		CHECK(n <= size && (n || size < DNS_UDP_MIN));
		if (n)
			check_answer(q, &replies[i % 3], out, n);
		free(out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_query q;
	enum dns_rcode rcode = dns_parse(data, size, &q);

	if (rcode == DNS_DROP) {
		CHECK(size < 12 || data[2] & 0x80);
		return 0;
	}
	CHECK(!(data[2] & 0x80));
	CHECK(q.udp_size >= DNS_UDP_MIN && q.udp_size <= DNS_UDP_SIZE);
	CHECK(rcode != DNS_NOERROR || q.question_len);
	CHECK(rcode != DNS_BADVERS || q.edns);
	CHECK(q.question_len + 12u <= size);
	CHECK(!memcmp(q.question, data + 12, q.question_len));
	if (q.question_len)
		check_name(&q, data, size);
	write_answers(&q, (int)rcode, q.id % 400);
	return 0;
}
