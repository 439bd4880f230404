/*
 * base/merge.h - two changed versions of a text and what both began as, made into one
 */
#ifndef BASE_MERGE_H
#define BASE_MERGE_H

#include <stdbool.h>
#include <stddef.h>

struct str;

struct merge_text {
	const char *p;
	size_t n;
};

/*
 * Add the merged text to *ret. False: both changed the same lines, or lines next to each
 * other, in different ways; or one of the three is no text, as it has a NUL. *ret is then
 * worth nothing.
 */
bool merge_texts(const struct merge_text *base, const struct merge_text *ours,
	const struct merge_text *theirs, struct str *ret);

#endif
