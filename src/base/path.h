/*
 * base/path.h - paths as text; nothing here touches the file system
 */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>

/* "/a" + "b/c" → "/a/b/c"; an absolute second part wins. */
char *path_join(const char *dir, const char *rel);

/* Without ".", "..", doubled and trailing slashes, lexically. Absolute in, absolute out. */
char *path_clean(const char *path);

/* The directory a clean absolute path is in ("/" for "/x" and "/"), and its last part. */
char *path_parent(const char *path);
const char *path_base(const char *path);

/* Is path dir itself or below it? Both clean and absolute. */
bool path_within(const char *path, const char *dir);

/* What remains of path below dir, without a leading slash; "" for dir itself. */
const char *path_below(const char *path, const char *dir);

/* Sorts a directory before its contents, and neighbours by name. For qsort of char *. */
int path_compare(const char *a, const char *b);

/*
 * Patterns as in .gitignore: `*`, `?` and [sets] do not match a slash, `**` does. A pattern
 * without a slash is compared with the last part of the path, one with a slash with the whole
 * relative path. A trailing slash is ignored here.
 */
bool path_match(const char *pattern, const char *rel);
/*
 * Could one path match both? [sets] count as any character, so the answer may be a false yes.
 */
bool path_patterns_meet(const char *a, const char *b);
bool path_is_pattern(const char *text);

#endif
