/*
 * net/proto/lookup.c - DNS messages (RFC 1035, 2181, 2308, 6891), for a client
 *
 * Theory of operation. The owner of a name wrote what a name server passes on, so an answer is
 * as hostile as a question. A name in a message is represented by its offset and never copied:
 * two names are compared label by label in place. The question is the first name, because an
 * answer without our question is ignored. The CNAMEs are followed from there, with one pass
 * over the answers for each.
 *
 * Everything is bounded. A pointer must lead to before the labels that it ends, so each one
 * brings a name nearer to the header. A name has at most 255 bytes, a chain 16 links, and only
 * the first RECORDS answers are read.
 *
 * The whole message must be readable in all sections, otherwise the lookup FAILED: half an
 * answer would be taken for all of it, and cached. Bytes after the last record are ignored.
 *
 * Must not: trust any length or count, or use a record of a name that was not asked for.
 */
#include "net/proto/lookup.h"
#include "net/proto/dns.h"

#include <string.h>
#include <strings.h>

enum { HEADER = 12, CLASS_IN = 1, CNAME = 5, WIRE_NAME = 255, STEPS = 16, RECORDS = 256 };
enum { FLAG_QR = 0x8000, FLAG_OPCODE = 0x7800, FLAG_TC = 0x0200, FLAG_RD = 0x0100 };
enum { TTL_UNKNOWN = 60, SOA_NUMBERS = 20 };
enum { ZONE = 16 }; /* an interface's name, and its NUL */

/* ---- the question ---- */

static void put_u16(uint8_t *p, unsigned int value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

/* Write the name as labels; returns the number of bytes, or 0. */
static size_t put_name(const char *name, uint8_t out[WIRE_NAME])
{
	size_t at = 0;

	do {
		size_t n = strcspn(name, ".");

		if (!n || n > NAME_LABEL || at + 1 + n + 1 > WIRE_NAME)
			return 0;
		out[at++] = (uint8_t)n;
		memcpy(out + at, name, n);
		at += n;
		name += n;
	} while (*name++ == '.');
	out[at++] = 0;
	return at;
}

size_t lookup_question(const char *name, uint16_t type, uint16_t id, uint8_t *out, size_t size)
{
	uint8_t labels[WIRE_NAME], *p;
	size_t len = put_name(name, labels), total = HEADER + len + 4;

	if (!len || size < total)
		return 0;
	memset(out, 0, total);
	put_u16(out, id);
	put_u16(out + 2, FLAG_RD);
	put_u16(out + 4, 1);
	memcpy(out + HEADER, labels, len);
	p = out + HEADER + len;
	put_u16(p, type);
	put_u16(p + 2, CLASS_IN);
	return total;
}

/* ---- names in a message ---- */

struct message {
	const uint8_t *p;
	size_t n;
};

static unsigned int get_u16(const uint8_t *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)get_u16(p) << 16 | get_u16(p + 2);
}

/* A position in a name: the next label, and where the current run of labels began. */
struct walk {
	size_t at, start, length;
};

static struct walk walk_from(size_t at)
{
	return (struct walk){ .at = at, .start = at };
}

/* Follow pointers to the next label; its length is at w->at. */
static bool walk_to_label(const struct message *m, struct walk *w)
{
	for (;;) {
		size_t to;

		if (w->at >= m->n)
			return false;
		if (m->p[w->at] <= NAME_LABEL)
			break;
		if (m->p[w->at] < 0xc0 || m->n - w->at < 2)
			return false;
		to = get_u16(m->p + w->at) & 0x3fff;
		if (to < HEADER || to >= w->start)
			return false;
		w->at = w->start = to;
	}
	w->length += 1u + m->p[w->at];
	return w->length <= WIRE_NAME && m->n - w->at > m->p[w->at];
}

static void walk_over(const struct message *m, struct walk *w)
{
	w->at += 1u + m->p[w->at];
}

