/*
 * What the clients are given, and how their events are read. Samples were recorded from the
 * clients themselves, against tests/mock/mock.py; tests/clients says with which versions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/json-read.h"
#include "base/str.h"
#include "harness/harness.h"
#include "harness/toml.h"
#include "manifest/manifest.h"
#include "net/policy/policy.h"
#include "plan/request.h"

#include <fcntl.h>
#include <string.h>

/* ---- events ---- */

struct run {
	unsigned int starts, tools, texts, results, errors;
	struct harness_event result;
	const char *text, *tool, *error;
	unsigned long long input, output, turns;
	double usd;
};

static void take(struct run *run, const struct harness_event *e)
{
	run->starts += e->kind == EVENT_START;
	run->tools += e->kind == EVENT_TOOL;
	run->texts += e->kind == EVENT_TEXT;
	run->results += e->kind == EVENT_RESULT;
	run->errors += e->kind == EVENT_ERROR;
	if (e->kind == EVENT_RESULT)
		run->result = *e;
	if (e->kind == EVENT_TEXT)
		run->text = e->text;
	if (e->kind == EVENT_TOOL)
		run->tool = e->tool;
	if (e->kind == EVENT_ERROR)
		run->error = e->text;
	run->input += e->input_tokens;
	run->output += e->output_tokens;
	run->turns += e->turns;
	run->usd += e->usd;
}

static const struct json_value *parsed(const char *text)
{
	const struct json_value *tree = NULL;
	json_errors errors = { 0 };

	assert_int_equal(json_read(text, strlen(text), NULL, &tree, &errors), 0);
	return tree;
}

static struct run sample(const struct harness *h, const char *name)
{
	const char *at = fd_read_file(AT_FDCWD, mem_printf(SAMPLES "/%s.jsonl", name), 1 << 20);
	struct run run = { 0 };

	assert_non_null(at);
	for (; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		struct harness_event e;

		h->event(parsed(mem_strndup(at, strcspn(at, "\n"))), &e);
		take(&run, &e);
	}
	return run;
}

static void one_event(const struct harness *h, const char *line, struct harness_event *ret)
{
	h->event(parsed(line), ret);
}

static void codex_events(void **state)
{
	struct run run = sample(&harness_codex, "codex");
	struct harness_event e;

	(void)state;
	assert_int_equal(run.starts, 1);
	assert_string_equal(run.tool, "command_execution");
	assert_string_equal(run.text, "Done.");
	assert_int_equal(run.results, 1);
	assert_false(run.result.failed);
	assert_int_equal(run.input, 200);
	assert_int_equal(run.output, 20);

	run = sample(&harness_codex, "codex-error");
	assert_true(run.result.failed);
	assert_non_null(strstr(run.result.text, "mock 400"));
	assert_int_equal(run.errors, 1);

	one_event(&harness_codex,
		"{\"type\":\"item.started\",\"item\":{\"type\":\"command_execution\","
		"\"command\":\"/bin/bash -lc 'cat /home/u/.codex/skills/tidy/SKILL.md'\"}}",
		&e);
	assert_string_equal(e.skill, "tidy");
	one_event(&harness_codex,
		"{\"type\":\"item.started\",\"item\":{\"type\":\"command_execution\","
		"\"command\":\"cat x/SKILL.md\"}}",
		&e);
	assert_int_equal(e.kind, EVENT_TOOL);
	assert_null(e.skill);
	one_event(&harness_codex,
		"{\"type\":\"item.started\",\"item\":{\"type\":\"mcp_tool_call\","
		"\"server\":\"docs\",\"tool\":\"ask\"}}",
		&e);
	assert_string_equal(e.tool, "mcp__docs__ask");
	one_event(&harness_codex,
		"{\"type\":\"item.completed\",\"item\":{\"type\":\"error\",\"message\":\"x\"}}",
		&e);
	assert_int_equal(e.kind, EVENT_OTHER);
}

static void gemini_events(void **state)
{
	struct run run = sample(&harness_gemini, "gemini");
	struct harness_event e;

	(void)state;
	assert_int_equal(run.starts, 1);
	assert_string_equal(run.tool, "run_shell_command");
	assert_string_equal(run.text, "Done.");
	assert_int_equal(run.texts, 1); /* what the user said is not the agent's */
	assert_false(run.result.failed);
	assert_int_equal(run.input, 200);
	assert_int_equal(run.output, 20);

	run = sample(&harness_gemini, "gemini-error");
	assert_true(run.result.failed);
	assert_non_null(strstr(run.result.text, "mock"));

	one_event(&harness_gemini,
		"{\"type\":\"tool_use\",\"tool_name\":\"activate_skill\","
		"\"parameters\":{\"name\":\"tidy\"}}",
		&e);
	assert_string_equal(e.skill, "tidy");
	one_event(&harness_gemini,
		"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"x\",\"delta\":"
		"true}",
		&e);
	assert_true(e.part);
}

