/*
 * harness/claude.c - Claude Code
 *
 * Each start makes the box's home anew, so the settings source "user" holds exactly what was
 * declared. The project's own settings, skills, agents, hooks and MCP servers (source
 * "project") stay out, and so do those of parent directories. Its CLAUDE.md does come in,
 * through --add-dir. Not used: --bare, which breaks OAuth and hides skills, and
 * --strict-mcp-config, which removes the servers of plugins. --allowedTools limits nothing
 * where prompts are skipped; --tools does.
 */
#include "harness/harness.h"
#include "harness/json-event.h"
#include "harness/login-file.h"
#include "manifest/manifest.h"
#include "plan/request.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static const char *const variables[] = { "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
	"CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL", NULL };
static const char *const keys[] = { "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
	"CLAUDE_CODE_OAUTH_TOKEN", NULL };
static const char *const own_dirs[] = { "projects", NULL };
/* Traces of other projects, or of programs that run outside. */
static const char *const traces[] = { "backups", "debug", "feedback-bundles", "file-history",
	"ide", "image-cache", "jobs", "paste-cache", "plans", "session-env", "sessions",
	"shell-snapshots", "statsig", "tasks", "teams", "telemetry", "todos", "uploads",
	"usage-data", "daemon", "dump-prompts", "shares", "startup-perf", "traces", NULL };
static const char *const own_files[] = { "history.jsonl", NULL };
static const struct part parts[] = { { ".claude", own_dirs, own_files, traces, false,
					     "plugins/known_marketplaces.json", NULL },
	{ 0 } };
static const char *const hosts[] = { "api.anthropic.com", "platform.claude.com", NULL };

/*
 * Without the refresh token: if a box used it, the user's own copy would stop working
 * everywhere else.
 */
static const char *stage_login(const char *text)
{
	const struct json_value *tree, *from, *scopes;
	json_errors errors = { 0 };
	struct str out = { 0 };
	struct json j = { .out = &out };

	if (json_read(text, strlen(text), NULL, &tree, &errors) < 0)
		return NULL;
	from = json_member(tree, "claudeAiOauth");
	scopes = json_member(from, "scopes");
	if (!event_text(from, "accessToken"))
		return NULL;
	json_open(&j, NULL, '{');
	json_open(&j, "claudeAiOauth", '{');
	json_each(v, from) {
		if (!strcmp(v->key, "refreshToken") || !strcmp(v->key, "scopes"))
			continue;
		if (v->type == JSON_STRING)
			json_string(&j, v->key, v->text);
		else if (v->type == JSON_NUMBER)
			json_number(&j, v->key, (long long)event_count(from, v->key));
	}
	json_open(&j, "scopes", '[');
	for (const struct json_value *v = scopes ? scopes->first : NULL; v; v = v->next)
		if (v->type == JSON_STRING)
			json_string(&j, NULL, v->text);
	json_close(&j, ']');
	json_close(&j, '}');
	json_close(&j, '}');
	return out.p;
}

static long long login_ends(const char *text)
{
	const struct json_value *tree = login_read(text);

	/* In milliseconds. */
	return (long long)(event_count(json_member(tree, "claudeAiOauth"), "expiresAt") / 1000);
}

static void json_rules(struct json *j, const char *key, const said_vec *a, const said_vec *b)
{
	json_open(j, key, '[');
	vec_each(s, a)
		json_string(j, NULL, s->text);
	vec_each(s, b)
		json_string(j, NULL, s->text);
	json_close(j, ']');
}

/* With "args" the client starts the program itself; without, through a shell. */
static void json_hook(struct json *j, const struct hook *k)
{
	json_open(j, NULL, '{');
	if (k->matcher.text)
		json_string(j, "matcher", k->matcher.text);
	json_open(j, "hooks", '[');
	json_open(j, NULL, '{');
	json_string(j, "type", "command");
	json_string(j, "command", harness_program(&k->command.v[0], k->path));
	json_open(j, "args", '[');
	for (size_t i = 1; i < k->command.n; i++)
		json_string(j, NULL, k->command.v[i].text);
	json_close(j, ']');
	if (k->timeout)
		json_number(j, "timeout", (long long)k->timeout);
	json_close(j, '}');
	json_close(j, ']');
	json_close(j, '}');
}

static bool seen_event(const struct agent *a, const struct hook *k)
{
	for (const struct hook *before = a->use_hooks.v; before < k; before++)
		if (!strcmp(before->event.text, k->event.text))
			return true;
	return false;
}

