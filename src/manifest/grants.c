/*
 * manifest/grants.c - what a manifest grants, as lines
 *
 * Theory of operation. Each leaf of the tree is one line. The order depends only on the
 * meaning: members by key, elements as they are written, without a number, so that one more
 * element is one more line.
 *
 * The author of the manifest may want the lines to mislead. So every text passes str_visible().
 * A text that could be mistaken for something else (a string for an object, a key for a path)
 * is quoted. Long text is cut, but its length and hash stay, so a change anywhere in it changes
 * the line. Text about the machine or the network is never cut, because the end of a path or of
 * a command is what counts.
 */
#include "manifest/grants.h"
#include "base/hash.h"
#include "base/json-read.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	LONGEST = 100, /* characters of a text that is shown whole */
	CUT = 60,      /* characters that are shown of a longer one */
	/* Hex digits. With only 12, an author could find two texts that look the same. */
	DIGEST = 32,
};

#define ELLIPSIS "\u2026"
#define WORD     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

typedef bool text_test(const char *text);

/*
 * What a line is about
 */

static bool is_any(const char *value)
{
	return true;
}

static bool is_command(const char *value)
{
	return *value == '!';
}

static bool has_variable(const char *value)
{
	return strstr(value, "${");
}

/* A file outside the project, or one that may be. */
static bool is_outside(const char *value)
{
	return *value == '/' || *value == '~' || str_starts(value, "..") ||
		strstr(value, "/..");
}

static bool is_writable(const char *value)
{
	return strstr(value, "mode=rw") != NULL;
}

static bool takes_back(const char *value)
{
	return value[strspn(value, "\"")] == '!';
}

static bool is_direct(const char *value)
{
	return !strcmp(value, "direct");
}

static bool is_own_home(const char *value)
{
	return strcmp(value, "declared") != 0;
}

/* Members of an object in a list are part of the value: "command=x env={TOKEN=!pass}". */
static bool has_inner_command(const char *value)
{
	const char *env = strstr(value, "env={");

	return env && (strstr(env, "=!") || strstr(env, "=\"!"));
}

static bool has_inner_variable(const char *value)
{
	const char *env = strstr(value, "env={");

	return env && has_variable(env);
}

/*
 * The first matching row decides: its name is a part of the path (NULL: any), and its test
 * holds.
 */
static const struct {
	const char *part;
	text_test *test;
	enum grant sort;
} sorts[] = {
	{ "env", is_command, GRANT_RUNS },
	{ NULL, has_inner_command, GRANT_RUNS },
	{ "env", has_variable, GRANT_READS },
	{ NULL, has_inner_variable, GRANT_READS },
	{ "mounts", is_writable, GRANT_WRITES },
	{ "mounts", is_any, GRANT_READS },
	{ "protect", takes_back, GRANT_WRITES },
	{ "hide", takes_back, GRANT_READS },
	{ "ssh", is_any, GRANT_READS },
	{ "source", is_outside, GRANT_READS },
	{ "role", is_outside, GRANT_READS },
	{ "command", is_outside, GRANT_READS },
	{ "image", is_outside, GRANT_READS },
	{ "home", is_direct, GRANT_WRITES },
	{ "home", is_own_home, GRANT_READS },
	{ "network", is_any, GRANT_NETWORK },
};

/* The end of one part of a path, which is a word or quoted: a dot, a colon or the end. */
static const char *part_end(const char *p)
{
	if (*p == '"') {
		for (p++; *p && *p != '"'; p++)
			if (*p == '\\' && p[1])
				p++;
	}
	return p + strcspn(p, ".:");
}

size_t grant_path(const char *line)
{
	const char *end = part_end(line);

	while (*end == '.')
		end = part_end(end + 1);
	return str_starts(end, ": ") ? (size_t)(end - line) : 0;
}

/* Is name a part of the path? Not where names are free: agents.NAME, library.skills.NAME. */
static bool has_part(const char *path, const char *name)
{
	int free = str_starts(path, "agents.") ? 1 : str_starts(path, "library.") ? 2 : -1;
	size_t n = strlen(name);

	for (int i = 0;; i++) {
		const char *end = part_end(path);

		if ((size_t)(end - path) == n && !memcmp(path, name, n) && i != free)
			return true;
		if (*end != '.')
			return false;
		path = end + 1;
	}
}

/* The path may be a whole line; the value is a text, or as a line shows it. */
static enum grant sort_of(const char *path, const char *value)
{
	if (*value == '"')
		value++;
	for (size_t i = 0; i < ARRAY_SIZE(sorts); i++)
		if ((!sorts[i].part || has_part(path, sorts[i].part)) && sorts[i].test(value))
			return sorts[i].sort;
	return GRANT_REST;
}

enum grant grant_of(const char *line)
{
	size_t n = grant_path(line);

	return n ? sort_of(line, line + n + 2) : GRANT_REST;
}

/*
 * The tree as lines
 */

static bool is_word(const char *text)
{
	return *text && !text[strspn(text, WORD)];
}

/* Safe without quotes beside other members or elements. */
static bool is_plain_inside(const char *text)
{
	return *text && !text[strcspn(text, " \"=,()[]{}")] && !strstr(text, ELLIPSIS) &&
		strcmp(text, "null") != 0;
}

/* Safe without quotes as the whole value of a line. */
static bool is_plain_alone(const char *text)
{
	size_t n = strlen(text);

	return n && !strchr(" \"([{", text[0]) && text[n - 1] != ' ' &&
		!strstr(text, ELLIPSIS) && strcmp(text, "null") != 0;
}

