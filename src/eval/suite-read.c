/*
 * eval/suite-read.c - from the text of a suite to its structure
 *
 * Public suites agree on little: ids are numbers, strings or missing, a prompt is also called
 * input or task, an assertion is a string or an object. So rows are read by what is in them.
 * Unknown keys of public formats are ignored, as their own tools do; in carrel's own format,
 * which says "version", they are errors. A value that could turn a verdict around is never
 * cast: should_trigger is true or false and nothing else.
 */
#include "eval/suite.h"
#include "eval/suite-reader.h"
#include "harness/harness.h"
#include "base/json-read.h"
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CONTAINERS "evals, cases, test_cases, queries or triggers"

static const char *const containers[] = { "evals", "cases", "test_cases", "queries",
	"triggers" };

/* ---- values ---- */

static const char *where(const struct suite_reader *r, struct json_at at)
{
	return mem_printf("%s:%u:%u", str_visible(r->path), at.line, at.column);
}

void suite_bad(struct suite_reader *r, struct json_at at, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	vec_push(r->errors, mem_printf("%s: %s", where(r, at), text));
}

const char *suite_text(struct suite_reader *r, const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	if (!m || m->type == JSON_NULL)
		return NULL;
	if (m->type == JSON_STRING)
		return m->text;
	suite_bad(r, m->at, "%s: expected a string, not %s", key, json_type_name(m->type));
	return NULL;
}

void suite_texts(struct suite_reader *r, const struct json_value *v, const char *key,
	text_vec *ret)
{
	const struct json_value *m = json_member(v, key);

	if (!m || m->type == JSON_NULL)
		return;
	if (m->type == JSON_STRING) {
		vec_push(ret, m->text);
		return;
	}
	if (m->type != JSON_LIST) {
		suite_bad(r, m->at, "%s: expected a list of strings, not %s", key,
			json_type_name(m->type));
		return;
	}
	json_each(item, m) {
		if (item->type == JSON_STRING)
			vec_push(ret, item->text);
		else
			suite_bad(r, item->at, "%s: expected a string, not %s", key,
				json_type_name(item->type));
	}
}

bool suite_path_is_safe(const char *path)
{
	if (!*path || *path == '/')
		return false;
	for (const char *at = path; *at;) {
		size_t n = strcspn(at, "/");

		if (n == 2 && at[0] == '.' && at[1] == '.')
			return false;
		at += n + (at[n] == '/');
	}
	return true;
}

static bool is_one_of(const char *word, const char *known)
{
	size_t n = strlen(word);

	for (const char *at = known; at; at = strchr(at, '|')) {
		at += *at == '|';
		if (!strncmp(at, word, n) && (at[n] == '|' || !at[n]))
			return true;
	}
	return false;
}

void suite_known(struct suite_reader *r, const struct json_value *v, const char *known)
{
	if (!r->strict || v->type != JSON_OBJECT)
		return;
	json_each(m, v)
		if (m->key[0] != '_' && m->key[0] != '$' && !is_one_of(m->key, known))
			suite_bad(r, m->key_at, "unknown key \"%s\"", str_visible(m->key));
}

static double number(struct suite_reader *r, const struct json_value *v, const char *key,
	double least)
{
	const struct json_value *m = json_member(v, key);

	if (!m || m->type == JSON_NULL)
		return 0;
	if (m->type == JSON_NUMBER && m->number >= least && m->number < 1e9)
		return m->number;
	suite_bad(r, m->at, "%s: expected a number from %g", key, least);
	return 0;
}

/* A number of seconds, or "10m". */
static unsigned long long duration(struct suite_reader *r, const struct json_value *v,
	const char *key)
{
	const struct json_value *m = json_member(v, key);
	unsigned long long seconds = 0;

	if (!m || m->type == JSON_NULL)
		return 0;
	if (m->type == JSON_NUMBER && m->number > 0 && m->number < 1e7)
		return (unsigned long long)(m->number + 0.999);
	if (m->type == JSON_STRING && str_parse_duration(m->text, &seconds) && seconds)
		return seconds;
	suite_bad(r, m->at, "%s: expected seconds, or a time such as \"10m\"", key);
	return 0;
}

