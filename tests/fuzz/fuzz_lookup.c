/*
 * tests/fuzz/fuzz_lookup.c - any bytes as a name server's answer, resolv.conf and hosts
 *
 * The first byte says what was asked; the rest is the answer. What we take from it must be
 * there as libresolv reads it.
 */
#include "fuzz.h"
#include "net/proto/dns.h"
#include "net/proto/lookup.h"

#include <arpa/nameser.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CNAME = 5, NAMES = 17 };

/* The names that lead to addresses, as text: closure over all CNAMEs. */
struct names {
	char name[NAMES][NS_MAXDNAME];
	int n;
};

static bool has(const struct names *names, const char *name)
{
	for (int i = 0; i < names->n; i++)
		if (!strcasecmp(names->name[i], name))
			return true;
	return false;
}

static bool add_target(ns_msg *ns, ns_rr *rr, struct names *names)
{
	char target[NS_MAXDNAME];

	if (ns_rr_type(*rr) != CNAME || ns_rr_class(*rr) != 1 || !has(names, ns_rr_name(*rr)))
		return false;
	CHECK(ns_name_uncompress(ns_msg_base(*ns), ns_msg_end(*ns), ns_rr_rdata(*rr), target,
		      sizeof(target)) >= 0);
	if (has(names, target) || names->n == NAMES)
		return false;
	strcpy(names->name[names->n++], target);
	return true;
}

static void find_names(ns_msg *ns, const char *name, struct names *ret)
{
	bool more = true;
	ns_rr rr;

	strcpy(ret->name[0], name);
	ret->n = 1;
	while (more) {
		more = false;
		for (int i = 0; i < ns_msg_count(*ns, ns_s_an); i++) {
			CHECK(ns_parserr(ns, ns_s_an, i, &rr) == 0);
			more |= add_target(ns, &rr, ret);
		}
	}
}

static bool is_in(ns_msg *ns, const struct names *names, uint16_t type, const struct address *a)
{
	ns_rr rr;

	for (int i = 0; i < ns_msg_count(*ns, ns_s_an); i++) {
		struct address b;

		CHECK(ns_parserr(ns, ns_s_an, i, &rr) == 0);
		if (ns_rr_type(rr) != type || ns_rr_class(rr) != 1 ||
			!has(names, ns_rr_name(rr)))
			continue;
		CHECK(ns_rr_rdlen(rr) == (type == DNS_A ? 4 : 16));
		b = type == DNS_A ? address_v4(ns_rr_rdata(rr)) : address_v6(ns_rr_rdata(rr));
		if (address_equal(a, &b))
			return true;
	}
	return false;
}

static void check_answer(const char *name, uint16_t type, const uint8_t *data, size_t size,
	const struct lookup_answer *a)
{
	static struct names names;
	ns_msg ns;

	CHECK(a->n <= LOOKUP_MAX && a->ttl <= INT32_MAX);
	if (size > 65535 || ns_initparse(data, (int)size, &ns) != 0)
		return; /* bytes are left over */
	find_names(&ns, name, &names);
	for (unsigned int i = 0; i < a->n; i++) {
		CHECK(is_in(&ns, &names, type, &a->address[i]));
		for (unsigned int j = 0; j < i; j++)
			CHECK(!address_equal(&a->address[i], &a->address[j]));
	}
}

/* In a list of the names the same is found as in the text. */
static void check_index(const char *text, size_t size, const char *name)
{
	struct lookup_index x = { .text = text, .n = size, .room = lookup_count(text, size) };
	struct address a[LOOKUP_MAX], b[LOOKUP_MAX];
	unsigned int n = lookup_hosts(text, size, name, a);

	x.names = calloc(x.room, sizeof(*x.names));
	CHECK(x.names);
	lookup_index(&x);
	CHECK(lookup_find(&x, name, b) == n);
	for (unsigned int i = 0; i < n; i++)
		CHECK(address_equal(&a[i], &b[i]));
	free(x.names);
}

static unsigned int zone_of(const char *name)
{
	CHECK(*name && strlen(name) < 16);
	return !strcmp(name, "eth0");
}

static void check_files(const uint8_t *data, size_t size)
{
	struct address found[LOOKUP_MAX];
	struct lookup_config c;
	unsigned int n;

	lookup_config((const char *)data, size, zone_of, &c);
	CHECK(c.n && c.n <= LOOKUP_SERVERS && c.timeout && c.timeout <= 30);
	CHECK(c.attempts && c.attempts <= 5);
	for (unsigned int i = 0; i < c.n; i++)
		CHECK(c.server[i].family && (!c.zone[i] || c.server[i].family == ADDRESS_V6));
	n = lookup_hosts((const char *)data, size, "www.example.org", found);
	CHECK(n <= LOOKUP_MAX);
	for (unsigned int i = 0; i < n; i++)
		CHECK(found[i].family);
	check_index((const char *)data, size, "www.example.org");
	check_index((const char *)data, size, "a");
}

/* Any name that is canonical can be asked for, and its own question is no answer. */
static void check_question(const uint8_t *data, size_t size)
{
	uint8_t out[LOOKUP_QUESTION_SIZE];
	struct lookup_answer a;
	struct dns_query q;
	char name[NAME_SIZE];
	size_t n;

	if (name_canon((const char *)data, size, name) != NAME_HOST)
		return;
	n = lookup_question(name, DNS_A, 7, out, sizeof(out));
	CHECK(n && dns_parse(out, n, &q) == DNS_NOERROR && !strcmp(q.name, name));
	CHECK(lookup_answer(name, DNS_A, 7, out, n, &a) == LOOKUP_IGNORE);
	out[2] |= 0x80;
	CHECK(lookup_answer(name, DNS_A, 7, out, n, &a) == LOOKUP_NONE && a.ttl == 60);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lookup_answer a = { .n = 77 };
	enum lookup_result result;
	const char *name;
	uint16_t type, id;

	if (size < 3)
		return 0;
	name = data[0] & 1 ? "www.example.org" : "a";
	type = data[0] & 2 ? DNS_AAAA : DNS_A;
	data++;
	size--;
	id = (uint16_t)(data[0] << 8 | data[1]);
	result = lookup_answer(name, type, id, data, size, &a);
	if (result == LOOKUP_OK || result == LOOKUP_NONE || result == LOOKUP_NO_NAME) {
		CHECK((result == LOOKUP_OK) == (a.n > 0));
		check_answer(name, type, data, size, &a);
	} else {
		CHECK(a.n == 77);
	}
	CHECK(lookup_answer(name, type, id ^ 1, data, size, &a) == LOOKUP_IGNORE);
	check_files(data, size);
	check_question(data, size);
	return 0;
}