/* Is there a whole name, with all that its pointers lead to? *at is moved behind it. */
static bool skip_name(const struct message *m, size_t *at)
{
	struct walk w = walk_from(*at);
	size_t end = 0;

	for (;;) {
		bool pointer = w.at < m->n && m->p[w.at] >= 0xc0;

		if (pointer && !end)
			end = w.at + 2;
		if (!walk_to_label(m, &w))
			return false;
		if (!m->p[w.at])
			break;
		walk_over(m, &w);
	}
	*at = end ? end : w.at + 1;
	return true;
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static bool same_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (lower(a[i]) != lower(b[i]))
			return false;
	return true;
}

/* skip_name() has checked both names. */
static bool same_name(const struct message *m, size_t one, size_t other)
{
	struct walk a = walk_from(one), b = walk_from(other);

	while (walk_to_label(m, &a) && walk_to_label(m, &b)) {
		size_t n = m->p[a.at];

		if (a.at == b.at)
			return true;
		if (m->p[b.at] != n || !same_bytes(m->p + a.at + 1, m->p + b.at + 1, n))
			return false;
		if (!n)
			return true;
		walk_over(m, &a);
		walk_over(m, &b);
	}
	return false;
}

/* ---- records ---- */

struct record {
	size_t owner, data; /* offsets */
	uint16_t type, class, length;
	uint32_t ttl;
};

static bool take_record(const struct message *m, size_t *at, struct record *ret)
{
	struct record r = { .owner = *at };
	const uint8_t *p;

	if (!skip_name(m, at) || m->n - *at < 10)
		return false;
	p = m->p + *at;
	r.type = (uint16_t)get_u16(p);
	r.class = (uint16_t)get_u16(p + 2);
	r.ttl = get_u32(p + 4);
	r.length = (uint16_t)get_u16(p + 8);
	r.data = *at += 10;
	if (m->n - *at < r.length)
		return false;
	*at += r.length;
	/* The highest bit is not part of the number; a TTL with that bit counts as 0. */
	if (r.ttl > INT32_MAX && r.type != DNS_OPT)
		r.ttl = 0;
	*ret = r;
	return true;
}

/* Names in a record's data begin inside it; their pointers may lead outside. */
static bool names_fit(const struct message *m, const struct record *r, int names, size_t rest)
{
	struct message cut = { m->p, r->data + r->length };
	size_t at = r->data;

	for (int i = 0; i < names; i++)
		if (!skip_name(&cut, &at))
			return false;
	return cut.n - at == rest;
}

static bool is_whole(const struct message *m, const struct record *r)
{
	if (r->class != CLASS_IN)
		return true;
	switch (r->type) {
	case DNS_A:
		return r->length == 4;
	case DNS_AAAA:
		return r->length == 16;
	case CNAME:
		return names_fit(m, r, 1, 0);
	case DNS_SOA:
		return names_fit(m, r, 2, SOA_NUMBERS);
	default:
		return true;
	}
}

/* The parts of an answer: counts from the header, offsets from a first pass. */
struct sections {
	unsigned int answers;
	size_t answer;         /* offset of the first one */
	unsigned int extended; /* the upper bits of the rcode, in OPT */
	uint32_t absent;       /* how long a negative answer may be cached */
};

/* Check every record that the header announces; false when one is missing or incomplete. */
static bool survey(const struct message *m, struct sections *s)
{
	const unsigned int n[] = { get_u16(m->p + 6), get_u16(m->p + 8), get_u16(m->p + 10) };
	size_t at = s->answer;

	s->answers = n[0] < RECORDS ? n[0] : RECORDS;
	for (int section = 0; section < 3; section++) {
		for (unsigned int i = 0; i < n[section]; i++) {
			struct record r;
			uint32_t minimum;

			if (!take_record(m, &at, &r) || !is_whole(m, &r))
				return false;
			if (section == 2 && r.type == DNS_OPT)
				s->extended = r.ttl >> 24;
			if (section != 1 || r.type != DNS_SOA || r.class != CLASS_IN)
				continue;
			minimum = get_u32(m->p + r.data + r.length - 4);
			s->absent = minimum < r.ttl ? minimum : r.ttl;
		}
	}
	return true;
}

