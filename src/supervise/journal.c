/*
 * supervise/journal.c - the record of what happened on a box's network
 *
 * Theory of operation. Each event becomes one line of JSON in a buffer. The buffer is written
 * when it is nearly full, 200 ms after its first line, or at the end. It has whole lines only,
 * and if a write fails half way, the file is cut back to the last whole line. All texts are
 * escaped by base/json, so showing the file itself drives no terminal.
 *
 * A box can make events as fast as it likes. So the file has a limit, after which one line says
 * that the rest is not recorded; counting continues, in tables of a fixed size.
 *
 * Only the summary allocates memory.
 */
#include "supervise/journal.h"
#include "net/proto/dns.h"
#include "net/broker/broker-event.h"
#include "net/policy/policy.h"
#include "state/boxes.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	LINE_MOST = 4096, /* the longest texts are a name and an errno's message */
	FLUSH_MS = 200,
	PAGE = 4096,
};

/* A process has one record; its unused pages cost nothing. */
static struct journal_memory memory __attribute__((aligned(PAGE)));
static bool in_use;

#define MS     1000000ull
#define SECOND 1000000000ull

_Static_assert(6 * NAME_SIZE + 1024 <= LINE_MOST, "the longest line fits");
_Static_assert(2 * LINE_MOST <= JOURNAL_BUFFER, "and so do two");

static unsigned long long now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (unsigned long long)ts.tv_sec * SECOND + (unsigned long long)ts.tv_nsec;
}

static bool is_live(const struct journal *j)
{
	return j->memory && !j->error;
}

/* ---- the file ---- */

void journal_flush(struct journal *j)
{
	const char *last;
	size_t done = 0;

	if (!j->memory)
		return;
	while (is_live(j) && done < j->len) {
		ssize_t n = write(j->fd, j->memory->buf + done, j->len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			j->error = n == 0 ? EIO : errno;
	}
	last = memrchr(j->memory->buf, '\n', done);
	if (last)
		j->good += (size_t)(last + 1 - j->memory->buf);
	j->len = 0;
	if (j->error && ftruncate(j->fd, (off_t)j->good) < 0)
		return; /* nobody reads this result; the error is reported already */
}

int journal_timeout(const struct journal *j)
{
	unsigned long long t;

	if (!is_live(j) || !j->len)
		return -1;
	t = now(CLOCK_MONOTONIC);
	return t >= j->due ? 0 : (int)((j->due - t) / MS) + 1;
}

void journal_tick(struct journal *j)
{
	if (journal_timeout(j) != 0)
		return;
	journal_flush(j);
	/* An idle box should use little memory; the next lines usually need one page. */
	madvise(j->memory->buf + PAGE, JOURNAL_BUFFER - PAGE, MADV_DONTNEED);
}

/* ---- lines ---- */

struct line {
	struct journal *journal;
	struct str text;
	struct json json;
};

static void put_time(struct json *j, unsigned long long ns)
{
	time_t seconds = (time_t)(ns / SECOND);
	char text[64];
	struct tm tm;

	if (!gmtime_r(&seconds, &tm))
		tm = (struct tm){ .tm_year = 70, .tm_mday = 1 };
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
		tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		(int)(ns % SECOND / MS));
	json_string(j, "time", text);
}

/* The string uses the rest of the buffer, so it never grows. */
static void begin_line(struct line *l, struct journal *j, const char *event,
	unsigned long long ns)
{
	if (j->len + LINE_MOST > JOURNAL_BUFFER)
		journal_flush(j);
	if (!j->len)
		j->due = now(CLOCK_MONOTONIC) + FLUSH_MS * MS;
	l->journal = j;
	l->text = (struct str){ .p = j->memory->buf + j->len, .cap = JOURNAL_BUFFER - j->len };
	l->json = (struct json){ .out = &l->text };
	json_open(&l->json, NULL, '{');
	put_time(&l->json, ns);
	json_string(&l->json, "event", event);
}

static void end_line(struct line *l)
{
	json_close(&l->json, '}');
	str_addc(&l->text, '\n');
	l->journal->len += l->text.len;
}

static void put_start(struct journal *j, const struct journal_box *box)
{
	struct line l;

	begin_line(&l, j, "start", now(CLOCK_REALTIME));
	json_number(&l.json, "carrel", JOURNAL_FORMAT);
	json_string(&l.json, "box", box->name);
	json_string(&l.json, "agent", box->agent);
	json_string(&l.json, "workspace", box->workspace);
	json_number(&l.json, "pid", getpid());
	end_line(&l);
}

/*
 * Is there room for one more line? If not, the file says so, once. Lookups and datagrams cost
 * the box next to nothing, so a quarter of the file is reserved for connections.
 */
