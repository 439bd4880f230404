/*
 * base/json.h - writing JSON
 *
 * A tiny writer instead of a library because file names need not be UTF-8 and
 * must survive: a byte that is not UTF-8 is written as the lone surrogate \udcNN,
 * which Python's json + os.fsencode turn back into that byte. Output is
 * deterministic, so it can be hashed.
 *
 *	struct json j = { .out = &text, .indent = true };
 *	json_open(&j, NULL, '{');
 *	json_string(&j, "name", name);
 *	json_open(&j, "list", '[');
 *	json_number(&j, NULL, 1);
 *	json_close(&j, ']');
 *	json_close(&j, '}');
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>

struct str;

struct json {
	struct str *out;
	bool indent; /* on several indented lines, for people; else on one line */
	int depth;
	bool more; /* a value was written at this level: write a comma first */
};

/* key is NULL inside a list and at the top. */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_string(struct json *j, const char *key, const char *value); /* NULL → null */
void json_number(struct json *j, const char *key, long long value);
void json_count(struct json *j, const char *key, unsigned long long value);
void json_real(struct json *j, const char *key, double value);     /* not finite → null */
void json_raw(struct json *j, const char *key, const char *value); /* JSON already */
void json_bool(struct json *j, const char *key, bool value);

/* The quoted form alone, for writers that do their own punctuation. */
void json_add_quoted(struct str *out, const char *bytes, unsigned long n);

#endif
