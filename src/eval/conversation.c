/*
 * eval/conversation.c - a transcript as a conversation
 *
 * Theory of operation. The transcript is cut into lines; each is read as JSON and handed to the
 * reader of the client that writes such events, found by the event's "type". No reader keeps
 * state but the list itself: a result is attached to the last call with its id.
 */
#include "eval/conversation.h"
#include "base/json-read.h"
#include "base/json.h"
#include "eval/attempts.h"

#include <string.h>

enum {
	LOOK_BACK = 500,          /* steps, from a result to its call */
	MEMORY_MOST = 256u << 20, /* of mem.h, which has 1 GB in all */
};

/* ---- text ---- */

static const char *clean_bytes(const char *p, size_t n)
{
	struct str out = { 0 };

	str_add(&out, "");
	while (n) {
		size_t len = *p ? utf8_length(p, n) : 0;

		if (len)
			str_addn(&out, p, len);
		else
			str_add(&out, "\xef\xbf\xbd");
		p += len ? len : 1;
		n -= len ? len : 1;
	}
	return out.p ? out.p : "";
}

const char *utf8_clean(const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0, len; i < n; i += len) {
		len = utf8_length(text + i, n - i);
		if (!len)
			return clean_bytes(text, n);
	}
	return text;
}

static bool event_is(const struct json_value *v, const char *key, const char *text)
{
	const char *said = member_text(v, key);

	return said && strcmp(said, text) == 0;
}

static const char *as_json(const struct json_value *v)
{
	struct str out = { 0 };
	struct json j = { .out = &out };

	json_copy(&j, NULL, v);
	return out.p;
}

/* A string, or the texts of a list of blocks, or JSON. */
static const char *content_text(const struct json_value *v)
{
	struct str out = { 0 };

	if (!v || v->type == JSON_NULL)
		return "";
	if (v->type == JSON_STRING)
		return v->text;
	if (v->type != JSON_LIST)
		return as_json(v);
	json_each(it, v) {
		const char *text = member_text(it, "text");

		if (out.len)
			str_addc(&out, '\n');
		str_add(&out, text ? text : it->type == JSON_STRING ? it->text : as_json(it));
	}
	return out.p ? out.p : "";
}

/* ---- the list ---- */

static struct said *new_step(conversation *s, enum step_source source, const char *message)
{
	struct said step = { .source = source, .message = message ? message : "" };

	vec_push(s, step);
	return &s->v[s->n - 1];
}

/* Add to a message that may come in very many pieces. */
static void add_message(struct said *step, const char *between, const char *more)
{
	if (!step->text.len)
		str_add(&step->text, step->message);
	if (step->text.len)
		str_add(&step->text, between);
	str_add(&step->text, more);
	step->message = step->text.p;
}

/* The last step, if it is the agent's and of the same message; else a new one. */
static struct said *agent_step(conversation *s, const char *key)
{
	struct said *last = s->n ? &s->v[s->n - 1] : NULL;

	if (last && last->source == STEP_AGENT && key && last->key &&
		strcmp(last->key, key) == 0)
		return last;
	last = new_step(s, STEP_AGENT, "");
	last->key = key;
	return last;
}

static struct step_call *add_call(struct said *step, const char *id, const char *name,
	const struct json_value *arguments)
{
	struct step_call call = {
		.id = id ? id : mem_printf("call-%zu", step->calls.n + 1),
		.name = name ? name : "?",
		.arguments = arguments && arguments->type == JSON_OBJECT ? arguments : NULL,
	};

	vec_push(&step->calls, call);
	return &step->calls.v[step->calls.n - 1];
}

static void add_result(conversation *s, const char *id, const char *text, bool failed)
{
	size_t far = s->n > LOOK_BACK ? s->n - LOOK_BACK : 0;

	for (size_t i = s->n; id && i-- > far;)
		vec_each(c, &s->v[i].calls)
			if (!c->result && strcmp(c->id, id) == 0) {
				c->result = text;
				c->failed = failed;
				return;
			}
	new_step(s, STEP_SYSTEM, mem_printf("A result of no known call: %s", text));
}

static bool is_true(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_BOOL && m->boolean;
}