static void json_hooks(struct json *j, const struct agent *a)
{
	json_open(j, "hooks", '{');
	vec_each(k, &a->use_hooks) {
		if (seen_event(a, k))
			continue;
		json_open(j, k->event.text, '[');
		for (const struct hook *same = k; same < a->use_hooks.v + a->use_hooks.n;
			same++)
			if (!strcmp(same->event.text, k->event.text))
				json_hook(j, same);
		json_close(j, ']');
	}
	json_close(j, '}');
}

static const char *settings(const struct agent *a)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	json_open(&j, "permissions", '{');
	json_rules(&j, "allow", &a->permissions.allow, &a->allowed_tools);
	json_rules(&j, "deny", &a->permissions.deny, &a->disallowed_tools);
	json_close(&j, '}');
	json_hooks(&j, a);
	/* The plan says it once for all: the box confines the agent. */
	json_bool(&j, "skipDangerousModePermissionPrompt", true);
	json_close(&j, '}');
	str_addc(&out, '\n');
	return out.p;
}

static const char *mcp_config(const struct agent *a, struct request *r)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	json_open(&j, "mcpServers", '{');
	vec_each(s, &a->use_mcp_servers) {
		const char *field = mem_printf("library.mcpServers.%s", s->name.text);
		const struct said program = { harness_program(&s->command, s->path),
			s->command.at };

		json_open(&j, s->name.text, '{');
		json_string(&j, "command", harness_text(r, &program, "${%s}", field));
		json_open(&j, "args", '[');
		vec_each(arg, &s->args)
			json_string(&j, NULL, harness_text(r, arg, "${%s}", field));
		json_close(&j, ']');
		json_open(&j, "env", '{');
		vec_each(e, &s->env)
			json_string(&j, e->name,
				harness_value(r, e, "${%s}",
					mem_printf("%s.env.%s", field, e->name)));
		json_close(&j, '}');
		json_close(&j, '}');
	}
	json_close(&j, '}');
	json_close(&j, '}');
	str_addc(&out, '\n');
	return out.p;
}

static const char *catalog(const struct agent *a)
{
	struct str out = { 0 };

	str_add(&out, "Skills that you have:\n\n");
	vec_each(s, &a->use_skills) {
		const char *text = s->description.text ? s->description.text : "";

		str_addf(&out, "%s: %.*s\n", s->name.text, (int)strcspn(text, "\r\n"), text);
	}
	return out.p;
}

/* Answers to what a first start would ask: the theme, and whether the directory is trusted. */
static const char *first_start(const struct job *job)
{
	struct str out = { 0 };
	struct json j = { .out = &out };

	json_open(&j, NULL, '{');
	json_bool(&j, "hasCompletedOnboarding", true);
	json_bool(&j, "bypassPermissionsModeAccepted", true);
	json_open(&j, "projects", '{');
	json_open(&j, job->workspace, '{');
	json_bool(&j, "hasTrustDialogAccepted", true);
	json_bool(&j, "hasCompletedProjectOnboarding", true);
	json_close(&j, '}');
	json_close(&j, '}');
	/*
	 * The client asks whether to use a key, and remembers the answer by the key's last 20
	 * bytes.
	 */
	if (job->key_tail) {
		json_open(&j, "customApiKeyResponses", '{');
		json_open(&j, "approved", '[');
		json_string(&j, NULL, job->key_tail);
		json_close(&j, ']');
		json_close(&j, '}');
	}
	json_close(&j, '}');
	return out.p;
}

static const char *joined(const said_vec *list)
{
	struct str out = { 0 };

	for (size_t i = 0; i < list->n; i++)
		str_addf(&out, "%s%s", i ? "," : "", list->v[i].text);
	return out.p;
}

static void start_args(const struct job *job, name_vec *argv)
{
	const struct agent *a = job->agent;

	vec_push(argv, job->program);
	/* Before the options: some of them take all words that follow. */
	if (job->headless)
		vec_push(argv, "-p");
	else if (a->prompt.text)
		vec_push(argv, "Do what @" HARNESS_PROMPT " says.");
	if (job->headless && job->events) {
		harness_option(argv, "--output-format", "stream-json");
		vec_push(argv, "--verbose");
	}
	if (a->model.text)
		harness_option(argv, "--model", a->model.text);
	if (a->effort.text)
		harness_option(argv, "--effort", a->effort.text);
}

