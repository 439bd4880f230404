/*
 * harness/gemini.c - Gemini CLI
 *
 * All declarations are in ~/.gemini/settings.json, which the agent cannot write. With
 * --skip-trust Gemini CLI works in a directory that the user has not trusted and ignores that
 * directory's settings, with their MCP servers and hooks. But it still reads skills there, so
 * .gemini and .agents/skills are hidden. Hooks would run through a shell and are not offered.
 */
#include "harness/harness.h"
#include "harness/json-event.h"
#include "harness/login-file.h"
#include "manifest/manifest.h"
#include "plan/request.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Gemini expands variables in all texts of its settings. */
#define REFERENCE "${%s}"

static const char *const variables[] = { "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", NULL };
static const char *const keys[] = { "GEMINI_API_KEY", NULL };
static const char *const own_dirs[] = { "tmp", "history", NULL };
/* This file says which directory of tmp/ and history/ belongs to which project. */
static const char *const traces[] = { "projects.json", NULL };
static const char *const notes[] = { "installation_id", "state.json", NULL };
static const struct part parts[] = { { ".gemini", own_dirs, NULL, traces, false, NULL, notes },
	{ 0 } };
/*
 * Not www.googleapis.com, which it asks once for the user's address: data can leave through it.
 */
static const char *const hosts[] = { "generativelanguage.googleapis.com",
	"cloudcode-pa.googleapis.com", "oauth2.googleapis.com", NULL };
static const char *const hide[] = { ".gemini", ".agents/skills", NULL };
#define TRUST        "trustedFolders.json"
#define DIRECT_TRUST ".gemini-" TRUST /* below home, beside ~/.gemini */

static const char *stage_login(const char *text)
{
	const struct json_value *tree = login_read(text);

	return event_text(tree, "access_token") ? login_without(tree, "refresh_token") : NULL;
}

static long long login_ends(const char *text)
{
	/* In milliseconds. */
	return (long long)(event_count(login_read(text), "expiry_date") / 1000);
}

static void check_gemini(const struct agent *a, problems *bad)
{
	if (a->effort.text && !a->model.text)
		manifest_problem(bad, a->effort.at, manifest_field(a, "effort"),
			"Gemini CLI has one for each model: say which with \"model\"");
}

/* ---- settings ---- */

static void json_names(struct json *j, const char *key, const said_vec *names,
	struct request *r)
{
	if (!names->n)
		return;
	json_open(j, key, '[');
	vec_each(s, names)
		json_string(j, NULL, harness_text(r, s, REFERENCE, key));
	json_close(j, ']');
}

/* The complete list of tools, so those of the servers must be in it. */
static void json_core(struct json *j, const struct agent *a, struct request *r)
{
	said_vec names = { 0 };

	vec_each(s, &a->tools)
		vec_push(&names, *s);
	vec_each(s, &a->use_mcp_servers)
		if (a->tools.n)
			vec_push(&names,
				((struct said){
					mem_printf("mcp_%s_*", s->name.text), s->name.at }));
	json_names(j, "core", &names, r);
}

static void json_server(struct json *j, const struct mcp_server *s, struct request *r)
{
	const char *field = mem_printf("library.mcpServers.%s", s->name.text);
	const struct said program = { harness_program(&s->command, s->path), s->command.at };

	json_open(j, s->name.text, '{');
	json_string(j, "command", harness_text(r, &program, REFERENCE, field));
	json_open(j, "args", '[');
	vec_each(arg, &s->args)
		json_string(j, NULL, harness_text(r, arg, REFERENCE, field));
	json_close(j, ']');
	json_open(j, "env", '{');
	vec_each(e, &s->env)
		json_string(j, e->name,
			harness_value(r, e, REFERENCE,
				mem_printf("%s.env.%s", field, e->name)));
	json_close(j, '}');
	json_close(j, '}');
}

