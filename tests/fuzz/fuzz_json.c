/*
 * tests/fuzz/fuzz_json.c - whatever the bytes, what is written is JSON, and can be shown
 */
#include "fuzz.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>

static void check_quoted(const char *bytes, size_t size)
{
	struct str s = { 0 };

	json_add_quoted(&s, bytes, size);
	CHECK(s.p[s.len] == '\0');
	CHECK(valid_json(s.p, s.len));
	CHECK(s.p[0] == '"');
}

/* What is written of a text is read as that text. */
static void check_read(const char *text)
{
	struct str s = { 0 };
	const struct json_value *v;
	json_errors errors = { 0 };

	json_add_quoted(&s, text, strlen(text));
	CHECK(json_read_ours(s.p, s.len, &v, &errors) == 0);
	CHECK(v->type == JSON_STRING && !strcmp(v->text, text));
}

static void check_shown(const char *text)
{
	struct str word = { 0 };

	CHECK(valid_output(str_visible(text)));
	CHECK(!strchr(str_visible(text), '\n'));
	str_add_word(&word, text);
	CHECK(valid_output(word.p) && word.len > 0);
}

/* The bytes as orders: what to open, close and write. */
static void check_writer(const char *text, const uint8_t *data, size_t size)
{
	struct str s = { 0 };
	struct json j = { .out = &s, .indent = size & 1 };
	char open[64];
	int depth = 0;

	open[depth++] = '}';
	json_open(&j, NULL, '{');
	for (size_t i = 0; i < size && i < 200; i++) {
		const char *key = open[depth - 1] == '}' ? text : NULL;

		if (data[i] % 5 == 0 && depth < 60) {
			open[depth] = data[i] & 8 ? '}' : ']';
			json_open(&j, key, open[depth++] == '}' ? '{' : '[');
		} else if (data[i] % 5 == 1 && depth > 1) {
			json_close(&j, open[--depth]);
		} else if (data[i] % 5 == 2) {
			json_string(&j, key, data[i] & 16 ? NULL : text);
		} else if (data[i] % 5 == 3) {
			json_number(&j, key, (long long)data[i] * -7777777);
		} else {
			json_bool(&j, key, data[i] & 1);
		}
	}
	while (depth)
		json_close(&j, open[--depth]);
	CHECK(valid_json(s.p, s.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	check_quoted((const char *)data, size);
	check_read(text);
	check_shown(text);
	check_writer(text, data, size);
	free(text);
	memory_reset();
	return 0;
}