/* ---- the answer ---- */

/* The names that lead to addresses, the question's first, and the smallest TTL of all. */
struct chain {
	size_t name[STEPS + 1];
	unsigned int n;
	uint32_t ttl;
};

/* Follow one CNAME: 1, or 0 at the end of the chain, or -1 when it is too long. */
static int add_link(const struct message *m, const struct sections *s, struct chain *c)
{
	size_t at = s->answer;
	struct record r;

	for (unsigned int i = 0; i < s->answers && take_record(m, &at, &r); i++) {
		if (r.type != CNAME || r.class != CLASS_IN ||
			!same_name(m, r.owner, c->name[c->n - 1]))
			continue;
		if (c->n == STEPS + 1)
			return -1;
		c->name[c->n++] = r.data;
		c->ttl = r.ttl < c->ttl ? r.ttl : c->ttl;
		return 1;
	}
	return 0;
}

static bool in_chain(const struct message *m, const struct chain *c, size_t name)
{
	for (unsigned int i = 0; i < c->n; i++)
		if (same_name(m, name, c->name[i]))
			return true;
	return false;
}

static bool add_address(struct address *list, unsigned int *n, const struct address *a)
{
	for (unsigned int i = 0; i < *n; i++)
		if (address_equal(&list[i], a))
			return true;
	if (*n == LOOKUP_MAX)
		return false;
	list[(*n)++] = *a;
	return true;
}

static void add_addresses(const struct message *m, const struct sections *s,
	const struct chain *c, uint16_t type, struct lookup_answer *ret)
{
	size_t at = s->answer;
	struct record r;

	for (unsigned int i = 0; i < s->answers && take_record(m, &at, &r); i++) {
		const uint8_t *data = m->p + r.data;
		struct address a;

		if (r.type != type || r.class != CLASS_IN || !in_chain(m, c, r.owner))
			continue;
		a = type == DNS_A ? address_v4(data) : address_v6(data);
		if (!add_address(ret->address, &ret->n, &a))
			break;
		ret->ttl = r.ttl < ret->ttl ? r.ttl : ret->ttl;
	}
}

/* Is it a response to our question? *ret_end is where the question ends. */
static bool is_ours(const struct message *m, const char *name, uint16_t type, size_t *ret_end)
{
	uint8_t labels[WIRE_NAME];
	size_t len = put_name(name, labels);

	if (!len || get_u16(m->p + 4) != 1 || m->n - HEADER < len + 4 ||
		!same_bytes(m->p + HEADER, labels, len) ||
		get_u16(m->p + HEADER + len) != type ||
		get_u16(m->p + HEADER + len + 2) != CLASS_IN)
		return false;
	*ret_end = HEADER + len + 4;
	return true;
}

/* A server that could not parse the question answers without it. */
static bool is_bare_error(const struct message *m, unsigned int rcode)
{
	return !get_u16(m->p + 4) && rcode != DNS_NOERROR && rcode != DNS_NXDOMAIN;
}

static enum lookup_result read_answer(const struct message *m, struct sections *s,
	unsigned int rcode, uint16_t type, struct lookup_answer *ret)
{
	struct chain c = { .name = { HEADER }, .n = 1, .ttl = INT32_MAX };
	struct lookup_answer found = { 0 };
	int more = 1;

	if (!survey(m, s) || s->extended)
		return LOOKUP_FAILED;
	while (rcode == DNS_NOERROR && more > 0)
		more = add_link(m, s, &c);
	if (more < 0)
		return LOOKUP_FAILED;
	found.ttl = c.ttl;
	if (rcode == DNS_NOERROR && (type == DNS_A || type == DNS_AAAA))
		add_addresses(m, s, &c, type, &found);
	if (!found.n)
		found.ttl = s->absent;
	*ret = found;
	if (rcode == DNS_NXDOMAIN)
		return LOOKUP_NO_NAME;
	return found.n ? LOOKUP_OK : LOOKUP_NONE;
}