static bool has_room(struct journal *j, bool cheap)
{
	const unsigned long long limit = cheap ? j->limit / 4 * 3 : j->limit;
	struct line l;

	if (j->good + j->len + LINE_MOST <= limit)
		return true;
	if (!j->is_full[!cheap]) {
		begin_line(&l, j, "full", now(CLOCK_REALTIME));
		json_string(&l.json, "text",
			cheap ? "lookups and datagrams are not recorded any more"
			      : "the rest is not recorded");
		end_line(&l);
	}
	j->is_full[!cheap] = true;
	return false;
}

/* ---- events ---- */

static void put_type(struct json *j, unsigned int type)
{
	static const struct {
		unsigned int type;
		const char *name;
	} known[] = { { 1, "A" }, { 2, "NS" }, { 5, "CNAME" }, { 6, "SOA" }, { 12, "PTR" },
		{ 15, "MX" }, { 16, "TXT" }, { 28, "AAAA" }, { 33, "SRV" }, { 64, "SVCB" },
		{ 65, "HTTPS" }, { 255, "ANY" } };
	char text[16];

	snprintf(text, sizeof(text), "TYPE%u", type);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].type == type)
			snprintf(text, sizeof(text), "%s", known[i].name);
	json_string(j, "type", text);
}

/*
 * The user may be asked about a name in no list: it has an address, but was not looked up yet.
 */
static const char *verdict_of(const struct net_event *e)
{
	if (e->kind == NET_LOOKUP && e->allowed && e->reason == POLICY_UNLISTED)
		return "held";
	return !e->allowed ? "refused" : e->error ? "failed" : "allowed";
}

static void put_verdict(struct json *j, const struct net_event *e)
{
	json_string(j, "verdict", verdict_of(e));
	json_string(j, "reason", policy_reason_text(e->reason));
}

static void put_host(struct json *j, const struct net_event *e)
{
	char text[ADDRESS_SIZE];

	if (e->name[0])
		json_string(j, "name", e->name);
	if (e->address.family != ADDRESS_NONE) {
		address_format(&e->address, text);
		json_string(j, "address", text);
	}
}

static void put_connection(struct json *j, const struct net_event *e)
{
	json_count(j, "id", e->id);
	put_host(j, e);
	json_number(j, "port", e->port);
	if (e->inbound)
		json_bool(j, "inbound", true);
}

/* The broker's errnos need other words than those of files. */
const char *journal_error_text(int error)
{
	switch (error) {
	case ENOENT:
		return "no such name";
	case ENODATA:
		return "the name has no address";
	case EAGAIN:
		return "the lookup failed";
	case ENOSPC:
		return "too many names";
	case EDQUOT:
		return "the limit of traffic is reached";
	case ECANCELED:
		return "the box ended first";
	default:
		return strerror(error);
	}
}

static void put_error(struct json *j, const struct net_event *e)
{
	if (e->error)
		json_string(j, "error", journal_error_text(e->error));
}

static void put_lookup(struct json *j, const struct net_event *e)
{
	put_host(j, e);
	put_type(j, e->type);
	put_verdict(j, e);
	put_error(j, e);
	json_count(j, "ms", e->lasted / MS);
}

static void put_connect(struct json *j, const struct net_event *e)
{
	put_connection(j, e);
	put_verdict(j, e);
	put_error(j, e);
	json_count(j, "ms", e->lasted / MS);
}

static void put_close(struct json *j, const struct net_event *e)
{
	put_connection(j, e);
	put_error(j, e);
	json_count(j, "sent", e->sent);
	json_count(j, "received", e->received);
	json_count(j, "ms", e->lasted / MS);
}

static void put_limit(struct json *j, const struct net_event *e)
{
	json_string(j, "limit", e->name);
}

static void put_datagram(struct json *j, const struct net_event *e)
{
	json_string(j, "proto", "udp");
	put_host(j, e);
	json_number(j, "port", e->port);
	put_verdict(j, e);
}

static void put_lost(struct json *j, const struct net_event *e)
{
	put_error(j, e);
}

static const struct {
	const char *name;
	void (*put)(struct json *j, const struct net_event *e);
} kinds[] = {
	[NET_LOOKUP] = { "lookup", put_lookup },
	[NET_CONNECT] = { "connect", put_connect },
	[NET_CLOSE] = { "close", put_close },
	[NET_HELD] = { "held", put_connection },
	[NET_LIMIT] = { "limit", put_limit },
	[NET_DATAGRAM] = { "datagram", put_datagram },
	[NET_LOST] = { "lost", put_lost },
};

/* ---- counting ---- */

