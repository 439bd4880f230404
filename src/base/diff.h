/*
 * base/diff.h - two texts compared line by line, for a person
 *
 * The usual unified form with three lines of context. What is compared may be hostile: each
 * line is made visible, and cut where it is endless.
 */
#ifndef BASE_DIFF_H
#define BASE_DIFF_H

#include <stdbool.h>
#include <stddef.h>

struct str;

/* Does it look like text: UTF-8 with no control characters but white space? */
bool diff_is_text(const char *bytes, size_t n);

/* NULL is no text at all. Each line of the output begins with `indent`. */
void diff_add(struct str *out, const char *old, size_t old_n, const char *new, size_t new_n,
	const char *indent);

#endif