/* A number is a budget of tokens, a word is a level. */
static void json_effort(struct json *j, const struct agent *a, struct request *r)
{
	const char *effort = a->effort.text;
	struct str level = { 0 };

	if (!effort)
		return;
	for (const char *c = effort; *c; c++)
		str_addc(&level, (char)toupper((unsigned char)*c));
	json_open(j, "modelConfigs", '{');
	json_open(j, "customOverrides", '[');
	json_open(j, NULL, '{');
	json_open(j, "match", '{');
	json_string(j, "model", harness_text(r, &a->model, REFERENCE, "model"));
	json_close(j, '}');
	json_open(j, "modelConfig", '{');
	json_open(j, "generateContentConfig", '{');
	json_open(j, "thinkingConfig", '{');
	if (effort[strspn(effort, "0123456789")])
		json_string(j, "thinkingLevel",
			harness_text(r, &(struct said){ level.p, a->effort.at }, REFERENCE,
				"effort"));
	else
		json_number(j, "thinkingBudget", atoll(effort));
	json_close(j, '}');
	json_close(j, '}');
	json_close(j, '}');
	json_close(j, '}');
	json_close(j, ']');
	json_close(j, '}');
}

/* No telemetry, no updates, and no skills that nobody declared. */
static void json_quiet(struct json *j)
{
	json_open(j, "general", '{');
	json_bool(j, "enableAutoUpdate", false);
	json_bool(j, "enableAutoUpdateNotification", false);
	json_close(j, '}');
	json_open(j, "privacy", '{');
	json_bool(j, "usageStatisticsEnabled", false);
	json_close(j, '}');
	json_open(j, "skills", '{');
	json_open(j, "disabled", '[');
	json_string(j, NULL, "skill-creator");
	json_string(j, NULL, "antigravity-support");
	json_close(j, ']');
	json_close(j, '}');
}

static const char *settings(const struct job *job, struct request *r)
{
	const struct agent *a = job->agent;
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	json_quiet(&j);
	json_open(&j, "security", '{');
	json_open(&j, "auth", '{');
	json_string(&j, "selectedType", job->login ? "oauth-personal" : "gemini-api-key");
	json_close(&j, '}');
	json_close(&j, '}');
	/* By default it would read only GEMINI.md, and those of parent directories. */
	json_open(&j, "context", '{');
	json_open(&j, "fileName", '[');
	json_string(&j, NULL, "GEMINI.md");
	json_string(&j, NULL, "AGENTS.md");
	json_close(&j, ']');
	json_open(&j, "memoryBoundaryMarkers", '[');
	json_close(&j, ']');
	json_close(&j, '}');
	json_open(&j, "tools", '{');
	json_core(&j, a, r);
	json_names(&j, "exclude", &a->disallowed_tools, r);
	json_close(&j, '}');
	json_effort(&j, a, r);
	json_open(&j, "mcpServers", '{');
	vec_each(s, &a->use_mcp_servers)
		json_server(&j, s, r);
	json_close(&j, '}');
	json_close(&j, '}');
	str_addc(&out, '\n');
	return out.p;
}

/* It obeys GEMINI.md in every included directory, and reads no prompt elsewhere. */
static bool includes(const struct job *job)
{
	return job->kind != HOME_DECLARED || (!job->headless && job->agent->prompt.text);
}

static void start_args(const struct job *job, name_vec *argv)
{
	const struct agent *a = job->agent;

	vec_push(argv, job->program);
	vec_push(argv, "--skip-trust");
	if (a->permissions.skip_prompts != FLAG_OFF)
		vec_push(argv, "--yolo");
	if (a->model.text)
		harness_option(argv, "--model", a->model.text);
	if (job->headless && job->events)
		harness_option(argv, "--output-format", "stream-json");
	if (includes(job))
		harness_option(argv, "--include-directories", HARNESS_DIR);
	if (!job->headless && a->prompt.text)
		harness_option(argv, "--prompt-interactive", "@" HARNESS_PROMPT);
}

