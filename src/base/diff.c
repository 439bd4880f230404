/*
 * base/diff.c - the greedy algorithm of E. Myers, "An O(ND) Difference Algorithm" (1986)
 *
 * The common beginning and end are skipped. Lines are compared by their hash first. If the
 * middle differs in more than MOST_EDITS lines, it is shown as replaced entirely, because
 * time and memory grow with the square of that number.
 */
#include "base/diff.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

enum { CONTEXT = 3, MOST_EDITS = 1000, LONGEST_LINE = 500 };

struct line {
	const char *p;
	size_t n;
	unsigned int hash;
};

struct text {
	struct line *v;
	size_t n;
	bool open; /* the last line has no newline */
};

/* A line of the result: ' ', '-' or '+', with its numbers in both texts. */
struct edit {
	char what;
	size_t old, new;
};
typedef VEC(struct edit) edits;

bool diff_is_text(const char *bytes, size_t n)
{
	for (size_t i = 0, more; i < n; i += more) {
		unsigned char c = (unsigned char)bytes[i];

		more = utf8_length(bytes + i, n - i);
		if (!more || (c < ' ' && !memchr("\t\n\r\f", c, 4)) || c == 0x7f)
			return false;
	}
	return true;
}

static unsigned int hash_line(const char *p, size_t n)
{
	unsigned int h = 2166136261U;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 16777619U;
	return h;
}

static struct text split_lines(const char *p, size_t n)
{
	VEC(struct line) lines = { 0 };
	const char *end = p ? p + n : p;
	struct text t = { .open = n && p[n - 1] != '\n' };

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((nl ? nl : end) - p);

		vec_push(&lines, ((struct line){ p, len, hash_line(p, len) }));
		p += len + (nl != NULL);
	}
	t.v = lines.v;
	t.n = lines.n;
	return t;
}

/* A last line without a newline differs from the same line with one. */
static bool same_line(const struct text *a, size_t i, const struct text *b, size_t j)
{
	const struct line *x = &a->v[i], *y = &b->v[j];

	return x->hash == y->hash && x->n == y->n && !memcmp(x->p, y->p, x->n) &&
		(a->open && i + 1 == a->n) == (b->open && j + 1 == b->n);
}

struct compared {
	const struct text *a, *b;
	size_t from, a_to, b_to; /* the middle: without the common beginning and end */
};

/* The furthest point on diagonal k with d edits; v is of d - 1 edits. */
static long reach(const struct compared *c, const long *v, long d, long k)
{
	long n = (long)(c->a_to - c->from), m = (long)(c->b_to - c->from), x;

	if (d == 0)
		x = 0;
	else if (k == -d || (k != d && v[k - 1] < v[k + 1]))
		x = v[k + 1];
	else
		x = v[k - 1] + 1;
	while (x < n && x - k < m &&
		same_line(c->a, c->from + (size_t)x, c->b, c->from + (size_t)(x - k)))
		x++;
	return x;
}

static void push_same(edits *out, size_t x, size_t y)
{
	vec_push(out, ((struct edit){ ' ', x, y }));
}

/* From the end back to the start, in reverse order. */
static void trace_back(const struct compared *c, long **rounds, long d, edits *out)
{
	long x = (long)(c->a_to - c->from), y = (long)(c->b_to - c->from);

	for (; d >= 0; d--) {
		const long *v = d ? rounds[d - 1] + d : NULL;
		long k = x - y, px = 0, py = 0;

		if (d) {
			long pk = k == -d || (k != d && v[k - 1] < v[k + 1]) ? k + 1 : k - 1;

			px = v[pk];
			py = px - pk;
		}
		while (x > px && y > py) {
			x--, y--;
			push_same(out, c->from + (size_t)x, c->from + (size_t)y);
		}
		if (d)
			vec_push(out,
				((struct edit){ x == px ? '+' : '-', c->from + (size_t)px,
					c->from + (size_t)py }));
		x = px;
		y = py;
	}
}

/* rounds[d] holds 2d+3 places, so that k-1 and k+1 are always there. */
static bool compare_middle(const struct compared *c, edits *out)
{
	long n = (long)(c->a_to - c->from), m = (long)(c->b_to - c->from);
	long **rounds = mem_alloc((MOST_EDITS + 1) * sizeof(*rounds));

	for (long d = 0; d <= MOST_EDITS; d++) {
		const long *before = d ? rounds[d - 1] + d : NULL;
		long *v;

		rounds[d] = mem_alloc((size_t)(2 * d + 3) * sizeof(long));
		v = rounds[d] + d + 1;
		for (long k = -d; k <= d; k += 2) {
			v[k] = reach(c, before, d, k);
			if (v[k] < n || v[k] - k < m)
				continue;
			trace_back(c, rounds, d, out);
			return true;
		}
	}
	return false;
}

static void replace_middle(const struct compared *c, edits *out)
{
	for (size_t i = c->b_to; i-- > c->from;)
		vec_push(out, ((struct edit){ '+', c->a_to, i }));
	for (size_t i = c->a_to; i-- > c->from;)
		vec_push(out, ((struct edit){ '-', i, c->from }));
}

