/*
 * eval/suite-reader.h - picking values out of a suite, with complaints
 */
#ifndef EVAL_SUITE_READER_H
#define EVAL_SUITE_READER_H

#include <stdbool.h>

#include "base/json-read.h"
#include "eval/suite.h"

struct suite_reader {
	struct suite *suite;
	const char *path; /* as it stands in front of complaints */
	suite_errors *errors;
	bool strict; /* carrel's own format: a key that nobody knows is an error */
};

void suite_bad(struct suite_reader *r, struct json_at at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A member that is a string; NULL, with a complaint if it is there and is none. */
const char *suite_text(struct suite_reader *r, const struct json_value *v, const char *key);

/* A member that is a list of strings, or one string. */
void suite_texts(struct suite_reader *r, const struct json_value *v, const char *key,
	text_vec *ret);

/* The member "files": paths, or in carrel's own format also { "from", "to" }. */
void suite_files(struct suite_reader *r, const struct json_value *v, file_vec *ret);

/* A path that stays below where it begins: "a/b", no "..". */
bool suite_path_is_safe(const char *path);

/* Complain about keys that are not in the list "a|b|c". Keys that begin with _ are comments. */
void suite_known(struct suite_reader *r, const struct json_value *v, const char *known);

#endif