static void error_event(conversation *s, const struct json_value *line)
{
	const struct json_value *error = json_member(line, "error");
	const char *text = member_text(error ? error : line, "message");

	if (!text) /* opencode's */
		text = member_text(json_member(error, "data"), "message");
	new_step(s, STEP_SYSTEM, text ? text : as_json(line));
}

/* ---- Claude Code ---- */

static void claude_assistant(conversation *s, const struct json_value *line)
{
	const struct json_value *message = json_member(line, "message");
	const struct json_value *content = json_member(message, "content");
	struct said *step = agent_step(s, member_text(message, "id"));

	step->model = member_text(message, "model");
	step->time = step->time ? step->time : member_text(line, "timestamp");
	step->inner = member_text(line, "parent_tool_use_id") != NULL;
	if (content && content->type == JSON_STRING)
		add_message(step, "\n", content->text);
	if (!content || content->type != JSON_LIST)
		return;
	json_each(it, content) {
		if (event_is(it, "type", "text"))
			add_message(step, "\n", content_text(json_member(it, "text")));
		else if (event_is(it, "type", "thinking"))
			step->reasoning = content_text(json_member(it, "thinking"));
		else if (event_is(it, "type", "tool_use"))
			add_call(step, member_text(it, "id"), member_text(it, "name"),
				json_member(it, "input"));
		else
			add_message(step, "\n", as_json(it));
	}
}

static void claude_user(conversation *s, const struct json_value *line)
{
	const struct json_value *content = json_member(json_member(line, "message"), "content");
	bool inner = member_text(line, "parent_tool_use_id") != NULL;

	if (!content || content->type != JSON_LIST) {
		new_step(s, STEP_USER, content_text(content))->inner = inner;
		return;
	}
	json_each(it, content) {
		if (event_is(it, "type", "tool_result")) {
			add_result(s, member_text(it, "tool_use_id"),
				content_text(json_member(it, "content")),
				is_true(it, "is_error"));
		} else {
			const char *text = member_text(it, "text");
			bool made = is_true(line, "isSynthetic");
			struct said *step = new_step(s, made ? STEP_SYSTEM : STEP_USER,
				text ? text : as_json(it));

			step->time = member_text(line, "timestamp");
			step->inner = inner;
		}
	}
}

static void claude_system(conversation *s, const struct json_value *line)
{
	if (event_is(line, "subtype", "init"))
		new_step(s, STEP_SYSTEM,
			mem_printf("Started: Claude Code %s, model %s",
				content_text(json_member(line, "claude_code_version")),
				content_text(json_member(line, "model"))));
	else if (event_is(line, "subtype", "api_retry"))
		new_step(s, STEP_SYSTEM,
			mem_printf("The client retries its request: %s",
				content_text(json_member(line, "error"))));
}

static void end_event(conversation *s, const struct json_value *line)
{
	const char *text = content_text(json_member(line, "result"));
	const char *subtype = member_text(line, "subtype");

	if (json_member(line, "error") && event_is(line, "status", "error"))
		error_event(s, line); /* Gemini's */

	if (is_true(line, "is_error"))
		new_step(s, STEP_SYSTEM,
			mem_printf("Ended with an error (%s): %s", subtype ? subtype : "?",
				text));
}

/* ---- Codex ---- */

static void codex_item(conversation *s, const struct json_value *line)
{
	const struct json_value *item = json_member(line, "item");
	const char *type = member_text(item, "type"), *id = member_text(item, "id");
	const struct json_value *output = json_member(item, "aggregated_output");
	struct step_call *call;

	if (event_is(item, "type", "agent_message")) {
		new_step(s, STEP_AGENT, content_text(json_member(item, "text")));
		return;
	}
	if (event_is(item, "type", "reasoning")) {
		new_step(s, STEP_AGENT, "")->reasoning =
			content_text(json_member(item, "text"));
		return;
	}
	if (event_is(item, "type", "error")) {
		new_step(s, STEP_SYSTEM, content_text(json_member(item, "message")));
		return;
	}
	call = add_call(new_step(s, STEP_AGENT, ""), id, type, item);
	call->result = output                        ? content_text(output)
		: event_is(item, "status", "failed") ? "failed"
						     : "";
	call->failed = event_is(item, "status", "failed");
}

