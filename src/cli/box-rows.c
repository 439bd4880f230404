/*
 * cli/box-rows.c - what is known of the boxes, for ps and top
 *
 * Locks tell which boxes exist. Each box is asked for the rest, for a short time. A box that
 * does not answer is still listed: it is starting, or stopped. What has ended is known from
 * its record.
 */
#include "cli/box-rows.h"
#include "cli/instances.h"
#include "run/found-report.h"
#include "supervise/control.h"
#include "supervise/journal.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "state/workspace.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 300, SHOWN_SECONDS = 24 * 3600, END_BYTES = 4096 };

/* ---- those that run ---- */

static const char *text(const struct json_value *status, const char *key)
{
	const struct json_value *v = json_member(status, key);

	return v && v->type == JSON_STRING ? v->text : NULL;
}

static long long number(const struct json_value *status, const char *key, long long otherwise)
{
	const struct json_value *v = json_member(status, key);

	return v && v->type == JSON_NUMBER ? strtoll(v->text, NULL, 10) : otherwise;
}

static bool flag(const struct json_value *status, const char *key)
{
	const struct json_value *v = json_member(status, key);

	return v && v->type == JSON_BOOL && v->boolean;
}

static box_texts list(const struct json_value *status, const char *key)
{
	const struct json_value *v = json_member(status, key);
	box_texts all = { 0 };

	if (v && v->type == JSON_LIST)
		json_each(one, v)
			if (one->type == JSON_STRING)
				vec_push(&all, one->text);
	return all;
}

static struct box_row ask(const struct registry_box *box)
{
	struct box_row row = { .name = box->name,
		.pid = box->pid,
		.cpu = -1,
		.connections = -1,
		.viewers = -1,
		.sent = -1,
		.received = -1,
		.code = -1,
		.ended_at = -1 };
	const struct json_value *reply, *status;
	struct fault ignored = { 0 };

	if (control_ask(box->name, control_ask_status(), WAIT_MS, &reply, &ignored) < 0)
		return row;
	status = json_member(reply, "status");
	row.answered = true;
	row.pid = (long)number(status, "pid", row.pid);
	row.use.init = (pid_t)number(status, "init", 0);
	row.use.cgroup = text(status, "cgroup");
	row.state = text(status, "state");
	row.viewers = number(status, "viewers", -1);
	row.agent = text(status, "agent");
	row.project = text(status, "project");
	row.network = text(status, "network");
	row.reaches = list(status, "reaches");
	row.since = number(status, "since", 0);
	row.connections = number(status, "connections", -1);
	row.sent = number(status, "sent", -1);
	row.received = number(status, "received", -1);
	row.lost = flag(status, "lost");
	row.waiting = list(status, "waiting");
	row.ports = list(status, "ports");
	return row;
}

/* ---- those that have ended ---- */

/* Describe the changes that an overlay box left; NULL if it left none. */
static const char *changes_of(const struct workspace *w, const struct json_value *result)
{
	const char *state = w->applied    ? "applied"
		: workspace_holds(w->box) ? "not applied"
					  : NULL;

	if (!state)
		return NULL;
	if (!result)
		return mem_printf("changes %s", state);
	return mem_printf("%lld changed, %lld added, %lld deleted, %s",
		number(result, "changed", 0), number(result, "added", 0),
		number(result, "deleted", 0), state);
}

static bool is_over(const struct box_row *r)
{
	return r->ended_at > 0 && (long long)time(NULL) - r->ended_at < SHOWN_SECONDS;
}

/* Read the first or the last line of a file of the record; NULL if there is none. */
static const struct json_value *line_of(const char *box, const char *file, bool last)
{
	struct fault ignored = { 0 };
	auto_close int fd = boxes_open(box, file, &ignored);
	const struct json_value *value = NULL;
	json_errors errors = { 0 };
	char bytes[END_BYTES];
	const char *line = bytes, *end;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	n = pread(fd, bytes, sizeof(bytes),
		last && st.st_size > END_BYTES ? st.st_size - END_BYTES : 0);
	end = n > 0 ? memchr(bytes, '\n', (size_t)n) : NULL;
	if (last && end && bytes[n - 1] == '\n') {
		end = bytes + n - 1;
		line = memrchr(bytes, '\n', (size_t)n - 1);
		line = line ? line + 1 : bytes;
	}
	if (!end ||
		json_read_ours(mem_strndup(line, (size_t)(end - line)), (size_t)(end - line),
			&value, &errors) < 0 ||
		value->type != JSON_OBJECT)
		return NULL;
	return value;
}

/* A box that was not detached and worked on no copy: what its network and its end have left. */
static void add_from_lines(struct box_row *row)
{
	const struct json_value *first = line_of(row->name, JOURNAL_FILE, false);
	const struct json_value *last = line_of(row->name, JOURNAL_FILE, true);
	const char *event = text(last, "event");

	row->agent = text(first, "agent");
	row->project =
		text(first ? first : line_of(row->name, REPORT_FILE, false), "workspace");
	if (event && !strcmp(event, "end"))
		row->code = number(last, "code", -1);
}

static struct box_row row_of_record(const struct box_record *record)
{
	struct box_row row = { .name = record->name,
		.ended = true,
		.state = "ended",
		.cpu = -1,
		.code = -1,
		.ended_at = record->used,
		.viewers = -1,
		.connections = -1,
		.sent = -1,
		.received = -1 };
	struct fault ignored = { 0 };
	const struct json_value *own = boxes_json(record->name, BOXES_DETACHED, &ignored);
	const struct json_value *begun =
		own ? own : boxes_json(record->name, "box.json", &ignored);
	const struct json_value *result = boxes_json(record->name, BOXES_RESULT, &ignored);
	struct workspace w;

