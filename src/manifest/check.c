/*
 * manifest/check.c - a tree against the key table
 *
 * Checks the whole tree and reports every problem, so that a person fixes a manifest once.
 */
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PROBLEMS = 100, LONGEST = 1000, QUOTED = 60 };

#define LETTERS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS     "0123456789"
#define MOST_COUNT 1e15 /* whole numbers below are exact in a double */

void problem_add(problems *bad, const char *line)
{
	if (bad->n == MOST_PROBLEMS)
		vec_push(bad, "and more");
	if (bad->n < MOST_PROBLEMS)
		vec_push(bad, line);
}

/* For a list, the whole list is taken back. A name that had to be quoted cannot be a KEY. */
static void add_fix(problems *bad, const struct manifest_file *file, const char *field)
{
	if (file->fix && field && !strchr(field, '"'))
		problem_add(bad,
			mem_printf("  `%s %.*s=` takes it back.", file->fix,
				(int)strcspn(field, "["), field));
}

static void add_problem(problems *bad, const struct manifest_file *file, struct json_at at,
	const char *field, const char *text)
{
	/* A settings file holds "mine" itself, so its keys begin below that. */
	if (file->settings && field && str_starts(field, "mine."))
		field += strlen("mine.");
	problem_add(bad,
		mem_printf("%s:%u:%u: %s%s%s", str_visible(file->name), at.line, at.column,
			field ? field : "", field ? ": " : "", text));
	add_fix(bad, file, field);
}

/* Shorten a text to about so many bytes, at the end of a character. */
static const char *shorten(const char *text, size_t most)
{
	size_t n = most;

	if (strlen(text) <= most)
		return text;
	while (n && (text[n] & 0xc0) == 0x80)
		n--;
	return mem_printf("%.*s...", (int)n, text);
}

void manifest_problem(problems *bad, const struct json_value *at, const char *field,
	const char *fmt, ...)
{
	char text[LONGEST + 8];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add_problem(bad, at->origin, at->at, field, shorten(text, LONGEST));
}

/* A text of the file, shortened for a person. */
static const char *cut(const char *text)
{
	return shorten(str_visible(text), QUOTED);
}

/* The current position in the tree: "agents.reviewer.mounts[2]". */
struct trail {
	const struct trail *up;
	const char *name;
	unsigned int index; /* if there is no name */
};

static void add_trail(struct str *out, const struct trail *t)
{
	if (!t)
		return;
	add_trail(out, t->up);
	if (!t->name) {
		str_addf(out, "[%u]", t->index);
		return;
	}
	if (out->len)
		str_addc(out, '.');
	if (*t->name && strspn(t->name, LETTERS DIGITS "_-$") == strlen(t->name))
		str_add(out, shorten(t->name, QUOTED + 4)); /* an agent's name is not cut */
	else
		str_addf(out, "\"%s\"", cut(t->name));
}

static const char *field_of(const struct trail *t)
{
	struct str out = { 0 };

	add_trail(&out, t);
	return out.len ? out.p : NULL;
}

static void check_object(const struct key *keys, const struct json_value *v,
	const struct trail *t, problems *bad);

static void expected(const struct json_value *v, const struct trail *t, const char *what,
	problems *bad)
{
	manifest_problem(bad, v, field_of(t), "expected %s, not %s", what,
		json_type_name(v->type));
}

static bool check_string(const struct json_value *v, const struct trail *t, problems *bad)
{
	if (v->type != JSON_STRING)
		expected(v, t, "a string", bad);
	else if (!*v->text)
		manifest_problem(bad, v, field_of(t), "is empty");
	return v->type == JSON_STRING && *v->text;
}

static bool is_choice(const char *choices, const char *text)
{
	size_t n = strlen(text);

	for (const char *at = choices; *at; at += strcspn(at, "|"), at += *at == '|')
		if (strcspn(at, "|") == n && !memcmp(at, text, n))
			return true;
	return false;
}

static void check_choice(const struct key *k, const struct json_value *v, const struct trail *t,
	problems *bad)
{
	const char *names[16], *near;
	struct str all = { 0 };
	size_t n = 0;

	if (!check_string(v, t, bad) || is_choice(k->choices, v->text))
		return;
	for (const char *at = k->choices; *at; at += strcspn(at, "|"), at += *at == '|') {
		names[n] = mem_strndup(at, strcspn(at, "|"));
		str_addf(&all, "%s%s", n ? ", " : "", names[n]);
		n++;
	}
	near = str_nearest(v->text, names, n);
	manifest_problem(bad, v, field_of(t), "\"%s\" is none of %s%s", cut(v->text), all.p,
		near ? mem_printf(" (did you mean \"%s\"?)", near) : "");
}

/* "2G", "30m", "4G?". A count or a number is text only to carry a question mark. */
static bool parse_text(const struct key *k, const char *text, struct measure *ret)
{
	if (!measure_parse(k->type, text, ret))
		return false;
	return ret->optional ? k->optional != 0 : k->type == KEY_SIZE || k->type == KEY_TIME;
}