/*
 * On a terminal it would ask about HARNESS_DIR. Other directories are trusted as the user has
 * said.
 */
static const char *trust(const char *users)
{
	const struct json_value *tree = users ? login_read(users) : NULL;
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	if (tree && tree->type == JSON_OBJECT)
		json_each(rule, tree)
			if (strcmp(rule->key, HARNESS_DIR) != 0)
				login_copy(&j, rule, NULL);
	json_string(&j, HARNESS_DIR, "TRUST_FOLDER");
	json_close(&j, '}');
	return out.p;
}

static void assemble(const struct job *job, name_vec *argv, struct request *r)
{
	start_args(job, argv);
	harness_home_file(r, ".gemini/settings.json", settings(job, r), "settings");
	if (includes(job))
		harness_home_file(r, ".gemini/" TRUST, trust(NULL), "settings");
}

static void assemble_mine(const struct job *job, name_vec *argv, struct request *r)
{
	start_args(job, argv);
	harness_file(r, "GEMINI.md", "@./SANDBOX.md\n", "leads to SANDBOX.md");
	if (job->kind == HOME_MINE) {
		vec_push(&r->part_files,
			((struct part_file){ ".gemini", TRUST, trust(job->config) }));
		return;
	}
	/* The user's own list stays unchanged, and is not the one that the client reads. */
	harness_home_file(r, DIRECT_TRUST, trust(job->config), "settings");
	harness_set(r, "GEMINI_CLI_TRUSTED_FOLDERS_PATH",
		mem_printf("%s/" DIRECT_TRUST, job->home));
}

/* ---- events ---- */

static void read_result(const struct json_value *line, struct harness_event *ret)
{
	const struct json_value *stats = json_member(line, "stats");

	ret->kind = EVENT_RESULT;
	ret->failed = !event_is(line, "status", "success");
	ret->text = event_text(json_member(line, "error"), "message");
	ret->input_tokens = event_count(stats, "input_tokens");
	ret->output_tokens = event_count(stats, "output_tokens");
}

static void event(const struct json_value *line, struct harness_event *ret)
{
	const char *type = event_text(line, "type");
	const struct json_value *delta = json_member(line, "delta");

	*ret = (struct harness_event){ 0 };
	if (!type)
		return;
	if (!strcmp(type, "init")) {
		ret->kind = EVENT_START;
	} else if (!strcmp(type, "message") && event_is(line, "role", "assistant")) {
		ret->kind = EVENT_TEXT;
		ret->text = event_text(line, "content");
		ret->part = delta && delta->type == JSON_BOOL && delta->boolean;
	} else if (!strcmp(type, "tool_use")) {
		ret->kind = EVENT_TOOL;
		ret->tool = event_text(line, "tool_name");
		if (event_is(line, "tool_name", "activate_skill"))
			ret->skill = event_text(json_member(line, "parameters"), "name");
	} else if (!strcmp(type, "result")) {
		read_result(line, ret);
	} else if (!strcmp(type, "error")) {
		ret->kind = EVENT_ERROR;
		ret->text = event_text(line, "message");
	}
}

const struct harness harness_gemini = {
	.name = "gemini",
	.title = "Gemini CLI",
	.program = "gemini",
	.variables = variables,
	.keys = keys,
	.login = ".gemini/oauth_creds.json",
	.hosts = hosts,
	.parts = parts,
	.config = ".gemini/" TRUST,
	.role = ".gemini/GEMINI.md",
	.skills = ".gemini/skills",
	.hide = hide,
	.can = CAN_MODEL | CAN_EFFORT | CAN_SKILLS | CAN_MCP | CAN_TOOLS |
		CAN_DISALLOWED_TOOLS | CAN_PROMPTS,
	.check = check_gemini,
	.stage_login = stage_login,
	.login_ends = login_ends,
	.assemble = assemble,
	.assemble_mine = assemble_mine,
	.mine_can = CAN_MODEL,
	.event = event,
};