/* ---- parts that cases and the whole suite have ---- */

static void read_limits(struct suite_reader *r, const struct json_value *v,
	struct suite_limits *ret)
{
	const struct json_value *limits = json_member(v, "limits");

	if (limits && limits->type != JSON_OBJECT) {
		suite_bad(r, limits->at, "limits: expected an object");
		return;
	}
	if (!limits)
		return;
	suite_known(r, limits, "time|idle|turns|usd");
	ret->time = duration(r, limits, "time");
	ret->idle = duration(r, limits, "idle");
	ret->turns = (unsigned long long)number(r, limits, "turns", 1);
	ret->usd = number(r, limits, "usd", 0);
}

static void read_network(struct suite_reader *r, const struct json_value *v, text_vec *ret)
{
	const struct json_value *network = json_member(v, "network");

	if (!network)
		return;
	if (network->type != JSON_OBJECT) {
		suite_bad(r, network->at, "network: expected an object with \"allow\"");
		return;
	}
	suite_known(r, network, "allow");
	suite_texts(r, network, "allow", ret);
}

void suite_files(struct suite_reader *r, const struct json_value *v, file_vec *ret)
{
	const struct json_value *files = json_member(v, "files");

	if (!files || files->type == JSON_NULL)
		return;
	if (files->type != JSON_LIST) {
		suite_bad(r, files->at, "files: expected a list of paths");
		return;
	}
	json_each(item, files) {
		bool pair = r->strict && item->type == JSON_OBJECT;
		const char *from = pair ? suite_text(r, item, "from") : item->text;
		const char *to = pair ? suite_text(r, item, "to") : item->text;

		if ((item->type != JSON_STRING && !pair) || !from || !to)
			suite_bad(r, item->at, "files: expected a path");
		else if (!suite_path_is_safe(to))
			suite_bad(r, item->at,
				"files: \"%s\" must be a relative path with no \"..\"",
				str_visible(to));
		else
			vec_push(ret, ((struct suite_file){ from, to, where(r, item->at) }));
	}
}

/* ---- assertions ---- */

static bool is_there(const grader_vec *list, const char *text)
{
	vec_each(g, list)
		if (g->kind == GRADE_MODEL && !strcmp(g->text, text))
			return true;
	return false;
}

static void read_assertion(struct suite_reader *r, const struct json_value *v, const char *key,
	grader_vec *ret)
{
	static const char *const sentences[] = { "text", "description" };
	const char *text = v->type == JSON_STRING ? v->text : NULL;

	for (size_t i = 0; v->type == JSON_OBJECT && !text && i < ARRAY_SIZE(sentences); i++) {
		const struct json_value *m = json_member(v, sentences[i]);

		text = m && m->type == JSON_STRING ? m->text : NULL;
	}
	if (!text || !text[strspn(text, " \t\n")])
		suite_bad(r, v->at,
			"%s: expected a sentence, or an object with \"text\" or "
			"\"description\"",
			key);
	else if (!is_there(ret, text)) /* one author's suites say everything twice */
		vec_push(ret, ((struct grader){ .kind = GRADE_MODEL, .text = text }));
}

static void read_assertions(struct suite_reader *r, const struct json_value *v, grader_vec *ret)
{
	static const char *const keys[] = { "expectations", "assertions", "rubric",
		"expected_behavior" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct json_value *list = json_member(v, keys[i]);

		if (!list || list->type == JSON_NULL)
			continue;
		if (list->type == JSON_STRING)
			read_assertion(r, list, keys[i], ret);
		else if (list->type != JSON_LIST)
			suite_bad(r, list->at, "%s: expected a list of sentences, not %s",
				keys[i], json_type_name(list->type));
		else
			json_each(item, list)
				read_assertion(r, item, keys[i], ret);
	}
}

static void read_graders(struct suite_reader *r, const struct json_value *v, grader_vec *ret)
{
	const struct json_value *list = r->strict ? json_member(v, "graders") : NULL;

	if (list && list->type != JSON_LIST)
		suite_bad(r, list->at, "graders: expected a list of objects");
	else if (list)
		json_each(item, list)
			suite_grader(r, item, ret);
}