static void check_number(const struct key *k, const struct json_value *v, const struct trail *t,
	problems *bad)
{
	static const char *const what[] = {
		[KEY_COUNT] = "a whole number above 0",
		[KEY_NUMBER] = "a number above 0",
		[KEY_SIZE] = "a size such as \"512M\" or \"2G\"",
		[KEY_TIME] = "a time such as \"90s\", \"30m\" or \"1h30m\"",
	};
	struct measure m = { 0 }, most;
	bool good = false;

	if (v->type == JSON_NUMBER && v->number > 0 && v->number < MOST_COUNT) {
		m.whole = (unsigned long long)v->number;
		m.real = v->number;
		good = k->type == KEY_NUMBER || v->number == (double)m.whole;
	} else if (v->type == JSON_STRING) {
		good = parse_text(k, v->text, &m);
	}
	if (k->most && good && measure_parse(k->type, k->most, &most))
		good = k->type == KEY_NUMBER ? m.real <= most.real : m.whole <= most.whole;
	if (!good)
		manifest_problem(bad, v, field_of(t), "expected %s%s%s", what[k->type],
			k->most ? ", at most " : "", k->most ? k->most : "");
}

static void check_strings(const struct key *k, const struct json_value *v,
	const struct trail *t, problems *bad)
{
	unsigned int i = 0;

	if (v->type != JSON_LIST) {
		expected(v, t, "a list of strings", bad);
		return;
	}
	json_each(item, v) {
		const struct trail at = { t, .index = i++ };

		if (!k->words || item->type != JSON_STRING)
			check_string(item, &at, bad);
	}
}

/* A key that is a name: the key itself is wrong. */
static void bad_name(const struct json_value *v, const struct trail *t, const char *text,
	problems *bad)
{
	add_problem(bad, v->origin, v->key_at, field_of(t), text);
}

static void check_texts(const struct json_value *v, const struct trail *t, problems *bad)
{
	if (v->type != JSON_OBJECT) {
		expected(v, t, "an object of strings", bad);
		return;
	}
	json_each(item, v) {
		const struct trail at = { t, item->key, 0 };
		size_t n = strlen(item->key);

		if (!n || strspn(item->key, LETTERS DIGITS "_") != n ||
			strchr(DIGITS, item->key[0]))
			bad_name(item, &at,
				"a variable's name is letters, digits and '_', and begins "
				"with no digit",
				bad);
		if (item->type != JSON_STRING)
			expected(item, &at, "a string", bad);
	}
}

static bool plain_name(const char *name)
{
	size_t n = strlen(name);

	return n && n <= 64 && strchr(LETTERS DIGITS, name[0]) &&
		strspn(name, LETTERS DIGITS "._-") == n;
}

static void check_map(const struct key *k, const struct json_value *v, const struct trail *t,
	problems *bad)
{
	if (v->type != JSON_OBJECT) {
		expected(v, t, "an object", bad);
		return;
	}
	json_each(item, v) {
		const struct trail at = { t, item->key, 0 };

		if (k->plain && !plain_name(item->key))
			bad_name(item, &at,
				"a name is up to 64 letters, digits, '.', '_' and '-', and "
				"begins with a letter or digit",
				bad);
		else if (!*item->key || strlen(item->key) > 64)
			bad_name(item, &at, "a name is 1 to 64 bytes long", bad);
		if (k->keys == agent_keys && !strcmp(item->key, "mine"))
			bad_name(item, &at, "is the word for your own client: choose another",
				bad);
		check_object(k->keys, item, &at, bad);
	}
}

static void check_objects(const struct key *k, const struct json_value *v,
	const struct trail *t, problems *bad)
{
	unsigned int i = 0;

	if (v->type != JSON_LIST) {
		expected(v, t, "a list of objects", bad);
		return;
	}
	json_each(item, v)
		check_object(k->keys, item, &(struct trail){ t, .index = i++ }, bad);
}

static void check_value(const struct key *k, const struct json_value *v, const struct trail *t,
	problems *bad)
{
	switch (k->type) {
	case KEY_STRING:
		check_string(v, t, bad);
		break;
	case KEY_CHOICE:
		check_choice(k, v, t, bad);
		break;
	case KEY_FLAG:
		if (v->type != JSON_BOOL)
			expected(v, t, "true or false", bad);
		break;
	case KEY_COUNT:
	case KEY_NUMBER:
	case KEY_SIZE:
	case KEY_TIME:
		check_number(k, v, t, bad);
		break;
	case KEY_STRINGS:
		check_strings(k, v, t, bad);
		break;
	case KEY_TEXTS:
		check_texts(v, t, bad);
		break;
	case KEY_OBJECT:
		check_object(k->keys, key_object(k, v), t, bad);
		break;
	case KEY_OBJECTS:
		check_objects(k, v, t, bad);
		break;
	case KEY_MAP:
		check_map(k, v, t, bad);
		break;
	case KEY_END:
		break;
	}
}

static void unknown_key(const struct key *keys, const struct json_value *v,
	const struct trail *t, problems *bad)
{
	const char *names[64], *near;
	size_t n = 0;

	for (; keys->name && n < ARRAY_SIZE(names); keys++)
		names[n++] = keys->name;
	near = str_nearest(v->key, names, n);
	bad_name(v, t,
		near ? mem_printf("unknown key (did you mean \"%s\"?)", near) : "unknown key",
		bad);
}

static void check_object(const struct key *keys, const struct json_value *v,
	const struct trail *t, problems *bad)
{
	if (v->type != JSON_OBJECT) {
		expected(v, t, "an object", bad);
		return;
	}
	json_each(item, v) {
		const struct key *k = key_find(keys, item->key);
		const struct trail at = { t, item->key, 0 };

		if (k)
			check_value(k, item, &at, bad);
		else
			unknown_key(keys, item, &at, bad);
	}
	for (const struct key *k = keys; k->name; k++)
		if (k->required && !json_member(v, k->name))
			manifest_problem(bad, v, field_of(t), "\"%s\" is missing", k->name);
}

void manifest_check(const struct manifest_file *file, const struct key *keys, problems *bad)
{
	check_object(keys, file->tree, NULL, bad);
}
