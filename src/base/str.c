#include "base/str.h"
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve(struct str *s, size_t more)
{
	size_t cap = s->cap ? s->cap : 64;

	while (cap < s->len + more + 1)
		cap *= 2;
	if (cap == s->cap)
		return;
	s->p = mem_grow(s->p, s->p ? s->len + 1 : 0, cap);
	s->cap = cap;
}

void str_addn(struct str *s, const char *bytes, size_t n)
{
	reserve(s, n);
	if (n)
		memcpy(s->p + s->len, bytes, n);
	s->len += n;
	s->p[s->len] = '\0';
}

void str_add(struct str *s, const char *text)
{
	str_addn(s, text, strlen(text));
}

void str_addc(struct str *s, char c)
{
	reserve(s, 1);
	s->p[s->len++] = c;
	s->p[s->len] = '\0';
}

void str_addf(struct str *s, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(s->p ? s->p + s->len : NULL, s->cap - s->len, fmt, ap);
	va_end(ap);
	if (n > 0 && s->len + (size_t)n >= s->cap) {
		reserve(s, (size_t)n);
		vsnprintf(s->p + s->len, (size_t)n + 1, fmt, again);
	}
	s->len += n > 0 ? (size_t)n : 0;
	va_end(again);
}

size_t utf8_length(const char *p, size_t n)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t len;
	unsigned int c, least;

	if (!n)
		return 0;
	if (u[0] < 0x80)
		return 1;
	if (u[0] >= 0xc2 && u[0] < 0xe0)
		len = 2, c = u[0] & 0x1f, least = 0x80;
	else if (u[0] >= 0xe0 && u[0] < 0xf0)
		len = 3, c = u[0] & 0x0f, least = 0x800;
	else if (u[0] >= 0xf0 && u[0] < 0xf5)
		len = 4, c = u[0] & 0x07, least = 0x10000;
	else
		return 0;
	if (len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return len;
}

/*
 * C1 controls (U+0080-U+009F) drive some terminals just as ESC [ does. Marks that change the
 * writing direction make a name look like another.
 */
static bool is_deceptive(const char *p, size_t len)
{
	static const char *const marks[] = { "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f",
		"\xe2\x80\xaa", "\xe2\x80\xab", "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae",
		"\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9" };

	if (len == 2 && (unsigned char)p[0] == 0xc2 && (unsigned char)p[1] < 0xa0)
		return true;
	for (size_t i = 0; len > 1 && i < ARRAY_SIZE(marks); i++)
		if (strlen(marks[i]) == len && !memcmp(marks[i], p, len))
			return true;
	return false;
}

void str_add_visible(struct str *s, const char *text)
{
	size_t n = strlen(text), len;

	for (size_t i = 0; i < n; i += len) {
		unsigned char c = (unsigned char)text[i];

		len = utf8_length(text + i, n - i);
		if (c == '\n' || c == '\t' || c == '\\') {
			str_addc(s, '\\');
			str_addc(s, c == '\n' ? 'n' : c == '\t' ? 't' : '\\');
		} else if (len == 0 || c < 0x20 || c == 0x7f || is_deceptive(text + i, len)) {
			len = len ? len : 1;
			for (size_t k = 0; k < len; k++)
				str_addf(s, "\\x%02x", (unsigned char)text[i + k]);
		} else {
			str_addn(s, text + i, len);
		}
	}
	str_addn(s, "", 0);
}

const char *str_visible(const char *text)
{
	struct str s = { 0 };

	str_add_visible(&s, text);
	return s.p;
}

void str_add_word(struct str *s, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./:=@%+,";
	const char *seen;

	if (*text && strspn(text, plain) == strlen(text)) {
		str_add(s, text);
		return;
	}
	seen = str_visible(text);
	if (strcmp(seen, text) != 0) {
		str_add(s, "$'");
		for (; *seen; seen++) {
			if (*seen == '\'')
				str_addc(s, '\\');
			str_addc(s, *seen);
		}
		str_addc(s, '\'');
		return;
	}
	str_addc(s, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			str_add(s, "'\\''");
		else
			str_addc(s, *text);
	}
	str_addc(s, '\'');
}

/* Edit distance where a swap of neighbours counts once; words longer than 40 never match. */
static size_t distance(const char *a, const char *b)
{
	size_t d[3][42], n = strlen(a), m = strlen(b);

	if (n > 40 || m > 40)
		return 99;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *now = d[i % 3], *up = d[(i + 2) % 3], *up2 = d[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);

			if (up[j] + 1 < best)
				best = up[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				up2[j - 2] + 1 < best)
				best = up2[j - 2] + 1;
			now[j] = best;
		}
	}
	return d[n % 3][m];
}

/* The shortest candidate that begins with word; NULL: none, or word is too short to tell. */
static const char *completion(const char *word, const char *const *candidates, size_t n)
{
	const char *best = NULL;

	if (strlen(word) < 3)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (str_starts(candidates[i], word) &&
			(!best || strlen(candidates[i]) < strlen(best)))
			best = candidates[i];
	return best;
}

const char *str_nearest(const char *word, const char *const *candidates, size_t n)
{
	const char *best = completion(word, candidates, n);
	size_t limit = strlen(word) / 3 + 1, least = limit + 1;

	if (best)
		return best;
	if (limit > 14)
		return NULL; /* too long for distance() */
	for (size_t i = 0; i < n; i++) {
		size_t d = distance(word, candidates[i]);

		/* Half of a short word: 'make' is no misspelling of 'race'. */
		if (d * 2 >= strlen(word) && d > 1 && word[0] != candidates[i][0])
			continue;
		if (d < least) {
			least = d;
			best = candidates[i];
		}
	}
	return best;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && !strcmp(s + n - m, suffix);
}

static bool parse_number(const char **s, unsigned long long *ret)
{
	char *end;

	if (**s < '0' || **s > '9')
		return false;
	errno = 0;
	*ret = strtoull(*s, &end, 10);
	*s = end;
	return errno == 0;
}

bool str_parse_duration(const char *s, unsigned long long *ret_seconds)
{
	unsigned long long total = 0, n, unit;

	if (!*s)
		return false;
	while (*s) {
		if (!parse_number(&s, &n))
			return false;
		switch (*s) {
		case '\0':
		case 's':
			unit = 1;
			break;
		case 'm':
			unit = 60;
			break;
		case 'h':
			unit = 3600;
			break;
		case 'd':
			unit = 86400;
			break;
		default:
			return false;
		}
		if (*s)
			s++;
		if (__builtin_mul_overflow(n, unit, &n) ||
			__builtin_add_overflow(total, n, &total))
			return false;
	}
	*ret_seconds = total;
	return true;
}

bool str_parse_size(const char *s, unsigned long long *ret_bytes)
{
	static const char units[] = "KMGT";
	unsigned long long n;
	const char *u;

	if (!parse_number(&s, &n))
		return false;
	u = *s ? strchr(units, *s) : NULL;
	if (*s && (!u || s[1]))
		return false;
	for (ptrdiff_t i = u ? u - units + 1 : 0; i > 0; i--)
		if (__builtin_mul_overflow(n, 1024ULL, &n))
			return false;
	*ret_bytes = n;
	return true;
}
