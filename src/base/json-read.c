/*
 * base/json-read.c - read JSON with comments, and keep the position of every value
 *
 * Theory of operation. A first pass checks that the text is UTF-8 without NUL, so that nothing
 * later has to. A second pass reads the values, with one function for each kind. It recurses
 * only into lists and objects, at most JSON_DEPTH times. A column is the distance from the
 * start of the line, minus the bytes that continue a character. Those occur only in strings and
 * comments; elsewhere their first byte is an error. All decoded text goes into one block as
 * large as the input: no decoded value with its NUL is longer than its source with quotes, or
 * with the character that ends a number.
 *
 * The text may be hostile, and is read before the user was asked about it. So the time is
 * linear in its size, whatever it contains (see hash()), and quotations from it are made
 * visible.
 */
#include "base/json-read.h"
#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { QUOTED = 60, FEW = 8, EXACT_DIGITS = 15, WORD = 8 };

struct reader {
	const char *p, *end;
	unsigned int line;
	const char *line_start;
	size_t extra;                    /* bytes since then that continue a character */
	char *text;                      /* where the next decoded text goes */
	const struct json_value *inside; /* the innermost open list or object */
	unsigned int depth;
	bool ours; /* json_read_ours() */
	const void *origin;
	json_errors *errors;
	const struct json_value **table; /* a hash table of keys, for one object at a time */
	size_t room;
	uint64_t secret[2];
};

/* ---- where, and what is wrong ---- */

static struct json_at here(const struct reader *r)
{
	size_t column = (size_t)(r->p - r->line_start) - r->extra + 1;

	return (struct json_at){ .line = r->line, .column = (unsigned int)column };
}

/* Advance to p over text that may contain newlines and characters of several bytes. */
static void pass(struct reader *r, const char *p)
{
	for (; r->p < p; r->p++) {
		r->extra += (*r->p & 0xc0) == 0x80;
		if (*r->p == '\n') {
			r->line++;
			r->line_start = r->p + 1;
			r->extra = 0;
		}
	}
}

static bool fail_at(struct reader *r, struct json_at at, const char *text)
{
	struct json_error e = { .at = at, .text = text };

	vec_push(r->errors, e);
	return false;
}

static bool read_failed(struct reader *r, const char *text)
{
	return fail_at(r, here(r), text);
}

/* The beginning of n bytes, made visible. */
static const char *quoted(const char *p, size_t n, char quote)
{
	struct str s = { 0 };
	const char *end = p + n;

	str_addc(&s, quote);
	for (size_t len, shown = 0; p < end; p += len) {
		char c[5] = "";
		size_t before = s.len;

		len = utf8_length(p, (size_t)(end - p));
		len = len ? len : 1; /* an invalid byte */
		memcpy(c, p, len);
		str_add_visible(&s, c);
		shown += s.len - before == len ? 1 : s.len - before;
		if (shown >= QUOTED && p + len < end) {
			str_add(&s, "...");
			break;
		}
	}
	str_addc(&s, quote);
	return s.p;
}

/*
 * A character that is not ASCII may look like nothing (U+00A0) or like a quote (U+201C): name
 * it.
 */
static const char *code_point(const struct reader *r)
{
	size_t len = utf8_length(r->p, (size_t)(r->end - r->p));
	unsigned int c = (unsigned char)*r->p & (0x7fu >> len);

	for (size_t i = 1; i < len; i++)
		c = c << 6 | ((unsigned char)r->p[i] & 0x3f);
	return mem_printf("U+%04X", c);
}

static bool expected(struct reader *r, const char *what)
{
	bool object = r->inside && r->inside->type == JSON_OBJECT;

	if (r->p == r->end)
		return fail_at(r, r->inside->at,
			mem_printf("the text ends inside %s", object ? "an object" : "a list"));
	if (*r->p & 0x80)
		return read_failed(r, mem_printf("expected %s, not %s", what, code_point(r)));
	return read_failed(r, mem_printf("expected %s", what));
}

/* ---- between values ---- */