/* Safe without quotes as an element of a list, where "key=value" is an object. */
static bool is_plain_element(const char *text)
{
	return is_plain_alone(text) && text[strspn(text, WORD)] != '=';
}

/* The number of characters, and how many bytes are shown when the text is cut. */
static size_t measure(const char *text, size_t n, size_t *ret_keep)
{
	size_t chars = 0, keep = n, len;

	for (size_t i = 0; i < n; i += len, chars++) {
		len = utf8_length(text + i, n - i);
		len = len ? len : 1;
		if (keep == n && (text[i] == '\n' || chars == CUT))
			keep = i;
	}
	*ret_keep = keep;
	return chars;
}

static void add_text(struct str *out, const char *text, bool whole, text_test *is_plain)
{
	size_t n = strlen(text), keep, chars = measure(text, n, &keep);
	bool cut = !whole && (chars > LONGEST || strchr(text, '\n'));
	const char *head = cut ? mem_strndup(text, keep) : text;

	if (is_plain(head)) {
		str_add_visible(out, head);
	} else {
		str_addc(out, '"');
		for (const char *p = str_visible(head); *p; p++) {
			if (*p == '"')
				str_addc(out, '\\');
			str_addc(out, *p);
		}
		str_addc(out, '"');
	}
	if (cut)
		str_addf(out, " " ELLIPSIS " (%zu characters, sha256 %.*s)", chars, DIGEST,
			hash_hex(text, n));
}

static int compare_keys(const void *a, const void *b)
{
	const struct json_value *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

typedef VEC(const struct json_value *) members;

static members sorted(const struct json_value *object)
{
	members list = { 0 };

	for (const struct json_value *v = object->first; v; v = v->next)
		vec_push(&list, v);
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), compare_keys);
	return list;
}

static void add_inside(struct str *out, const struct json_value *v, bool whole);

static void add_members(struct str *out, const struct json_value *object, bool whole)
{
	members list = sorted(object);

	vec_each(m, &list) {
		if (m != list.v)
			str_addc(out, ' ');
		add_text(out, (*m)->key, whole, is_word);
		str_addc(out, '=');
		add_inside(out, *m, whole);
	}
}

static void add_scalar(struct str *out, const struct json_value *v, bool whole,
	text_test *is_plain)
{
	if (v->type == JSON_STRING)
		add_text(out, v->text, whole, is_plain);
	else if (v->type == JSON_NUMBER)
		str_add(out, str_visible(v->text));
	else
		str_add(out, v->type == JSON_NULL ? "null" : v->boolean ? "true" : "false");
}

/* A value of any type as a part of a line. */
static void add_inside(struct str *out, const struct json_value *v, bool whole)
{
	if (v->type == JSON_OBJECT) {
		str_addc(out, '{');
		add_members(out, v, whole);
		str_addc(out, '}');
	} else if (v->type == JSON_LIST) {
		str_addc(out, '[');
		for (const struct json_value *e = v->first; e; e = e->next) {
			if (e != v->first)
				str_add(out, ", ");
			add_inside(out, e, whole);
		}
		str_addc(out, ']');
	} else {
		add_scalar(out, v, whole, is_plain_inside);
	}
}

struct walk {
	struct str path, value; /* value: reused for each line */
	grant_lines out;
	size_t total; /* bytes of all lines; beyond GRANTS_MAX we stop */
};

static void add_value(struct str *out, const struct json_value *v, bool whole,
	text_test *is_plain)
{
	if (v->type == JSON_OBJECT && v->first)
		add_members(out, v, whole);
	else if (v->type == JSON_OBJECT || v->type == JSON_LIST)
		add_inside(out, v, whole);
	else
		add_scalar(out, v, whole, is_plain);
}

static void add_line(struct walk *w, const char *value)
{
	const char *line =
		w->path.len ? mem_printf("%s: %s", w->path.p, value) : mem_strdup(value);

	w->total += strlen(line) + 1;
	if (w->total <= GRANTS_MAX)
		vec_push(&w->out, line);
}

/* Write it whole first, to find out what it is about. */
static void add_leaf(struct walk *w, const struct json_value *v, text_test *is_plain)
{
	w->value.len = 0;
	add_value(&w->value, v, true, is_plain);
	if (sort_of(w->path.p, w->value.p) == GRANT_REST) {
		w->value.len = 0;
		add_value(&w->value, v, false, is_plain);
	}
	add_line(w, w->value.p);
}

static void walk_value(struct walk *w, const struct json_value *v)
{
	size_t here = w->path.len;
	members list = { 0 };

	if ((v->type == JSON_OBJECT || v->type == JSON_LIST) && !v->first) {
		add_line(w, "(none)");
		return;
	}
	if (v->type == JSON_LIST) {
		for (const struct json_value *e = v->first; e && w->total <= GRANTS_MAX;
			e = e->next)
			add_leaf(w, e, is_plain_element);
		return;
	}
	if (v->type != JSON_OBJECT) {
		add_leaf(w, v, is_plain_alone);
		return;
	}
	list = sorted(v);
	for (size_t i = 0; i < list.n && w->total <= GRANTS_MAX; i++) {
		if (here)
			str_addc(&w->path, '.');
		add_text(&w->path, list.v[i]->key, false, is_word);
		walk_value(w, list.v[i]);
		w->path.len = here;
		w->path.p[here] = '\0';
	}
}

bool grants_of(const struct json_value *tree, grant_lines *ret)
{
	struct walk w = { 0 };

	str_add(&w.path, "");
	walk_value(&w, tree);
	if (w.total > GRANTS_MAX)
		return false;
	*ret = w.out;
	return true;
}
