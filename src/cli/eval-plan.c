/*
 * cli/eval-plan.c - what carrel eval is about to do, for a person
 *
 * The same questions as before any box: what runs, how often, with which client, and what it
 * reaches. Nothing is executed to answer them.
 */
#include "cli/eval-plan.h"
#include "eval/eval-run.h"
#include "harness/harness.h"
#include "run/agent.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

const char *eval_client_of(const struct suite *s, const struct suite_configuration *k)
{
	return k->harness ? k->harness : s->harness;
}

static size_t count_kind(const struct engine *e, enum attempt_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < e->items.n; i++)
		n += e->items.v[i].trial.kind == kind;
	return n;
}

/* A path below the working directory, from there. */
static const char *from_here(const char *path)
{
	char cwd[PATH_MAX];

	return getcwd(cwd, sizeof(cwd)) && path_within(path, cwd) && strcmp(path, cwd) != 0
		? path_below(path, cwd)
		: path;
}

/* "12 x 2 configurations x 3", or only the sum where cases are repeated differently. */
static void show_cases(const struct engine *e, size_t n, struct str *out)
{
	const struct suite *s = e->suite;
	unsigned int repeat = e->options.repeat ? e->options.repeat : s->repeat;
	size_t each = s->configurations.n * repeat;

	if (n % each || n > s->cases.n * each) {
		str_addf(out, "%zu of cases", n);
		return;
	}
	str_addf(out, "%zu x ", n / each);
	if (s->configurations.n > 1)
		str_addf(out, "%zu configurations x ", s->configurations.n);
	str_addf(out, "%u", repeat);
}

static void show_attempts(const struct engine *e, struct str *out)
{
	size_t artifacts = count_kind(e, ATTEMPT_ARTIFACT);
	size_t triggers = count_kind(e, ATTEMPT_TRIGGER);
	unsigned int repeat = e->options.repeat ? e->options.repeat : e->suite->repeat;

	str_add(out, "attempts  ");
	if (artifacts)
		show_cases(e, artifacts, out);
	if (triggers)
		str_addf(out, "%s%zu x %u, %zu controls", artifacts ? ", " : "",
			triggers / repeat, repeat, count_kind(e, ATTEMPT_CONTROL));
	str_addf(out, "; %s%u at a time", e->options.until_sure ? "fewer once sure; " : "",
		e->options.jobs);
	if (e->done)
		str_addf(out, "; %zu are there already", e->done);
	str_add(out, "\n");
}

static void show_suite(const struct engine *e, struct str *out)
{
	const struct suite *s = e->suite;

	str_addf(out, "suite     %s (", str_visible(from_here(s->path)));
	if (s->cases.n)
		str_addf(out, "%zu case%s", s->cases.n, s->cases.n == 1 ? "" : "s");
	if (s->queries.n && !s->trigger_path)
		str_addf(out, "%s%zu quer%s", s->cases.n ? ", " : "", s->queries.n,
			s->queries.n == 1 ? "y" : "ies");
	str_add(out, ")");
	if (s->trigger_path)
		str_addf(out, ", %s (%zu quer%s)", path_base(s->trigger_path), s->queries.n,
			s->queries.n == 1 ? "y" : "ies");
	str_add(out, "\n");
	if (s->skill.dir)
		str_addf(out, "skill     %s (%s)\n", str_visible(s->skill.name),
			str_visible(s->skill.dir));
	if (s->project && s->cases.n)
		str_addf(out, "project   a copy of %s\n", str_visible(s->project));
}

/* The hosts that the suite asks for, each once. */
static text_vec asked_hosts(const struct suite *s)
{
	text_vec all = { 0 };

	vec_each(host, &s->allow)
		vec_push(&all, *host);
	vec_each(c, &s->cases)
		vec_each(host, &c->allow) {
			bool known = false;

			vec_each(other, &all)
				known |= !strcmp(*other, *host);
			if (!known)
				vec_push(&all, *host);
		}
	return all;
}

static void show_network(const struct engine *e, struct str *out)
{
	text_vec hosts = asked_hosts(e->suite);

	str_add(out, "reaches the model");
	if (e->options.artifacts)
		vec_each(host, &hosts)
			str_addf(out, ", %s", str_visible(*host));
	vec_each(host, &e->bench.allow)
		str_addf(out, ", %s", str_visible(*host));
	if (!e->bench.allow.n && (!hosts.n || !e->options.artifacts))
		str_add(out, " alone");
}

bool eval_hosts_agreed(const struct engine *e, struct fault *f)
{
	text_vec hosts = asked_hosts(e->suite);

	vec_each(host, &hosts) {
		bool known = false;

		vec_each(other, &e->bench.allow)
			known |= !strcmp(*other, *host);
		if (known)
			continue;
		fault_set(f, 0, "the suite asks for the host %s, and -y does not allow it",
			str_visible(*host));
		fault_fix(f, "Add --allow %s, or start without -y.", str_visible(*host));
		return false;
	}
	return true;
}

/*
 * The version of a client, without executing it: its npm package says it, or the name of the
 * program does, as with Claude Code's own installer (.../versions/2.1.197).
 */
static const char *client_version(const char *program)
{
	const char *real = fd_real_path(program), *dir = real ? path_parent(real) : NULL;

	if (real && path_base(real)[0] >= '0' && path_base(real)[0] <= '9')
		return path_base(real);
	for (int i = 0; dir && i < 3; i++, dir = path_parent(dir)) {
		const char *text =
			fd_read_file(AT_FDCWD, path_join(dir, "package.json"), 1 << 20);
		const struct json_value *tree = NULL, *version;
		json_errors bad = { 0 };

		if (!text || json_read(text, strlen(text), NULL, &tree, &bad) < 0)
			continue;
		version = json_member(tree, "version");
		if (version && version->type == JSON_STRING)
			return version->text;
	}
	return NULL;
}

/* "claude 2.1.197, sonnet" */
static void show_client(const struct suite *s, const char *client, const char *model,
	struct str *out)
{
	const char *program = agent_program(harness_find(client), s->dir);
	const char *version = program ? client_version(program) : NULL;

	str_addf(out, "%s%s%s%s%s", client, version ? " " : "",
		version ? str_visible(version) : "", model ? ", " : "",
		model ? str_visible(model) : "");
}

/* Configurations with another client or another model. */
static void show_others(const struct suite *s, struct str *out)
{
	vec_each(k, &s->configurations) {
		bool same = !strcmp(eval_client_of(s, k), s->harness);

		if (same && !k->model)
			continue;
		str_addf(out, "          %s: ", k->name);
		show_client(s, eval_client_of(s, k), k->model || !same ? k->model : s->model,
			out);
		str_add(out, "\n");
	}
}

void eval_show_plan(const struct engine *e, struct str *out)
{
	const struct suite *s = e->suite;

	show_suite(e, out);
	str_add(out, "agent     ");
	show_client(s, s->harness, s->model, out);
	str_addf(out, ", clean box%s; ", s->realistic ? " with the client's own skills" : "");
	show_network(e, out);
	str_add(out, "\n");
	if (e->options.artifacts)
		show_others(s, out);
	show_attempts(e, out);
}
