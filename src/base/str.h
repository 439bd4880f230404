/*
 * base/str.h - a growing string, and text made safe to show
 *
 * `p` is always NUL-terminated once anything was added. Memory comes from mem.h.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

struct str {
	char *p;
	size_t len, cap;
};

void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *bytes, size_t n);
void str_addc(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Text from outside as a person may see it: control characters, escape sequences
 * and bytes that are not UTF-8 become \n, \t, \xNN; a backslash becomes \\.
 * So no file name or argument can drive the terminal.
 */
void str_add_visible(struct str *s, const char *text);
const char *str_visible(const char *text);

/* The same, and quoted when needed so that a shell would read it back as one word. */
void str_add_word(struct str *s, const char *text);

/*
 * Length in bytes of the valid UTF-8 character at p (at most n bytes), or 0 when there is none.
 * Overlong forms, surrogates and > U+10FFFF are not valid.
 */
size_t utf8_length(const char *p, size_t n);

/*
 * The candidate nearest to word, or NULL when none is near enough to suggest. A candidate that
 * begins with word, if it has three letters, is nearer than any misspelling.
 */
const char *str_nearest(const char *word, const char *const *candidates, size_t n);

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* "90", "5m", "1h30m", "2d" → seconds; "512", "64K", "2G" → bytes. False: malformed. */
bool str_parse_duration(const char *s, unsigned long long *ret_seconds);
bool str_parse_size(const char *s, unsigned long long *ret_bytes);

#endif
