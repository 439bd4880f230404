/*
 * manifest/schema-json.c - the key table as a JSON Schema, for editors
 *
 * The schema says what the checker says, row by row, as far as it can. It cannot say that a
 * name has at most 64 bytes (it counts characters), or that a size or time fits into 64 bits.
 */
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

#define PLAIN_NAME    "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
#define VARIABLE_NAME "^[A-Za-z_][A-Za-z0-9_]*$"
#define COUNT         "0*[1-9][0-9]*"
#define NUMBER        "(0*[1-9][0-9]*([.][0-9]*)?|0*[.]0*[1-9][0-9]*)"
#define SIZE          COUNT "[KMGT]?"
/* Terms of which at least one is not 0; the last may have no unit. */
#define TIME "([0-9]+[smhd])*[0-9]*[1-9][0-9]*([smhd]([0-9]+[smhd])*[0-9]*)?"

enum { LONGEST_NAME = 64 };

#define MOST_COUNT 1000000000000000LL

/* Definitions under $defs, each with its table. */
static const struct {
	const char *name;
	const struct key *keys;
} definitions[] = {
	{ "agent", agent_keys },
	{ "skill", skill_keys },
	{ "mcpServer", mcp_server_keys },
	{ "plugin", plugin_keys },
	{ "hook", hook_keys },
};

static void write_key(struct json *j, const struct key *k);

static void write_object(struct json *j, const struct key *keys)
{
	bool required = false;

	json_string(j, "type", "object");
	json_bool(j, "additionalProperties", false);
	for (const struct key *k = keys; k->name; k++) {
		if (k->required && !required)
			json_open(j, "required", '[');
		if (k->required)
			json_string(j, NULL, k->name);
		required |= k->required;
	}
	if (required)
		json_close(j, ']');
	json_open(j, "properties", '{');
	for (const struct key *k = keys; k->name; k++)
		write_key(j, k);
	json_close(j, '}');
}

static void write_reference(struct json *j, const char *name)
{
	json_string(j, "$ref", mem_printf("#/$defs/%s", name));
}

/* An object, by a reference to its definition or written out. */
static void write_struct(struct json *j, const char *as, const struct key *keys)
{
	json_open(j, as, '{');
	for (size_t i = 0; i < ARRAY_SIZE(definitions); i++) {
		if (definitions[i].keys != keys)
			continue;
		write_reference(j, definitions[i].name);
		json_close(j, '}');
		return;
	}
	write_object(j, keys);
	json_close(j, '}');
}

static void write_text(struct json *j)
{
	json_string(j, "type", "string");
	json_number(j, "minLength", 1);
}

static void write_choices(struct json *j, const char *choices)
{
	json_string(j, "type", "string");
	json_open(j, "enum", '[');
	for (const char *at = choices; *at; at += *at == '|') {
		size_t n = strcspn(at, "|");

		json_string(j, NULL, mem_strndup(at, n));
		at += n;
	}
	json_close(j, ']');
}

static void write_number(struct json *j, bool whole)
{
	json_string(j, "type", whole ? "integer" : "number");
	json_number(j, "exclusiveMinimum", 0);
	json_number(j, "exclusiveMaximum", MOST_COUNT);
}

/* A number, or a text that means one. */
static void write_measure(struct json *j, const char *pattern)
{
	json_open(j, "anyOf", '[');
	json_open(j, NULL, '{');
	write_number(j, true);
	json_close(j, '}');
	json_open(j, NULL, '{');
	json_string(j, "type", "string");
	json_string(j, "pattern", pattern);
	json_close(j, '}');
	json_close(j, ']');
}

static void write_strings(struct json *j)
{
	json_string(j, "type", "array");
	json_open(j, "items", '{');
	write_text(j);
	json_close(j, '}');
}

static void write_texts(struct json *j)
{
	json_string(j, "type", "object");
	json_open(j, "propertyNames", '{');
	json_string(j, "pattern", VARIABLE_NAME);
	json_close(j, '}');
	json_open(j, "additionalProperties", '{');
	json_string(j, "type", "string");
	json_close(j, '}');
}

static void write_map(struct json *j, const struct key *k)
{
	json_string(j, "type", "object");
	json_open(j, "propertyNames", '{');
	if (k->plain) {
		json_string(j, "pattern", PLAIN_NAME);
	} else {
		json_number(j, "minLength", 1);
		json_number(j, "maxLength", LONGEST_NAME);
	}
	json_close(j, '}');
	write_struct(j, "additionalProperties", k->keys);
}

