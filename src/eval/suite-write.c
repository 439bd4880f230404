/*
 * eval/suite-write.c - a suite in carrel's own format
 */
#include "eval/suite.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>

static void write_texts(struct json *j, const char *key, const text_vec *list)
{
	if (!list->n)
		return;
	json_open(j, key, '[');
	vec_each(text, list)
		json_string(j, NULL, *text);
	json_close(j, ']');
}

static void write_limits(struct json *j, const struct suite_limits *l)
{
	if (!l->time && !l->idle && !l->turns && l->usd <= 0)
		return;
	json_open(j, "limits", '{');
	if (l->time)
		json_count(j, "time", l->time);
	if (l->idle)
		json_count(j, "idle", l->idle);
	if (l->turns)
		json_count(j, "turns", l->turns);
	if (l->usd > 0)
		json_raw(j, "usd", mem_printf("%.9g", l->usd));
	json_close(j, '}');
}

static void write_allow(struct json *j, const text_vec *allow)
{
	if (!allow->n)
		return;
	json_open(j, "network", '{');
	write_texts(j, "allow", allow);
	json_close(j, '}');
}

void suite_write_files(struct json *j, const file_vec *files)
{
	if (!files->n)
		return;
	json_open(j, "files", '[');
	vec_each(file, files) {
		json_open(j, NULL, '{');
		json_string(j, "from", file->from);
		json_string(j, "to", file->to);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void write_case(struct json *j, const struct suite_case *c)
{
	json_open(j, NULL, '{');
	json_string(j, "id", c->id);
	if (c->name)
		json_string(j, "name", c->name);
	json_string(j, "prompt", c->prompt);
	write_texts(j, "turns", &c->turns);
	if (c->expected)
		json_string(j, "expected_output", c->expected);
	suite_write_files(j, &c->files);
	write_texts(j, "setup", &c->setups);
	write_limits(j, &c->limits);
	write_allow(j, &c->allow);
	write_texts(j, "configurations", &c->configurations);
	if (c->repeat)
		json_count(j, "repeat", c->repeat);
	json_open(j, "graders", '[');
	vec_each(g, &c->graders)
		grader_write(j, g);
	json_close(j, ']');
	json_close(j, '}');
}

static void write_agent(struct json *j, const struct suite *s)
{
	json_open(j, "agent", '{');
	if (s->harness)
		json_string(j, "harness", s->harness);
	if (s->model)
		json_string(j, "model", s->model);
	json_string(j, "profile", s->realistic ? "realistic" : "pure");
	write_texts(j, "command", &s->command);
	json_close(j, '}');
}

static void write_configurations(struct json *j, const struct suite *s)
{
	json_open(j, "configurations", '{');
	vec_each(c, &s->configurations) {
		json_open(j, c->name, '{');
		if (c->no_skill)
			json_bool(j, "skill", false);
		else if (c->skill)
			json_string(j, "skill", c->skill);
		if (c->harness)
			json_string(j, "harness", c->harness);
		if (c->model)
			json_string(j, "model", c->model);
		json_close(j, '}');
	}
	json_close(j, '}');
}

void suite_write(const struct suite *s, struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '{');
	json_number(&j, "version", 1);
	if (s->skill.dir)
		json_string(&j, "skill", s->skill.dir);
	if (s->project)
		json_string(&j, "project", s->project);
	write_agent(&j, s);
	write_configurations(&j, s);
	json_count(&j, "repeat", s->repeat);
	write_limits(&j, &s->limits);
	write_allow(&j, &s->allow);
	if (s->control)
		json_string(&j, "control", s->control);
	json_open(&j, "cases", '[');
	vec_each(c, &s->cases)
		write_case(&j, c);
	json_close(&j, ']');
	json_open(&j, "triggers", '[');
	vec_each(q, &s->queries) {
		json_open(&j, NULL, '{');
		json_string(&j, "query", q->query);
		json_bool(&j, "should_trigger", q->should_trigger);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	str_addc(out, '\n');
}