	row.agent = text(begun, "agent");
	row.project = text(begun, "workspace");
	row.since = number(begun, "started", 0);
	row.code = number(result, "code", -1);
	row.ended_at = number(result, "ended", row.ended_at);
	row.limits = list(result, "limits");
	if (!begun)
		add_from_lines(&row);
	row.recent = own && !flag(result, "stopped") && is_over(&row);
	if (workspace_open(record->name, &w, &ignored) == 0) {
		row.changes = changes_of(&w, result);
		workspace_close(&w);
	}
	return row;
}

static bool is_running(const registry_boxes *boxes, const char *name)
{
	vec_each(box, boxes)
		if (!strcmp(box->name, name))
			return true;
	return false;
}

static int add_ended(const registry_boxes *boxes, bool all, box_rows *rows, struct fault *f)
{
	box_records records = { 0 };
	int rc = boxes_list(&records, f);

	vec_each(record, &records) {
		struct box_row row;

		if (rc < 0 || record->problem || is_running(boxes, record->name) ||
			(!all && !boxes_has(record->name, BOXES_DETACHED)))
			continue;
		row = row_of_record(record);
		if (all || row.recent)
			vec_push(rows, row);
	}
	return rc;
}

/* ---- what they use ---- */

static struct box_sample *sample_of(struct box_samples *all, long init)
{
	for (unsigned int i = 0; i < all->n; i++)
		if (all->v[i].init == init)
			return &all->v[i];
	/* More boxes than that: those show their average. */
	if (all->n == BOX_SAMPLES)
		return NULL;
	all->v[all->n] = (struct box_sample){ .init = init };
	return &all->v[all->n++];
}

/* Percent of one processor since the last look, or at the first since the box began. */
static void add_cpu(struct box_row *r, struct box_samples *before)
{
	const long long now = clock_ms();
	struct box_sample *s = sample_of(before, r->use.init);
	unsigned long long used = r->use.cpu_usec;
	long long ms = ((long long)time(NULL) - r->since) * 1000;

	if (s && s->at && now > s->at && used >= s->cpu_usec) {
		used -= s->cpu_usec;
		ms = now - s->at;
	}
	if (s)
		*s = (struct box_sample){ r->use.init, r->use.cpu_usec, now };
	r->cpu = (long long)(used / 10) / (ms < 1000 ? 1000 : ms);
}

static void add_uses(box_rows *rows, struct box_samples *before)
{
	struct box_use *uses = mem_alloc((rows->n + 1) * sizeof(*uses));

	for (size_t i = 0; i < rows->n; i++)
		uses[i] = rows->v[i].use;
	box_use_read(uses, rows->n);
	for (size_t i = 0; i < rows->n; i++) {
		rows->v[i].use = uses[i];
		if (uses[i].known && rows->v[i].since)
			add_cpu(&rows->v[i], before);
	}
}

int box_rows_read(bool all, struct box_samples *before, box_rows *ret, struct fault *f)
{
	registry_boxes boxes = { 0 };
	int rc = registry_list(&boxes, f);

	if (rc < 0)
		return rc;
	vec_each(box, &boxes)
		vec_push(ret, ask(box));
	add_uses(ret, before);
	return add_ended(&boxes, all, ret, f);
}

/* ---- in words ---- */

static const char *seconds_words(long long s)
{
	if (s < 60)
		return mem_printf("%llds", s);
	if (s < 3600)
		return mem_printf("%lldm", s / 60);
	if (s < 86400)
		return s % 3600 / 60 ? mem_printf("%lldh%lldm", s / 3600, s % 3600 / 60)
				     : mem_printf("%lldh", s / 3600);
	return s % 86400 / 3600 ? mem_printf("%lldd%lldh", s / 86400, s % 86400 / 3600)
				: mem_printf("%lldd", s / 86400);
}

const char *box_age(const struct box_row *r)
{
	const long long from = r->ended ? r->ended_at : r->since;
	const long long s = (long long)time(NULL) - from;

	return from > 0 && s >= 0 ? seconds_words(s) : "-";
}

const char *box_state(const struct box_row *r)
{
	if (r->ended)
		return r->code >= 0 ? mem_printf("ended %lld", r->code) : "ended";
	if (!r->answered)
		return "silent";
	return r->state && *r->state ? str_visible(r->state) : "running";
}

const char *box_agent(const struct box_row *r)
{
	return r->agent && *r->agent ? str_visible(r->agent) : "-";
}

const char *box_project(const struct box_row *r)
{
	const char *name = r->project ? path_base(r->project) : "";

	return *name ? str_visible(name) : "-";
}

const char *box_network(const struct box_row *r)
{
	const char *first = r->reaches.n ? str_visible(r->reaches.v[0]) : NULL;

	if (r->ended)
		return "";
	if (!r->answered)
		return "-";
	if (r->lost)
		return "lost";
	if (r->waiting.n)
		return mem_printf("%zu held: %s", r->waiting.n, str_visible(r->waiting.v[0]));
	if (!first || !r->network || strcmp(r->network, "allow") != 0)
		return r->network && *r->network ? str_visible(r->network) : "-";
	return r->reaches.n == 1 ? first : mem_printf("%s +%zu", first, r->reaches.n - 1);
}

const char *box_cpu(const struct box_row *r)
{
	return r->ended ? "" : r->cpu >= 0 ? mem_printf("%lld%%", r->cpu) : "n/a";
}

const char *box_memory(const struct box_row *r)
{
	return r->ended ? "" : r->use.known ? instances_size(r->use.memory) : "n/a";
}
