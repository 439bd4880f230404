/*
 * cli/cmd-events.c - carrel events
 *
 * The record is read in pieces and shown line by line, and the memory of each line is given
 * back: a record may be long, and following one may last as long as a box. Its contents came
 * from a box through the broker. They are shown as text that cannot drive the terminal, and an
 * invalid line is shown as invalid.
 */
#include "cli/cmd.h"
#include "cli/instances.h"
#include "cli/opt.h"
#include "supervise/journal.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "net/policy/policy.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	PIECE = 64 * 1024,
	LINE_MOST = 16 * 1024, /* a longer line is not ours */
	PAUSE_MS = 200,
	WHO_WIDTH = 36,
};

struct events_args {
	bool follow, json;
};

struct reader {
	const char *box;
	bool json;
	int fd;
	char line[LINE_MOST];
	size_t len;
	bool is_long; /* the rest of this line is skipped */
	bool ended;   /* the last line was seen */
	int code;     /* our exit code */
	char piece[PIECE];
};

/* ---- one line ---- */

static const char *text(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && (m->type == JSON_STRING || m->type == JSON_NUMBER) ? m->text : NULL;
}

static const char *shown_member(const struct json_value *v, const char *key)
{
	const char *s = text(v, key);

	return s ? str_visible(s) : "?";
}

/* The local time of day, and the date at the start. */
static const char *when(const struct json_value *v, bool day)
{
	const char *s = text(v, "time"), *rest;
	struct tm tm = { 0 }, local;
	char out[64];
	time_t t;

	rest = s ? strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	t = rest ? timegm(&tm) : -1;
	if (!rest || rest[0] != '.' || strlen(rest) != 5 || !localtime_r(&t, &local))
		return mem_printf("%-12s", s ? str_visible(s) : "?");
	strftime(out, sizeof(out), day ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S", &local);
	return mem_printf("%s%.4s", out, str_visible(rest));
}

/* name:port, or as much as is known. */
static const char *who(const struct json_value *v)
{
	const char *name = text(v, "name"), *port = text(v, "port");
	bool v6;

	name = name ? name : text(v, "address");
	if (!name)
		return "-";
	v6 = strchr(name, ':');
	return mem_printf("%s%s%s%s%s", v6 && port ? "[" : "", str_visible(name),
		v6 && port ? "]" : "", port ? ":" : "", port ? str_visible(port) : "");
}

static const char *bytes(const struct json_value *v, const char *key)
{
	const char *s = text(v, key);

	return instances_size(s ? strtoull(s, NULL, 10) : 0);
}

static void add_lookup(struct str *out, const struct json_value *v)
{
	str_addf(out, "%-8s  lookup   %-*s  %s", shown_member(v, "verdict"), WHO_WIDTH, who(v),
		shown_member(v, "type"));
}

static void add_connect(struct str *out, const struct json_value *v)
{
	const struct json_value *inbound = json_member(v, "inbound");

	str_addf(out, "%-8s  %-7s  %-*s  %s ms", shown_member(v, "verdict"),
		inbound && inbound->boolean ? "inbound" : "connect", WHO_WIDTH, who(v),
		shown_member(v, "ms"));
}

static void add_close(struct str *out, const struct json_value *v)
{
	str_addf(out, "%-8s  close    %-*s  %s ms, %s sent, %s received", "", WHO_WIDTH, who(v),
		shown_member(v, "ms"), bytes(v, "sent"), bytes(v, "received"));
}

static void add_datagram(struct str *out, const struct json_value *v)
{
	str_addf(out, "%-8s  %-7s  %-*s", shown_member(v, "verdict"), shown_member(v, "proto"),
		WHO_WIDTH, who(v));
}

static void add_held(struct str *out, const struct json_value *v)
{
	str_addf(out, "%-8s  held     %s", "waits", who(v));
}

static void add_limit(struct str *out, const struct json_value *v)
{
	str_addf(out, "%-8s  limit    %s", "", shown_member(v, "limit"));
}

static void add_lost(struct str *out, const struct json_value *v)
{
	(void)v;
	str_addf(out, "%-8s  lost     the network ended before the box did", "");
}

static void add_full(struct str *out, const struct json_value *v)
{
	str_addf(out, "%-8s  full     %s", "", shown_member(v, "text"));
}

static void add_start(struct str *out, const struct json_value *v)
{
	str_addf(out, "box %s, pid %s", shown_member(v, "box"), shown_member(v, "pid"));
}

static void add_end(struct str *out, const struct json_value *v)
{
	str_addf(out, "%-8s  end      exit code %s", "", shown_member(v, "code"));
}

static const struct {
	const char *event;
	void (*add)(struct str *out, const struct json_value *v);
} kinds[] = {
	{ "lookup", add_lookup },
	{ "connect", add_connect },
	{ "close", add_close },
	{ "held", add_held },
	{ "datagram", add_datagram },
	{ "limit", add_limit },
	{ "lost", add_lost },
	{ "full", add_full },
	{ "start", add_start },
	{ "end", add_end },
};

/* The address that a name resolved to, if the address was the reason. */
static const char *refused_address(const struct json_value *v)
{
	const char *reason = text(v, "reason");

	for (int r = 0; reason && text(v, "name") && r <= POLICY_DATAGRAM; r++)
		if (policy_is_about_address(r) && !strcmp(reason, policy_reason_text(r)))
			return text(v, "address");
	return NULL;
}

/* The reason, unless it is obvious. */
static void add_reason(struct str *out, const struct json_value *v)
{
	const char *verdict = text(v, "verdict"), *error = text(v, "error");
	const char *address = refused_address(v);

	if (verdict && !strcmp(verdict, "refused"))
		str_addf(out, "  %s%s%s", address ? str_visible(address) : "",
			address ? ": " : "", shown_member(v, "reason"));
	if (error)
		str_addf(out, "  %s", str_visible(error));
}

static bool add_event(struct str *out, const struct json_value *v)
{
	const char *event = text(v, "event");

	for (size_t i = 0; event && i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].event, event) != 0)
			continue;
		str_addf(out, "%s  ", when(v, !strcmp(event, "start")));
		kinds[i].add(out, v);
		add_reason(out, v);
		str_addc(out, '\n');
		return true;
	}
	return false;
}

