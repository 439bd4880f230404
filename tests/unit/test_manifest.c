/*
 * tests/unit/test_manifest.c - from the text of a manifest to an agent, without a file
 *
 * What a whole program shows better (files, libraries, plans, the wording of errors) is in
 * tests/golden/manifests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/env-forms.h"
#include "harness/harness.h"
#include "manifest/keys.h"
#include "manifest/manifest.h"

static struct manifest_file project, user;

/* A file as manifest/read.c would have it, and what is wrong with it. */
static struct manifest_file *file(struct manifest_file *f, const char *text, problems *bad)
{
	json_errors errors = { 0 };

	*f = (struct manifest_file){ .path = "/proj/carrel.json",
		.dir = f == &project ? "/proj" : "/home/me/.config/carrel",
		.name = f == &project ? "carrel.json" : "user.json",
		.project = f == &project,
		.bytes = text,
		.size = strlen(text) };
	if (json_read(text, f->size, f, &f->tree, &errors) < 0)
		fail_msg("%s: %s", text, errors.v[0].text);
	manifest_check(f, manifest_keys, bad);
	return f;
}

static struct manifests both(const char *of_project, const char *of_user)
{
	problems bad = { 0 };
	struct manifests m = {
		.project = of_project ? file(&project, of_project, &bad) : NULL,
		.user = of_user ? file(&user, of_user, &bad) : NULL,
	};

	if (bad.n)
		fail_msg("%s", bad.v[0]);
	return m;
}

static struct agent compose(const struct manifests *m, const char *name)
{
	struct agent a = { 0 };
	problems bad = { 0 };
	struct fault f = { 0 };

	if (manifest_agent(m, name, &a, &bad, &f) < 0)
		fail_msg("%s", bad.n ? bad.v[0] : f.text);
	assert_int_equal(bad.n, 0);
	return a;
}

static struct agent agent(const char *text)
{
	struct manifests m = both(text, NULL);

	return compose(&m, "a");
}

/* The values of a list, with commas. */
static const char *joined(const said_vec *list)
{
	struct str s = { 0 };

	str_add(&s, "");
	vec_each(item, list)
		str_addf(&s, "%s%s", s.len ? "," : "", item->text);
	return s.p;
}

/* ---- the key table ---- */

static void check_keys(const struct key *keys)
{
	for (const struct key *k = keys; k->name; k++) {
		assert_ptr_equal(key_find(keys, k->name), k);
		assert_true(k->type != KEY_END);
		assert_true(k->doc && *k->doc && k->doc[strlen(k->doc) - 1] == '.');
		assert_int_equal(k->type == KEY_CHOICE, k->choices != NULL);
		assert_int_equal(k->type == KEY_OBJECT || k->type == KEY_OBJECTS ||
				k->type == KEY_MAP,
			k->keys != NULL);
		assert_int_equal(k->type == KEY_OBJECTS || k->type == KEY_MAP, k->size != 0);
		if (k->joins)
			assert_true(k->type == KEY_STRINGS || k->type == KEY_OBJECTS);
		if (k->shorthand)
			assert_non_null(key_find(k->keys, k->shorthand));
		if (k->keys)
			check_keys(k->keys);
	}
}

static void test_table(void **state)
{
	check_keys(manifest_keys);
	assert_null(key_find(manifest_keys, "agent"));
	assert_non_null(key_find(manifest_keys, "agents"));
}

/* A default in the table is a value that its key takes. */
static void test_defaults(void **state)
{
	for (const struct key *k = agent_keys; k->name; k++) {
		problems bad = { 0 };

		if (k->standard)
			file(&project,
				mem_printf("{\"agents\": {\"a\": {\"%s\": %s}}}", k->name,
					k->standard),
				&bad);
		assert_int_equal(bad.n, 0);
	}
}

/* ---- binding ---- */