/* ---- rows ---- */

static const char *first_text(struct suite_reader *r, const struct json_value *v,
	const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (json_member(v, keys[i]))
			return suite_text(r, v, keys[i]);
	return NULL;
}

/* NULL: it has none, and gets one when all rows are known. */
static const char *read_id(struct suite_reader *r, const struct json_value *v)
{
	static const char *const keys[] = { "id", "eval_id" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct json_value *m = json_member(v, keys[i]);

		if (!m || m->type == JSON_NULL)
			continue;
		if (m->type == JSON_STRING && *m->text)
			return m->text;
		if (m->type == JSON_NUMBER && m->number >= 0 && m->number < 1e15 &&
			m->number == (double)(long long)m->number)
			return mem_printf("%.0f", m->number);
		suite_bad(r, m->at, "%s: expected a whole number or a string", keys[i]);
	}
	return NULL;
}

static void check_id(struct suite_reader *r, const struct json_value *v,
	const struct json_value *rows, const char *id)
{
	json_each(before, rows) {
		const char *other;

		if (before == v)
			return;
		if (before->type != JSON_OBJECT)
			continue;
		other = read_id(&(struct suite_reader){ .suite = r->suite,
					.path = r->path,
					.errors = &(suite_errors){ 0 } },
			before);
		if (!other || strcmp(other, id) != 0)
			continue;
		suite_bad(r, v->at, "the id \"%s\" is taken: line %u has it, too",
			str_visible(id), before->at.line);
		return;
	}
}

static void read_case(struct suite_reader *r, const struct json_value *v,
	const struct json_value *rows)
{
	static const char *const prompts[] = { "prompt", "input", "task" };
	struct suite_case c = { .where = where(r, v->at) };
	const char *prefix = suite_text(r, v, "state_prefix");

	suite_known(r, v,
		"id|eval_id|name|prompt|input|task|expected_output|state_prefix|files|setup|"
		"turns|limits|timeout|network|configurations|repeat|expectations|assertions|"
		"rubric|expected_behavior|graders");
	c.id = read_id(r, v);
	c.name = r->strict ? suite_text(r, v, "name") : NULL;
	if (!c.name && json_member(v, "name") && json_member(v, "name")->type == JSON_STRING)
		c.name = json_member(v, "name")->text;
	if (c.id)
		check_id(r, v, rows, c.id);
	c.prompt = first_text(r, v, prompts, ARRAY_SIZE(prompts));
	if (!c.prompt || !c.prompt[strspn(c.prompt, " \t\r\n")])
		suite_bad(r, v->at, "the prompt is empty");
	if (prefix && c.prompt)
		c.prompt = mem_printf("%s\n\n%s", prefix, c.prompt);
	if (json_member(v, "expected_output") &&
		json_member(v, "expected_output")->type == JSON_STRING)
		c.expected = json_member(v, "expected_output")->text;
	suite_files(r, v, &c.files);
	read_assertions(r, v, &c.graders);
	read_graders(r, v, &c.graders);
	c.limits.time = duration(r, v, "timeout");
	if (r->strict) {
		read_limits(r, v, &c.limits);
		read_network(r, v, &c.allow);
		suite_texts(r, v, "setup", &c.setups);
		suite_texts(r, v, "turns", &c.turns);
		suite_texts(r, v, "configurations", &c.configurations);
		c.repeat = (unsigned int)number(r, v, "repeat", 1);
	}
	vec_push(&r->suite->cases, c);
}

static void read_query(struct suite_reader *r, const struct json_value *v)
{
	static const char *const keys[] = { "query", "prompt" };
	const struct json_value *should = json_member(v, "should_trigger");
	const char *query = first_text(r, v, keys, ARRAY_SIZE(keys));

	if (should->type != JSON_BOOL)
		suite_bad(r, should->at, "should_trigger: expected true or false, not %s",
			json_type_name(should->type));
	if (!query || !query[strspn(query, " \t\r\n")])
		suite_bad(r, v->at, "the query is empty");
	vec_push(&r->suite->queries, ((struct suite_query){ query, should->boolean }));
}

