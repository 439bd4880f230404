/*
 * base/diff.h - two texts compared line by line, for a person
 *
 * The usual unified form with three lines of context. The texts may be hostile: each line is
 * made visible, and a very long one is cut.
 */
#ifndef BASE_DIFF_H
#define BASE_DIFF_H

#include <stdbool.h>
#include <stddef.h>

struct str;

/* Does it look like text: UTF-8 with no control characters but white space? */
bool diff_is_text(const char *bytes, size_t n);

/* NULL stands for an absent text. Each line of the output begins with `indent`. */
void diff_add(struct str *out, const char *old, size_t old_n, const char *new, size_t new_n,
	const char *indent);

struct diff_how {
	const char *indent; /* or NULL */
	bool exact;         /* no byte changed and no line cut: can be applied */
	bool colour;        /* as git colours it */
};
void diff_add_how(struct str *out, const char *old, size_t old_n, const char *new, size_t new_n,
	const struct diff_how *how);

/* How many lines were added and removed. */
void diff_count(const char *old, size_t old_n, const char *new, size_t new_n, size_t *ret_added,
	size_t *ret_removed);

/*
 * Map each line of `old` to the same line of `new`, or to -1 if `new` does not have it. A line
 * without a newline differs from the same line with one.
 */
const long *diff_match(const char *old, size_t old_n, const char *new, size_t new_n);

#endif
