/*
 * eval/record.c - the files of one attempt
 *
 * attempt.json is carrel's own record. grading.json, metrics.json, timing.json and
 * eval_metadata.json have the names and shapes that BMAD's and skill-creator's tools read.
 * grading.json has no "timing": with it, skill-creator's aggregator would take characters for
 * tokens. It is written only where there is a verdict, so that no tool counts an error as a
 * failure.
 */
#include "eval/trial.h"
#include "harness/harness.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUTS = 500, EVIDENCE = 4000 };

const char *record_time(void)
{
	time_t now = time(NULL);
	char text[32];
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	return mem_strdup(text);
}

int record_file(int dir, const char *name, const char *bytes, size_t n, struct fault *f)
{
	const char *temp = mem_printf(".%s.new", name);
	auto_close int fd = -1;
	int rc;

	(void)unlinkat(dir, temp, 0);
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return fault_set(f, errno, "write %s", name);
	rc = fd_write_all(fd, bytes, n);
	if (rc == 0 && renameat(dir, temp, dir, name) < 0)
		rc = -errno;
	return rc < 0 ? fault_set(f, -rc, "write %s", name) : 0;
}

static void json_decimal(struct json *j, const char *key, double value)
{
	json_raw(j, key, mem_printf("%.9g", value));
}

static int put_file(int dir, const char *name, struct str *text, struct fault *f)
{
	str_addc(text, '\n');
	return record_file(dir, name, text->p, text->len, f);
}

/* ---- parts ---- */

const char *record_short(const char *text, size_t most)
{
	size_t n = 0, len;

	if (!text || strlen(text) <= most)
		return text;
	while ((len = utf8_length(text + n, strlen(text + n))) && n + len <= most)
		n += len;
	return mem_printf("%s...", mem_strndup(text, n));
}

static void add_tools(struct json *j, const char *key, const struct transcript *t)
{
	json_open(j, key, '{');
	for (size_t i = 0; i < t->calls_n; i++) {
		size_t n = 0, before = 0;

		for (size_t k = 0; k < t->calls_n; k++) {
			bool same = !strcmp(t->calls[k].name, t->calls[i].name);

			n += same;
			before += same && k < i;
		}
		if (!before)
			json_count(j, t->calls[i].name, n);
	}
	json_close(j, '}');
}

static void add_texts(struct json *j, const char *key, const text_vec *list)
{
	json_open(j, key, '[');
	vec_each(text, list)
		json_string(j, NULL, *text);
	json_close(j, ']');
}

static void add_expectations(struct json *j, const struct grading *g, bool whole)
{
	json_open(j, "expectations", '[');
	for (size_t i = 0; g && i < g->expectations.n; i++) {
		const struct expectation *x = &g->expectations.v[i];

		json_open(j, NULL, '{');
		json_string(j, "text", x->text);
		if (x->passed == PASSED_UNKNOWN)
			json_string(j, "passed", NULL);
		else
			json_bool(j, "passed", x->passed == PASSED_YES);
		json_string(j, "evidence",
			x->evidence ? record_short(x->evidence, EVIDENCE) : "");
		if (whole) {
			json_string(j, "grader", x->grader);
			json_string(j, "weak", record_short(x->weak, EVIDENCE));
		}
		json_close(j, '}');
	}
	json_close(j, ']');
}

static unsigned long long all_tokens(const struct transcript *t)
{
	return t->input + t->output + t->cache_read + t->cache_creation;
}

/* ---- attempt.json ---- */

static void add_identity(struct json *j, const struct record *r)
{
	static const char *const kinds[] = { "artifact", "trigger", "control" };
	const struct trial *t = r->trial;
	bool trigger = t->kind != ATTEMPT_ARTIFACT;

	json_number(j, "version", 1);
	json_string(j, "kind", kinds[t->kind]);
	json_string(j, "case", t->id);
	json_string(j, "configuration", t->configuration ? t->configuration->name : NULL);
	json_count(j, "run", t->run);
	json_string(j, "query", t->query ? t->query->query : NULL);
	if (trigger)
		json_bool(j, "should_trigger", t->query ? t->query->should_trigger : true);
	else
		json_string(j, "should_trigger", NULL);
	json_string(j, "outcome", attempt_outcome_name(r->outcome));
	json_string(j, "verdict", attempt_fired_name(r->fired));
	json_string(j, "reason", r->reason ? r->reason : "");
}

