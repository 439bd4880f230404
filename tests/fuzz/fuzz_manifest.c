/*
 * tests/fuzz/fuzz_manifest.c - whatever a manifest says, it is refused in words or composed
 *
 * Every problem is one line that can be printed, with its place in front. A manifest without
 * problems composes: each of its agents is bound, or its chain of `extends` is refused; what
 * is bound is text of the file; composing again gives the same. The first byte says how
 * many of the others are the project's file; the rest is the user's.
 */
#include "fuzz.h"
#include "base/fault.h"
#include "base/json-read.h"
#include "base/str.h"
#include "harness/env-forms.h"
#include "harness/harness.h"
#include "manifest/keys.h"
#include "manifest/manifest.h"

#include <errno.h>
#include <string.h>

static void check_lines(const problems *bad)
{
	CHECK(bad->n <= 101);
	vec_each(line, bad) {
		CHECK(**line && valid_output(*line) && !strchr(*line, '\n'));
		CHECK(strlen(*line) < 4096);
		CHECK(str_starts(*line, "carrel.json:") || str_starts(*line, "user.json:") ||
			!strcmp(*line, "and more"));
	}
}

/* Is the file there, and right? A key that stands twice is the reader's to refuse. */
static bool load(struct manifest_file *file, const char *bytes, size_t n)
{
	json_errors errors = { 0 };
	problems bad = { 0 };

	*file = (struct manifest_file){ .path = "/proj/carrel.json",
		.dir = file->project ? "/proj" : "/home/me/.config/carrel",
		.name = file->project ? "carrel.json" : "user.json",
		.project = file->project,
		.bytes = bytes,
		.size = n };
	if (json_read(bytes, n, file, &file->tree, &errors) < 0)
		return false;
	manifest_check(file, manifest_keys, &bad);
	check_lines(&bad);
	return !bad.n;
}

static void check_said(const struct manifests *m, const struct said *s)
{
	const struct manifest_file *origin;

	CHECK(!s->text == !s->at);
	if (!s->at)
		return;
	origin = manifest_origin(s);
	CHECK(*s->text && (origin == m->project || origin == m->user));
	CHECK(s->at->at.line > 0 && s->at->at.column > 0);
}

static void check_list(const struct manifests *m, const said_vec *list)
{
	vec_each(s, list)
		check_said(m, s);
}

static void check_env(const struct agent *a)
{
	problems bad = { 0 };

	vec_each(e, &a->env) {
		struct request_env made;
		size_t before = bad.n;

		env_check(&e->value, "env", &bad);
		made = env_entry(e->name, &e->value, "env");
		CHECK(made.how == ENV_COMMAND || made.value);
		CHECK(made.how != ENV_COMMAND || bad.n > before || made.argv[0][0]);
		CHECK(valid_output(made.why));
	}
	check_lines(&bad);
}

static void check_agent(const struct manifests *m, const struct agent *a)
{
	const struct harness *h =
		harness_find(a->harness.text ? a->harness.text : harness_claude.name);
	problems bad = { 0 };

	check_said(m, &a->name);
	check_said(m, &a->model);
	check_said(m, &a->extends);
	check_said(m, &a->network.mode);
	check_list(m, &a->args);
	check_list(m, &a->skills);
	check_list(m, &a->permissions.allow);
	check_list(m, &a->network.allow);
	vec_each(mount, &a->mounts) {
		check_said(m, &mount->source);
		CHECK(mount->source.text);
	}
	check_env(a);
	CHECK(h);
	harness_check(h, a, harness_home(a, false), &bad);
	check_lines(&bad);
}

static void check_same(const struct agent *a, const struct agent *b)
{
	CHECK(!a->model.text == !b->model.text && a->skills.n == b->skills.n);
	CHECK(!a->model.text || !strcmp(a->model.text, b->model.text));
	CHECK(a->env.n == b->env.n && a->mounts.n == b->mounts.n);
	CHECK(a->limits.pids == b->limits.pids && a->limits.cpus == b->limits.cpus);
}

static void compose(const struct manifests *m, const char *name)
{
	struct agent a = { 0 }, again = { 0 };
	problems bad = { 0 };
	struct fault f = { 0 };
	int rc = manifest_agent(m, name, &a, &bad, &f);

	CHECK(rc == 0 || (rc == -EINVAL && bad.n == 1 && !a.name.text));
	check_lines(&bad);
	if (rc < 0)
		return;
	CHECK(!strcmp(a.name.text, name));
	check_agent(m, &a);
	CHECK(manifest_agent(m, name, &again, &bad, &f) == 0);
	check_same(&a, &again);
}

static void check_missing(const struct manifests *m)
{
	problems bad = { 0 };
	struct fault f = { 0 };
	struct agent a;

	/* 65 bytes, so there is none. */
	CHECK(manifest_agent(m,
		      "a name that is longer than any name of an agent can be, as here.x", &a,
		      &bad, &f) < 0);
	CHECK(!bad.n && valid_output(f.text) && valid_output(f.fix));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct manifest_file project = { .project = true }, user;
	const char *bytes = (const char *)data + 1;
	struct manifests m = { 0 };
	said_vec names = { 0 };
	size_t n;

	if (size < 1)
		return 0;
	n = data[0] == 0xff ? size - 1 : (size - 1) * data[0] / 0xff;
	if (load(&project, bytes, n))
		m.project = &project;
	if (load(&user, bytes + n, size - 1 - n))
		m.user = &user;
	if (m.project || m.user) {
		manifest_names(&m, &names);
		vec_each(name, &names)
			compose(&m, name->text);
		check_missing(&m);
	}
	memory_reset();
	return 0;
}
