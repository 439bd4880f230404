/*
 * run/found-report.c - report files that a run left for the host to execute
 *
 * A box decides what there is to report, and may try to bury one entry under many. So the
 * entries are ranked, and files of one kind in one directory share a line. Instructions for
 * agents, which boxes write as part of their work, have one quiet line.
 */
#include "run/found-report.h"
#include "plan/plan.h"
#include "state/boxes.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>
#include <time.h>

enum {
	MOST_LINES = 20,       /* on the terminal, */
	MOST_UNKEPT = 1000,    /* also if there is no record to look at */
	MOST_NAMES = 5,        /* of instructions */
	MOST_TOGETHER = 4,     /* files of one directory, each on a line of its own */
	MOST_RECORDED = 200000 /* about 20 MB; the first line says how many there were */
};

static const char *const ranks[] = {
	[PLANTED_GIT_DIR] = "git-dir",
	[PLANTED_GIT] = "git",
	[PLANTED_UNSEEN] = "unseen",
	[PLANTED_CLIENT] = "client",
	[PLANTED_EDITOR] = "editor",
	[PLANTED_REST] = "rest",
	[PLANTED_INSTRUCTIONS] = "instructions",
};

static const char *time_now(void)
{
	time_t now = time(NULL);
	char text[64] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return mem_strdup(text);
}

/* ---- the record ---- */

static void add_head(struct str *out, const struct plan *p, size_t n)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_number(&j, "carrel", REPORT_FORMAT);
	json_string(&j, "box", p->name);
	json_string(&j, "workspace", p->workspace);
	json_string(&j, "time", time_now());
	json_count(&j, "found", n);
	json_close(&j, '}');
	str_addc(out, '\n');
}

static void add_entry(struct str *out, const struct planted *e)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "path", e->rel);
	json_string(&j, "why", e->why);
	json_string(&j, "rank", ranks[e->rank]);
	json_close(&j, '}');
	str_addc(out, '\n');
}

static int keep_record(const struct plan *p, const planted_vec *found, struct fault *f)
{
	struct str text = { 0 };

	add_head(&text, p, found->n);
	for (size_t i = 0; i < found->n && i < MOST_RECORDED; i++)
		add_entry(&text, &found->v[i]);
	return boxes_put(p->name, REPORT_FILE, text.p, text.len, f);
}

/* ---- the terminal ---- */

static size_t dir_length(const char *rel)
{
	const char *slash = strrchr(rel, '/');

	return slash ? (size_t)(slash - rel) : 0;
}

/* The number of entries from here on that are of one kind and in one directory. */
static size_t count_alike(const struct planted *e, const struct planted *end)
{
	const size_t dir = dir_length(e->rel);
	size_t n = 0;

	for (; e + n < end; n++)
		if (e[n].rank != e->rank || strcmp(e[n].why, e->why) != 0 ||
			dir_length(e[n].rel) != dir || strncmp(e[n].rel, e->rel, dir) != 0)
			break;
	return n;
}

static const char *line_of(const struct planted *e, size_t alike)
{
	size_t dir = dir_length(e->rel);

	if (alike == 1)
		return mem_printf("  %s  (%s)", str_visible(e->rel), e->why);
	return mem_printf("  %s  (%zu files; of each: %s)",
		dir ? str_visible(mem_strndup(e->rel, dir)) : ".", alike, e->why);
}

static void note_alarms(const struct plan *p, const planted_vec *found, size_t n,
	const struct fault *unkept, note_vec *notes)
{
	const struct planted *end = found->v + n;
	size_t lines = 0, most = unkept ? MOST_UNKEPT : MOST_LINES;

	vec_push(notes,
		"files that programs outside the box would run or obey "
		"appeared or changed; look at them before you go on:");
	for (const struct planted *e = found->v; e < end; lines++) {
		size_t alike = count_alike(e, end);

		if (lines == most) {
			vec_push(notes,
				unkept ? mem_printf("  and %td more", end - e)
				       : mem_printf("  and %td more: carrel found %s", end - e,
						 p->name));
			return;
		}
		alike = alike > MOST_TOGETHER ? alike : 1;
		vec_push(notes, line_of(e, alike));
		e += alike;
	}
}

static void note_instructions(const struct plan *p, const planted_vec *found, size_t from,
	note_vec *notes)
{
	struct str names = { 0 };

	for (size_t i = from; i < found->n && i < from + MOST_NAMES; i++) {
		str_add(&names, i == from ? "" : ", ");
		str_add_visible(&names, found->v[i].rel);
	}
	if (found->n > from + MOST_NAMES)
		str_addf(&names, " and %zu more: carrel found %s", found->n - from - MOST_NAMES,
			p->name);
	vec_push(notes, mem_printf("instructions for agents changed: %s", names.p));
}

void report_planted(const struct plan *p, const planted_vec *found, note_vec *notes)
{
	struct fault f = { 0 };
	size_t alarms = 0;
	int rc;

	while (alarms < found->n && found->v[alarms].rank != PLANTED_INSTRUCTIONS)
		alarms++;
	rc = found->n ? keep_record(p, found, &f) : boxes_drop(p->name, REPORT_FILE, &f);
	if (alarms)
		note_alarms(p, found, alarms, rc < 0 ? &f : NULL, notes);
	if (alarms < found->n)
		note_instructions(p, found, alarms, notes);
	if (rc < 0 && found->n)
		vec_push(notes,
			mem_printf("the list is not kept in the box's record: %s",
				fault_line(&f)));
}