static void compare_texts(const struct text *a, const struct text *b, edits *ret)
{
	struct compared c = { .a = a, .b = b, .a_to = a->n, .b_to = b->n };
	edits middle = { 0 };

	while (c.from < a->n && c.from < b->n && same_line(a, c.from, b, c.from))
		push_same(ret, c.from, c.from), c.from++;
	while (c.a_to > c.from && c.b_to > c.from && same_line(a, c.a_to - 1, b, c.b_to - 1))
		c.a_to--, c.b_to--;
	if (!compare_middle(&c, &middle)) {
		middle.n = 0;
		replace_middle(&c, &middle);
	}
	while (middle.n)
		vec_push(ret, middle.v[--middle.n]);
	for (size_t i = 0; c.a_to + i < a->n; i++)
		push_same(ret, c.a_to + i, c.b_to + i);
}

const long *diff_match(const char *old, size_t old_n, const char *new, size_t new_n)
{
	struct text a = split_lines(old, old_n), b = split_lines(new, new_n);
	long *match = mem_alloc((a.n + 1) * sizeof(*match));
	edits all = { 0 };

	for (size_t i = 0; i < a.n; i++)
		match[i] = -1;
	compare_texts(&a, &b, &all);
	vec_each(e, &all)
		if (e->what == ' ')
			match[e->old] = (long)e->new;
	return match;
}

/* ---- showing ---- */

/* A tab is printed as it is; other invisible characters are escaped. */
static void add_visible(struct str *out, const char *p, size_t n)
{
	for (const char *end = p + n; p < end;) {
		const char *tab = memchr(p, '\t', (size_t)(end - p));
		size_t len = (size_t)((tab ? tab : end) - p);

		str_add_visible(out, mem_strndup(p, len));
		if (tab)
			str_addc(out, '\t');
		p += len + (tab != NULL);
	}
}

static const char *colour_of(const struct diff_how *how, char what)
{
	if (!how->colour)
		return "";
	return what == '+'    ? "\033[32m"
		: what == '-' ? "\033[31m"
		: what == '@' ? "\033[36m"
			      : "";
}

static void add_line(struct str *out, char what, const struct text *t, size_t i,
	const struct diff_how *how)
{
	const struct line *l = &t->v[i];
	size_t n = how->exact || l->n < LONGEST_LINE ? l->n : LONGEST_LINE;
	const char *colour = colour_of(how, what);

	str_addf(out, "%s%s%c", how->indent ? how->indent : "", colour, what);
	if (how->exact)
		str_addn(out, l->p, n);
	else
		add_visible(out, l->p, n);
	if (n < l->n)
		str_addf(out, " ... (%zu bytes more)", l->n - n);
	str_add(out, *colour ? "\033[m\n" : "\n");
	if (t->open && i + 1 == t->n)
		str_addf(out, "%s\\ No newline at end of file\n",
			how->indent ? how->indent : "");
}

/* One hunk: edits [from, to). */
static void add_hunk(struct str *out, const edits *all, size_t from, size_t to,
	const struct text *a, const struct text *b, const struct diff_how *how)
{
	size_t olds = 0, news = 0, old = all->v[from].old, new = all->v[from].new;
	const char *colour = colour_of(how, '@');

	for (size_t i = from; i < to; i++) {
		olds += all->v[i].what != '+';
		news += all->v[i].what != '-';
	}
	str_addf(out, "%s%s@@ -%zu,%zu +%zu,%zu @@%s\n", how->indent ? how->indent : "", colour,
		olds ? old + 1 : old, olds, news ? new + 1 : new, news,
		*colour ? "\033[m" : "");
	for (size_t i = from; i < to; i++)
		if (all->v[i].what == '+')
			add_line(out, '+', b, all->v[i].new, how);
		else
			add_line(out, all->v[i].what, a, all->v[i].old, how);
}

void diff_add_how(struct str *out, const char *old, size_t old_n, const char *new, size_t new_n,
	const struct diff_how *how)
{
	struct text a = split_lines(old, old_n), b = split_lines(new, new_n);
	size_t from = 0, last;
	edits all = { 0 };

	compare_texts(&a, &b, &all);
	for (size_t i = 0; i < all.n; i = last) {
		while (i < all.n && all.v[i].what == ' ')
			i++;
		if (i == all.n)
			break;
		from = i > CONTEXT ? i - CONTEXT : 0;
		/* Go on to the next gap of more than twice the context. */
		for (last = i; i < all.n && i - last <= 2 * (size_t)CONTEXT; i++)
			if (all.v[i].what != ' ')
				last = i;
		last = last + 1 + CONTEXT < all.n ? last + 1 + CONTEXT : all.n;
		add_hunk(out, &all, from, last, &a, &b, how);
	}
}

void diff_add(struct str *out, const char *old, size_t old_n, const char *new, size_t new_n,
	const char *indent)
{
	diff_add_how(out, old, old_n, new, new_n, &(struct diff_how){ .indent = indent });
}

void diff_count(const char *old, size_t old_n, const char *new, size_t new_n, size_t *ret_added,
	size_t *ret_removed)
{
	struct text a = split_lines(old, old_n), b = split_lines(new, new_n);
	edits all = { 0 };

	*ret_added = *ret_removed = 0;
	compare_texts(&a, &b, &all);
	vec_each(edit, &all) {
		*ret_added += edit->what == '+';
		*ret_removed += edit->what == '-';
	}
}
