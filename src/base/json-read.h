/*
 * base/json-read.h - reading JSON with comments, and where everything stood
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
	const void *origin; /* what the caller of json_read() gave: which file this is from */
	bool boolean;
	double number;
	const char *text;         /* STRING: decoded; NUMBER: as written */
	struct json_value *first; /* LIST, OBJECT: what is in it, in order */
	struct json_value *next;  /* the neighbour in the list or object this is in */
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
 * Read all n bytes. A value that cannot be read ends it; of keys that stand twice every
 * one is reported. 0 and *ret, or -EINVAL with at least one error added.
 */
int json_read(const char *bytes, size_t n, const void *origin, const struct json_value **ret,
	json_errors *errors);

/*
 * The same for what base/json.h has written: a lone \udc80 to \udcff is a byte that is no
 * UTF-8, as a path may have. Not for what others write: in a manifest it would be a way around
 * the check that all of it is UTF-8.
 */
int json_read_ours(const char *bytes, size_t n, const struct json_value **ret,
	json_errors *errors);

/* The member of an object with that key, or NULL; also when v is NULL or no object. */
const struct json_value *json_member(const struct json_value *v, const char *key);

/* "a string", "an object": for messages. */
const char *json_type_name(enum json_type type);

#endif