/* Do not guess at a record that says it has another format. */
static bool is_foreign(const struct json_value *v, const char *event)
{
	const char *format = text(v, "carrel");

	return event && !strcmp(event, "start") && format &&
		strcmp(format, mem_printf("%d", JOURNAL_FORMAT)) != 0;
}

static int refuse_record(const char *box)
{
	struct fault f = { 0 };

	fault_set(&f, 0, "the record of '%s' was made by another version of carrel", box);
	fault_fix(&f, "Use that version, or read the file as it is: %s/%s", boxes_shown(box),
		JOURNAL_FILE);
	return cmd_fail(&f);
}

/* With --json a valid line is passed on: JSON cannot drive the terminal. */
static void print_line(struct reader *r)
{
	void *mark = mem_mark();
	const struct json_value *v = NULL;
	json_errors errors = { 0 };
	struct str out = { 0 };
	const char *event;
	bool is_json = !r->is_long && json_read(r->line, r->len, NULL, &v, &errors) == 0 &&
		v->type == JSON_OBJECT;

	event = is_json ? text(v, "event") : NULL;
	r->ended = event && !strcmp(event, "end");
	for (size_t i = 0; i < r->len; i++)
		if (r->line[i] < ' ' || r->line[i] > '~')
			is_json = false;
	if (is_json && is_foreign(v, event)) {
		r->code = refuse_record(r->box);
	} else if (r->json && is_json) {
		str_addn(&out, r->line, r->len);
		str_addc(&out, '\n');
	} else if (r->json || !is_json || !add_event(&out, v)) {
		cmd_note(mem_printf("a line of the record of '%s' is no event", r->box));
	}
	if (out.len)
		r->code = cmd_print(&out);
	mem_reset(mark);
}

/* ---- the file ---- */