static void test_bind(void **state)
{
	struct agent a = agent(
		"{\"agents\": {\"a\": {\n"
		"\"model\": \"opus\", \"args\": [\"x\", \"y z\"],\n"
		"\"permissions\": {\"skipPrompts\": false, \"allow\": [\"r\"]},\n"
		"\"env\": {\"A\": \"1\", \"B\": \"\"},\n"
		"\"mounts\": [{\"source\": \"s\", \"mode\": \"rw\"}, {\"source\": \"t\"}],\n"
		"\"limits\": {\"time\": \"1h30m\", \"scratch\": \"2G\", \"pids\": 7, "
		"\"files\": 1e3, \"cpus\": 1.5}}}}");

	assert_string_equal(a.name.text, "a");
	assert_string_equal(a.model.text, "opus");
	assert_int_equal(a.model.at->at.line, 2);
	assert_ptr_equal(manifest_origin(&a.model), &project);
	assert_null(a.effort.text);
	assert_null(a.prompt.at);
	assert_string_equal(joined(&a.args), "x,y z");
	assert_int_equal(a.permissions.skip_prompts, FLAG_OFF);
	assert_int_equal(a.network.ask, FLAG_UNSAID);
	assert_string_equal(joined(&a.permissions.allow), "r");
	assert_int_equal(a.env.n, 2);
	assert_string_equal(a.env.v[1].name, "B");
	assert_string_equal(a.env.v[1].value.text, "");
	assert_int_equal(a.mounts.n, 2);
	assert_string_equal(a.mounts.v[0].mode.text, "rw");
	assert_string_equal(a.mounts.v[1].source.text, "t");
	assert_null(a.mounts.v[1].mode.text);
	assert_int_equal(a.limits.time, 5400);
	assert_int_equal(a.limits.scratch, 2ULL << 30);
	assert_int_equal(a.limits.pids, 7);
	assert_int_equal(a.limits.files, 1000);
	assert_true(a.limits.cpus == 1.5);
	assert_int_equal(a.limits.memory, 0);
}

static void test_shorthand(void **state)
{
	struct agent a = agent("{\"agents\": {\"a\": {\"network\": \"host\"}}}");
	struct agent b = agent("{\"agents\": {\"a\": {\"network\": {\"mode\": \"host\"}}}}");

	assert_string_equal(a.network.mode.text, "host");
	assert_string_equal(b.network.mode.text, "host");
	assert_null(a.workspace.mode.text);
}

/* ---- composing ---- */

static void test_extends(void **state)
{
	struct agent a = agent(
		"{\"agents\": {\"base\": {\"model\": \"m\", \"effort\": \"low\", "
		"\"skills\": [\"x\", \"y\"], \"tools\": [\"T\"], \"env\": {\"A\": \"1\", "
		"\"B\": \"1\"}, \"network\": \"host\", \"limits\": {\"pids\": 1, \"files\": "
		"2}},"
		"\"a\": {\"extends\": \"base\", \"effort\": \"high\", \"skills\": [\"y\", "
		"\"z\"], "
		"\"tools\": [\"U\"], \"env\": {\"B\": \"2\"}, \"network\": {\"ask\": true}, "
		"\"limits\": {\"files\": 3}}}}");

	assert_string_equal(a.model.text, "m");
	assert_string_equal(a.effort.text, "high");
	assert_string_equal(joined(&a.skills), "x,y,z");
	assert_string_equal(joined(&a.tools), "U");
	assert_int_equal(a.env.n, 2);
	assert_string_equal(a.env.v[1].value.text, "2");
	assert_string_equal(a.network.mode.text, "host");
	assert_int_equal(a.network.ask, FLAG_ON);
	assert_int_equal(a.limits.pids, 1);
	assert_int_equal(a.limits.files, 3);
}

/* What is composed leaves what it was composed from as it was. */
static void test_extends_twice(void **state)
{
	struct manifests m = both(
		"{\"agents\": {\"base\": {\"skills\": [\"x\"], \"env\": {\"A\": \"1\"}},"
		"\"a\": {\"extends\": \"base\", \"skills\": [\"y\"], \"env\": {\"A\": \"2\"}},"
		"\"b\": {\"extends\": \"base\", \"skills\": [\"z\"]}}}",
		NULL);
	struct agent a = compose(&m, "a"), b = compose(&m, "b"), base = compose(&m, "base");

	assert_string_equal(joined(&a.skills), "x,y");
	assert_string_equal(joined(&b.skills), "x,z");
	assert_string_equal(b.env.v[0].value.text, "1");
	assert_string_equal(joined(&base.skills), "x");
	assert_string_equal(base.env.v[0].value.text, "1");
	a = compose(&m, "a");
	assert_string_equal(joined(&a.skills), "x,y");
}

/* A row of agents of which each extends the next. */
static const char *row(unsigned int n)
{
	struct str s = { 0 };

	str_add(&s, "{\"agents\": {\"a\": {\"extends\": \"a1\"}");
	for (unsigned int i = 1; i < n; i++)
		str_addf(&s, ", \"a%u\": {\"args\": [\"%u\"]%s%s}", i, i,
			i + 1 < n ? ", \"extends\": " : "",
			i + 1 < n ? mem_printf("\"a%u\"", i + 1) : "");
	str_add(&s, "}}");
	return s.p;
}