static void add_figures(struct json *j, const struct record *r)
{
	const struct transcript *t = r->transcript;

	json_string(j, "started", r->started);
	json_string(j, "ended", r->ended);
	json_decimal(j, "seconds", r->end->seconds);
	json_number(j, "exit", r->end->code);
	json_count(j, "turns", t->turns);
	json_open(j, "tokens", '{');
	json_count(j, "input", t->input);
	json_count(j, "output", t->output);
	json_count(j, "cache_read", t->cache_read);
	json_count(j, "cache_creation", t->cache_creation);
	json_close(j, '}');
	if (t->has_usd)
		json_decimal(j, "usd", t->usd);
	else
		json_string(j, "usd", NULL);
	json_decimal(j, "grader_usd", r->grading ? r->grading->usd : 0);
	json_count(j, "retries", t->retries);
	json_count(j, "tries", r->tries);
	add_tools(j, "tool_calls", t);
	json_count(j, "permission_denials", t->denials);
	json_string(j, "client", t->version);
	json_string(j, "model", t->model);
	json_count(j, "unreadable_lines", t->bad_lines);
}

static int write_attempt(const struct record *r, int dir, struct fault *f)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };
	const struct tree_changes none = { 0 }, *c = r->changes ? r->changes : &none;

	json_open(&j, NULL, '{');
	add_identity(&j, r);
	add_figures(&j, r);
	add_expectations(&j, r->grading, true);
	json_open(&j, "artifacts", '{');
	add_texts(&j, "added", &c->added);
	add_texts(&j, "changed", &c->changed);
	add_texts(&j, "deleted", &c->deleted);
	add_texts(&j, "left_out", &c->left_out);
	json_close(&j, '}');
	json_string(&j, "plan", r->plan);
	json_close(&j, '}');
	return put_file(dir, "attempt.json", &out, f);
}

/* ---- what other tools read ---- */

static void add_execution(struct json *j, const struct record *r)
{
	const struct transcript *t = r->transcript;

	add_tools(j, "tool_calls", t);
	json_count(j, "total_tool_calls", t->tool_calls);
	json_count(j, "total_steps", t->steps);
	json_count(j, "errors_encountered", t->tool_errors);
	json_count(j, "output_chars", t->text_bytes);
	json_count(j, "transcript_chars", t->bytes);
}

static int write_metrics(const struct record *r, int dir, struct fault *f)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };
	const struct transcript *t = r->transcript;
	const char *err = fd_read_file(dir, "stderr.txt", BOX_STDERR + 1);
	size_t n = err ? strlen(err) : 0;

	json_open(&j, NULL, '{');
	json_decimal(&j, "elapsed_s", r->end->seconds);
	json_number(&j, "return_code", r->end->code);
	add_execution(&j, r);
	json_count(&j, "turns", t->turns);
	json_count(&j, "input_tokens", t->input);
	json_count(&j, "output_tokens", t->output);
	json_count(&j, "cache_read_tokens", t->cache_read);
	json_count(&j, "cache_creation_tokens", t->cache_creation);
	json_decimal(&j, "usd", t->usd);
	json_count(&j, "retries", t->retries);
	json_string(&j, "stderr_tail", err ? err + (n > 2000 ? n - 2000 : 0) : "");
	json_close(&j, '}');
	return put_file(dir, "metrics.json", &out, f);
}

static int write_timing(const struct record *r, int dir, struct fault *f)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };
	const struct transcript *t = r->transcript;

	json_open(&j, NULL, '{');
	json_count(&j, "total_tokens", all_tokens(t));
	json_raw(&j, "duration_ms", mem_printf("%.0f", r->end->seconds * 1000));
	json_decimal(&j, "total_duration_seconds", r->end->seconds);
	json_string(&j, "executor_start", r->started);
	json_string(&j, "executor_end", r->ended);
	json_decimal(&j, "elapsed_s", r->end->seconds);
	json_count(&j, "input_tokens", t->input + t->cache_read + t->cache_creation);
	json_count(&j, "output_tokens", t->output);
	json_number(&j, "return_code", r->end->code);
	json_count(&j, "total_steps", t->steps);
	json_count(&j, "total_tool_calls", t->tool_calls);
	json_close(&j, '}');
	return put_file(dir, "timing.json", &out, f);
}