static void set_variables(struct request *r)
{
	/* Otherwise the model would see a dozen skills that nobody declared. */
	harness_set(r, "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "1");
	harness_set(r, "CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1");
	harness_set(r, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
	harness_set(r, "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1");
	harness_set(r, "DISABLE_AUTOUPDATER", "1");
}

static void assemble(const struct job *job, name_vec *argv, struct request *r)
{
	const struct agent *a = job->agent;

	start_args(job, argv);
	harness_option(argv, "--setting-sources", "user");
	harness_option(argv, "--settings",
		harness_file(r, "settings.json", settings(a), "settings"));
	harness_option(argv, "--mcp-config",
		harness_file(r, "mcp.json", mcp_config(a, r), "MCP servers"));
	harness_option(argv, "--add-dir", job->workspace);
	if (a->use_skills.n)
		harness_option(argv, "--append-system-prompt-file",
			harness_file(r, "skill-catalog.md", catalog(a), "skill catalog"));
	vec_each(p, &a->use_plugins)
		harness_option(argv, "--plugin-dir",
			mem_printf(HARNESS_DIR "/plugins/%s", p->name.text));
	if (a->tools.n)
		harness_option(argv, "--tools", joined(&a->tools));
	if (a->permissions.skip_prompts != FLAG_OFF)
		vec_push(argv, "--dangerously-skip-permissions");
	vec_push(&r->files,
		((struct request_file){ .target = "~/.claude.json",
			.text = first_start(job),
			.why = "first start",
			.mode = 0600,
			.rw = true,
			.secret = job->key_tail != NULL,
			.fill = job->key_tail ? keys[0] : NULL }));
	set_variables(r);
}

/* ---- with the user's own configuration ---- */

/* What the client remembers of this directory, without the questions of a first start. */
static void json_this_project(struct json *j, const struct job *job,
	const struct json_value *projects)
{
	const struct json_value *known = json_member(projects, job->workspace);

	json_open(j, "projects", '{');
	json_open(j, job->workspace, '{');
	for (const struct json_value *v = known ? known->first : NULL; v; v = v->next)
		if (strcmp(v->key, "hasTrustDialogAccepted") != 0)
			login_copy(j, v, NULL);
	json_bool(j, "hasTrustDialogAccepted", true);
	json_close(j, '}');
	json_close(j, '}');
}

static bool has_text(const struct json_value *list, const char *text)
{
	for (const struct json_value *v = list ? list->first : NULL; v; v = v->next)
		if (v->type == JSON_STRING && !strcmp(v->text, text))
			return true;
	return false;
}

/*
 * The answer about a key, see first_start(). Each start makes this file anew, so what the user
 * answers in a box is forgotten; but the start says that the key is used. What was answered
 * outside stands.
 */
static void json_keys(struct json *j, const struct job *job, const struct json_value *known)
{
	const char *tail = job->key_tail;
	const struct json_value *approved = json_member(known, "approved");
	const struct json_value *rejected = json_member(known, "rejected");

	if (tail && (has_text(rejected, tail) || !strcmp(tail, REQUEST_KEY_TAIL)))
		tail = NULL;
	json_open(j, "customApiKeyResponses", '{');
	json_open(j, "approved", '[');
	for (const struct json_value *v = approved ? approved->first : NULL; v; v = v->next)
		login_copy(j, v, NULL);
	if (tail && !has_text(approved, tail))
		json_string(j, NULL, tail);
	json_close(j, ']');
	if (rejected)
		login_copy(j, rejected, NULL);
	json_close(j, '}');
}

/* The user's ~/.claude.json without what it says about other projects. */
static const char *own_config(const struct job *job)
{
	static const char *const left_out[] = { "projects", "githubRepoPaths",
		"hasCompletedOnboarding", "customApiKeyResponses" };
	const struct json_value *tree = job->config ? login_read(job->config) : NULL;
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	for (const struct json_value *v = tree && tree->type == JSON_OBJECT ? tree->first
									    : NULL;
		v; v = v->next) {
		bool keep = true;

		for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
			keep &= strcmp(v->key, left_out[i]) != 0;
		if (keep)
			login_copy(&j, v, NULL);
	}
	json_bool(&j, "hasCompletedOnboarding", true);
	json_keys(&j, job, json_member(tree, "customApiKeyResponses"));
	json_this_project(&j, job, json_member(tree, "projects"));
	json_close(&j, '}');
	return out.p;
}

/*
 * CLAUDE_CONFIG_DIR names the directory that the client would use anyway. With it, the client
 * also keeps .claude.json there, in the layer, and not in a home that vanishes.
 */
static void assemble_mine(const struct job *job, name_vec *argv, struct request *r)
{
	const struct agent *a = job->agent;

	start_args(job, argv);
	harness_option(argv, "--append-system-prompt-file", HARNESS_DIR "/SANDBOX.md");
	/*
	 * If .claude.json said it, the client would write it to a settings.json in the layer.
	 */
	harness_option(argv, "--settings",
		harness_file(r, "settings.json",
			"{\"skipDangerousModePermissionPrompt\":true}\n", "settings"));
	if (a->permissions.skip_prompts != FLAG_OFF)
		vec_push(argv, "--dangerously-skip-permissions");
	harness_set(r, "DISABLE_AUTOUPDATER", "1");
	if (job->kind == HOME_DIRECT) {
		if (job->config)
			vec_push(&r->mounts,
				((struct request_mount){
					.source = mem_printf("%s/.claude.json", job->home),
					.target = "~/.claude.json",
					.rw = true,
					.why = "your configuration" }));
		return;
	}
	vec_push(&r->part_files,
		((struct part_file){ ".claude", ".claude.json", own_config(job) }));
	harness_set(r, "CLAUDE_CONFIG_DIR", mem_printf("%s/.claude", job->home));
}

/* ---- events ---- */

/* Each event holds one block, whatever the message has. */
static void read_block(const struct json_value *block, struct harness_event *ret)
{
	const char *type = event_text(block, "type");
	const struct json_value *input = json_member(block, "input");

	if (!type)
		return;
	if (!strcmp(type, "text")) {
		ret->kind = EVENT_TEXT;
		ret->text = event_text(block, "text");
	} else if (!strcmp(type, "tool_use")) {
		ret->kind = EVENT_TOOL;
		ret->tool = event_text(block, "name");
		if (ret->tool && !strcmp(ret->tool, "Skill"))
			ret->skill = event_text(input, "skill");
	}
}

/*
 * Only the result's own figures are complete: usage in the messages is repeated and partial,
 * and without modelUsage sub-agents would be missing. Neither exit status nor subtype says
 * whether the run failed; is_error does.
 */
static void read_result(const struct json_value *line, struct harness_event *ret)
{
	const struct json_value *failed = json_member(line, "is_error");
	const struct json_value *models = json_member(line, "modelUsage");
	const struct json_value *errors = json_member(line, "errors");

	ret->kind = EVENT_RESULT;
	ret->text = event_text(line, "result");
	if (!ret->text && errors && errors->first && errors->first->type == JSON_STRING)
		ret->text = errors->first->text;
	ret->failed = failed && failed->type == JSON_BOOL && failed->boolean;
	ret->turns = event_count(line, "num_turns");
	ret->usd = event_amount(line, "total_cost_usd");
	for (const struct json_value *m = models ? models->first : NULL; m; m = m->next) {
		ret->input_tokens += event_count(m, "inputTokens") +
			event_count(m, "cacheReadInputTokens") +
			event_count(m, "cacheCreationInputTokens");
		ret->output_tokens += event_count(m, "outputTokens");
	}
}

static void event(const struct json_value *line, struct harness_event *ret)
{
	const char *type = event_text(line, "type"), *subtype = event_text(line, "subtype");
	const struct json_value *content;

	*ret = (struct harness_event){ 0 };
	if (!type)
		return;
	if (!strcmp(type, "assistant")) {
		content = json_member(json_member(line, "message"), "content");
		if (content && content->first)
			read_block(content->first, ret);
	} else if (!strcmp(type, "result")) {
		read_result(line, ret);
	} else if (!strcmp(type, "system") && subtype) {
		if (!strcmp(subtype, "init"))
			ret->kind = EVENT_START;
		if (!strcmp(subtype, "api_retry")) {
			ret->kind = EVENT_ERROR;
			ret->text = event_text(line, "error");
		}
	}
}

const struct harness harness_claude = {
	.name = "claude",
	.title = "Claude Code",
	.program = "claude",
	.variables = variables,
	.keys = keys,
	.login = ".claude/.credentials.json",
	.hosts = hosts,
	.parts = parts,
	.talks = { "projects", 1, "--resume" },
	.role = ".claude/CLAUDE.md",
	.skills = ".claude/skills",
	.can = CAN_MODEL | CAN_EFFORT | CAN_SKILLS | CAN_MCP | CAN_PLUGINS | CAN_HOOKS |
		CAN_TOOLS | CAN_ALLOWED_TOOLS | CAN_DISALLOWED_TOOLS | CAN_PERMISSIONS |
		CAN_PROMPTS,
	.stage_login = stage_login,
	.login_ends = login_ends,
	.config = ".claude.json",
	.assemble = assemble,
	.assemble_mine = assemble_mine,
	.mine_can = CAN_MODEL | CAN_EFFORT,
	.event = event,
};