static int compose_row(unsigned int n, problems *bad)
{
	struct manifests m = both(row(n), NULL);
	struct agent a = { .name.text = "untouched" };
	struct fault f = { 0 };
	int rc = manifest_agent(&m, "a", &a, bad, &f);

	assert_string_equal(a.name.text, rc < 0 ? "untouched" : "a");
	return rc;
}

static void test_long_row(void **state)
{
	problems bad = { 0 };

	assert_int_equal(compose_row(32, &bad), 0);
	assert_int_equal(bad.n, 0);
	assert_int_equal(compose_row(33, &bad), -EINVAL);
	assert_non_null(strstr(bad.v[0], "more than 32 agents in a row"));
}

static void test_two_files(void **state)
{
	struct manifests m = both(
		"{\"agents\": {\"a\": {\"model\": \"project\"}, \"c\": {\"extends\": \"b\"}}}",
		"{\"agents\": {\"a\": {\"effort\": \"user\"}, \"b\": {\"role\": \"r\"}}}");
	struct agent a = compose(&m, "a"), c = compose(&m, "c");
	said_vec names = { 0 };

	assert_string_equal(a.model.text, "project");
	assert_null(a.effort.text);
	assert_string_equal(c.role.text, "r");
	assert_ptr_equal(manifest_origin(&c.role), &user);
	assert_ptr_equal(manifest_origin(&c.name), &project);
	manifest_names(&m, &names);
	assert_string_equal(joined(&names), "a,c,b");
}

static void test_no_agent(void **state)
{
	struct manifests m = both("{\"agents\": {\"reviewer\": {}}}", NULL);
	struct agent a = { 0 };
	problems bad = { 0 };
	struct fault f = { 0 };

	assert_true(manifest_agent(&m, "reviwer", &a, &bad, &f) < 0);
	assert_int_equal(bad.n, 0);
	assert_non_null(strstr(f.text, "did you mean \"reviewer\""));
}

/* ---- problems ---- */

