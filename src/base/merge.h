/*
 * base/merge.h - merge two changed versions of a text, given their common base
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
 * Add the merged text to *ret. False: both changed the same or neighbouring lines in different
 * ways, or one of the three contains a NUL and so is not text. The contents of *ret are then
 * undefined.
 */
bool merge_texts(const struct merge_text *base, const struct merge_text *ours,
	const struct merge_text *theirs, struct str *ret);

#endif