static bool has_key(const struct json_value *v, const char *key)
{
	return json_member(v, key) != NULL;
}

/* What the format is called, by the first row that tells. */
static const char *kind_of(const struct json_value *v)
{
	if (has_key(v, "should_trigger"))
		return "triggers";
	if (has_key(v, "input") || has_key(v, "rubric"))
		return "bmad-v2";
	if (has_key(v, "id") && json_member(v, "id")->type == JSON_NUMBER)
		return "skill-creator";
	return "bmad";
}

static void read_rows(struct suite_reader *r, const struct json_value *rows)
{
	size_t n = 0;

	json_each(v, rows) {
		if (++n > SUITE_ROWS) {
			suite_bad(r, v->at, "more than %d rows", SUITE_ROWS);
			return;
		}
		if (v->type != JSON_OBJECT) {
			suite_bad(r, v->at, "expected an object, not %s",
				json_type_name(v->type));
			continue;
		}
		if (!r->suite->kind)
			r->suite->kind = kind_of(v);
		if (has_key(v, "should_trigger"))
			read_query(r, v);
		else if (has_key(v, "prompt") || has_key(v, "input") || has_key(v, "task"))
			read_case(r, v, rows);
		else
			suite_bad(r, v->at,
				"neither a case (prompt, input or task) nor a trigger query "
				"(query and should_trigger)");
	}
}

/* ---- the whole ---- */

static const char *read_harness(struct suite_reader *r, const struct json_value *v)
{
	const char *name = suite_text(r, v, "harness");

	if (name && !harness_find(name))
		suite_bad(r, json_member(v, "harness")->at,
			"harness: there is no client \"%s\"", str_visible(name));
	return name;
}

static void read_configuration(struct suite_reader *r, const struct json_value *v)
{
	struct suite_configuration c = { .name = v->key, .where = where(r, v->at) };
	const struct json_value *skill = json_member(v, "skill");

	if (v->type != JSON_OBJECT) {
		suite_bad(r, v->at, "configurations.%s: expected an object",
			str_visible(v->key));
		return;
	}
	if (!*v->key || v->key[strspn(v->key, "abcdefghijklmnopqrstuvwxyz0123456789_-")])
		suite_bad(r, v->key_at,
			"configurations: a name is small letters, digits, '_' and '-'");
	suite_known(r, v, "skill|model|harness");
	c.no_skill = skill && skill->type == JSON_BOOL && !skill->boolean;
	if (skill && skill->type != JSON_BOOL)
		c.skill = suite_text(r, v, "skill");
	c.model = suite_text(r, v, "model");
	c.harness = read_harness(r, v);
	vec_push(&r->suite->configurations, c);
}

static void read_agent(struct suite_reader *r, const struct json_value *v)
{
	const struct json_value *agent = json_member(v, "agent");
	const char *profile;

	if (!agent)
		return;
	suite_known(r, agent, "harness|model|profile|command");
	r->suite->harness = read_harness(r, agent);
	r->suite->model = suite_text(r, agent, "model");
	suite_texts(r, agent, "command", &r->suite->command);
	profile = suite_text(r, agent, "profile");
	if (profile && strcmp(profile, "pure") != 0 && strcmp(profile, "realistic") != 0)
		suite_bad(r, json_member(agent, "profile")->at,
			"profile: expected \"pure\" or \"realistic\"");
	r->suite->realistic = profile && !strcmp(profile, "realistic") ? profile : NULL;
}

static void read_whole(struct suite_reader *r, const struct json_value *v)
{
	const struct json_value *configurations = json_member(v, "configurations");
	const struct json_value *version = json_member(v, "version");

	if (version->type != JSON_NUMBER || version->number != 1)
		suite_bad(r, version->at, "version: this carrel reads version 1");
	suite_known(r, v,
		"version|skill|project|agent|configurations|repeat|limits|network|control|"
		"cases|"
		"evals|test_cases|queries|triggers");
	r->suite->kind = "carrel";
	/* What the command line has named is not asked for again. */
	if (!r->suite->skill.name)
		r->suite->skill.dir = suite_text(r, v, "skill");
	if (!r->suite->project)
		r->suite->project = suite_text(r, v, "project");
	r->suite->control = suite_text(r, v, "control");
	r->suite->repeat = (unsigned int)number(r, v, "repeat", 1);
	read_agent(r, v);
	read_limits(r, v, &r->suite->limits);
	read_network(r, v, &r->suite->allow);
	if (configurations && configurations->type != JSON_OBJECT)
		suite_bad(r, configurations->at, "configurations: expected an object");
	else if (configurations)
		json_each(c, configurations)
			read_configuration(r, c);
}

