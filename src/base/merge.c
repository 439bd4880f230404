/*
 * base/merge.c - three-way merge by lines
 *
 * The base is compared with each version (base/diff.h). A line of the base that both versions
 * kept is a point where all three agree. Between two such points each version has a stretch of
 * its own. If only one of them differs from the base, the merge takes that one. If both differ
 * from the base and from each other, it is a conflict.
 */
#include "base/merge.h"
#include "base/diff.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

struct lines {
	VEC(const char *) start; /* of each line; one more: where the last ends */
	size_t n;
};

/* Lines [from, to). */
struct stretch {
	const struct lines *of;
	size_t from, to;
};

static struct lines split_lines(const struct merge_text *t)
{
	const char *p = t->p, *end = t->n ? t->p + t->n : t->p;
	struct lines lines = { 0 };

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		vec_push(&lines.start, p);
		p = nl ? nl + 1 : end;
	}
	lines.n = lines.start.n;
	vec_push(&lines.start, end);
	return lines;
}

static const char *bytes_of(const struct stretch *s, size_t *ret_n)
{
	const char *first = s->of->start.v[s->from];

	*ret_n = (size_t)(s->of->start.v[s->to] - first);
	return first;
}

static bool alike(const struct stretch *a, const struct stretch *b)
{
	size_t a_n, b_n;
	const char *x = bytes_of(a, &a_n), *y = bytes_of(b, &b_n);

	return a_n == b_n && (a_n == 0 || !memcmp(x, y, a_n));
}

static void take_stretch(struct str *out, const struct stretch *s)
{
	size_t n;
	const char *p = bytes_of(s, &n);

	if (n)
		str_addn(out, p, n);
}

/* Merge one stretch between two lines that all three have. */
static bool join(struct str *out, const struct stretch *base, const struct stretch *ours,
	const struct stretch *theirs)
{
	if (alike(ours, base) || alike(ours, theirs))
		take_stretch(out, theirs);
	else if (alike(theirs, base))
		take_stretch(out, ours);
	else
		return false;
	return true;
}

static bool join_all(struct str *out, const struct lines *base, const struct lines *ours,
	const struct lines *theirs, const long *our_line, const long *their_line)
{
	struct stretch b = { base, 0, 0 }, o = { ours, 0, 0 }, t = { theirs, 0, 0 };

	for (;;) {
		while (b.to < base->n && (our_line[b.to] < 0 || their_line[b.to] < 0))
			b.to++;
		o.to = b.to < base->n ? (size_t)our_line[b.to] : ours->n;
		t.to = b.to < base->n ? (size_t)their_line[b.to] : theirs->n;
		if (!join(out, &b, &o, &t))
			return false;
		if (b.to == base->n)
			return true;
		b.from = b.to++;
		o.from = o.to++;
		t.from = t.to++;
		take_stretch(out, &b);
		b.from++, o.from++, t.from++;
	}
}

bool merge_texts(const struct merge_text *base, const struct merge_text *ours,
	const struct merge_text *theirs, struct str *ret)
{
	const struct merge_text *all[] = { base, ours, theirs };
	struct lines b = split_lines(base), o = split_lines(ours), t = split_lines(theirs);

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i]->n && memchr(all[i]->p, '\0', all[i]->n))
			return false;
	str_addn(ret, "", 0);
	return join_all(ret, &b, &o, &t, diff_match(base->p, base->n, ours->p, ours->n),
		diff_match(base->p, base->n, theirs->p, theirs->n));
}
