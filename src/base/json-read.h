/*
 * base/json-read.h - read JSON with comments, and keep the position of every value
 *
 * Written by hand because a complaint about a manifest must say line and column of any
 * key or value, find a key that stands twice, and cost next to nothing at every start; no
 * library that can be linked into the launcher keeps positions. Beyond RFC 8259 it takes
 * line and block comments and a comma after the last element, and nothing else: no
 * single quotes, no bare keys, no NaN. What is refused: bytes that are not UTF-8, NUL (raw
 * or as \u0000: no path, argument or variable can hold one), lone surrogates, raw control
 * characters in strings, numbers beyond a double, nesting beyond JSON_DEPTH, anything after
 * the value. A byte order mark at the start is skipped.
 */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

enum { JSON_DEPTH = 32 };

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_LIST, JSON_OBJECT };

/* From 1; columns count characters, not bytes, and a tab is one. */
struct json_at {
	unsigned int line, column;
};

struct json_value {
	enum json_type type;
	struct json_at at;
	const void *origin; /* the caller's origin: which file this is from */
	bool boolean;
	double number;
	const char *text;         /* STRING: decoded; NUMBER: as written */
	struct json_value *first; /* LIST, OBJECT: the first member */
	struct json_value *next;  /* the next member of the same list or object */
	const char *key;          /* in an object */
	struct json_at key_at;
};

#define json_each(it, parent) \
	for (const struct json_value *it = (parent)->first; it; it = it->next)

struct json_error {
	struct json_at at;
	const char *text; /* 'expected a comma or "}"', safe to print */
};
typedef VEC(struct json_error) json_errors;

/*
 * Read all n bytes. Reading stops at a value that cannot be read; every duplicate key is
 * reported. 0 and *ret, or -EINVAL with at least one error added.
 */
int json_read(const char *bytes, size_t n, const void *origin, const struct json_value **ret,
	json_errors *errors);

/*
 * The same for output of base/json.h: a lone \udc80 to \udcff is a byte that is not UTF-8, as a
 * path may have. Not for input from others: a manifest could use it to evade the UTF-8 check.
 */
int json_read_ours(const char *bytes, size_t n, const struct json_value **ret,
	json_errors *errors);

/* The member of an object with that key, or NULL; v may be NULL or not an object. */
const struct json_value *json_member(const struct json_value *v, const char *key);

/* Write the value again, numbers as they were written. */
struct json;
void json_copy(struct json *j, const char *key, const struct json_value *v);

/* "a string", "an object": for messages. */
const char *json_type_name(enum json_type type);

#endif