static bool printable(const char *line)
{
	size_t n = strlen(line), len;

	for (size_t i = 0; i < n; i += len) {
		len = utf8_length(line + i, n - i);
		if (!len || (unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			return false;
	}
	return true;
}

/* However long a name or value, its line is short, and ends no character in the middle. */
static void test_long_texts(void **state)
{
	for (int shift = 0; shift < 4; shift++) {
		struct str long_text = { 0 };
		problems bad = { 0 };
		struct manifests m;
		struct agent a;
		struct fault f;

		str_addn(&long_text, "xxx", (size_t)shift);
		for (int i = 0; i < 5000; i++)
			str_add(&long_text, "\xe2\x82\xac");
		file(&project,
			mem_printf("{\"agents\": {\"a\": {\"harness\": \"%s\", \"%s\": 1, "
				   "\"env\": {\"%s\": 2}}, \"%s\": {}}}",
				long_text.p, long_text.p, long_text.p, long_text.p),
			&bad);
		assert_int_equal(bad.n, 5);
		m = both(mem_printf("{\"agents\": {\"a\": {\"extends\": \"%s\"}}}",
				 long_text.p),
			NULL);
		assert_int_equal(manifest_agent(&m, "a", &a, &bad, &f), -EINVAL);
		vec_each(line, &bad) {
			assert_true(printable(*line));
			assert_true(strlen(*line) < 1200);
		}
	}
}

static void test_most_problems(void **state)
{
	problems bad = { 0 };

	for (int i = 0; i < 500; i++)
		problem_add(&bad, "one");
	assert_int_equal(bad.n, 101);
	assert_string_equal(bad.v[99], "one");
	assert_string_equal(bad.v[100], "and more");
}

/* ---- the forms of a value ---- */

static struct said said(struct manifest_file *in, const char *text)
{
	struct json_value *v = mem_alloc(sizeof(*v));

	in->project = in == &project;
	in->dir = in->project ? "/proj" : "/home/me/.config/carrel";
	in->name = "carrel.json";
	*v = (struct json_value){
		.type = JSON_STRING, .at = { 3, 7 }, .origin = in, .text = text
	};
	return (struct said){ .text = text, .at = v };
}

static struct request_env form(const char *text)
{
	struct said value = said(&project, text);

	return env_entry("NAME", &value, "agents.a.env.NAME");
}

static void test_env_forms(void **state)
{
	static const struct {
		const char *text;
		enum env_how how;
		const char *value;
	} forms[] = {
		{ "", ENV_LITERAL, "" },
		{ "x", ENV_LITERAL, "x" },
		{ "?", ENV_PROMPT, "" },
		{ "?Which token", ENV_PROMPT, "Which token" },
		{ "??", ENV_PROMPT, "?" },
		{ "?${X}", ENV_PROMPT, "${X}" },
		{ " ?", ENV_LITERAL, " ?" },
		{ "${X}", ENV_COPY, "X" },
		{ "${_a9}", ENV_COPY, "_a9" },
		{ "${X", ENV_LITERAL, "${X" },
		{ "${X}}", ENV_LITERAL, "${X}}" },
		{ "${X} ", ENV_LITERAL, "${X} " },
		{ "a${X}", ENV_LITERAL, "a${X}" },
		{ "${1X}", ENV_LITERAL, "${1X}" },
		{ "${}", ENV_LITERAL, "${}" },
		{ "${X-y}", ENV_LITERAL, "${X-y}" },
		{ "${\xc3\xa9}", ENV_LITERAL, "${\xc3\xa9}" },
		{ "$X", ENV_LITERAL, "$X" },
		{ "\\?x", ENV_LITERAL, "?x" },
		{ "\\!x", ENV_LITERAL, "!x" },
		{ "\\${X}", ENV_LITERAL, "${X}" },
		{ "\\${1X}", ENV_LITERAL, "\\${1X}" },
		{ "\\\\", ENV_LITERAL, "\\" },
		{ "\\\\x", ENV_LITERAL, "\\x" },
		{ "\\\\?x", ENV_LITERAL, "\\?x" },
		{ "\\x", ENV_LITERAL, "\\x" },
		{ "\\", ENV_LITERAL, "\\" },
		{ "C:\\dir", ENV_LITERAL, "C:\\dir" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct request_env e = form(forms[i].text);

		if (e.how != forms[i].how || strcmp(e.value, forms[i].value) != 0)
			fail_msg("%s: %d '%s'", forms[i].text, (int)e.how, e.value);
		assert_string_equal(e.name, "NAME");
		assert_int_equal(e.from, ENV_DECLARED);
		assert_string_equal(e.why, "carrel.json:3:7: agents.a.env.NAME");
	}
}

/* A literal can be any text: with a backslash in front where it would be something else. */
static void test_env_escape(void **state)
{
	static const char *const any[] = { "?", "!x", "${X}", "\\", "\\\\", "\\?", "\\${X}",
		"\\!", "x", "", "$", "${" };

	for (size_t i = 0; i < ARRAY_SIZE(any); i++) {
		bool plain =
			form(any[i]).how == ENV_LITERAL && !strcmp(form(any[i]).value, any[i]);
		struct request_env e = form(plain ? any[i] : mem_printf("\\%s", any[i]));

		assert_int_equal(e.how, ENV_LITERAL);
		assert_string_equal(e.value, any[i]);
	}
}

static void test_env_command(void **state)
{
	static const struct {
		const char *text, *words; /* with | between */
	} commands[] = {
		{ "!pass", "pass" },
		{ "! pass  show\tx\n", "pass|show|x" },
		{ "!pass 'a b' c", "pass|a b|c" },
		{ "!pass \"a b\"c", "pass|a bc" },
		{ "!pass ''", "pass|" },
		{ "!pass '' x", "pass||x" },
		{ "!pass a'b'\"c\"d", "pass|abcd" },
		{ "!pass 'a\\b'", "pass|a\\b" },
		{ "!pass \"a\\\"b\"", "pass|a\"b" },
		{ "!pass a\\ b", "pass|a b" },
		{ "!pass \\", "pass|\\" },
		{ "!pass $X;rm", "pass|$X;rm" },
		{ "!pass \"'\" '\"'", "pass|'|\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		struct request_env e = form(commands[i].text);
		struct str words = { 0 };

		assert_int_equal(e.how, ENV_COMMAND);
		assert_non_null(e.argv);
		for (size_t k = 0; e.argv[k]; k++)
			str_addf(&words, "%s%s", k ? "|" : "", e.argv[k]);
		assert_string_equal(words.p, commands[i].words);
	}
}

static size_t complaints(struct manifest_file *in, const char *text)
{
	struct said value = said(in, text);
	problems bad = { 0 };

	env_check(&value, "agents.a.env.NAME", &bad);
	vec_each(line, &bad)
		assert_true(printable(*line));
	return bad.n;
}

static void test_env_check(void **state)
{
	static const char *const good[] = { "!pass", "!/usr/bin/pass x", "!/project/x",
		"!pass 'x y'", "!pass ./relative argument", "x", "?", "${X}", "" };
	static const char *const wrong[] = { "!", "! ", "!'", "!pass 'x", "!pass \"x", "!''",
		"!./x", "!../x", "!a/b", "!~/x", "!\x1b/x" };
	static const char *const inside[] = { "!/proj/x", "!/proj/a/b", "!/proj/../proj/x",
		"!//proj//x", "!/tmp/../proj/x", "!/proj" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (complaints(&project, good[i]) || complaints(&user, good[i]))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (complaints(&project, wrong[i]) != 1 || complaints(&user, wrong[i]) != 1)
			fail_msg("accepted: %s", wrong[i]);
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++)
		if (complaints(&project, inside[i]) != 1 || complaints(&user, inside[i]) != 0)
			fail_msg("in the project: %s", inside[i]);
}

/* ---- Claude Code's login ---- */

static const struct json_value *staged(const char *text)
{
	const char *out = harness_claude.stage_login(text);
	const struct json_value *tree = NULL;
	json_errors errors = { 0 };

	if (!out)
		return NULL;
	if (json_read(out, strlen(out), NULL, &tree, &errors) < 0)
		fail_msg("%s: %s", out, errors.v[0].text);
	assert_null(strstr(out, "refresh"));
	return json_member(tree, "claudeAiOauth");
}

static void test_login(void **state)
{
	const struct json_value *v =
		staged("{\"claudeAiOauth\": {\"accessToken\": \"sk-a\", \"refreshToken\": "
		       "\"refresh-it\", "
		       "\"expiresAt\": 1790000000123, \"scopes\": [\"user:inference\", "
		       "\"user:profile\"], "
		       "\"subscriptionType\": \"max\"}, \"other\": {\"refresh\": 1}}");

	assert_non_null(v);
	assert_string_equal(json_member(v, "accessToken")->text, "sk-a");
	assert_null(json_member(v, "refreshToken"));
	assert_string_equal(json_member(v, "expiresAt")->text, "1790000000123");
	assert_string_equal(json_member(v, "subscriptionType")->text, "max");
	assert_string_equal(json_member(v, "scopes")->first->next->text, "user:profile");
}

static void test_login_least(void **state)
{
	assert_non_null(staged("{\"claudeAiOauth\": {\"accessToken\": \"sk-a\"}}"));
	assert_non_null(staged("{\"claudeAiOauth\": {\"accessToken\": \"\\u001b\\\"\"}}"));
}

static void test_login_unusable(void **state)
{
	static const char *const bad[] = { "", "x", "{", "{}", "[]", "null", "\"x\"",
		"{\"claudeAiOauth\": {}}", "{\"claudeAiOauth\": []}", "{\"claudeAiOauth\": 1}",
		"{\"claudeAiOauth\": {\"refreshToken\": \"x\"}}",
		"{\"claudeAiOauth\": {\"accessToken\": \"x\"}} x" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_null(harness_claude.stage_login(bad[i]));
}

/* ---- Claude Code's events ---- */

static struct harness_event event_of(const char *line)
{
	struct harness_event e = { .turns = 99 };
	const struct json_value *v = NULL;
	json_errors errors = { 0 };

	if (json_read(line, strlen(line), NULL, &v, &errors) < 0)
		fail_msg("%s", errors.v[0].text);
	harness_claude.event(v, &e);
	return e;
}

typedef VEC(struct harness_event) events;

static events sample(const char *name)
{
	char *text = fd_read_file(AT_FDCWD, mem_printf(SAMPLES "/%s.jsonl", name), 1 << 20);
	events list = { 0 };
	char *rest = NULL;

	assert_non_null(text);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		vec_push(&list, event_of(line));
	assert_true(list.n > 1);
	return list;
}

static const struct harness_event *last(const events *list)
{
	return &list->v[list->n - 1];
}

static void test_transcript(void **state)
{
	events list = sample("transcript");
	const struct harness_event *end = last(&list);
	size_t tools = 0, others = 0;

	assert_int_equal(list.v[0].kind, EVENT_START);
	assert_int_equal(list.v[1].kind, EVENT_TEXT);
	assert_string_equal(list.v[1].text, "The pdf skill fits; using it.");
	assert_int_equal(list.v[2].kind, EVENT_TOOL);
	assert_string_equal(list.v[2].tool, "Skill");
	assert_string_equal(list.v[2].skill, "pdf-skill-ab12cd34");
	vec_each(e, &list) {
		tools += e->kind == EVENT_TOOL;
		others += e->kind == EVENT_OTHER;
		assert_true(e->kind != EVENT_ERROR);
		assert_true(e->kind == EVENT_TOOL || (!e->tool && !e->skill));
		assert_true(e == end || (!e->turns && !e->input_tokens && !e->failed));
	}
	assert_true(tools >= 3 && others >= 2);
	assert_int_equal(end->kind, EVENT_RESULT);
	assert_false(end->failed);
	assert_int_equal(end->turns, 5);
	assert_int_equal(end->input_tokens, 30 + 87906);
	assert_int_equal(end->output_tokens, 158);
	assert_true(end->usd > 0.0288 && end->usd < 0.0289);
	assert_non_null(strstr(end->text, "Wrote report/brief.md."));
}

/* The sub-agent's tokens are in modelUsage and not in usage. */
static void test_sub_agent(void **state)
{
	events list = sample("e_agent");

	assert_int_equal(last(&list)->input_tokens, 50 + 70933);
	assert_int_equal(last(&list)->output_tokens, 115);
}

static void test_failures(void **state)
{
	events bad_request = sample("o_err400"), budget = sample("o_loop_budget");
	events refused = sample("o_err401"), good = sample("m_plug");

	/* Its subtype is "success". */
	assert_int_equal(last(&bad_request)->kind, EVENT_RESULT);
	assert_true(last(&bad_request)->failed);
	assert_string_equal(last(&bad_request)->text, "API Error: 400 mock 400");
	assert_true(last(&budget)->failed);
	assert_int_equal(last(&budget)->turns, 3);
	assert_int_equal(last(&refused)->kind, EVENT_ERROR);
	assert_string_equal(last(&refused)->text, "authentication_failed");
	assert_false(last(&good)->failed);
}

/* A box can print anything. */
static void test_hostile_events(void **state)
{
	static const char *const lines[] = { "null", "[]", "{}", "\"x\"", "{\"type\": 1}",
		"{\"type\": \"assistant\"}", "{\"type\": \"assistant\", \"message\": []}",
		"{\"type\": \"assistant\", \"message\": {\"content\": \"x\"}}",
		"{\"type\": \"assistant\", \"message\": {\"content\": [1]}}",
		"{\"type\": \"assistant\", \"message\": {\"content\": [{\"type\": null}]}}",
		"{\"type\": \"system\"}", "{\"type\": \"system\", \"subtype\": {}}" };
	struct harness_event e;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		e = event_of(lines[i]);
		assert_int_equal(e.kind, EVENT_OTHER);
		assert_int_equal(e.turns, 0);
	}
	e = event_of("{\"type\": \"assistant\", \"message\": {\"content\": [{\"type\": "
		     "\"tool_use\", \"name\": 1, \"input\": \"x\"}]}}");
	assert_int_equal(e.kind, EVENT_TOOL);
	assert_null(e.tool);
	e = event_of("{\"type\": \"assistant\", \"message\": {\"content\": [{\"type\": "
		     "\"tool_use\", \"name\": \"Skill\", \"input\": [1]}]}}");
	assert_string_equal(e.tool, "Skill");
	assert_null(e.skill);
	e = event_of("{\"type\": \"result\", \"is_error\": \"no\", \"num_turns\": -1, "
		     "\"result\": 1, \"total_cost_usd\": \"x\", \"modelUsage\": [1, \"x\"]}");
	assert_int_equal(e.kind, EVENT_RESULT);
	assert_false(e.failed);
	assert_int_equal(e.turns, 0);
	assert_null(e.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_bind),
		cmocka_unit_test(test_shorthand),
		cmocka_unit_test(test_extends),
		cmocka_unit_test(test_extends_twice),
		cmocka_unit_test(test_long_row),
		cmocka_unit_test(test_two_files),
		cmocka_unit_test(test_no_agent),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_most_problems),
		cmocka_unit_test(test_env_forms),
		cmocka_unit_test(test_env_escape),
		cmocka_unit_test(test_env_command),
		cmocka_unit_test(test_env_check),
		cmocka_unit_test(test_login),
		cmocka_unit_test(test_login_least),
		cmocka_unit_test(test_login_unusable),
		cmocka_unit_test(test_transcript),
		cmocka_unit_test(test_sub_agent),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_hostile_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