static void opencode_events(void **state)
{
	struct run run = sample(&harness_opencode, "opencode");
	struct harness_event e;

	(void)state;
	assert_string_equal(run.tool, "bash");
	assert_string_equal(run.text, "Done.");
	assert_int_equal(run.results, 1);
	assert_int_equal(run.turns, 2);
	assert_true(run.input > 10000); /* both steps, with what the cache had */
	assert_true(run.output > 40 && run.output < 100);
	assert_true(run.usd > 0.004 && run.usd < 0.01);

	run = sample(&harness_opencode, "opencode-error");
	assert_string_equal(run.error, "mock 400");
	assert_int_equal(run.results, 0);

	one_event(&harness_opencode,
		"{\"type\":\"tool_use\",\"part\":{\"tool\":\"skill\","
		"\"state\":{\"input\":{\"name\":\"tidy\"}}}}",
		&e);
	assert_string_equal(e.skill, "tidy");
}

/* A line may say anything: it is in the end the model that writes it. */
static void strange_events(void **state)
{
	static const char *const lines[] = { "1", "[]", "{}", "{\"type\":1}",
		"{\"type\":\"item.started\"}", "{\"type\":\"item.completed\",\"item\":[]}",
		"{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1e300}}",
		"{\"type\":\"result\",\"stats\":{\"input_tokens\":-5}}",
		"{\"type\":\"step_finish\",\"part\":null}", "{\"type\":\"tool_use\"}",
		"{\"type\":\"text\",\"part\":{\"text\":7}}",
		"{\"type\":\"error\",\"error\":2}" };

	(void)state;
	for (const struct harness *const *h = harness_all; *h; h++) {
		for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
			struct harness_event e;

			memset(&e, 0xff, sizeof(e));
			one_event(*h, lines[i], &e);
			assert_int_equal(e.input_tokens, 0);
			assert_null(e.tool);
		}
	}
}

/* ---- configuration ---- */

static const struct manifest_file file = { .name = "carrel.json", .dir = "/p", .path = "/p/x" };
static const struct json_value at = { .type = JSON_STRING, .at = { 1, 1 }, .origin = &file };

#define SAID(t) ((struct said){ (t), &at })
#define STRANGE "a \"$HOME\" {env:X} ${Y} \\ \t"

static struct mcp_server server(const char *name, const char *token)
{
	struct mcp_server s = { .name = SAID(name), .command = SAID("server") };

	vec_push(&s.args, SAID(STRANGE));
	vec_push(&s.env, ((struct named){ "TOKEN", SAID(token) }));
	vec_push(&s.env, ((struct named){ "PLAIN", SAID(STRANGE) }));
	return s;
}

static struct agent agent(const char *harness)
{
	struct agent a = { .name = SAID("one"), .harness = SAID(harness) };

	a.model = SAID("anthropic/some-model");
	a.effort = SAID("high");
	a.prompt = SAID("the prompt");
	a.role_text = "the role";
	vec_push(&a.use_mcp_servers, server("docs", "${HOST}"));
	return a;
}

static struct request assembled(const struct harness *h, const struct agent *a, bool headless)
{
	struct job job = { .agent = a,
		.program = "/usr/bin/client",
		.home = "/home/u",
		.workspace = "/p",
		.headless = headless };
	struct request r = { 0 };

	harness_assemble(h, &job, &r);
	return r;
}

static const char *file_of(const struct request *r, const char *target)
{
	vec_each(f, &r->files) {
		if (strcmp(f->target, target) != 0)
			continue;
		assert_false(f->rw);
		return f->text;
	}
	fail_msg("no file %s", target);
	return NULL;
}

static const struct request_env *variable(const struct request *r, const char *name)
{
	const struct request_env *found = NULL;

	vec_each(e, &r->env)
		if (!strcmp(e->name, name))
			found = e;
	return found;
}

static bool says(const struct request *r, const char *text)
{
	for (const char *const *word = r->argv; *word; word++)
		if (strstr(*word, text))
			return true;
	return false;
}

