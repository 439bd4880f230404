/*
 * eval/grade.c - deterministic graders
 *
 * They run when the agent's box is dead, on what it left behind, and write where it never
 * could: what an agent puts into its workspace can be evidence, but no verdict. Each says
 * what it saw. An expectation that would have held before the agent did anything is marked
 * as weak. Those for a model come last, in a box of their own: grade-model.c.
 */
#include "eval/trial.h"
#include "harness/harness.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 8 << 20, COMMAND_TIME = 600, TAIL = 600 };

struct ruling {
	bool passed;
	bool error; /* it could not be judged */
	const char *evidence, *weak;
};

static struct ruling ruled(bool passed, const char *evidence)
{
	return (struct ruling){ .passed = passed, .evidence = evidence };
}

/* ---- files ---- */

static bool is_unchanged(const struct grading *g, const char *path)
{
	const struct snap_entry *was = snapshot_find(&g->stage->before, path);
	const struct snap_entry *is = snapshot_find(g->now, path);

	return was && is && !strcmp(was->hash, is->hash);
}

/* Is there a file by that name, or a directory with something in it? */
static bool is_in(const struct snapshot *s, const char *path)
{
	size_t n = strlen(path);

	if (snapshot_find(s, path))
		return true;
	vec_each(e, &s->entries)
		if (!strncmp(e->path, path, n) && e->path[n] == '/')
			return true;
	return false;
}