static void add_id(struct json *j, const struct record *r)
{
	/* Their reader sorts ids of one run, and cannot sort numbers with strings. */
	if (r->bench->suite->numbered)
		json_raw(j, "eval_id", r->trial->id);
	else
		json_string(j, "eval_id", r->trial->id);
}

static void add_feedback(struct json *j, const struct grading *g)
{
	size_t n = 0;

	json_open(j, "eval_feedback", '{');
	json_open(j, "suggestions", '[');
	vec_each(x, &g->expectations) {
		if (!x->weak)
			continue;
		n++;
		json_open(j, NULL, '{');
		json_string(j, "assertion", x->text);
		json_string(j, "reason", x->weak);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_string(j, "overall",
		n ? mem_printf("%zu of %zu assertions prove little", n, g->expectations.n)
		  : "");
	json_close(j, '}');
}

static int write_grading(const struct record *r, int dir, struct fault *f)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };
	size_t passed = 0, total = r->grading->expectations.n;

	vec_each(x, &r->grading->expectations)
		passed += x->passed == PASSED_YES;
	json_open(&j, NULL, '{');
	add_id(&j, r);
	add_expectations(&j, r->grading, false);
	json_open(&j, "summary", '{');
	json_count(&j, "passed", passed);
	json_count(&j, "failed", total - passed);
	json_count(&j, "total", total);
	json_decimal(&j, "pass_rate", total ? (double)passed / (double)total : 0);
	json_close(&j, '}');
	json_open(&j, "execution_metrics", '{');
	add_execution(&j, r);
	json_close(&j, '}');
	json_raw(&j, "claims", "[]");
	json_raw(&j, "user_notes_summary",
		"{\"uncertainties\": [], \"needs_review\": [], \"workarounds\": []}");
	add_feedback(&j, r->grading);
	json_close(&j, '}');
	return put_file(dir, "grading.json", &out, f);
}

int record_metadata(const struct record *r, int dir, struct fault *f)
{
	const struct suite_case *c = r->trial->c;
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	add_id(&j, r);
	json_string(&j, "eval_name", c->name ? c->name : c->id);
	json_string(&j, "prompt", c->prompt);
	json_open(&j, "assertions", '[');
	vec_each(g, &c->graders)
		json_string(&j, NULL, g->text);
	json_close(&j, ']');
	json_close(&j, '}');
	return put_file(dir, "eval_metadata.json", &out, f);
}

/* Their viewer shows plain files of one directory and calls it outputs/. */
static int link_outputs(const struct record *r, int dir, struct fault *f)
{
	const text_vec *lists[] = { &r->changes->added, &r->changes->changed };
	auto_close int out = copy_make_dirs(dir, "outputs", f);
	size_t n = 0;

	if (out < 0)
		return out;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		vec_each(path, lists[i]) {
			char *name = mem_strdup(*path);

			for (char *at = name; *at; at++)
				*at = *at == '/' ? '_' : *at;
			/* One that cannot be shown is in artifacts/ all the same. */
			if (n < OUTPUTS && strlen(name) < 250 &&
				linkat(dir, mem_printf("artifacts/%s", *path), out, name, 0) ==
					0)
				n++;
		}
	return 0;
}

static int write_deleted(const struct record *r, int dir, struct fault *f)
{
	struct str out = { 0 };

	vec_each(path, &r->changes->deleted)
		str_addf(&out, "%s\n", *path);
	return record_file(dir, "deleted.txt", out.p ? out.p : "", out.len, f);
}

int record_write(const struct record *r, int dir, struct fault *f)
{
	bool graded = r->outcome == OUTCOME_PASS || r->outcome == OUTCOME_FAIL;
	int rc = write_attempt(r, dir, f);

	if (rc == 0)
		rc = write_metrics(r, dir, f);
	if (rc == 0)
		rc = write_timing(r, dir, f);
	if (rc == 0 && r->changes)
		rc = write_deleted(r, dir, f);
	if (rc == 0 && r->changes)
		rc = link_outputs(r, dir, f);
	if (rc == 0 && r->trial->c)
		rc = record_metadata(r, dir, f);
	if (rc == 0 && r->trial->c && graded)
		rc = write_grading(r, dir, f);
	return rc;
}