static void engine_of_the_agent(void **state)
{
	struct agent a = agent("codex");

	(void)state;
	a.engine = SAID("other");
	assert_string_equal(assembled(&harness_codex, &a, false).engine, "other");
}

/* The prompt is in a file, whoever the client is and however it is started. */
static void prompt_is_no_argument(void **state)
{
	static const struct harness *const all[] = { &harness_codex, &harness_gemini,
		&harness_opencode };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(all); i++) {
		struct agent a = agent(all[i / 2]->name);
		struct request r = assembled(all[i / 2], &a, i % 2);

		assert_false(says(&r, "the prompt"));
		assert_string_equal(file_of(&r, HARNESS_PROMPT), "the prompt");
		if (i % 2)
			assert_string_equal(r.input, HARNESS_PROMPT);
		else
			assert_true(says(&r, HARNESS_PROMPT));
	}
}

static const char *text_at(const struct json_value *v, const char *const *path)
{
	for (; *path; path++)
		v = json_member(v, *path);
	assert_non_null(v);
	return v->text;
}

static void codex_config(void **state)
{
	struct agent a = agent("codex");
	struct request r = assembled(&harness_codex, &a, true);
	const char *text = file_of(&r, "~/.codex/config.toml");

	(void)state;
	assert_non_null(strstr(text,
		"\n[mcp_servers.\"docs\"]\n\"command\" = \"server\"\n"
		"\"args\" = [\"a \\\"$HOME\\\" {env:X} ${Y} \\\\ \\u0009\"]\n"
		"\"env_vars\" = [\"TOKEN\"]\n"));
	assert_null(strstr(text, "HOST"));
	assert_string_equal(variable(&r, "TOKEN")->value, "HOST");
	assert_int_equal(variable(&r, "TOKEN")->how, ENV_COPY);
	assert_null(variable(&r, "PLAIN"));
	assert_non_null(strstr(text, "\"exclude\" = [\"CODEX_API_KEY\", \"TOKEN\"]"));
}

static void gemini_config(void **state)
{
	static const char *const token[] = { "mcpServers", "docs", "env", "TOKEN", NULL };
	static const char *const plain[] = { "mcpServers", "docs", "env", "PLAIN", NULL };
	struct agent a = agent("gemini");
	struct request r = assembled(&harness_gemini, &a, true);
	const struct json_value *tree = parsed(file_of(&r, "~/.gemini/settings.json"));
	const char *reference = text_at(tree, token);
	const struct request_env *e;

	(void)state;
	assert_true(str_starts(reference, "${CARREL_VALUE_"));
	e = variable(&r, mem_strndup(reference + 2, strlen(reference) - 3));
	assert_int_equal(e->how, ENV_COPY);
	assert_string_equal(e->value, "HOST");
	reference = text_at(tree, plain); /* it would be expanded as it stands */
	e = variable(&r, mem_strndup(reference + 2, strlen(reference) - 3));
	assert_string_equal(e->value, STRANGE);
}

static void opencode_config(void **state)
{
	static const char *const plain[] = { "mcp", "docs", "environment", "PLAIN", NULL };
	struct agent a = agent("opencode");
	struct request r = assembled(&harness_opencode, &a, true);
	const char *text = file_of(&r, HARNESS_DIR "/opencode.json");
	const struct json_value *tree = parsed(text);

	(void)state;
	assert_null(strstr(text, "{env:"));
	assert_string_equal(text_at(tree, plain), STRANGE);
	assert_null(strstr(text, "HOST"));
	assert_string_equal(variable(&r, "TOKEN")->value, "HOST");
}

/* Of two values for one variable neither could be right. */
static void one_value_for_a_name(void **state)
{
	struct agent a = agent("codex");
	problems bad = { 0 };

	(void)state;
	vec_push(&a.use_mcp_servers, server("more", "${HOST}"));
	harness_check_shared(&harness_codex, &a, &bad);
	assert_int_equal(bad.n, 0);
	vec_push(&a.use_mcp_servers, server("other", "literal"));
	harness_check_shared(&harness_codex, &a, &bad);
	assert_int_equal(bad.n, 0);
	vec_push(&a.use_mcp_servers, server("wrong", "?Which one"));
	harness_check_shared(&harness_codex, &a, &bad);
	assert_int_equal(bad.n, 1);
	assert_non_null(strstr(bad.v[0], "mcpServers.wrong.env.TOKEN"));
	vec_push(&a.env, ((struct named){ "TOKEN", SAID("${HOST}") }));
	harness_check_shared(&harness_codex, &a, &bad);
	assert_int_equal(bad.n, 2);
}

