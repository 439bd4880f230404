/*
 * tests/fuzz/fuzz_suite.c - whatever a suite says, it is refused in words or read
 *
 * Every problem is one line that can be printed, with its place in front. A suite without
 * problems has at least one row; each case has an id and a safe name that is unique, begins
 * with no dot and holds no slash. What is written of it is read back as the same.
 */
#include "fuzz.h"
#include "base/str.h"
#include "eval/suite.h"

#include <string.h>

static void check_names(const struct suite *s)
{
	vec_each(c, &s->cases) {
		CHECK(c->id && *c->id && c->prompt && *c->prompt);
		CHECK(*c->safe && *c->safe != '.' && !strchr(c->safe, '/'));
		vec_each(other, &s->cases)
			CHECK(other == c || strcmp(other->safe, c->safe) != 0);
		vec_each(file, &c->files)
			CHECK(file->to[0] != '/' &&
				!strstr(mem_printf("/%s/", file->to), "/../"));
	}
	vec_each(q, &s->queries)
		CHECK(q->query && *q->query);
}

static void read_twice(const uint8_t *bytes, size_t n)
{
	struct suite s = { 0 }, again = { 0 };
	suite_errors bad = { 0 };
	struct str text = { 0 }, second = { 0 };

	if (suite_read(&s, "evals.json", (const char *)bytes, n, &bad) < 0) {
		CHECK(bad.n);
		vec_each(line, &bad)
			CHECK(str_starts(*line, "evals.json:") && valid_output(*line) &&
				!strchr(*line, '\n'));
		return;
	}
	CHECK(!bad.n && s.kind && s.cases.n + s.queries.n);
	suite_finish(&s, &bad);
	check_names(&s);
	if (bad.n)
		return;
	suite_write(&s, &text);
	CHECK(suite_read(&again, "evals.json", text.p, text.len, &bad) == 0);
	suite_finish(&again, &bad);
	suite_write(&again, &second);
	CHECK(!strcmp(text.p, second.p));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	read_twice(bytes, n);
	memory_reset();
	return 0;
}
