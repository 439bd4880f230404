/*
 * eval/suite-grader.c - graders as a suite writes them
 *
 * A row of the table says everything about a grader's form: its name, the keys it needs and
 * may have, and what the schema says about it. eval/grade.c says what it does.
 */
#include "eval/suite.h"
#include "eval/suite-reader.h"
#include "base/json.h"
#include "base/str.h"

#include <regex.h>
#include <string.h>

enum {
	KEY_PATH = 1 << 0,
	KEY_ANSWER = 1 << 1, /* path may be left out: the final answer */
	KEY_TEXT = 1 << 2,
	KEY_PATTERN = 1 << 3,
	KEY_AT = 1 << 4,
	KEY_TOOL = 1 << 5,
	KEY_TOOLS = 1 << 6,
	KEY_COMMAND = 1 << 7,
	KEY_VALUE = 1 << 8,
	KEY_LEAST = 1 << 9,
};

static const struct form {
	const char *name;
	unsigned int keys;
	const char *about;
} forms[GRADE_KINDS] = {
	[GRADE_MODEL] = { "model", KEY_TEXT, "a model judges whether the sentence is true" },
	[GRADE_EXISTS] = { "exists", KEY_PATH, "the file is there" },
	[GRADE_ABSENT] = { "absent", KEY_PATH, "nothing is there" },
	[GRADE_CONTAINS] = { "contains", KEY_PATH | KEY_ANSWER | KEY_TEXT,
		"the file, or with no path the final answer, contains the text" },
	[GRADE_REGEX] = { "regex", KEY_PATH | KEY_ANSWER | KEY_PATTERN,
		"an extended regular expression matches in the file or the final answer" },
	[GRADE_JSON] = { "json", KEY_PATH | KEY_AT,
		"the JSON file has a value at \"a.b[0]\", and it equals \"equals\" if given" },
	[GRADE_UNCHANGED] = { "unchanged", KEY_PATH,
		"the file, or all below the directory, is as it was, byte for byte" },
	[GRADE_TOOL_CALLED] = { "tool_called", KEY_TOOL | KEY_LEAST,
		"the tool was called, at least \"least\" times" },
	[GRADE_TOOL_NEVER] = { "tool_never", KEY_TOOL, "the tool was never called" },
	[GRADE_TOOL_ORDER] = { "tool_order", KEY_TOOLS,
		"the tools were called in this order, perhaps with others between" },
	[GRADE_COMMAND] = { "command", KEY_COMMAND,
		"the command ends with \"exit\" (0), in a box of its own without a network" },
	[GRADE_MAX_USD] = { "max_usd", KEY_VALUE, "the attempt cost at most so much" },
	[GRADE_MAX_TURNS] = { "max_turns", KEY_VALUE, "it took at most so many turns" },
	[GRADE_MAX_SECONDS] = { "max_seconds", KEY_VALUE, "it took at most so long" },
};

const char *grader_name(enum grader_kind kind)
{
	return forms[kind].name;
}

/* ---- reading ---- */

static void need_text(struct suite_reader *r, const struct json_value *v, const char *key,
	const char **ret)
{
	*ret = suite_text(r, v, key);
	if (!*ret && !json_member(v, key))
		suite_bad(r, v->at, "this grader needs \"%s\"", key);
}

static void read_path(struct suite_reader *r, const struct json_value *v, unsigned int keys,
	struct grader *g)
{
	if (!json_member(v, "path") && (keys & KEY_ANSWER))
		return;
	need_text(r, v, "path", &g->path);
	if (g->path && !suite_path_is_safe(g->path))
		suite_bad(r, json_member(v, "path")->at,
			"path: expected a relative path with no \"..\"");
}

static void read_pattern(struct suite_reader *r, const struct json_value *v, struct grader *g)
{
	char why[200];
	regex_t regex;
	int rc;

	need_text(r, v, "pattern", &g->pattern);
	if (!g->pattern)
		return;
	rc = regcomp(&regex, g->pattern, REG_EXTENDED | REG_NOSUB);
	if (rc == 0) {
		regfree(&regex);
		return;
	}
	regerror(rc, &regex, why, sizeof(why));
	suite_bad(r, json_member(v, "pattern")->at, "pattern: %s", why);
}

static void read_number(struct suite_reader *r, const struct json_value *v, const char *key,
	double other, struct grader *g)
{
	const struct json_value *m = json_member(v, key);

	g->number = other;
	if (m && m->type == JSON_NUMBER && m->number >= 0 && m->number < 1e9)
		g->number = m->number;
	else if (m || other < 0)
		suite_bad(r, m ? m->at : v->at, "%s: expected a number from 0", key);
}

static void read_words(struct suite_reader *r, const struct json_value *v, const char *key,
	text_vec *ret)
{
	suite_texts(r, v, key, ret);
	if (!ret->n)
		suite_bad(r, v->at, "this grader needs \"%s\"", key);
}

static void read_command(struct suite_reader *r, const struct json_value *v, struct grader *g)
{
	read_words(r, v, "command", &g->words);
	suite_files(r, v, &g->files);
	read_number(r, v, "exit", 0, g);
}

/* The sentence for reports where the suite gives none. */
static const char *sentence(const struct grader *g, const char *about)
{
	struct str out = { 0 };

	str_add(&out, about);
	if (g->path)
		str_addf(&out, ": %s", g->path);
	if (g->at)
		str_addf(&out, " at %s", g->at);
	if (g->pattern)
		str_addf(&out, ": %s", g->pattern);
	for (size_t i = 0; i < g->words.n; i++)
		str_addf(&out, "%s%s", i ? " " : ": ", g->words.v[i]);
	if (g->kind >= GRADE_MAX_USD)
		str_addf(&out, ": %g", g->number);
	return out.p;
}

