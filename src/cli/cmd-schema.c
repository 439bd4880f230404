/*
 * cli/cmd-schema.c - carrel schema
 *
 * The schema of manifests comes from the key table, that of plans from the table of the
 * plan's document.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "eval/run-schema.h"
#include "eval/suite.h"
#include "manifest/keys.h"
#include "plan/document.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

#define KINDS "manifest|plan|suite|run|attempt"

/* ---- the writer ---- */

static void write_fields(struct json *j, const struct field *fields);

static void write_choices(struct json *j, const char *choices)
{
	size_t n;
	const char *const *names = opt_split(choices, &n);

	json_open(j, "enum", '[');
	for (size_t i = 0; i < n; i++)
		json_string(j, NULL, names[i]);
	json_close(j, ']');
}

static void write_form(struct json *j, const struct field *f)
{
	static const char *const types[] = {
		[FIELD_TEXT] = "string",
		[FIELD_WHOLE] = "integer",
		[FIELD_REAL] = "number",
		[FIELD_FLAG] = "boolean",
		[FIELD_OBJECT] = "object",
	};

	json_string(j, "type", types[f->form]);
	if (f->form == FIELD_WHOLE || f->form == FIELD_REAL)
		json_number(j, "minimum", 0);
	if (f->constant)
		json_number(j, "const", f->constant);
	if (f->choices)
		write_choices(j, f->choices);
	if (f->pattern)
		json_string(j, "pattern", f->pattern);
	if (f->fields)
		write_fields(j, f->fields);
}

static void write_field(struct json *j, const struct field *f)
{
	json_open(j, f->name, '{');
	json_string(j, "description", f->about);
	if (f->list) {
		json_string(j, "type", "array");
		json_open(j, "items", '{');
		write_form(j, f);
		json_close(j, '}');
	} else {
		write_form(j, f);
	}
	json_close(j, '}');
}

static void write_fields(struct json *j, const struct field *fields)
{
	json_bool(j, "additionalProperties", false);
	json_open(j, "required", '[');
	for (const struct field *f = fields; f->name; f++)
		if (!f->optional)
			json_string(j, NULL, f->name);
	json_close(j, ']');
	json_open(j, "properties", '{');
	for (const struct field *f = fields; f->name; f++)
		write_field(j, f);
	json_close(j, '}');
}

static void plan_schema(struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '{');
	json_string(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_string(&j, "title", "carrel plan");
	json_string(&j, "description",
		"what `carrel plan --json` prints: all that a box will be");
	json_string(&j, "type", "object");
	write_fields(&j, plan_document);
	json_close(&j, '}');
	str_addc(out, '\n');
}

static int cmd_schema(void *args, int argc, char **argv)
{
	struct str text = { 0 };

	(void)args;
	if (argc > 0 && !strcmp(argv[0], "plan"))
		plan_schema(&text);
	else if (argc > 0 && !strcmp(argv[0], "suite"))
		suite_schema(&text);
	else if (argc > 0 && !strcmp(argv[0], "run"))
		run_schema(&text);
	else if (argc > 0 && !strcmp(argv[0], "attempt"))
		attempt_schema(&text);
	else
		manifest_schema(&text);
	return cmd_print(&text);
}

const struct cmd cmd_schema_entry = {
	.name = "schema",
	.args = "[" KINDS "]",
	.about = "print the JSON Schema of a format of carrel's own",
	.detail =
		"Each is a JSON Schema of draft 2020-12. That of manifests, which is printed "
		"when nothing is asked for, is for editors: they complete and explain the "
		"keys of a `carrel.json` that names it. A `carrel.json` may have comments "
		"and a comma after the last element.\n"
		"\n"
		"  carrel schema > carrel.schema.json    # \"$schema\": "
		"\"./carrel.schema.json\"\n"
		"\n"
		"`carrel schema plan` describes what `carrel plan --json` prints. Names of "
		"files that are not UTF-8 have each such byte there as the lone surrogate "
		"U+DC80 to U+DCFF. `carrel schema suite` is about suites of `carrel eval` in "
		"carrel's own format, `carrel schema run` about the `run.json` that it leaves, "
		"and `carrel schema attempt` about the `attempt.json` of each attempt.",
	.takes = TAKES_CHOICE,
	.choices = KINDS,
	.optional = true,
	.run = cmd_schema,
};