/* ---- Gemini ---- */

static void gemini_message(conversation *s, const struct json_value *line)
{
	const char *text = content_text(json_member(line, "content"));
	struct said *last = s->n ? &s->v[s->n - 1] : NULL;

	if (event_is(line, "role", "user")) {
		new_step(s, STEP_USER, text)->time = member_text(line, "timestamp");
	} else if (last && last->source == STEP_AGENT && !last->calls.n &&
		is_true(line, "delta")) {
		add_message(last, "", text);
	} else {
		new_step(s, STEP_AGENT, text)->time = member_text(line, "timestamp");
	}
}

static void gemini_result(conversation *s, const struct json_value *line)
{
	const struct json_value *output = json_member(line, "output");

	add_result(s, member_text(line, "tool_id"),
		content_text(output ? output : json_member(line, "error")),
		!event_is(line, "status", "success"));
}

/* "tool_use" is Gemini's, with its parameters, or opencode's, with call and result in one. */
static void tool_use(conversation *s, const struct json_value *line)
{
	const struct json_value *part = json_member(line, "part");
	const struct json_value *state = json_member(part, "state"), *error;
	struct said *step = new_step(s, STEP_AGENT, "");
	struct step_call *call;

	if (!part) {
		step->time = member_text(line, "timestamp");
		add_call(step, member_text(line, "tool_id"), member_text(line, "tool_name"),
			json_member(line, "parameters"));
		return;
	}
	call = add_call(step, member_text(part, "callID"), member_text(part, "tool"),
		json_member(state, "input"));
	error = json_member(state, "error");
	call->failed = error != NULL || event_is(state, "status", "error");
	call->result = content_text(error ? error : json_member(state, "output"));
}

/* ---- opencode ---- */

static void opencode_text(conversation *s, const struct json_value *line)
{
	new_step(s, STEP_AGENT, content_text(json_member(json_member(line, "part"), "text")));
}

static void nothing(conversation *s, const struct json_value *line)
{
	(void)s;
	(void)line;
}

/* ---- lines ---- */

static const struct {
	const char *type;
	void (*read)(conversation *s, const struct json_value *line);
} readers[] = {
	{ "assistant", claude_assistant },
	{ "user", claude_user },
	{ "system", claude_system },
	{ "item.completed", codex_item },
	{ "turn.failed", error_event },
	{ "error", error_event },
	{ "message", gemini_message },
	{ "tool_use", tool_use },
	{ "tool_result", gemini_result },
	{ "text", opencode_text },
	/* What says only that something begins, ends or goes on. */
	{ "stream_event", nothing },
	{ "rate_limit_event", nothing },
	{ "thread.started", nothing },
	{ "turn.started", nothing },
	{ "turn.completed", nothing },
	{ "item.started", nothing },
	{ "item.updated", nothing },
	{ "init", nothing },
	{ "step_start", nothing },
	{ "step_finish", nothing },
	{ "result", end_event },
};

/* Text that is no event: what a plain command prints. Neighbouring lines are one step. */
static void add_raw(conversation *s, const char *line, size_t n)
{
	add_message(agent_step(s, "raw"), "\n", clean_bytes(line, n));
}

static void read_line(conversation *s, const char *line, size_t n)
{
	const struct json_value *v = NULL;
	json_errors errors = { 0 };
	const char *type;

	while (n && (line[n - 1] == '\r' || line[n - 1] == ' '))
		n--;
	if (!n)
		return;
	if (*line != '{' || json_read(line, n, NULL, &v, &errors) < 0) {
		add_raw(s, line, n);
		return;
	}
	type = member_text(v, "type");
	for (size_t i = 0; type && i < ARRAY_SIZE(readers); i++)
		if (strcmp(type, readers[i].type) == 0) {
			readers[i].read(s, v);
			return;
		}
	add_raw(s, line, n);
}