static void write_type(struct json *j, const struct key *k);

/* A number, or the same number as text with a question mark. */
static void write_optional(struct json *j, const struct key *k)
{
	static const char *const patterns[] = {
		[KEY_COUNT] = "^" COUNT "[?]$",
		[KEY_NUMBER] = "^" NUMBER "[?]$",
		[KEY_SIZE] = "^" SIZE "[?]$",
		[KEY_TIME] = "^" TIME "[?]$",
	};
	struct key plain = *k;

	plain.optional = 0;
	json_open(j, "anyOf", '[');
	json_open(j, NULL, '{');
	write_type(j, &plain);
	json_close(j, '}');
	json_open(j, NULL, '{');
	json_string(j, "type", "string");
	json_string(j, "pattern", patterns[k->type]);
	json_close(j, '}');
	json_close(j, ']');
}

static void write_maybe_short(struct json *j, const struct key *k)
{
	if (!k->shorthand) {
		write_object(j, k->keys);
		return;
	}
	json_open(j, "anyOf", '[');
	json_open(j, NULL, '{');
	write_type(j, key_find(k->keys, k->shorthand));
	json_close(j, '}');
	json_open(j, NULL, '{');
	write_object(j, k->keys);
	json_close(j, '}');
	json_close(j, ']');
}

static void write_type(struct json *j, const struct key *k)
{
	if (k->optional) {
		write_optional(j, k);
		return;
	}
	switch (k->type) {
	case KEY_STRING:
		write_text(j);
		break;
	case KEY_CHOICE:
		write_choices(j, k->choices);
		break;
	case KEY_FLAG:
		json_string(j, "type", "boolean");
		break;
	case KEY_COUNT:
	case KEY_NUMBER:
		write_number(j, k->type == KEY_COUNT);
		break;
	case KEY_SIZE:
		write_reference(j, "size");
		break;
	case KEY_TIME:
		write_reference(j, "time");
		break;
	case KEY_STRINGS:
		write_reference(j, k->words ? "words" : "strings");
		break;
	case KEY_TEXTS:
		write_reference(j, "variables");
		break;
	case KEY_OBJECT:
		write_maybe_short(j, k);
		break;
	case KEY_OBJECTS:
		json_string(j, "type", "array");
		write_struct(j, "items", k->keys);
		break;
	case KEY_MAP:
		write_map(j, k);
		break;
	case KEY_END:
		break;
	}
}

/* The table has the default as JSON: a string, true or false. */
static void write_default(struct json *j, const char *standard)
{
	if (standard[0] == '"')
		json_string(j, "default", mem_strndup(standard + 1, strlen(standard) - 2));
	else
		json_bool(j, "default", !strcmp(standard, "true"));
}

static void write_key(struct json *j, const struct key *k)
{
	json_open(j, k->name, '{');
	json_string(j, "description", k->doc);
	write_type(j, k);
	if (k->standard)
		write_default(j, k->standard);
	json_close(j, '}');
}

static void write_definitions(struct json *j)
{
	json_open(j, "$defs", '{');
	for (size_t i = 0; i < ARRAY_SIZE(definitions); i++) {
		json_open(j, definitions[i].name, '{');
		write_object(j, definitions[i].keys);
		json_close(j, '}');
	}
	json_open(j, "strings", '{');
	write_strings(j);
	json_close(j, '}');
	json_open(j, "words", '{');
	json_string(j, "type", "array");
	json_open(j, "items", '{');
	json_string(j, "type", "string");
	json_close(j, '}');
	json_close(j, '}');
	json_open(j, "variables", '{');
	write_texts(j);
	json_close(j, '}');
	json_open(j, "size", '{');
	write_measure(j, "^" SIZE "$");
	json_close(j, '}');
	json_open(j, "time", '{');
	write_measure(j, "^" TIME "$");
	json_close(j, '}');
	json_close(j, '}');
}

void manifest_schema(struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '{');
	json_string(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_string(&j, "title", "carrel manifest");
	json_string(&j, "description",
		"what a " MANIFEST_NAME " may say: the agents of a project and what they have");
	write_object(&j, manifest_keys);
	write_definitions(&j);
	json_close(&j, '}');
	str_addc(out, '\n');
}