static void provider_of_the_model(void **state)
{
	struct agent a = agent("opencode");

	(void)state;
	assert_true(harness_opencode.wants(&a, "ANTHROPIC_API_KEY"));
	assert_false(harness_opencode.wants(&a, "OPENAI_API_KEY"));
	a.model = SAID("openai/some-model");
	assert_true(harness_opencode.wants(&a, "OPENAI_API_KEY"));
	assert_false(harness_opencode.wants(&a, "ANTHROPIC_API_KEY"));
	a.model = (struct said){ 0 };
	assert_true(harness_opencode.wants(&a, "OPENAI_API_KEY"));
}

static void toml(void **state)
{
	struct str out = { 0 };

	(void)state;
	toml_string(&out, "a\"b\\c\n\x7f \xc3\xa9 \xff");
	assert_string_equal(out.p, "\"a\\\"b\\\\c\\u000A\\u007F \xc3\xa9 \\uFFFD\"");
}

/* ---- logins ---- */

static void logins(void **state)
{
	static const struct {
		const struct harness *h;
		const char *good, *bad;
	} all[] = {
		{ &harness_codex,
			"{\"tokens\":{\"access_token\":\"KEEP\",\"refresh_token\":\"DROP\"}}",
			"{\"tokens\":{\"refresh_token\":\"DROP\"}}" },
		{ &harness_codex, "{\"OPENAI_API_KEY\":\"KEEP\"}",
			"{\"OPENAI_API_KEY\":null}" },
		{ &harness_gemini,
			"{\"access_token\":\"KEEP\",\"refresh_token\":\"DROP\",\"expiry_date\":"
			"1794810946437}",
			"{}" },
		{ &harness_opencode,
			"{\"a\":{\"type\":\"oauth\",\"access\":\"KEEP\",\"refresh\":\"DROP\"}}",
			"{}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const char *staged = all[i].h->stage_login(all[i].good);

		assert_non_null(strstr(staged, "KEEP"));
		assert_null(strstr(staged, "DROP"));
		assert_non_null(parsed(staged));
		assert_null(all[i].h->stage_login(all[i].bad));
		assert_null(all[i].h->stage_login("no JSON"));
	}
	assert_non_null(strstr(harness_gemini.stage_login(all[2].good), "1794810946437"));
}

/* ---- the network ---- */

static bool in_presets(const char *host)
{
	for (size_t i = 0; policy_preset(i); i++)
		for (size_t j = 0; j < policy_preset(i)->n; j++)
			if (!strcmp(policy_preset(i)->entry[j], host))
				return true;
	return false;
}

/* What a client reaches by default is one name each, and no more than its vendor's preset. */
static void own_hosts(void **state)
{
	(void)state;
	for (size_t i = 0; harness_all[i]; i++) {
		const struct harness *h = harness_all[i];
		struct job job = { .agent = &(struct agent){ 0 } };
		name_vec hosts = { 0 };

		harness_hosts(h, &job, &hosts);
		assert_int_equal(hosts.n > 0, h->program != NULL);
		vec_each(host, &hosts) {
			assert_null(strpbrk(*host, "*:/@"));
			assert_true(in_presets(*host) || h == &harness_opencode);
		}
	}
}

static void hosts_of_a_login(void **state)
{
	struct job job = { .agent = &(struct agent){ 0 },
		.login = "{\"openrouter\": {\"type\": \"api\", \"key\": \"k\"}, \"x\": {}}" };
	name_vec hosts = { 0 };

	(void)state;
	harness_hosts(&harness_opencode, &job, &hosts);
	assert_int_equal(hosts.n, 1);
	assert_string_equal(hosts.v[0], "openrouter.ai");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine_of_the_agent),
		cmocka_unit_test(codex_events),
		cmocka_unit_test(gemini_events),
		cmocka_unit_test(opencode_events),
		cmocka_unit_test(strange_events),
		cmocka_unit_test(prompt_is_no_argument),
		cmocka_unit_test(codex_config),
		cmocka_unit_test(gemini_config),
		cmocka_unit_test(opencode_config),
		cmocka_unit_test(one_value_for_a_name),
		cmocka_unit_test(provider_of_the_model),
		cmocka_unit_test(toml),
		cmocka_unit_test(logins),
		cmocka_unit_test(own_hosts),
		cmocka_unit_test(hosts_of_a_login),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
