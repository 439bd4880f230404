/*
 * eval/transcript.c - one line of an event stream
 */
#include "eval/transcript.h"
#include "harness/harness.h"
#include "base/json-read.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum { ANSWER_BYTES = 1 << 20 };

void transcript_set(const char **field, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	free((char *)*field);
	*field = copy;
}

void transcript_release(struct transcript *t)
{
	const char **const fields[] = { &t->version, &t->model, &t->skills, &t->last_message,
		&t->answer, &t->subtype, &t->structured, &t->error };

	for (size_t i = 0; i < t->calls_n; i++) {
		transcript_set(&t->calls[i].name, NULL);
		transcript_set(&t->calls[i].skill, NULL);
		transcript_set(&t->calls[i].path, NULL);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		transcript_set(fields[i], NULL);
	free(t->calls);
	t->calls = NULL;
	t->calls_n = t->calls_size = 0;
}

void transcript_call(struct transcript *t, const char *name, const char *skill,
	const char *path)
{
	t->tool_calls++;
	if (t->calls_n >= TRANSCRIPT_TOOLS)
		return;
	if (t->calls_n == t->calls_size) {
		size_t size = t->calls_size ? 2 * t->calls_size : 32;
		struct tool_call *calls = realloc(t->calls, size * sizeof(*calls));

		if (!calls)
			return;
		t->calls = calls;
		t->calls_size = size;
	}
	t->calls[t->calls_n] = (struct tool_call){ 0 };
	transcript_set(&t->calls[t->calls_n].name, name ? name : "");
	transcript_set(&t->calls[t->calls_n].skill, skill);
	transcript_set(&t->calls[t->calls_n++].path, path);
}

/*
 * Text that a client printed may be cut in the middle of a character, or hold a NUL: neither
 * is JSON that we read. They become U+FFFD.
 */
static const char *mended(const char *line, size_t n, size_t *ret_n)
{
	struct str out = { 0 };

	for (size_t i = 0; i < n;) {
		size_t len = utf8_length(line + i, n - i);
		bool escape = line[i] == '\\' && i + 1 < n;
		bool code = escape && line[i + 1] == 'u' && i + 6 <= n;
		bool half = code && (line[i + 2] == 'd' || line[i + 2] == 'D') &&
			strchr("89abAB", line[i + 3]);
		bool low = code && (line[i + 2] == 'd' || line[i + 2] == 'D') &&
			strchr("cdefCDEF", line[i + 3]);

		if (half && i + 12 <= n && line[i + 6] == '\\' && line[i + 7] == 'u' &&
			(line[i + 8] == 'd' || line[i + 8] == 'D') &&
			strchr("cdefCDEF", line[i + 9])) {
			str_addn(&out, line + i, 12);
			i += 12;
		} else if (half || low || (code && !strncmp(line + i + 2, "0000", 4))) {
			str_add(&out, "\\ufffd");
			i += 6;
		} else if (escape) {
			str_addn(&out, line + i, 2);
			i += 2;
		} else if (!len || !line[i]) {
			str_add(&out, "\xef\xbf\xbd");
			i++;
		} else {
			str_addn(&out, line + i, len);
			i += len;
		}
	}
	*ret_n = out.len;
	return out.p;
}

/* A client of which we know no more than its harness does. */
static void read_other(struct transcript *t, const struct json_value *line)
{
	struct harness_event e = { 0 };

	t->harness->event(line, &e);
	t->input += e.input_tokens;
	t->output += e.output_tokens;
	t->turns += e.turns;
	if (e.usd > 0) {
		t->usd += e.usd;
		t->has_usd = true;
	}
	switch (e.kind) {
	case EVENT_START:
		t->began = true;
		break;
	case EVENT_TEXT:
		t->steps++;
		t->text_bytes += e.text ? strlen(e.text) : 0;
		transcript_set(&t->answer, e.text);
		break;
	case EVENT_TOOL:
		transcript_call(t, e.tool, e.skill, NULL);
		break;
	case EVENT_RESULT:
		t->done = true;
		t->results++;
		t->failed = e.failed;
		if (e.text && e.failed)
			transcript_set(&t->error, e.text);
		else if (e.text)
			transcript_set(&t->answer, e.text);
		break;
	case EVENT_ERROR:
		transcript_set(&t->error, e.text);
		t->auth_failed |= e.text && strstr(e.text, "401 Unauthorized");
		break;
	case EVENT_OTHER:
		break;
	}
}

/* A plain command has no events: what it prints is its answer. */
static void add_answer(struct transcript *t, const char *line, size_t n)
{
	size_t len = t->answer ? strlen(t->answer) : 0;
	char *text = len + n < ANSWER_BYTES ? realloc((char *)t->answer, len + n + 2) : NULL;

	if (!text)
		return;
	memcpy(text + len, line, n);
	memcpy(text + len + n, "\n", 2);
	t->answer = text;
	t->text_bytes += n + 1;
}

void transcript_line(struct transcript *t, const char *line, size_t n)
{
	void *mark = mem_mark();
	const struct json_value *tree;
	json_errors bad = { 0 };
	const char *text;

	t->lines++;
	t->bytes += n + 1;
	if (t->harness == &harness_command) {
		add_answer(t, line, n);
		return;
	}
	if (json_read(line, n, NULL, &tree, &bad) < 0) {
		text = mended(line, n, &n);
		if (!text || json_read(text, n, NULL, &tree, &bad) < 0)
			tree = NULL;
	}
	if (!tree || tree->type != JSON_OBJECT)
		t->bad_lines++;
	else if (t->harness == &harness_claude)
		transcript_claude(t, tree);
	else
		read_other(t, tree);
	mem_reset(mark);
}