void conversation_read(const char *bytes, size_t n, const char *prompt, conversation *ret)
{
	const char *end = bytes + n, *began = mem_mark();
	size_t first;

	if (prompt)
		new_step(ret, STEP_USER, utf8_clean(prompt));
	first = ret->n;
	while (bytes < end && ret->n < CONVERSATION_MOST &&
		(const char *)mem_mark() - began < MEMORY_MOST) {
		const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t len = (size_t)((stop ? stop : end) - bytes);

		if (len > CONVERSATION_LINE)
			new_step(ret, STEP_SYSTEM,
				mem_printf("A line of %zu bytes is left out.", len));
		else
			read_line(ret, bytes, len);
		/* A client that repeats the prompt said it itself. */
		if (first && ret->n == first + 1 && ret->v[first].source == STEP_USER &&
			strcmp(ret->v[first].message, ret->v[0].message) == 0)
			ret->n = first;
		bytes = stop ? stop + 1 : end;
	}
	if (bytes < end)
		new_step(ret, STEP_SYSTEM,
			mem_printf("The rest, %zu bytes, is left out.", (size_t)(end - bytes)));
}

/* ---- ATIF ---- */

static void add_text(struct json *j, const char *key, const char *text, size_t most)
{
	size_t n = strlen(text), cut = most;

	if (!most || n <= most) {
		json_string(j, key, text);
		return;
	}
	while (cut && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	json_string(j, key,
		mem_printf("%s\n[%zu bytes more]", mem_strndup(text, cut), n - cut));
}

/* Arguments are an object whose texts may be long: each is cut by itself. */
static void add_arguments(struct json *j, const char *key, const struct json_value *v,
	size_t most)
{
	if (v->type == JSON_STRING) {
		add_text(j, key, v->text, most);
		return;
	}
	if (v->type != JSON_LIST && v->type != JSON_OBJECT) {
		json_copy(j, key, v);
		return;
	}
	json_open(j, key, v->type == JSON_LIST ? '[' : '{');
	json_each(it, v)
		add_arguments(j, it->key, it, most);
	json_close(j, v->type == JSON_LIST ? ']' : '}');
}

static void add_calls(struct json *j, const struct said *step, size_t most)
{
	json_open(j, "tool_calls", '[');
	vec_each(c, &step->calls) {
		json_open(j, NULL, '{');
		json_string(j, "tool_call_id", c->id);
		json_string(j, "function_name", c->name);
		if (c->arguments) {
			add_arguments(j, "arguments", c->arguments, most);
		} else {
			json_open(j, "arguments", '{');
			json_close(j, '}');
		}
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_results(struct json *j, const struct said *step, size_t most)
{
	json_open(j, "observation", '{');
	json_open(j, "results", '[');
	vec_each(c, &step->calls) {
		if (!c->result)
			continue;
		json_open(j, NULL, '{');
		json_string(j, "source_call_id", c->id);
		add_text(j, "content", c->result, most);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

/* What ATIF has no field for. */
static void add_extra(struct json *j, const struct said *step)
{
	bool failed = false;

	vec_each(c, &step->calls)
		failed = failed || c->failed;
	if (!failed && !step->inner)
		return;
	json_open(j, "extra", '{');
	if (step->inner)
		json_bool(j, "subagent", true);
	if (failed) {
		json_open(j, "failed_calls", '[');
		vec_each(c, &step->calls)
			if (c->failed)
				json_string(j, NULL, c->id);
		json_close(j, ']');
	}
	json_close(j, '}');
}

void conversation_add_json(struct json *j, const char *key, const conversation *s,
	size_t text_most)
{
	static const char *const sources[] = { "system", "user", "agent" };

	json_open(j, key, '[');
	for (size_t i = 0; i < s->n; i++) {
		const struct said *step = &s->v[i];

		json_open(j, NULL, '{');
		json_count(j, "step_id", i + 1);
		if (step->time)
			json_string(j, "timestamp", step->time);
		json_string(j, "source", sources[step->source]);
		if (step->model)
			json_string(j, "model_name", step->model);
		add_text(j, "message", step->message, text_most);
		if (step->reasoning)
			add_text(j, "reasoning_content", step->reasoning, text_most);
		if (step->calls.n) {
			add_calls(j, step, text_most);
			add_results(j, step, text_most);
		}
		add_extra(j, step);
		json_close(j, '}');
	}
	json_close(j, ']');
}
