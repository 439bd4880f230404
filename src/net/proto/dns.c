/*
 * net/proto/dns.c - DNS messages (RFC 1035, 2308, 6891, 8914), for a resolver that asks nobody
 *
 * Theory of operation. Reading is a cursor over the message, and every step checks it against
 * the end. A query may have one question, no answers, no authority and at most one additional
 * record; anything else is refused. No name is ever followed through a pointer: a question has
 * nothing before it to point to, and only the length of the additional record's name matters.
 * So reading ends after at most one pass.
 *
 * The answer repeats the question byte for byte, because clients that mix upper and lower case
 * against forgery (0x20) compare it. The canonical name decides everything else.
 *
 * Must not: trust any length, or answer an answer (two resolvers could be made to talk to each
 * other for ever).
 */
#include "net/proto/dns.h"

#include <string.h>

enum { HEADER = 12, QR = 0x80, TC = 0x02, RD = 0x01, RA = 0x80, CD = 0x10 };
enum { CLASS_IN = 1, OPT_FIXED = 10, OWNER = 0xc000 | HEADER, EDE_OPTION = 15 };

/* ---- reading ---- */

struct cursor {
	const uint8_t *p;
	size_t at, n;
};

static bool take_u16(struct cursor *c, uint16_t *ret)
{
	if (c->n - c->at < 2)
		return false;
	*ret = (uint16_t)(c->p[c->at] << 8 | c->p[c->at + 1]);
	c->at += 2;
	return true;
}

static bool skip(struct cursor *c, size_t n)
{
	if (c->n - c->at < n)
		return false;
	c->at += n;
	return true;
}

/*
 * The labels of the question as text with dots. *ret_len is 0 for the root, and for a label
 * that contains a dot: its text would be a different name.
 */
static bool take_labels(struct cursor *c, char text[DNS_QUESTION], size_t *ret_len)
{
	size_t start = c->at, len = 0;
	bool ambiguous = false;

	for (;;) {
		size_t label;

		if (c->at == c->n)
			return false;
		label = c->p[c->at++];
		if (!label)
			break;
		if (label > NAME_LABEL || c->n - c->at < label || c->at + label - start > 254)
			return false;
		ambiguous |= memchr(c->p + c->at, '.', label) != NULL;
		memcpy(text + len, c->p + c->at, label);
		len += label;
		text[len++] = '.';
		c->at += label;
	}
	*ret_len = ambiguous || !len ? 0 : len - 1;
	return true;
}

static bool take_question(struct cursor *c, struct dns_query *q)
{
	char text[DNS_QUESTION];
	size_t start = c->at, len;

	if (!take_labels(c, text, &len) || !take_u16(c, &q->type) || !take_u16(c, &q->class))
		return false;
	q->kind = name_canon(text, len, q->name);
	if (q->kind != NAME_HOST)
		q->name[0] = '\0';
	q->question_len = (uint16_t)(c->at - start);
	memcpy(q->question, c->p + start, q->question_len);
	return true;
}

/* Skip the name of a record. */
static bool skip_name(struct cursor *c)
{
	while (c->at < c->n) {
		uint8_t label = c->p[c->at++];

		if (label >= 0xc0)
			return skip(c, 1);
		if (!label)
			return true;
		if (label > NAME_LABEL || !skip(c, label))
			return false;
	}
	return false;
}

static bool options_are_whole(struct cursor c)
{
	uint16_t code, len;

	while (c.at < c.n)
		if (!take_u16(&c, &code) || !take_u16(&c, &len) || !skip(&c, len))
			return false;
	return true;
}

static uint16_t clamp_udp(uint16_t size)
{
	return size < DNS_UDP_MIN ? DNS_UDP_MIN : size > DNS_UDP_SIZE ? DNS_UDP_SIZE : size;
}

/* The record after the question: EDNS, or a record to skip. */
static enum dns_rcode take_additional(struct cursor *c, struct dns_query *q)
{
	bool root = c->at < c->n && !c->p[c->at];
	uint16_t type, size, ttl_high, ttl_low, len;
	struct cursor options;

