/*
 * eval/transcript-claude.c - Claude Code's stream-json
 *
 * There is one event for each block of a message, and all of them repeat the usage with which
 * the message began: to add those up would count the input many times and the output not at
 * all. usage of the result leaves sub-agents out; modelUsage and total_cost_usd have them.
 * Neither the exit code nor the subtype says whether it failed; is_error does.
 */
#include "eval/transcript.h"
#include "harness/json-event.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>

static bool is_true(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_BOOL && m->boolean;
}

static size_t length(const struct json_value *v)
{
	size_t n = 0;

	if (v && v->type == JSON_LIST)
		json_each(item, v)
			n++;
	return n;
}

static void read_init(struct transcript *t, const struct json_value *line)
{
	const struct json_value *tools = json_member(line, "tools");
	const struct json_value *skills = json_member(line, "skills");
	struct str names = { 0 };

	t->began = true;
	transcript_set(&t->version, event_text(line, "claude_code_version"));
	transcript_set(&t->model, event_text(line, "model"));
	if (tools && tools->type == JSON_LIST)
		json_each(tool, tools)
			t->has_skill_tool |=
				tool->type == JSON_STRING && !strcmp(tool->text, "Skill");
	if (skills && skills->type == JSON_LIST)
		json_each(skill, skills)
			if (skill->type == JSON_STRING && names.len < 10000)
				str_addf(&names, "%s\n", skill->text);
	transcript_set(&t->skills, names.p ? names.p : "");
}

static void read_block(struct transcript *t, const struct json_value *block)
{
	const struct json_value *input = json_member(block, "input");
	const char *name = event_text(block, "name"), *text = event_text(block, "text");

	if (event_is(block, "type", "text") && text) {
		t->text_bytes += strlen(text);
		transcript_set(&t->answer, text);
	} else if (event_is(block, "type", "tool_use") && name) {
		bool skill = !strcmp(name, "Skill");

		transcript_call(t, name, skill ? event_text(input, "skill") : NULL,
			!strcmp(name, "Read") ? event_text(input, "file_path") : NULL);
	}
}

static void read_message(struct transcript *t, const struct json_value *line)
{
	const struct json_value *message = json_member(line, "message");
	const struct json_value *content = json_member(message, "content");
	const char *id = event_text(message, "id");

	/* "Unknown command: /x" and "Not logged in" are the client's own words. */
	t->asked |= !event_is(message, "model", "<synthetic>");
	t->auth_failed |= event_is(line, "error", "authentication_failed") ||
		event_is(line, "error", "billing_error");
	if (!id || !t->last_message || strcmp(id, t->last_message) != 0) {
		t->steps++;
		transcript_set(&t->last_message, id);
	}
	if (content && content->type == JSON_LIST)
		json_each(block, content)
			read_block(t, block);
}

static void read_answers(struct transcript *t, const struct json_value *line)
{
	const struct json_value *content = json_member(json_member(line, "message"), "content");

	if (content && content->type == JSON_LIST)
		json_each(block, content)
			t->tool_errors += event_is(block, "type", "tool_result") &&
				is_true(block, "is_error");
}

static bool is_refused(const struct json_value *line, const char *status)
{
	unsigned long long code = event_count(line, status);

	return code == 401 || code == 403 || event_is(line, "error", "authentication_failed");
}

static void read_retry(struct transcript *t, const struct json_value *line)
{
	t->retries++;
	t->api_status = event_count(line, "error_status");
	transcript_set(&t->error, event_text(line, "error"));
	t->auth_failed |= is_refused(line, "error_status");
}

static void read_figures(struct transcript *t, const struct json_value *line)
{
	const struct json_value *models = json_member(line, "modelUsage");

	/* With several turns of the user's each has a result, and these grow from one to the
	 * next; the number of turns begins anew. */
	t->turns += event_count(line, "num_turns");
	t->usd = event_amount(line, "total_cost_usd");
	t->has_usd = json_member(line, "total_cost_usd") != NULL;
	t->input = t->output = t->cache_read = t->cache_creation = 0;
	if (models && models->type == JSON_OBJECT)
		json_each(m, models) {
			t->input += event_count(m, "inputTokens");
			t->output += event_count(m, "outputTokens");
			t->cache_read += event_count(m, "cacheReadInputTokens");
			t->cache_creation += event_count(m, "cacheCreationInputTokens");
		}
	t->denials += length(json_member(line, "permission_denials"));
}

static void read_result(struct transcript *t, const struct json_value *line)
{
	const struct json_value *structured = json_member(line, "structured_output");
	const struct json_value *errors = json_member(line, "errors");
	const char *text = event_text(line, "result");
	struct str out = { 0 };

	t->done = true;
	t->results++;
	t->failed = is_true(line, "is_error");
	transcript_set(&t->subtype, event_text(line, "subtype"));
	if (event_count(line, "api_error_status"))
		t->api_status = event_count(line, "api_error_status");
	t->auth_failed |= t->failed && is_refused(line, "api_error_status");
	if (!text && errors && errors->first && errors->first->type == JSON_STRING)
		text = errors->first->text;
	if (t->failed)
		transcript_set(&t->error, text);
	else if (text)
		transcript_set(&t->answer, text);
	read_figures(t, line);
	if (structured) {
		json_copy(&(struct json){ .out = &out }, NULL, structured);
		transcript_set(&t->structured, out.p);
	}
}

/* Events with other words than "rejected" come with requests that were served. */
static void read_limit(struct transcript *t, const struct json_value *line)
{
	const struct json_value *info = json_member(line, "rate_limit_info");
	unsigned long long at = event_count(info, "resetsAt");

	if (event_is(info, "status", "rejected") && !is_true(info, "isUsingOverage"))
		t->reset_at = at < (1ull << 40) ? (long long)at : 0;
}

void transcript_claude(struct transcript *t, const struct json_value *line)
{
	const char *type = event_text(line, "type");

	if (!type)
		return;
	if (!strcmp(type, "assistant"))
		read_message(t, line);
	else if (!strcmp(type, "user"))
		read_answers(t, line);
	else if (!strcmp(type, "result"))
		read_result(t, line);
	else if (!strcmp(type, "rate_limit_event"))
		read_limit(t, line);
	else if (!strcmp(type, "system") && event_is(line, "subtype", "init"))
		read_init(t, line);
	else if (!strcmp(type, "system") && event_is(line, "subtype", "api_retry"))
		read_retry(t, line);
}