static void read_tree(struct suite_reader *r, const struct json_value *tree)
{
	size_t n = 0, before = r->suite->cases.n + r->suite->queries.n;

	if (tree->type == JSON_LIST) {
		read_rows(r, tree);
		n++;
	} else if (tree->type == JSON_OBJECT) {
		r->strict = has_key(tree, "version") &&
			(has_key(tree, "cases") || has_key(tree, "triggers"));
		if (r->strict)
			read_whole(r, tree);
		for (size_t i = 0; i < ARRAY_SIZE(containers); i++) {
			const struct json_value *rows = json_member(tree, containers[i]);

			if (!rows || rows->type != JSON_LIST)
				continue;
			read_rows(r, rows);
			n++;
		}
	}
	if (!n)
		suite_bad(r, tree->at,
			"no suite that carrel knows: expected a list of cases or queries, or "
			"an object with a list " CONTAINERS);
	else if (r->suite->cases.n + r->suite->queries.n == before && !r->errors->n)
		suite_bad(r, tree->at, "there is no case and no query in it");
}

int suite_read(struct suite *s, const char *path, const char *bytes, size_t n,
	suite_errors *errors)
{
	struct suite_reader r = { .suite = s, .path = path, .errors = errors };
	const struct json_value *tree;
	json_errors bad = { 0 };
	size_t before = errors->n;

	if (json_read(bytes, n, NULL, &tree, &bad) < 0)
		vec_each(e, &bad)
			suite_bad(&r, e->at, "%s", e->text);
	else
		read_tree(&r, tree);
	return errors->n > before ? -EINVAL : 0;
}

/* ---- names ---- */

static bool is_taken(const struct suite *s, const char *id, bool safe)
{
	vec_each(c, &s->cases) {
		const char *other = safe ? c->safe : c->id;

		if (other && !strcmp(other, id))
			return true;
	}
	return false;
}

/* An id as the name of a directory; two that differ in what is dropped get numbers. */
static const char *safe_form(const struct suite *s, const char *id)
{
	struct str out = { 0 };
	const char *first;

	for (const char *at = id; *at && out.len < 60; at++)
		str_addc(&out,
			(*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
					(*at >= '0' && *at <= '9') || *at == '_' ||
					(*at == '.' && out.len)
				? *at
				: '-');
	first = out.p;
	for (unsigned int i = 2; is_taken(s, out.p, true); i++)
		out.p = mem_printf("%s-%u", first, i);
	return out.p;
}

void suite_finish(struct suite *s, suite_errors *errors)
{
	s->numbered = s->cases.n > 0;
	s->repeat = s->repeat ? s->repeat : SUITE_REPEAT;
	for (size_t i = 0; i < s->cases.n; i++) {
		struct suite_case *c = &s->cases.v[i];

		if (!c->id && c->name && *c->name && !is_taken(s, c->name, false))
			c->id = c->name;
		for (size_t n = i + 1; !c->id; n += s->cases.n)
			if (!is_taken(s, mem_printf("%zu", n), false))
				c->id = mem_printf("%zu", n);
		if (c->id[strspn(c->id, "0123456789")] || strlen(c->id) > 15)
			s->numbered = false;
		c->safe = safe_form(s, c->id);
		vec_each(name, &c->configurations) {
			bool known = false;

			vec_each(k, &s->configurations)
				known |= !strcmp(k->name, *name);
			if (!known)
				vec_push(errors,
					mem_printf("%s: there is no configuration \"%s\"",
						c->where, str_visible(*name)));
		}
	}
}
