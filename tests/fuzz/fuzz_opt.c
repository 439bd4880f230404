/*
 * tests/fuzz/fuzz_opt.c - a command line, NUL between its words, as far as the plan
 *
 * The options of `carrel run` are parsed, and what is asked for is resolved on a machine
 * that is written down (tests/unit/host.h): nothing is looked up and nothing is run.
 */
#include "fuzz.h"
#include "host.h"
#include "base/fault.h"
#include "base/str.h"
#include "cli/opt.h"
#include "cli/run-args.h"
#include "plan/plan.h"

#include <string.h>

enum { MOST_WORDS = 64 };

static void check_fault(const struct fault *f)
{
	CHECK(f->text[0]);
	CHECK(memchr(f->text, '\0', sizeof(f->text)) && memchr(f->fix, '\0', sizeof(f->fix)));
	CHECK(!strpbrk(f->text, "\n\033") && !strpbrk(f->fix, "\n\033"));
}

static void check_places(const struct plan *p)
{
	for (size_t i = 0; i < p->places.n; i++) {
		const struct place *place = &p->places.v[i];

		CHECK(place->target[0] == '/' && place->target[1]);
		CHECK(!strcmp(path_clean(place->target), place->target));
		if (i)
			CHECK(strcmp(place[-1].target, place->target));
	}
}

static void check_plan(const struct request *r)
{
	struct host h = host_make();
	struct str json = { 0 }, text = { 0 };
	struct fault f = { 0 };
	struct plan p;

	host_fill_mounts(&h, r);
	if (plan_resolve(r, &h, &p, &f) < 0) {
		check_fault(&f);
		return;
	}
	check_places(&p);
	plan_json(&p, &json);
	plan_print(&p, false, &text);
	CHECK(valid_json(json.p, json.len));
	CHECK(valid_output(text.p));
	CHECK(strlen(plan_hash(&p)) == 64);
}

static int split(char *text, size_t size, char **argv)
{
	int argc = 1;

	argv[0] = "run";
	for (size_t at = 0; at < size && argc < MOST_WORDS; at += strlen(text + at) + 1)
		argv[argc++] = text + at;
	argv[argc] = NULL;
	return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const no_command[] = { "true", NULL };
	char *text = calloc(1, size + 1), *argv[MOST_WORDS + 1];
	struct run_args args = { 0 };
	struct fault f = { 0 };
	struct opt_rest rest;
	int argc;

	memcpy(text, data, size);
	argc = split(text, size, argv);
	if (opt_parse(run_opts, OPT_BEFORE_WORDS, &args, argc, argv, &rest, &f) < 0) {
		check_fault(&f);
	} else if (!rest.help) {
		CHECK(rest.argc >= 0 && rest.argc < argc && !rest.argv[rest.argc]);
		args.request.argv = rest.argc ? (const char *const *)rest.argv : no_command;
		check_plan(&args.request);
	}
	free(text);
	memory_reset();
	return 0;
}