	if (!skip_name(c) || !take_u16(c, &type) || !take_u16(c, &size) ||
		!take_u16(c, &ttl_high) || !take_u16(c, &ttl_low) || !take_u16(c, &len))
		return DNS_FORMERR;
	options = (struct cursor){ c->p, c->at, c->at + len };
	if (!skip(c, len))
		return DNS_FORMERR;
	if (type != DNS_OPT)
		return DNS_NOERROR;
	if (!root || !options_are_whole(options))
		return DNS_FORMERR;
	q->edns = true;
	q->udp_size = clamp_udp(size);
	return ttl_high & 0xff ? DNS_BADVERS : DNS_NOERROR; /* high: rcode, version */
}

/* Types that no stub resolver answers. 249 to 254: transfers, keys, mailboxes. */
static enum dns_rcode check_type(const struct dns_query *q)
{
	if (q->type == DNS_OPT || !q->type)
		return DNS_FORMERR;
	if (q->type >= 249 && q->type <= 254)
		return DNS_NOTIMP;
	return q->class == CLASS_IN ? DNS_NOERROR : DNS_REFUSED;
}

enum dns_rcode dns_parse(const uint8_t *message, size_t n, struct dns_query *q)
{
	struct cursor c = { message, 0, n };
	uint16_t flags, questions, answers, authority, additional;
	enum dns_rcode rcode = DNS_NOERROR;

	*q = (struct dns_query){ .udp_size = DNS_UDP_MIN };
	if (!take_u16(&c, &q->id) || !take_u16(&c, &flags) || !take_u16(&c, &questions) ||
		!take_u16(&c, &answers) || !take_u16(&c, &authority) ||
		!take_u16(&c, &additional) || flags >> 8 & QR)
		return DNS_DROP;
	q->opcode = flags >> 11 & 0xf;
	q->rd = flags >> 8 & RD;
	q->cd = flags & CD;
	if (q->opcode)
		return DNS_NOTIMP;
	if (questions != 1 || answers || authority || additional > 1 || !take_question(&c, q))
		return DNS_FORMERR;
	if (additional)
		rcode = take_additional(&c, q);
	if (rcode == DNS_NOERROR && c.at != n)
		rcode = DNS_FORMERR;
	return rcode == DNS_NOERROR ? check_type(q) : rcode;
}

/* ---- writing ---- */

/*
 * A write past the end is counted but not done, so one test of `full` after a section is
 * enough.
 */
struct writer {
	uint8_t *p;
	size_t at, size;
	bool full;
};

static void put_bytes(struct writer *w, const void *bytes, size_t n)
{
	if (w->full || w->size - w->at < n) {
		w->full = true;
		return;
	}
	if (n)
		memcpy(w->p + w->at, bytes, n);
	w->at += n;
}

static void put_u16(struct writer *w, unsigned int value)
{
	uint8_t b[2] = { (uint8_t)(value >> 8), (uint8_t)value };

	put_bytes(w, b, sizeof(b));
}

static void put_u32(struct writer *w, uint32_t value)
{
	put_u16(w, value >> 16);
	put_u16(w, value & 0xffff);
}

static bool is_asked(const struct dns_query *q, const struct address *a)
{
	return (q->type == DNS_A && a->family == ADDRESS_V4) ||
		(q->type == DNS_AAAA && a->family == ADDRESS_V6);
}

static unsigned int put_addresses(struct writer *w, const struct dns_query *q,
	const struct dns_reply *reply)
{
	unsigned int count = 0;

	for (size_t i = 0; i < reply->n && !w->full; i++) {
		unsigned int len = address_bits(&reply->address[i]) / 8;

		if (!is_asked(q, &reply->address[i]))
			continue;
		put_u16(w, OWNER);
		put_u16(w, q->type);
		put_u16(w, CLASS_IN);
		put_u32(w, reply->ttl);
		put_u16(w, len);
		put_bytes(w, reply->address[i].byte, len);
		count++;
	}
	return count;
}