enum lookup_result lookup_answer(const char *name, uint16_t type, uint16_t id,
	const uint8_t *message, size_t n, struct lookup_answer *ret)
{
	struct message m = { message, n };
	struct sections s = { .absent = TTL_UNKNOWN };
	unsigned int flags, rcode;

	if (n < HEADER || get_u16(message) != id)
		return LOOKUP_IGNORE;
	flags = get_u16(message + 2);
	rcode = flags & 0xf;
	if (!(flags & FLAG_QR) || flags & FLAG_OPCODE)
		return LOOKUP_IGNORE;
	if (is_bare_error(&m, rcode))
		return LOOKUP_FAILED;
	if (!is_ours(&m, name, type, &s.answer))
		return LOOKUP_IGNORE;
	if (rcode != DNS_NOERROR && rcode != DNS_NXDOMAIN)
		return LOOKUP_FAILED;
	if (flags & FLAG_TC)
		return LOOKUP_CUT;
	return read_answer(&m, &s, rcode, type, ret);
}

/* ---- the host's files ---- */

struct text {
	const char *p;
	size_t n;
};

/* The next line, without its end; false after the last. */
static bool take_line(struct text *t, struct text *ret)
{
	const char *end;

	if (!t->n)
		return false;
	end = memchr(t->p, '\n', t->n);
	ret->p = t->p;
	ret->n = end ? (size_t)(end - t->p) : t->n;
	t->p += ret->n + (end != NULL);
	t->n -= ret->n + (end != NULL);
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* The next word of a line; false at its end, or where a character of `comment` begins. */
static bool take_word(struct text *line, const char *comment, struct text *ret)
{
	size_t n = 0;

	while (line->n && is_blank(*line->p)) {
		line->p++;
		line->n--;
	}
	while (n < line->n && !is_blank(line->p[n]) &&
		(!line->p[n] || !strchr(comment, line->p[n])))
		n++;
	*ret = (struct text){ line->p, n };
	line->p += n;
	line->n -= n;
	return n > 0;
}

static bool word_is(const struct text *word, const char *what)
{
	return word->n == strlen(what) && !strncasecmp(word->p, what, word->n);
}

/* "timeout:3" */
static void take_option(const struct text *word, const char *key, unsigned int max,
	unsigned int *ret)
{
	size_t n = strlen(key);
	unsigned int value = 0;

	if (word->n <= n || strncmp(word->p, key, n) != 0)
		return;
	for (size_t i = n; i < word->n; i++) {
		if (word->p[i] < '0' || word->p[i] > '9')
			return;
		value = value * 10 + (unsigned int)(word->p[i] - '0');
		if (value > max)
			value = max;
	}
	*ret = value ? value : 1;
}

/* The number of a zone: the index of that interface, or the number itself; 0: none. */
static uint32_t take_zone(const char *zone, size_t n, unsigned int (*zone_of)(const char *name))
{
	char name[ZONE] = "";
	uint64_t number = 0;

	if (n >= sizeof(name) || memchr(zone, '\0', n))
		return 0;
	memcpy(name, zone, n);
	for (size_t i = 0; i < n; i++) {
		if (name[i] < '0' || name[i] > '9')
			return zone_of(name);
		number = number * 10 + (unsigned int)(name[i] - '0');
	}
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

static void take_server(const struct text *word, unsigned int (*zone_of)(const char *name),
	struct lookup_config *c)
{
	const char *end = memchr(word->p, '%', word->n);
	const size_t n = end ? (size_t)(end - word->p) : word->n;
	uint32_t zone = 0;
	struct address a;

	if (c->n == LOOKUP_SERVERS || !address_parse(word->p, n, &a))
		return;
	if (end && a.family == ADDRESS_V6)
		zone = take_zone(end + 1, word->n - n - 1, zone_of);
	if (end && !zone)
		return;
	c->zone[c->n] = zone;
	c->server[c->n++] = a;
}

void lookup_config(const char *resolv_conf, size_t n, unsigned int (*zone_of)(const char *name),
	struct lookup_config *ret)
{
	static const uint8_t loopback[4] = { 127, 0, 0, 1 };
	struct lookup_config c = { .timeout = 5, .attempts = 2 };
	struct text all = { resolv_conf, n }, line, word;

	while (take_line(&all, &line)) {
		if (!take_word(&line, "#;", &word))
			continue;
		if (word_is(&word, "nameserver")) {
			if (take_word(&line, "#;", &word))
				take_server(&word, zone_of, &c);
		} else if (word_is(&word, "options")) {
			while (take_word(&line, "#;", &word)) {
				take_option(&word, "timeout:", 30, &c.timeout);
				take_option(&word, "attempts:", 5, &c.attempts);
			}
		}
	}
	if (!c.n)
		c.server[c.n++] = address_v4(loopback);
	*ret = c;
}

unsigned int lookup_hosts(const char *text, size_t n, const char *name,
	struct address ret[LOOKUP_MAX])
{
	struct text all = { text, n }, line, word;
	unsigned int found = 0;

	while (take_line(&all, &line)) {
		bool named = false;
		struct address a;

		if (!take_word(&line, "#", &word) || !address_parse(word.p, word.n, &a))
			continue;
		while (!named && take_word(&line, "#", &word))
			named = word_is(&word, name);
		if (named && !add_address(ret, &found, &a))
			break;
	}
	return found;
}

/* ---- many names in hosts(5) ---- */

/* FNV-1a without a seed: only whoever writes the file could choose names that collide. */
static uint32_t hash_of(const char *name, size_t n)
{
	uint32_t hash = 2166136261;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ lower((uint8_t)name[i])) * 16777619;
	return hash;
}

/* Count the names: a name follows a blank after an address. */
size_t lookup_count(const char *text, size_t n)
{
	size_t count = 1;

	for (size_t i = 1; i < n; i++)
		count += is_blank(text[i - 1]) && !is_blank(text[i]);
	return count;
}

/* Insert from the end, so that each chain is in the order of the file. */
static void chain_up(struct lookup_name *names, uint32_t n)
{
	for (uint32_t i = n; i > 0; i--) {
		uint32_t *first = &names[names[i - 1].next].first;

		names[i - 1].next = *first;
		*first = i;
	}
}

void lookup_index(struct lookup_index *x)
{
	struct text all = { x->text, x->n }, line, word;
	uint32_t n = 0;

	while (take_line(&all, &line)) {
		struct address a;
		uint32_t at;

		if (!take_word(&line, "#", &word) || !address_parse(word.p, word.n, &a))
			continue;
		at = (uint32_t)(word.p - x->text);
		for (; take_word(&line, "#", &word); n++) {
			x->names[n].name = (uint32_t)(word.p - x->text);
			x->names[n].address = at;
			x->names[n].next = hash_of(word.p, word.n) % (uint32_t)x->room;
		}
	}
	chain_up(x->names, n);
}

/* At most as many bytes as a name can have. */
static struct text word_at(const struct lookup_index *x, uint32_t at)
{
	const size_t left = x->n - at;
	struct text rest = { x->text + at, left < NAME_SIZE ? left : NAME_SIZE }, word;

	take_word(&rest, "#\n", &word);
	return word;
}

unsigned int lookup_find(const struct lookup_index *x, const char *name,
	struct address ret[LOOKUP_MAX])
{
	unsigned int found = 0;
	uint32_t i;

	if (!x->names)
		return lookup_hosts(x->text, x->n, name, ret);
	i = x->names[hash_of(name, strlen(name)) % (uint32_t)x->room].first;
	for (; i; i = x->names[i - 1].next) {
		struct text word = word_at(x, x->names[i - 1].name);
		struct address a;

		if (!word_is(&word, name))
			continue;
		word = word_at(x, x->names[i - 1].address);
		if (address_parse(word.p, word.n, &a) && !add_address(ret, &found, &a))
			break;
	}
	return found;
}
