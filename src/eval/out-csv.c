/*
 * eval/out-csv.c - the attempts of a run as CSV, for spreadsheets and data frames
 *
 * RFC 4180: a row each, texts in quotes, lines that end with CR LF. A text that a spreadsheet
 * would take for a formula gets an apostrophe before it, because agents chose some of them.
 */
#include "eval/outputs.h"
#include "base/json-read.h"
#include "base/str.h"
#include "eval/attempts.h"
#include "eval/conversation.h"

#include <math.h>
#include <string.h>

static const char *const kinds[] = { "artifact", "trigger", "control" };

static void add_quoted(struct str *out, const char *text)
{
	text = utf8_clean(text ? text : "");
	str_addc(out, '"');
	if (*text && strchr("=+-@\t\r", *text))
		str_addc(out, '\'');
	for (; *text; text++) {
		if (*text == '"')
			str_addc(out, '"');
		str_addc(out, *text);
	}
	str_addc(out, '"');
}

/* All but the first field of a row begin with the comma before them. */
static void add_text(struct str *out, const char *text)
{
	str_addc(out, ',');
	add_quoted(out, text);
}

static void add_real(struct str *out, double value)
{
	str_addc(out, ',');
	if (isfinite(value))
		str_addf(out, "%.9g", value);
}

static void add_expectations(struct str *out, const struct attempt *a)
{
	const struct json_value *list = json_member(a->json, "expectations");
	unsigned int n = 0, met = 0;

	if (list && list->type == JSON_LIST)
		json_each(it, list) {
			const struct json_value *passed = json_member(it, "passed");

			n += passed && passed->type == JSON_BOOL;
			met += passed && passed->type == JSON_BOOL && passed->boolean;
		}
	str_addf(out, ",%u,%u", n, met);
}

static void add_row(const struct run_dir *run, const struct attempt *a, struct str *out)
{
	add_quoted(out, run->id);
	str_addf(out, ",%s", kinds[a->kind]);
	add_text(out, a->id);
	add_text(out, a->configuration);
	str_addf(out, ",%u,%s", a->run, attempt_outcome_name(a->outcome));
	add_text(out, attempt_fired_name(a->fired));
	str_addf(out, ",%s",
		a->kind == ATTEMPT_ARTIFACT ? ""
			: a->should_trigger ? "true"
					    : "false");
	add_text(out, a->started);
	add_real(out, a->seconds);
	add_real(out, a->usd);
	add_real(out, a->turns);
	for (int i = 0; i < TOKEN_KINDS; i++)
		add_real(out, a->tokens[i]);
	add_expectations(out, a);
	add_text(out, a->query);
	add_text(out, a->reason);
	add_text(out, a->path);
	str_add(out, "\r\n");
}

void attempts_csv(const struct run_dir *run, const struct summary *s, struct str *out)
{
	(void)s;
	str_add(out,
		"run,kind,case,configuration,repeat,outcome,verdict,should_trigger,started,"
		"seconds,usd,turns,input_tokens,output_tokens,cache_read_tokens,"
		"cache_creation_tokens,expectations,met,query,reason,directory\r\n");
	vec_each(a, &run->attempts)
		add_row(run, a, out);
}