static bool take_char(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static bool skip_comment(struct reader *r)
{
	const char *body = r->p + 2, *stop;

	if (r->p[1] == '/') {
		stop = memchr(body, '\n', (size_t)(r->end - body));
		pass(r, stop ? stop : r->end);
		return true;
	}
	stop = memmem(body, (size_t)(r->end - body), "*/", 2);
	if (!stop)
		return read_failed(r, "the text ends inside a comment");
	pass(r, stop + 2);
	return true;
}

/* Skip white space and comments; false: a comment does not end. */
static bool skip_space(struct reader *r)
{
	while (r->p < r->end) {
		char c = *r->p;

		if (c == ' ' || c == '\t' || c == '\r')
			r->p++;
		else if (c == '\n')
			pass(r, r->p + 1);
		else if (c != '/' || r->end - r->p < 2 || (r->p[1] != '/' && r->p[1] != '*'))
			return true;
		else if (!skip_comment(r))
			return false;
	}
	return true;
}

/* ---- strings ---- */

static char *add_utf8(char *out, unsigned int c)
{
	static const unsigned char first[] = { 0, 0xc0, 0xe0, 0xf0 };
	int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	*out++ = (char)(first[more] | c >> 6 * more);
	while (more--)
		*out++ = (char)(0x80 | (c >> 6 * more & 0x3f));
	return out;
}

/* \uXXXX at p. */
static bool read_unit(const struct reader *r, const char *p, unsigned int *ret)
{
	unsigned int value = 0;

	if (r->end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return false;
	for (int i = 2; i < 6; i++) {
		char c = p[i], lower = (char)(c | 0x20);

		if (c >= '0' && c <= '9')
			value = value << 4 | (unsigned int)(c - '0');
		else if (lower >= 'a' && lower <= 'f')
			value = value << 4 | (unsigned int)(lower - 'a' + 10);
		else
			return false;
	}
	*ret = value;
	return true;
}

static bool read_unicode(struct reader *r, char **out)
{
	enum { HALF = 0xfc00, HIGH = 0xd800, LOW = 0xdc00, BYTE = 0xdc80, LAST = 0xdcff };
	unsigned int c, low;
	size_t len = 6;

	if (!read_unit(r, r->p, &c))
		return read_failed(r, "\\u without four hexadecimal digits");
	if (!c)
		return read_failed(r, "\\u0000, a NUL character");
	if (r->ours && c >= BYTE && c <= LAST) {
		*(*out)++ = (char)c;
		r->p += len;
		return true;
	}
	if ((c & HALF) == HIGH && read_unit(r, r->p + 6, &low) && (low & HALF) == LOW) {
		c = 0x10000 + ((c - HIGH) << 10) + (low - LOW);
		len = 12;
	} else if ((c & HALF) == HIGH || (c & HALF) == LOW) {
		return read_failed(r, "half of a surrogate pair");
	}
	*out = add_utf8(*out, c);
	r->p += len;
	return true;
}

/* At a backslash that is not the last character. */
static bool read_escape(struct reader *r, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *which;

	if (r->p[1] == 'u')
		return read_unicode(r, out);
	if ((unsigned char)r->p[1] < ' ') {
		r->p++; /* read_string() reports this one */
		return true;
	}
	which = strchr(from, r->p[1]);
	if (!which) {
		size_t len = utf8_length(r->p + 1, (size_t)(r->end - r->p) - 1);

		return read_failed(r,
			mem_printf("unknown escape, a backslash before %s",
				quoted(r->p + 1, len, '\'')));
	}
	*(*out)++ = to[which - from];
	r->p += 2;
	return true;
}

static char *copy_plain(struct reader *r, char *out)
{
	const char *p = r->p;
	size_t n;
	char any = 0;

	for (; p < r->end && (unsigned char)*p >= ' ' && *p != '"' && *p != '\\'; p++)
		any |= *p;
	n = (size_t)(p - r->p);
	memcpy(out, r->p, n);
	if (any & 0x80)
		pass(r, p);
	r->p = p;
	return out + n;
}

/*
 * For a string that does not end, the error is at its beginning, where the quote is unmatched.
 */
static bool read_string(struct reader *r, struct json_at at, const char **ret)
{
	char *out = r->text;

	r->p++;
	for (;;) {
		out = copy_plain(r, out);
		if (r->p == r->end || (*r->p == '\\' && r->end - r->p == 1))
			return fail_at(r, at, "the text ends inside a string");
		if (*r->p == '"')
			break;
		if (*r->p == '\n' || *r->p == '\r')
			return fail_at(r, at, "the line ends inside a string");
		if (*r->p != '\\')
			return read_failed(r, "an unescaped control character in a string");
		if (!read_escape(r, &out))
			return false;
	}
	r->p++;
	*out++ = '\0';
	*ret = r->text;
	r->text = out;
	return true;
}

/* ---- words and numbers ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What belongs together in an error message: 2G, True, 1.2.3, -Infinity. */
static bool is_word(char c)
{
	return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || is_digit(c) ||
		(c && strchr("_.+-$", c));
}

static size_t word_length(const struct reader *r, const char *start)
{
	const char *p = start;

	while (p < r->end && is_word(*p))
		p++;
	return (size_t)(p - start);
}

static bool no_value(struct reader *r, struct json_at at, const char *start)
{
	size_t n = word_length(r, start);

	if (*start & 0x80)
		return expected(r, "a value");
	if (*start == '\'')
		return fail_at(r, at, "a string that is not in double quotes");
	return fail_at(r, at,
		mem_printf("expected a value, not %s", quoted(start, n ? n : 1, '"')));
}

static bool read_word(struct reader *r, struct json_value *v)
{
	size_t n = word_length(r, r->p);

	if (n == 4 && !memcmp(r->p, "true", 4)) {
		v->type = JSON_BOOL;
		v->boolean = true;
	} else if (n == 5 && !memcmp(r->p, "false", 5)) {
		v->type = JSON_BOOL;
	} else if (n != 4 || memcmp(r->p, "null", 4) != 0) {
		return no_value(r, v->at, r->p);
	}
	r->p += n;
	return true;
}

static size_t take_digits(struct reader *r)
{
	const char *start = r->p;

	while (r->p < r->end && is_digit(*r->p))
		r->p++;
	return (size_t)(r->p - start);
}

/* NULL: not a number, or followed by something else. "": a number. Else what is wrong. */
static const char *take_number(struct reader *r)
{
	const char *digits;

	take_char(r, '-');
	digits = r->p;
	if (!take_digits(r))
		return take_char(r, '.') ? "a number without a digit before the point" : NULL;
	if (*digits == '0' && r->p - digits > 1)
		return "a number with a leading zero";
	if (take_char(r, '.') && !take_digits(r))
		return "a number without a digit after the point";
	if (take_char(r, 'e') || take_char(r, 'E')) {
		if (!take_char(r, '+'))
			take_char(r, '-');
		if (!take_digits(r))
			return "a number without a digit in its exponent";
	}
	return r->p < r->end && is_word(*r->p) ? NULL : "";
}

/* Nearly all numbers are short and whole, and strtod() is slow. */
static double number_value(const char *text, size_t n)
{
	bool minus = *text == '-';
	uint64_t whole = 0;

	for (size_t i = minus; i < n; i++) {
		if (!is_digit(text[i]) || n > EXACT_DIGITS)
			return strtod(text, NULL);
		whole = 10 * whole + (uint64_t)(text[i] - '0');
	}
	return minus ? -(double)whole : (double)whole;
}

static bool read_number(struct reader *r, struct json_value *v)
{
	const char *start = r->p, *wrong = take_number(r);
	size_t n = (size_t)(r->p - start);

	if (!wrong)
		return no_value(r, v->at, start);
	if (*wrong)
		return fail_at(r, v->at, wrong);
	memcpy(r->text, start, n);
	r->text[n] = '\0';
	v->type = JSON_NUMBER;
	v->text = r->text;
	v->number = number_value(v->text, n);
	if (isinf(v->number))
		return fail_at(r, v->at, "a number that is too large");
	r->text += n + 1;
	return true;
}

/* ---- keys that stand twice ---- */

static void report_twin(struct reader *r, const struct json_value *first,
	const struct json_value *again)
{
	fail_at(r, again->key_at,
		mem_printf("the key %s stands twice (first at %u:%u)",
			quoted(again->key, strlen(again->key), '"'), first->key_at.line,
			first->key_at.column));
}

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * Mixed with numbers that differ in every process: keys chosen to collide would otherwise make
 * a start take minutes.
 */
static uint64_t hash(const struct reader *r, const char *key)
{
	size_t n = strlen(key);
	uint64_t h = r->secret[0] ^ n, word = 0;

	for (; n >= WORD; n -= WORD, key += WORD) {
		memcpy(&word, key, WORD);
		h = fold(h ^ word, r->secret[1]);
	}
	word = 0;
	memcpy(&word, key, n);
	return fold(h ^ word, r->secret[1]);
}

static void find_twins_in_table(struct reader *r, const struct json_value *object, size_t n)
{
	size_t size = 4 * FEW;

	while (size < 2 * n)
		size *= 2;
	if (size > r->room) {
		r->table = mem_alloc(size * sizeof(*r->table));
		r->room = size;
	} else {
		memset(r->table, 0, size * sizeof(*r->table));
	}
	json_each(member, object) {
		size_t i = hash(r, member->key) & (size - 1);

		while (r->table[i] && strcmp(r->table[i]->key, member->key) != 0)
			i = (i + 1) & (size - 1);
		if (r->table[i])
			report_twin(r, r->table[i], member);
		else
			r->table[i] = member;
	}
}

static void find_twins(struct reader *r, const struct json_value *object, size_t n)
{
	if (n > FEW) {
		find_twins_in_table(r, object, n);
		return;
	}
	json_each(member, object) {
		const struct json_value *first = object->first;

		while (strcmp(first->key, member->key) != 0)
			first = first->next;
		if (first != member)
			report_twin(r, first, member);
	}
}

/* ---- values ---- */

static struct json_value *read_value(struct reader *r);

/* A key and its colon. */
static bool read_key(struct reader *r, struct json_at at, const char **ret)
{
	char c = r->p < r->end ? *r->p : '\0';

	if (c == '\'' || is_word(c))
		return read_failed(r, "a key that is not in double quotes");
	if (c != '"')
		return expected(r, "a key or \"}\"");
	return read_string(r, at, ret) && skip_space(r) &&
		(take_char(r, ':') || expected(r, "a colon after the key"));
}

static struct json_value *read_member(struct reader *r)
{
	struct json_at at = here(r);
	struct json_value *v;
	const char *key;

	if (!read_key(r, at, &key) || !skip_space(r))
		return NULL;
	v = read_value(r);
	if (v) {
		v->key = key;
		v->key_at = at;
	}
	return v;
}

/* Read the members of a list or object, up to its end; a trailing comma is accepted. */
static bool read_items(struct reader *r, struct json_value *parent, size_t *ret_n)
{
	bool object = parent->type == JSON_OBJECT;
	char close = object ? '}' : ']';
	struct json_value **tail = &parent->first;

	for (*ret_n = 0;; ++*ret_n) {
		if (!skip_space(r))
			return false;
		if (take_char(r, close))
			return true;
		*tail = object ? read_member(r) : read_value(r);
		if (!*tail)
			return false;
		tail = &(*tail)->next;
		if (!skip_space(r))
			return false;
		if (!take_char(r, ',') && (r->p == r->end || *r->p != close))
			return expected(r, object ? "a comma or \"}\"" : "a comma or \"]\"");
	}
}

static bool read_inside(struct reader *r, struct json_value *v)
{
	const struct json_value *outer = r->inside;
	size_t n = 0;
	bool ok;

	if (r->depth == JSON_DEPTH)
		return read_failed(r, mem_printf("nested more than %d deep", JSON_DEPTH));
	v->type = *r->p == '{' ? JSON_OBJECT : JSON_LIST;
	r->p++;
	r->depth++;
	r->inside = v;
	ok = read_items(r, v, &n);
	/* Also after a failure: report what was read so far, too. */
	if (v->type == JSON_OBJECT)
		find_twins(r, v, n);
	r->inside = outer;
	r->depth--;
	return ok;
}

static struct json_value *read_value(struct reader *r)
{
	struct json_value *v;
	bool ok;

	if (r->p == r->end) {
		expected(r, "a value");
		return NULL;
	}
	v = mem_alloc(sizeof(*v));
	v->at = here(r);
	v->origin = r->origin;
	if (*r->p == '"') {
		v->type = JSON_STRING;
		ok = read_string(r, v->at, &v->text);
	} else if (*r->p == '{' || *r->p == '[') {
		ok = read_inside(r, v);
	} else if (is_digit(*r->p) || *r->p == '-' || *r->p == '.') {
		ok = read_number(r, v);
	} else {
		ok = read_word(r, v);
	}
	return ok ? v : NULL;
}

/* ---- the whole ---- */

/* The first byte that is NUL or no part of a UTF-8 character, or NULL. */
static const char *find_bad_byte(const char *p, const char *end)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
	uint64_t word;
	size_t len;

	while (p < end) {
		if (end - p >= WORD) {
			memcpy(&word, p, WORD);
			if (!((word | (word - ones)) & tops)) {
				p += WORD; /* all of them are from 1 to 127 */
				continue;
			}
		}
		len = *p ? utf8_length(p, (size_t)(end - p)) : 0;
		if (!len)
			return p;
		p += len;
	}
	return NULL;
}

static const struct json_value *read_all(struct reader *r)
{
	const char *start = r->p, *bad = find_bad_byte(r->p, r->end);
	const struct json_value *v;

	if (bad) {
		pass(r, bad);
		read_failed(r, *bad ? "bytes that are not UTF-8" : "a NUL byte");
		return NULL;
	}
	if (!skip_space(r))
		return NULL;
	if (r->p == r->end) {
		bool comments = start < r->end && memchr(start, '/', (size_t)(r->end - start));

		fail_at(r, (struct json_at){ 1, 1 },
			comments ? "nothing but comments" : "nothing but white space");
		return NULL;
	}
	v = read_value(r);
	if (v && skip_space(r) && r->p < r->end) {
		const char *what = *r->p & 0x80 ? code_point(r) : quoted(r->p, 1, '\'');

		read_failed(r, mem_printf("unexpected %s after the value", what));
	}
	return v;
}

static int compare_errors(const void *a, const void *b)
{
	const struct json_error *x = a, *y = b;

	if (x->at.line != y->at.line)
		return x->at.line < y->at.line ? -1 : 1;
	return (x->at.column > y->at.column) - (x->at.column < y->at.column);
}

static int read_bytes(const char *bytes, size_t n, const void *origin, bool ours,
	const struct json_value **ret, json_errors *errors)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t skip = n >= 3 && !memcmp(bytes, mark, 3) ? 3 : 0, before = errors->n;
	struct reader r = {
		.p = bytes + skip,
		.end = bytes + n,
		.line = 1,
		.line_start = bytes + skip,
		.text = mem_alloc(n + 1),
		.ours = ours,
		.origin = origin,
		.errors = errors,
	};
	const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes */
	const struct json_value *v;

	if (random)
		memcpy(r.secret, random, sizeof(r.secret));
	r.secret[1] |= 1; /* the multiplier is never 0 */
	v = read_all(&r);
	if (errors->n == before) {
		*ret = v;
		return 0;
	}
	/* A duplicate key is found when its object ends, after errors inside the object. */
	qsort(errors->v + before, errors->n - before, sizeof(*errors->v), compare_errors);
	return -EINVAL;
}

int json_read(const char *bytes, size_t n, const void *origin, const struct json_value **ret,
	json_errors *errors)
{
	return read_bytes(bytes, n, origin, false, ret, errors);
}

int json_read_ours(const char *bytes, size_t n, const struct json_value **ret,
	json_errors *errors)
{
	return read_bytes(bytes, n, NULL, true, ret, errors);
}