static bool find_form(const char *name, enum grader_kind *ret)
{
	for (size_t i = 0; name && i < GRADE_KINDS; i++) {
		if (strcmp(forms[i].name, name) != 0)
			continue;
		*ret = (enum grader_kind)i;
		return true;
	}
	return false;
}

void suite_grader(struct suite_reader *r, const struct json_value *v, grader_vec *ret)
{
	struct grader g = { 0 };
	const char *type = v->type == JSON_OBJECT ? suite_text(r, v, "type") : NULL;
	unsigned int keys;

	if (!find_form(type, &g.kind)) {
		suite_bad(r, v->at,
			"a grader is an object with \"type\", one of those that "
			"`carrel schema suite` lists");
		return;
	}
	keys = forms[g.kind].keys;
	suite_known(r, v,
		"type|name|path|text|pattern|at|equals|tool|tools|least|command|files|exit|"
		"value");
	g.text = suite_text(r, v, "name");
	if (keys & KEY_PATH)
		read_path(r, v, keys, &g);
	if (keys & KEY_TEXT)
		need_text(r, v, "text", &g.pattern);
	if (keys & KEY_PATTERN)
		read_pattern(r, v, &g);
	if (keys & KEY_AT) {
		need_text(r, v, "at", &g.at);
		g.equals = json_member(v, "equals");
	}
	if (keys & (KEY_TOOL | KEY_TOOLS))
		read_words(r, v, keys & KEY_TOOL ? "tool" : "tools", &g.words);
	if (keys & KEY_LEAST)
		read_number(r, v, "least", 1, &g);
	if (keys & KEY_COMMAND)
		read_command(r, v, &g);
	if (keys & KEY_VALUE)
		read_number(r, v, "value", -1, &g);
	if (g.kind == GRADE_MODEL)
		g.text = g.text ? g.text : g.pattern;
	g.text = g.text ? g.text : sentence(&g, forms[g.kind].about);
	vec_push(ret, g);
}

/* ---- writing ---- */

static void write_words(struct json *j, const char *key, const text_vec *list)
{
	json_open(j, key, '[');
	vec_each(word, list)
		json_string(j, NULL, *word);
	json_close(j, ']');
}

void grader_write(struct json *j, const struct grader *g)
{
	unsigned int keys = forms[g->kind].keys;

	json_open(j, NULL, '{');
	json_string(j, "type", forms[g->kind].name);
	json_string(j, "name", g->text);
	if (g->path)
		json_string(j, "path", g->path);
	if (keys & KEY_TEXT)
		json_string(j, "text", g->pattern ? g->pattern : g->text);
	if (keys & KEY_PATTERN)
		json_string(j, "pattern", g->pattern);
	if (keys & KEY_AT)
		json_string(j, "at", g->at);
	if (g->equals)
		json_copy(j, "equals", g->equals);
	if (keys & KEY_TOOL)
		json_string(j, "tool", g->words.v[0]);
	if (keys & KEY_TOOLS)
		write_words(j, "tools", &g->words);
	if (keys & KEY_COMMAND) {
		write_words(j, "command", &g->words);
		suite_write_files(j, &g->files);
		json_raw(j, "exit", mem_printf("%.0f", g->number));
	}
	if (keys & KEY_LEAST)
		json_raw(j, "least", mem_printf("%.0f", g->number));
	if (keys & KEY_VALUE)
		json_raw(j, "value", mem_printf("%.9g", g->number));
	json_close(j, '}');
}

/* ---- the schema ---- */

static void schema_keys(struct json *j, unsigned int keys, bool required)
{
	static const struct {
		unsigned int key;
		const char *name, *schema;
	} known[] = {
		{ KEY_PATH, "path", "{\"type\":\"string\"}" },
		{ KEY_TEXT, "text", "{\"type\":\"string\"}" },
		{ KEY_PATTERN, "pattern", "{\"type\":\"string\"}" },
		{ KEY_AT, "at", "{\"type\":\"string\"}" },
		{ KEY_TOOL, "tool", "{\"type\":\"string\"}" },
		{ KEY_TOOLS, "tools", "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}" },
		{ KEY_COMMAND, "command",
			"{\"type\":\"array\",\"items\":{\"type\":\"string\"}}" },
		{ KEY_VALUE, "value", "{\"type\":\"number\",\"minimum\":0}" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!(keys & known[i].key))
			continue;
		if (!required)
			json_raw(j, known[i].name, known[i].schema);
		else if (known[i].key != KEY_PATH || !(keys & KEY_ANSWER))
			json_string(j, NULL, known[i].name);
	}
}

void grader_schema(struct json *j, enum grader_kind kind)
{
	unsigned int keys = forms[kind].keys;

	json_open(j, NULL, '{');
	json_string(j, "description", forms[kind].about);
	json_string(j, "type", "object");
	json_open(j, "properties", '{');
	json_raw(j, "type", mem_printf("{\"const\":\"%s\"}", forms[kind].name));
	json_raw(j, "name", "{\"type\":\"string\"}");
	schema_keys(j, keys, false);
	if (keys & KEY_AT)
		json_raw(j, "equals", "true");
	if (keys & KEY_LEAST)
		json_raw(j, "least", "{\"type\":\"integer\",\"minimum\":0}");
	if (keys & KEY_COMMAND) {
		json_raw(j, "exit", "{\"type\":\"integer\",\"minimum\":0}");
		json_raw(j, "files", "{\"type\":\"array\"}");
	}
	json_close(j, '}');
	json_open(j, "required", '[');
	json_string(j, NULL, "type");
	schema_keys(j, keys, true);
	json_close(j, ']');
	json_bool(j, "additionalProperties", false);
	json_close(j, '}');
}