/* An empty directory is in no list; a link on the way to it leads out of what is judged. */
static bool is_empty_dir(const struct grading *g, const char *path)
{
	auto_close int fd = fd_open2(g->stage->workspace_fd, path, O_PATH | O_CLOEXEC,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	return fd >= 0;
}

static struct ruling grade_exists(struct grading *g, const struct grader *e)
{
	bool there = is_in(g->now, e->path) || is_empty_dir(g, e->path);
	struct ruling r =
		ruled(there, mem_printf(there ? "%s is there" : "there is no %s", e->path));

	if (there && is_in(&g->stage->before, e->path))
		r.weak = "it was there before the agent began";
	return r;
}

static struct ruling grade_absent(struct grading *g, const struct grader *e)
{
	struct ruling r = grade_exists(g, e);

	r.passed = !r.passed;
	r.weak = r.passed && !is_in(&g->stage->before, e->path)
		? "it was not there before the agent began, either"
		: NULL;
	return r;
}

/* The text that a grader looks at; NULL, and the evidence says why. */
static char *subject(struct grading *g, const struct grader *e, size_t *ret_n,
	const char **ret_why)
{
	int fd;
	char *text;

	if (!e->path) {
		const char *answer = g->transcript->answer ? g->transcript->answer : "";

		*ret_n = strlen(answer);
		return mem_strdup(answer);
	}
	fd = copy_open_file(g->stage->workspace_fd, e->path);
	text = fd < 0 ? NULL : fd_read_bytes(fd, TEXT_BYTES, ret_n);
	if (!text)
		*ret_why = mem_printf("%s cannot be read: %s", e->path, strerror(errno));
	return text;
}

static const char *weak_text(const struct grading *g, const struct grader *e, bool passed)
{
	return passed && e->path && is_unchanged(g, e->path)
		? "the file was like this before the agent began"
		: NULL;
}

static struct ruling grade_contains(struct grading *g, const struct grader *e)
{
	const char *why = NULL, *where = e->path ? e->path : "the answer";
	size_t n = 0;
	char *text = subject(g, e, &n, &why);
	bool found = text && memmem(text, n, e->pattern, strlen(e->pattern));
	struct ruling r = ruled(found,
		text ? mem_printf(found ? "%s contains it" : "%s does not contain it", where)
		     : why);

	r.weak = weak_text(g, e, found);
	return r;
}

static struct ruling grade_regex(struct grading *g, const struct grader *e)
{
	const char *why = NULL;
	size_t n = 0;
	char *text = subject(g, e, &n, &why);
	regmatch_t at = { 0 };
	struct ruling r;
	regex_t regex;
	bool found;

	if (!text)
		return ruled(false, why);
	if (regcomp(&regex, e->pattern, REG_EXTENDED | REG_NEWLINE) != 0)
		return (struct ruling){ .error = true, .evidence = "the pattern is not valid" };
	found = regexec(&regex, text, 1, &at, 0) == 0;
	r = ruled(found,
		found ? mem_printf("matched: %s",
				record_short(mem_strndup(text + at.rm_so,
						     (size_t)(at.rm_eo - at.rm_so)),
					200))
		      : "no match");
	r.weak = weak_text(g, e, found);
	if (found && regexec(&regex, "", 0, NULL, 0) == 0)
		r.weak = "the pattern matches an empty text";
	regfree(&regex);
	return r;
}

static bool same_value(const struct json_value *a, const struct json_value *b)
{
	const struct json_value *x, *y;

	if (a->type != b->type)
		return false;
	switch (a->type) {
	case JSON_NULL:
		return true;
	case JSON_BOOL:
		return a->boolean == b->boolean;
	case JSON_NUMBER:
		return a->number == b->number;
	case JSON_STRING:
		return !strcmp(a->text, b->text);
	case JSON_LIST:
		for (x = a->first, y = b->first; x && y; x = x->next, y = y->next)
			if (!same_value(x, y))
				return false;
		return !x && !y;
	case JSON_OBJECT:
		break;
	}
	for (x = a->first; x; x = x->next) {
		y = json_member(b, x->key);
		if (!y || !same_value(x, y))
			return false;
	}
	for (y = b->first; y; y = y->next)
		if (!json_member(a, y->key))
			return false;
	return true;
}

/* "a.b[0].c" */
static const struct json_value *value_at(const struct json_value *v, const char *at)
{
	while (v && *at) {
		size_t n;

		at += *at == '.';
		if (*at == '[') {
			unsigned long i = strtoul(at + 1, NULL, 10);

			v = v->type == JSON_LIST ? v->first : NULL;
			for (; v && i; i--)
				v = v->next;
			at += strcspn(at, "]");
			at += *at == ']';
			continue;
		}
		n = strcspn(at, ".[");
		v = json_member(v, mem_strndup(at, n));
		at += n;
	}
	return v;
}

static struct ruling grade_json(struct grading *g, const struct grader *e)
{
	const struct json_value *tree, *found;
	const char *why = NULL;
	json_errors bad = { 0 };
	struct ruling r;
	size_t n = 0;
	char *text = subject(g, e, &n, &why);

	if (!text)
		return ruled(false, why);
	if (json_read(text, n, NULL, &tree, &bad) < 0)
		return ruled(false, mem_printf("%s is no JSON: %s", e->path, bad.v[0].text));
	found = value_at(tree, e->at);
	if (!found)
		return ruled(false, mem_printf("there is nothing at %s", e->at));
	r = ruled(!e->equals || same_value(found, e->equals),
		mem_printf("%s is %s%s%s", e->at, json_type_name(found->type),
			found->text ? ": " : "", found->text ? found->text : ""));
	r.weak = weak_text(g, e, r.passed);
	return r;
}

static struct ruling grade_unchanged(struct grading *g, const struct grader *e)
{
	size_t n = strlen(e->path), same = 0;

	vec_each(was, &g->stage->before.entries) {
		if (strncmp(was->path, e->path, n) != 0 ||
			(was->path[n] && was->path[n] != '/'))
			continue;
		if (!is_unchanged(g, was->path))
			return ruled(false, mem_printf("%s was changed or deleted", was->path));
		same++;
	}
	vec_each(is, &g->now->entries)
		if (!strncmp(is->path, e->path, n) && is->path[n] == '/' &&
			!snapshot_find(&g->stage->before, is->path))
			return ruled(false, mem_printf("%s was added", is->path));
	if (!same)
		return (struct ruling){ .error = true,
			.evidence = mem_printf("%s was not there at the start", e->path) };
	return ruled(true, mem_printf("%zu files are as they were", same));
}

/* ---- tools ---- */

static size_t calls_of(const struct transcript *t, const char *tool)
{
	size_t n = 0;

	for (size_t i = 0; i < t->calls_n; i++)
		n += !strcmp(t->calls[i].name, tool);
	return n;
}

static struct ruling grade_called(struct grading *g, const struct grader *e)
{
	size_t n = calls_of(g->transcript, e->words.v[0]);

	return ruled((double)n >= e->number,
		mem_printf("%s was called %zu times", e->words.v[0], n));
}

static struct ruling grade_never(struct grading *g, const struct grader *e)
{
	size_t n = calls_of(g->transcript, e->words.v[0]);

	return ruled(n == 0, mem_printf("%s was called %zu times", e->words.v[0], n));
}

static struct ruling grade_order(struct grading *g, const struct grader *e)
{
	size_t next = 0;

	for (size_t i = 0; i < g->transcript->calls_n && next < e->words.n; i++)
		next += !strcmp(g->transcript->calls[i].name, e->words.v[next]);
	return ruled(next == e->words.n,
		next == e->words.n
			? "in this order"
			: mem_printf("no %s after what comes before it", e->words.v[next]));
}

/* ---- figures ---- */

static struct ruling grade_ceiling(struct grading *g, const struct grader *e)
{
	const struct transcript *t = g->transcript;
	double is = e->kind == GRADE_MAX_USD ? t->usd
		: e->kind == GRADE_MAX_TURNS ? (double)t->turns
					     : g->seconds;

	if (e->kind == GRADE_MAX_USD && !t->has_usd)
		return (struct ruling){ .error = true,
			.evidence = "the client does not say what it cost" };
	return ruled(is <= e->number, mem_printf("%.6g", is));
}

/* ---- a command ---- */

static const char *tail_of(const char *text)
{
	size_t n = strlen(text);

	return n > TAIL ? text + n - TAIL : text;
}

static struct ruling grade_command(struct grading *g, const struct grader *e)
{
	const struct stage *s = g->stage;
	text_vec argv = { 0 };
	const char *const first[] = { "carrel", "run", "-y", "--workspace", s->workspace,
		"--no-git-config", "--network", "none", "--protect", "!**", "--limit",
		"time=600", "--" };
	struct fault f = { 0 };
	char *out = NULL;
	int code = 125;

	vec_each(file, &e->files)
		if (copy_as(file->from, s->workspace_fd, file->to, &f) < 0)
			return (struct ruling){ .error = true, .evidence = fault_line(&f) };
	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		vec_push(&argv, first[i]);
	vec_each(word, &e->words)
		vec_push(&argv, *word);
	vec_push(&argv, NULL);
	if (box_output(argv.v, stage_env(s), COMMAND_TIME, 1 << 20, &out, &code, &f) < 0)
		return (struct ruling){ .error = true, .evidence = fault_line(&f) };
	if (code >= 125 && code <= 127 && (double)code != e->number)
		return (struct ruling){ .error = true,
			.evidence = mem_printf("the command could not be run (exit code %d)",
				code) };
	return ruled((double)code == e->number,
		mem_printf("exit code %d%s%s", code, *out ? ": " : "", tail_of(out)));
}

/* ---- all ---- */

static struct ruling (*const rules[GRADE_KINDS])(struct grading *g, const struct grader *e) = {
	[GRADE_EXISTS] = grade_exists,
	[GRADE_ABSENT] = grade_absent,
	[GRADE_CONTAINS] = grade_contains,
	[GRADE_REGEX] = grade_regex,
	[GRADE_JSON] = grade_json,
	[GRADE_UNCHANGED] = grade_unchanged,
	[GRADE_TOOL_CALLED] = grade_called,
	[GRADE_TOOL_NEVER] = grade_never,
	[GRADE_TOOL_ORDER] = grade_order,
	[GRADE_COMMAND] = grade_command,
	[GRADE_MAX_USD] = grade_ceiling,
	[GRADE_MAX_TURNS] = grade_ceiling,
	[GRADE_MAX_SECONDS] = grade_ceiling,
};

static void apply(struct grading *g, const struct grader *e)
{
	struct expectation x = { .text = e->text, .grader = grader_name(e->kind) };

	if (rules[e->kind]) {
		struct ruling r = rules[e->kind](g, e);

		x.passed = r.error ? PASSED_UNKNOWN : r.passed ? PASSED_YES : PASSED_NO;
		x.evidence = r.evidence;
		x.weak = r.weak;
		if (r.error && !g->error)
			g->error = mem_printf("the grader %s could not judge: %s", x.grader,
				str_visible(r.evidence));
	}
	vec_push(&g->expectations, x);
}

/* Commands change the workspace, so they come after those that look at it. */
void grade(struct grading *g)
{
	const grader_vec *graders = &g->trial->c->graders;
	bool model = false;

	vec_each(e, graders)
		if (e->kind != GRADE_COMMAND && e->kind != GRADE_MODEL)
			apply(g, e);
	vec_each(e, graders)
		if (e->kind == GRADE_COMMAND)
			apply(g, e);
	vec_each(e, graders)
		if (e->kind == GRADE_MODEL) {
			apply(g, e);
			model = true;
		}
	if (model && !g->error)
		grade_by_model(g);
}
