/*
 * tests/fuzz/fuzz_git_merge.c - what a box left in its copy of git's configuration
 *
 * NUL parts the input into what the box began with, what it left, and what the host has now; a
 * missing one is the same as the first. The result is read again. A setting that the host had
 * not must be one that git-allow.h lets out, with a value that it takes for good, or one of a
 * branch that was renamed; and a setting that the host has no more must be one that a box may
 * change.
 */
#include "fuzz.h"
#include "git/git-allow.h"
#include "git/git-config.h"
#include "git/git-merge.h"
#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>

typedef VEC(struct git_setting) settings;

static void add(void *ctx, const struct git_setting *s)
{
	settings *all = ctx;

	vec_push(all, *s);
}

/* A key alone is written as true. */
static const char *value_of(const struct git_setting *s)
{
	return s->value ? s->value : "true";
}

static bool same(const struct git_setting *a, const struct git_setting *b)
{
	return !strcmp(a->name, b->name) && !strcmp(value_of(a), value_of(b));
}

static bool has(const settings *all, const struct git_setting *s)
{
	vec_each(one, all)
		if (same(one, s))
			return true;
	return false;
}

/* How often a setting of this name stands there. */
static size_t count(const settings *all, const char *name)
{
	size_t n = 0;

	vec_each(one, all)
		n += !strcmp(one->name, name);
	return n;
}

/* `git branch -m` takes along what other programs noted about a branch; -d removes it. */
static bool is_of_branch(const struct git_setting *s)
{
	return s->subsection && !strcmp(s->section, "branch");
}

static bool some_branch_had(const settings *base, const struct git_setting *s)
{
	vec_each(one, base) {
		struct git_setting moved = *one;

		moved.name = s->name;
		if (is_of_branch(one) && !strcmp(one->key, s->key) && same(&moved, s))
			return true;
	}
	return false;
}

static bool is_good(const settings *base, const struct git_setting *s)
{
	const struct git_allow *allow = git_allow_out(s);

	if (allow->good)
		return allow->good(value_of(s));
	return is_of_branch(s) && some_branch_had(base, s);
}

static settings read_all(const struct git_text *text)
{
	settings all = { 0 };

	CHECK(git_config_parse(text->p, text->n, add, &all));
	return all;
}

static void check_result(const struct git_text *base, const struct git_text *now,
	const struct git_merge *m)
{
	const settings first = read_all(base), before = read_all(now);
	const settings after = read_all(&m->text);

	CHECK(m->taken > 0);
	vec_each(s, &after)
		CHECK(has(&before, s) || is_good(&first, s));
	vec_each(s, &before)
		if (count(&after, s->name) < count(&before, s->name) || !has(&after, s))
			CHECK(git_allow_out(s)->good || is_of_branch(s));
}

/* A copy of its own size, so that a byte too many is noticed. */
static struct git_text part(const uint8_t **data, size_t *size)
{
	size_t n = *size ? strnlen((const char *)*data, *size) : 0;
	char *copy = malloc(n + !n);

	memcpy(copy, n ? (const char *)*data : "", n);
	*data += n;
	*size -= n;
	if (*size) {
		++*data;
		--*size;
	}
	return (struct git_text){ copy, n };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct git_text base = part(&data, &size), box = part(&data, &size);
	struct git_text rest = part(&data, &size), *now = rest.n ? &rest : &base;
	struct git_merge m = { 0 };
	struct fault f = { 0 };
	int rc = git_merge(&base, &box, now, &m, &f);

	CHECK(rc == 0 || rc == -EBADMSG || rc == -E2BIG || rc == -EINVAL);
	if (rc == 0 && m.text.p)
		check_result(&base, now, &m);
	else if (rc < 0)
		CHECK(f.text[0]);
	free((void *)base.p);
	free((void *)box.p);
	free((void *)rest.p);
	memory_reset();
	return 0;
}