static void add_host(struct journal_hosts *hosts, const struct net_event *e, bool with_port)
{
	struct journal_host new = { .why = e->reason, .port = with_port ? e->port : 0 };

	if (e->allowed && e->error)
		new.why = (uint8_t)(e->error < 256 ? e->error : EIO);
	if (e->name[0]) {
		memcpy(new.name, e->name, sizeof(new.name));
	} else {
		new.is_address = true;
		address_format(&e->address, new.name);
	}
	if (!e->allowed && policy_is_about_address(e->reason))
		new.address = e->address;
	for (unsigned int i = 0; i < hosts->n; i++)
		if (hosts->host[i].port == new.port && hosts->host[i].why == new.why &&
			!strcmp(hosts->host[i].name, new.name))
			return;
	if (hosts->n < JOURNAL_HOSTS)
		hosts->host[hosts->n++] = new;
	else
		hosts->more = true;
}

static void add_limit(struct journal_sum *sum, const char *name)
{
	char text[LIMIT_NAME] = "";

	memcpy(text, name, strnlen(name, sizeof(text) - 1));
	for (unsigned int i = 0; i < JOURNAL_LIMITS; i++) {
		if (!strcmp(sum->limit[i], text))
			return;
		if (!sum->limit[i][0]) {
			memcpy(sum->limit[i], text, sizeof(text));
			return;
		}
	}
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/*
 * Is the event about a host that the box wanted? A question for another type than an address is
 * about a service or an address (_http._tcp.example.org, 8.8.8.8.in-addr.arpa). Nobody dials
 * such a name, so no entry would help.
 */
static bool is_of_host(const struct net_event *e)
{
	if (e->kind == NET_LOOKUP)
		return e->type == DNS_A || e->type == DNS_AAAA;
	return e->kind == NET_CONNECT || e->kind == NET_DATAGRAM;
}

static void count_event(struct journal_sum *sum, const struct net_event *e)
{
	bool named = e->name[0] || e->address.family != ADDRESS_NONE;

	if (e->kind == NET_LOST)
		sum->lost = true;
	if (e->kind == NET_LIMIT)
		add_limit(sum, e->name);
	if (e->inbound || !named)
		return;
	if (e->kind == NET_CLOSE) {
		sum->sent = sum_of(sum->sent, e->sent);
		sum->received = sum_of(sum->received, e->received);
	} else if (is_of_host(e)) {
		if (!e->allowed)
			add_host(&sum->refused, e, e->kind == NET_CONNECT);
		else if (e->error)
			add_host(&sum->failed, e, false);
		else if (e->kind == NET_CONNECT)
			add_host(&sum->reached, e, false);
	}
}

void journal_event(struct journal *j, const struct net_event *e)
{
	struct line l;

	if (!j->memory)
		return;
	count_event(&j->sum, e);
	if (!is_live(j) || !has_room(j, e->kind == NET_LOOKUP || e->kind == NET_DATAGRAM))
		return;
	begin_line(&l, j, kinds[e->kind].name, e->time);
	kinds[e->kind].put(&l.json, e);
	end_line(&l);
}

const struct journal_sum *journal_sum(const struct journal *j)
{
	return j->memory ? &j->sum : NULL;
}

/* ---- beginning and end ---- */

int journal_open(struct journal *j, const struct journal_box *box, struct fault *f)
{
	int fd = boxes_create(box->name, JOURNAL_FILE, f);

	*j = (struct journal){ .fd = -1, .limit = JOURNAL_LIMIT };
	if (fd < 0)
		return fd;
	if (in_use)
		BUG("a second record");
	in_use = true;
	j->fd = fd;
	j->memory = &memory;
	j->sum.reached.host = j->memory->host[0];
	j->sum.refused.host = j->memory->host[1];
	j->sum.failed.host = j->memory->host[2];
	put_start(j, box);
	journal_flush(j);
	if (!j->error)
		return 0;
	fault_set(f, j->error, "write the record of the network of '%s'", box->name);
	close(fd);
	j->memory = NULL;
	in_use = false;
	return -f->err;
}

int journal_close(struct journal *j, int code, struct fault *f)
{
	struct line l;

	if (!j->memory)
		return 0;
	if (is_live(j)) {
		begin_line(&l, j, "end", now(CLOCK_REALTIME));
		json_number(&l.json, "code", code);
		json_count(&l.json, "sent", j->sum.sent);
		json_count(&l.json, "received", j->sum.received);
		end_line(&l);
	}
	journal_flush(j);
	if (close(j->fd) < 0 && !j->error && errno != EINTR)
		j->error = errno;
	j->memory = NULL;
	in_use = false;
	j->fd = -1;
	if (!j->error)
		return 0;
	return fault_set(f, j->error, "record all that happened on the network");
}
