/*
 * tests/fuzz/valid.c - judges of output, written without a look at the writers
 */
#include "fuzz.h"

#include <string.h>

struct reader {
	const unsigned char *p, *end;
};

static void skip_space(struct reader *r)
{
	while (r->p < r->end && strchr(" \n\t\r", *r->p) && *r->p)
		r->p++;
}

static bool take(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != (unsigned char)c)
		return false;
	r->p++;
	return true;
}

static bool take_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n))
		return false;
	r->p += n;
	return true;
}

/* The bytes after the first of a UTF-8 character, by the table of the Unicode standard. */
static bool take_utf8(struct reader *r)
{
	static const struct {
		unsigned char first_low, first_high, second_low, second_high, more;
	} rows[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 0 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 1 },
		{ 0xe1, 0xec, 0x80, 0xbf, 1 },
		{ 0xed, 0xed, 0x80, 0x9f, 1 },
		{ 0xee, 0xef, 0x80, 0xbf, 1 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 2 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 2 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 2 },
	};
	unsigned char first = *r->p++;

	if (first < 0x80)
		return true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (first < rows[i].first_low || first > rows[i].first_high)
			continue;
		if (r->end - r->p < 1 + rows[i].more || r->p[0] < rows[i].second_low ||
			r->p[0] > rows[i].second_high)
			return false;
		for (int k = 1; k <= rows[i].more; k++)
			if ((r->p[k] & 0xc0) != 0x80)
				return false;
		r->p += 1 + rows[i].more;
		return true;
	}
	return false;
}

static bool take_escape(struct reader *r)
{
	if (r->p == r->end)
		return false;
	if (*r->p != 'u')
		return *r->p && strchr("\"\\/bfnrt", *r->p++);
	r->p++;
	for (int i = 0; i < 4; i++, r->p++)
		if (r->p == r->end || !*r->p || !strchr("0123456789abcdefABCDEF", *r->p))
			return false;
	return true;
}

static bool take_string(struct reader *r)
{
	if (!take(r, '"'))
		return false;
	while (r->p < r->end) {
		if (take(r, '"'))
			return true;
		if (*r->p < 0x20 || *r->p == 0x7f)
			return false;
		if (take(r, '\\') ? !take_escape(r) : !take_utf8(r))
			return false;
	}
	return false;
}

static bool take_number(struct reader *r)
{
	const unsigned char *start = r->p;

	take(r, '-');
	while (r->p < r->end && *r->p && strchr("0123456789.", *r->p))
		r->p++;
	return r->p > start && r->p[-1] >= '0' && r->p[-1] <= '9';
}

static bool take_value(struct reader *r, int depth);

static bool take_members(struct reader *r, char end, int depth)
{
	skip_space(r);
	if (take(r, end))
		return true;
	do {
		skip_space(r);
		if (end == '}') {
			if (!take_string(r))
				return false;
			skip_space(r);
			if (!take(r, ':'))
				return false;
		}
		if (!take_value(r, depth))
			return false;
		skip_space(r);
	} while (take(r, ','));
	return take(r, end);
}

static bool take_value(struct reader *r, int depth)
{
	if (depth > 100)
		return false;
	skip_space(r);
	if (take(r, '{'))
		return take_members(r, '}', depth + 1);
	if (take(r, '['))
		return take_members(r, ']', depth + 1);
	if (r->p < r->end && *r->p == '"')
		return take_string(r);
	return take_word(r, "true") || take_word(r, "false") || take_word(r, "null") ||
		take_number(r);
}

bool valid_json(const char *text, size_t n)
{
	struct reader r = { .p = (const unsigned char *)text };

	r.end = r.p + n;
	if (!take_value(&r, 0))
		return false;
	skip_space(&r);
	return r.p == r.end;
}

bool valid_output(const char *text)
{
	struct reader r = { .p = (const unsigned char *)text };

	r.end = r.p + strlen(text);
	while (r.p < r.end) {
		const unsigned char *at = r.p;

		if (!take_utf8(&r) || (*at < 0x20 && *at != '\n') || *at == 0x7f)
			return false;
		if (at[0] == 0xc2 && at[1] < 0xa0)
			return false;
	}
	return true;
}
