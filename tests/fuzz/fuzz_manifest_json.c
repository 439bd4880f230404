/*
 * tests/fuzz/fuzz_manifest_json.c - whatever the bytes, what is read of them is true
 *
 * Every position is that of what it is said to be of; texts are UTF-8; no key stands twice;
 * reading again gives the same, and so does reading what the tree is when written plainly.
 */
#include "fuzz.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

struct input {
	const char *bytes;
	size_t n;
};

static bool begins_character(char c)
{
	return (c & 0xc0) != 0x80;
}

/* The offset of a position, found by walking there; it must be in the text or at its end. */
static size_t offset(const struct input *in, struct json_at at)
{
	size_t i = in->n >= 3 && !memcmp(in->bytes, "\xef\xbb\xbf", 3) ? 3 : 0;

	CHECK(at.line > 0 && at.column > 0);
	for (unsigned int line = 1; line < at.line; line++) {
		const char *end = memchr(in->bytes + i, '\n', in->n - i);

		CHECK(end);
		i = (size_t)(end - in->bytes) + 1;
	}
	for (unsigned int column = 1; column < at.column; column++) {
		CHECK(i < in->n && in->bytes[i] != '\n');
		do
			i++;
		while (i < in->n && !begins_character(in->bytes[i]));
	}
	return i;
}

static void check_text(const char *text)
{
	size_t n = strlen(text), len;

	for (size_t i = 0; i < n; i += len) {
		len = utf8_length(text + i, n - i);
		CHECK(len);
	}
}

/* A value stands where its first character is, after its key, and that after its neighbour. */
static size_t check_value(const struct input *in, const struct json_value *v, size_t after)
{
	static const char *const first[] = {
		[JSON_NULL] = "n",
		[JSON_BOOL] = "tf",
		[JSON_NUMBER] = "-0123456789",
		[JSON_STRING] = "\"",
		[JSON_LIST] = "[",
		[JSON_OBJECT] = "{",
	};
	size_t i = offset(in, v->at);

	if (v->key) {
		size_t k = offset(in, v->key_at);

		CHECK(k >= after && k < i && in->bytes[k] == '"');
		check_text(v->key);
	}
	CHECK(i >= after && i < in->n);
	CHECK(v->origin == in && strchr(first[v->type], in->bytes[i]));
	CHECK((v->type == JSON_STRING || v->type == JSON_NUMBER) == !!v->text);
	if (v->type == JSON_NUMBER)
		CHECK(!memcmp(v->text, in->bytes + i, strlen(v->text)));
	if (v->type == JSON_NUMBER)
		CHECK(v->number == strtod(v->text, NULL));
	if (v->text)
		check_text(v->text);
	return i;
}

static size_t check_tree(const struct input *in, const struct json_value *v, size_t after,
	int depth)
{
	bool object = v->type == JSON_OBJECT;

	CHECK(depth <= JSON_DEPTH ||
		(v->type != JSON_LIST && !object && depth == JSON_DEPTH + 1));
	after = check_value(in, v, after) + 1;
	CHECK(!v->first || v->type == JSON_LIST || object);
	json_each(i, v) {
		CHECK(!!i->key == object);
		CHECK(!object || json_member(v, i->key) == i);
		after = check_tree(in, i, after, depth + 1);
	}
	return after;
}

static void check_same(const struct json_value *a, const struct json_value *b, bool places)
{
	CHECK(a->type == b->type && a->boolean == b->boolean && a->number == b->number);
	CHECK(!a->text == !b->text && (!a->text || !strcmp(a->text, b->text)));
	CHECK(!a->key == !b->key && (!a->key || !strcmp(a->key, b->key)));
	CHECK(!places || !memcmp(&a->at, &b->at, sizeof(a->at)));
	CHECK(!places || !memcmp(&a->key_at, &b->key_at, sizeof(a->at)));
	a = a->first;
	b = b->first;
	for (; a && b; a = a->next, b = b->next)
		check_same(a, b, places);
	CHECK(!a && !b);
}

static void write_tree(struct str *s, const struct json_value *v)
{
	if (v->key) {
		json_add_quoted(s, v->key, strlen(v->key));
		str_addc(s, ':');
	}
	if (v->type == JSON_STRING) {
		json_add_quoted(s, v->text, strlen(v->text));
	} else if (v->type == JSON_NUMBER) {
		str_add(s, v->text);
	} else if (v->type == JSON_BOOL || v->type == JSON_NULL) {
		str_add(s, v->type == JSON_NULL ? "null" : v->boolean ? "true" : "false");
	} else {
		str_addc(s, v->type == JSON_LIST ? '[' : '{');
		json_each(i, v) {
			write_tree(s, i);
			if (i->next)
				str_addc(s, ',');
		}
		str_addc(s, v->type == JSON_LIST ? ']' : '}');
	}
}

static void check_errors(const struct input *in, const json_errors *errors)
{
	size_t before = 0;

	CHECK(errors->n > 0);
	vec_each(e, errors) {
		size_t i = offset(in, e->at);

		CHECK(i <= in->n && (e == errors->v || i > before));
		before = i;
		CHECK(valid_output(e->text) && !strchr(e->text, '\n'));
		CHECK(*e->text && strlen(e->text) < 350);
	}
}

/* What is JSON is read, but for what base/json-read.h names; valid_json() takes 01, too. */
static void check_refusal(const struct input *in, const char *text)
{
	static const char *const own[] = { "a number ", "expected a value, not \"",
		"half of a surrogate pair", "\\u0000,", "nested more than 32 deep",
		"the key " };
	bool refused_on_purpose = false;

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		refused_on_purpose |= str_starts(text, own[i]);
	CHECK(refused_on_purpose || !valid_json(in->bytes, in->n));
}

static void check_written(const struct json_value *v)
{
	const struct json_value *again = NULL;
	json_errors errors = { 0 };
	struct str s = { 0 };

	write_tree(&s, v);
	CHECK(json_read(s.p, s.len, NULL, &again, &errors) == 0);
	check_same(v, again, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .bytes = (const char *)data, .n = size };
	const struct json_value *v = NULL, *again = NULL;
	json_errors errors = { 0 }, errors_again = { 0 };
	int err = json_read(in.bytes, in.n, &in, &v, &errors);

	CHECK(json_read(in.bytes, in.n, &in, &again, &errors_again) == err);
	CHECK(errors.n == errors_again.n);
	for (size_t i = 0; i < errors.n; i++)
		CHECK(!strcmp(errors.v[i].text, errors_again.v[i].text));
	if (err) {
		CHECK(err == -EINVAL && !v && !again);
		CHECK(!memchr(data, 0, size) || errors.n == 1);
		check_errors(&in, &errors);
		check_refusal(&in, errors.v[0].text);
	} else {
		CHECK(v && again && errors.n == 0 && !v->key && !v->next);
		check_tree(&in, v, 0, 1);
		check_same(v, again, true);
		check_written(v);
	}
	memory_reset();
	return 0;
}