/*
 * The SOA of the root, which covers every name. Its last number is the TTL of a negative
 * answer.
 */
static void put_soa(struct writer *w, uint32_t ttl)
{
	static const uint8_t root;

	put_bytes(w, &root, 1);
	put_u16(w, DNS_SOA);
	put_u16(w, CLASS_IN);
	put_u32(w, ttl);
	put_u16(w, 2 + 5 * 4);
	put_bytes(w, &root, 1);
	put_bytes(w, &root, 1);
	put_u32(w, 1);
	put_u32(w, 3600);
	put_u32(w, 600);
	put_u32(w, 86400);
	put_u32(w, ttl);
}

static void put_opt(struct writer *w, const struct dns_reply *reply)
{
	static const uint8_t root;
	size_t text =
		reply->ede >= 0 && reply->ede_text ? strnlen(reply->ede_text, DNS_EDE_TEXT) : 0;

	/* If there is no room, drop the text first. */
	if (w->size - w->at < 1 + OPT_FIXED + 6 + text)
		text = 0;
	put_bytes(w, &root, 1);
	put_u16(w, DNS_OPT);
	put_u16(w, DNS_UDP_SIZE);
	put_u16(w, (unsigned int)reply->rcode >> 4 << 8);
	put_u16(w, 0);
	put_u16(w, reply->ede < 0 ? 0 : (unsigned int)(6 + text));
	if (reply->ede < 0)
		return;
	put_u16(w, EDE_OPTION);
	put_u16(w, (unsigned int)(2 + text));
	put_u16(w, (unsigned int)reply->ede);
	put_bytes(w, reply->ede_text, text);
}

/* Keep what a section added, or drop the section when it did not fit. */
static unsigned int keep_section(struct writer *w, size_t before, unsigned int count)
{
	if (!w->full)
		return count;
	w->full = false;
	w->at = before;
	return 0;
}

struct counts {
	unsigned int question, answer, authority, additional;
	bool truncated;
};

static void write_header(const struct dns_query *q, int rcode, const struct counts *n,
	uint8_t out[HEADER])
{
	struct writer w = { out, 0, HEADER, false };
	unsigned int high = QR | (unsigned int)q->opcode << 3, low = RA;

	high |= (n->truncated ? TC : 0) | (q->rd ? RD : 0);
	low |= (q->cd ? CD : 0) | ((unsigned int)rcode & 0xf);
	put_u16(&w, q->id);
	put_u16(&w, high << 8 | low);
	put_u16(&w, n->question);
	put_u16(&w, n->answer);
	put_u16(&w, n->authority);
	put_u16(&w, n->additional);
}

/* The space to reserve for OPT, which even a truncated answer has. */
static size_t opt_room(const struct dns_query *q, const struct dns_reply *reply)
{
	if (!q->edns)
		return 0;
	return 1 + OPT_FIXED + (reply->ede < 0 ? 0 : 6);
}

size_t dns_write(const struct dns_query *q, const struct dns_reply *reply, uint8_t *out,
	size_t size)
{
	size_t room = opt_room(q, reply), before = HEADER + q->question_len;
	struct writer w = { out, HEADER, size - room, false };
	struct counts n = { .question = q->question_len > 0 };
	bool says_no = reply->rcode == DNS_NXDOMAIN;

	if (size < before + room)
		return 0;
	put_bytes(&w, q->question, q->question_len);
	if (reply->rcode == DNS_NOERROR && n.question) {
		n.answer = put_addresses(&w, q, reply);
		says_no = !n.answer;
		n.truncated = w.full;
		n.answer = keep_section(&w, before, n.answer);
	}
	if (says_no && n.question) {
		put_soa(&w, reply->ttl);
		n.truncated = w.full;
		n.authority = keep_section(&w, before, 1);
	}
	w.size = size;
	if (q->edns) {
		put_opt(&w, reply);
		n.additional = 1;
	}
	write_header(q, reply->rcode, &n, out);
	return w.at;
}