static void take_bytes(struct reader *r, const char *bytes_, size_t n)
{
	for (size_t i = 0; i < n && !r->code; i++) {
		if (bytes_[i] == '\n') {
			print_line(r);
			r->len = 0;
			r->is_long = false;
		} else if (r->len < sizeof(r->line)) {
			r->line[r->len++] = bytes_[i];
		} else {
			r->is_long = true;
		}
	}
}

/* Read all that is there now. */
static int read_on(struct reader *r, struct fault *f)
{
	ssize_t n;

	while (!r->code && (n = read(r->fd, r->piece, sizeof(r->piece))) != 0) {
		if (n < 0 && errno != EINTR)
			return fault_set(f, errno, "read the record of '%s'", r->box);
		if (n > 0)
			take_bytes(r, r->piece, (size_t)n);
	}
	return 0;
}

static void wait_a_little(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };

	nanosleep(&pause, NULL);
}

/* Another box of that name has begun a new record. */
static bool is_replaced(const struct reader *r)
{
	struct stat st;

	return fstat(r->fd, &st) < 0 || st.st_nlink == 0;
}

/*
 * Otherwise the missing end could be taken for that of a box that still runs and is not visible
 * from here.
 */
static void note_no_end(const struct reader *r)
{
	cmd_note(mem_printf("the record of '%s' has no end: %s", r->box,
		is_replaced(r)
			? "another box of that name has begun its own"
			: "the box was killed, or it was started with another XDG_RUNTIME_DIR "
			  "and cannot be found"));
}

/* Read until the last line, or until the box is gone and its record is read. */
static int follow_record(struct reader *r, struct fault *f)
{
	bool running = true;
	int rc = 0;

	while (rc == 0 && running && !r->ended && !r->code) {
		void *mark = mem_mark();

		running = registry_is_held(r->box) && !is_replaced(r);
		mem_reset(mark);
		if (running)
			wait_a_little();
		rc = read_on(r, f);
	}
	if (rc == 0 && !r->ended && !r->code)
		note_no_end(r);
	return rc;
}

static int no_record(const char *box, struct fault *f)
{
	bool running = registry_is_held(box);

	fault_set(f, 0,
		running ? "the box '%s' has no record: no network that has events"
			: "there is no record of a box named '%s'",
		box);
	return fault_fix(f,
		"A box has one if its network is allow or open; it is kept for %d days.",
		BOXES_DAYS);
}

static int cmd_events(void *args, int argc, char **argv)
{
	const struct events_args *a = args;
	struct reader *r = mem_alloc(sizeof(*r));
	struct fault f = { 0 };
	int rc;

	(void)argc;
	r->box = argv[0];
	r->json = a->json;
	r->fd = boxes_open(r->box, JOURNAL_FILE, &f);
	rc = r->fd >= 0 ? 0 : f.err == ENOENT ? no_record(r->box, &f) : r->fd;
	if (rc == 0)
		rc = read_on(r, &f);
	if (rc == 0 && a->follow)
		rc = follow_record(r, &f);
	return rc < 0 ? cmd_fail(&f) : r->code;
}

static const struct opt events_opts[] = {
	OPT_FLAG('f', "follow", struct events_args, follow,
		"go on with what happens, until the box ends"),
	OPT_FLAG(0, "json", struct events_args, json, "print a line of JSON for each"),
	OPT_END,
};

const struct cmd cmd_events_entry = {
	.name = "events",
	.args = "BOX",
	.about = "what a box did on its network",
	.detail =
		"Lookups, connections and their ends, refused datagrams, in order: the time, "
		"whether it was allowed, refused or failed, the host, and how much and how "
		"long. The record of a box that has ended is there until another box of that "
		"name starts, and for 30 days at most; `carrel gc` removes those that are "
		"older.\n"
		"\n"
		"A box has a record if its network is `allow` or `open`. One that was started "
		"with another `XDG_RUNTIME_DIR` is not found: its record can be read, and not "
		"followed.",
	.opts = events_opts,
	.size = sizeof(struct events_args),
	.takes = TAKES_BOX,
	.ended = true,
	.run = cmd_events,
};
