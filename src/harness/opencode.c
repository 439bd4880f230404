/*
 * harness/opencode.c - opencode
 *
 * All declarations are in one configuration, /etc/carrel/opencode.json. A variable turns off
 * the project's own configuration (opencode.json, .opencode, skills). It also turns off the
 * project's AGENTS.md, so our configuration names that file. Hooks are JavaScript programs and
 * not offered.
 *
 * opencode replaces {env:NAME} and {file:PATH} in the text of a configuration before it reads
 * it as JSON, without quoting. So carrel uses no such references: braces in strings are written
 * as \u007b, and values that are not in the manifest become variables of the box, which
 * opencode passes on to every MCP server.
 */
#include "harness/harness.h"
#include "harness/json-event.h"
#include "harness/login-file.h"
#include "manifest/manifest.h"
#include "plan/request.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>

/* Providers that need one variable. The agent's `env` configures others. */
static const struct {
	const char *provider, *variable, *host;
} providers[] = {
	{ "anthropic", "ANTHROPIC_API_KEY", "api.anthropic.com" },
	{ "anthropic", "ANTHROPIC_BASE_URL", NULL },
	{ "google", "GEMINI_API_KEY", "generativelanguage.googleapis.com" },
	{ "openai", "OPENAI_API_KEY", "api.openai.com" },
	{ "opencode", "OPENCODE_API_KEY", "opencode.ai" },
	{ "openrouter", "OPENROUTER_API_KEY", "openrouter.ai" },
};
static const char *const variables[] = { "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
	"GEMINI_API_KEY", "OPENAI_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY", NULL };
static const char *const keys[] = { "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY",
	"OPENCODE_API_KEY", "OPENROUTER_API_KEY", NULL };
static const char *const run_words[] = { "run", NULL };
/* The provider's hosts; the user chooses the provider. */
static const struct part parts[] = { { ".config/opencode", NULL, NULL, NULL, false, NULL,
					     NULL },
	{ ".local/share/opencode", NULL, NULL, NULL, true, NULL, NULL },
	{ ".local/state/opencode", NULL, NULL, NULL, true, NULL, NULL }, { 0 } };

/* By its variable, or by a login in the client's own file, which is sorted by provider. */
static bool has_key(const struct job *job, const char *variable, const char *provider)
{
	vec_each(v, &job->variables)
		if (!strcmp(*v, variable))
			return true;
	vec_each(e, &job->agent->env)
		if (!strcmp(e->name, variable))
			return true;
	return job->login && json_member(login_read(job->login), provider);
}

/*
 * The hosts of the provider that the model names. Without a model: those of every provider with
 * a key, or else opencode's own, which needs none.
 */
static void add_hosts(const struct job *job, name_vec *ret)
{
	const char *model = job->agent->model.text;
	size_t n = model ? strcspn(model, "/") : 0;
	bool named = n && model[n];

	for (size_t i = 0; i < ARRAY_SIZE(providers); i++) {
		const char *provider = providers[i].provider;
		bool meant = named ? strlen(provider) == n && !strncmp(provider, model, n)
				   : has_key(job, providers[i].variable, provider);

		if (meant && providers[i].host)
			vec_push(ret, providers[i].host);
	}
	if (!named && !ret->n)
		vec_push(ret, "opencode.ai");
}

/* A box gets only the keys of the provider that its model names. */
static bool wants_variable(const struct agent *a, const char *variable)
{
	size_t n = a->model.text ? strcspn(a->model.text, "/") : 0;

	if (!n || !a->model.text[n])
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(providers); i++)
		if (!strcmp(providers[i].variable, variable) &&
			strlen(providers[i].provider) == n &&
			!strncmp(providers[i].provider, a->model.text, n))
			return true;
	return false;
}

static const char *stage_login(const char *text)
{
	const struct json_value *tree = login_read(text);

	if (!tree || tree->type != JSON_OBJECT || !tree->first)
		return NULL;
	return login_without(tree, "refresh");
}

static void check_opencode(const struct agent *a, problems *bad)
{
	harness_check_shared(&harness_opencode, a, bad);
	if (a->effort.text && !a->model.text)
		manifest_problem(bad, a->effort.at, manifest_field(a, "effort"),
			"opencode has its own for each model: say which with \"model\"");
}

/* ---- configuration ---- */

/* The same JSON with no brace in a string. */
static const char *without_references(const char *text)
{
	struct str out = { 0 };
	bool in_string = false;

	for (const char *c = text; *c; c++) {
		if (in_string && *c == '{') {
			str_add(&out, "\\u007b");
			continue;
		}
		str_addc(&out, *c);
		if (in_string && *c == '\\')
			str_addc(&out, *++c);
		else if (*c == '"')
			in_string = !in_string;
	}
	return out.p;
}

static bool has_text(const said_vec *list, const char *text)
{
	vec_each(s, list)
		if (!strcmp(s->text, text))
			return true;
	return false;
}

/* The client brings one skill that could be used although nobody declared it. */
static void json_rule(struct json *j, const char *tool, const char *action)
{
	if (strcmp(tool, "skill") != 0) {
		json_string(j, tool, action);
		return;
	}
	json_open(j, tool, '{');
	json_string(j, "*", action);
	json_string(j, "customize-opencode", "deny");
	json_close(j, '}');
}

/* The last matching rule wins; a tool that is denied entirely is not offered. */
static void json_permission(struct json *j, const struct agent *a)
{
	bool ask = a->permissions.skip_prompts == FLAG_OFF;
	const char *yes = ask ? "ask" : "allow";

	json_open(j, "permission", '{');
	if (a->tools.n)
		json_string(j, "*", "deny");
	else if (!ask)
		json_string(j, "*", "allow");
	if (a->tools.n)
		json_string(j, "external_directory", yes);
	vec_each(s, &a->tools)
		if (!has_text(&a->disallowed_tools, s->text))
			json_rule(j, s->text, yes);
	if (a->tools.n)
		vec_each(s, &a->use_mcp_servers)
			json_string(j, mem_printf("%s_*", s->name.text), yes);
	if (!a->tools.n && !has_text(&a->disallowed_tools, "skill"))
		json_rule(j, "skill", "allow");
	vec_each(s, &a->disallowed_tools)
		json_string(j, s->text, "deny");
	json_close(j, '}');
}

static void json_server(struct json *j, const struct mcp_server *s)
{
	json_open(j, s->name.text, '{');
	json_string(j, "type", "local");
	json_bool(j, "enabled", true);
	json_open(j, "command", '[');
	json_string(j, NULL, harness_program(&s->command, s->path));
	vec_each(arg, &s->args)
		json_string(j, NULL, arg->text);
	json_close(j, ']');
	json_open(j, "environment", '{');
	vec_each(e, &s->env)
		if (harness_literal(e))
			json_string(j, e->name, harness_literal(e));
	json_close(j, '}');
	json_close(j, '}');
}

/* It counts only beside the model. */
static void json_agents(struct json *j, const struct agent *a)
{
	static const char *const names[] = { "build", "plan" };

	json_open(j, "agent", '{');
	for (size_t i = 0; a->effort.text && i < ARRAY_SIZE(names); i++) {
		json_open(j, names[i], '{');
		json_string(j, "model", a->model.text);
		json_string(j, "variant", a->effort.text);
		json_close(j, '}');
	}
	json_close(j, '}');
}

static const char *config(const struct job *job)
{
	const struct agent *a = job->agent;
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	json_bool(&j, "autoupdate", false);
	json_string(&j, "share", "disabled");
	if (a->model.text)
		json_string(&j, "model", a->model.text);
	json_agents(&j, a);
	json_open(&j, "instructions", '[');
	json_string(&j, NULL, path_join(job->workspace, "AGENTS.md"));
	json_close(&j, ']');
	json_permission(&j, a);
	json_open(&j, "mcp", '{');
	vec_each(s, &a->use_mcp_servers)
		json_server(&j, s);
	json_close(&j, '}');
	json_close(&j, '}');
	str_addc(&out, '\n');
	return without_references(out.p);
}

/*
 * At every start the client would install a package from npm into its directory, and wait for
 * that without a network, unless a lock file says that it is installed.
 */
static void add_installed(struct request *r)
{
	static const char lock[] = "{\"packages\": {\"\": {\"dependencies\": "
				   "{\"@opencode-ai/plugin\": \"*\"}}}}\n";

	harness_home_file(r, ".config/opencode/.gitignore", "*\n", "nothing to install");
	harness_home_file(r, ".config/opencode/package-lock.json", lock, "nothing to install");
	harness_home_file(r, ".config/opencode/node_modules/.gitignore", "*\n",
		"nothing to install");
}

static void set_variables(struct request *r)
{
	static const char *const off[] = { "PROJECT_CONFIG", "EXTERNAL_SKILLS", "CLAUDE_CODE",
		"MODELS_FETCH", "AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD" };

	for (size_t i = 0; i < ARRAY_SIZE(off); i++)
		harness_set(r, mem_printf("OPENCODE_DISABLE_%s", off[i]), "1");
}

static void start_args(const struct job *job, name_vec *argv)
{
	const struct agent *a = job->agent;

	vec_push(argv, job->program);
	if (harness_says_run(&harness_opencode, job)) {
		vec_push(argv, "run");
		if (job->events)
			harness_option(argv, "--format", "json");
	} else if (job->headless) {
		vec_push(argv, "run");
		/* Otherwise the client would ask a model for a title. */
		harness_option(argv, "--title", a->name.text);
		if (job->events)
			harness_option(argv, "--format", "json");
	} else if (a->prompt.text) {
		harness_option(argv, "--prompt", HARNESS_ASK);
	}
}

static void assemble_mine(const struct job *job, name_vec *argv, struct request *r)
{
	start_args(job, argv);
	if (job->agent->model.text)
		harness_option(argv, "--model", job->agent->model.text);
	if (job->agent->permissions.skip_prompts != FLAG_OFF)
		vec_push(argv, "--auto");
	harness_set(r, "OPENCODE_CONFIG_CONTENT",
		"{\"instructions\":[\"" HARNESS_DIR "/SANDBOX.md\"]}");
	harness_set(r, "OPENCODE_DISABLE_AUTOUPDATE", "1");
}

static void assemble(const struct job *job, name_vec *argv, struct request *r)
{
	const struct agent *a = job->agent;

	start_args(job, argv);
	harness_set(r, "OPENCODE_CONFIG",
		harness_file(r, "opencode.json", config(job), "settings"));
	set_variables(r);
	harness_share(a, r);
	add_installed(r);
}

/* ---- events ---- */

/* Each step reports its usage. The run ends with the step that calls no tool. */
static void read_step(const struct json_value *part, struct harness_event *ret)
{
	const struct json_value *tokens = json_member(part, "tokens");
	const struct json_value *cache = json_member(tokens, "cache");

	ret->kind = event_is(part, "reason", "tool-calls") ? EVENT_OTHER : EVENT_RESULT;
	ret->turns = 1;
	ret->input_tokens = event_count(tokens, "input") + event_count(cache, "read") +
		event_count(cache, "write");
	ret->output_tokens = event_count(tokens, "output") + event_count(tokens, "reasoning");
	ret->usd = event_amount(part, "cost");
}

static void read_error(const struct json_value *error, struct harness_event *ret)
{
	const char *message = event_text(json_member(error, "data"), "message");

	ret->kind = EVENT_ERROR;
	ret->text = message ? message : event_text(error, "name");
}

static void event(const struct json_value *line, struct harness_event *ret)
{
	const char *type = event_text(line, "type");
	const struct json_value *part = json_member(line, "part");

	*ret = (struct harness_event){ 0 };
	if (!type)
		return;
	if (!strcmp(type, "text")) {
		ret->kind = EVENT_TEXT;
		ret->text = event_text(part, "text");
	} else if (!strcmp(type, "tool_use")) {
		ret->kind = EVENT_TOOL;
		ret->tool = event_text(part, "tool");
		if (event_is(part, "tool", "skill"))
			ret->skill =
				event_text(json_member(json_member(part, "state"), "input"),
					"name");
	} else if (!strcmp(type, "step_finish")) {
		read_step(part, ret);
	} else if (!strcmp(type, "error")) {
		read_error(json_member(line, "error"), ret);
	}
}

const struct harness harness_opencode = {
	.name = "opencode",
	.title = "opencode",
	.program = "opencode",
	.variables = variables,
	.keys = keys,
	.login = ".local/share/opencode/auth.json",
	.add_hosts = add_hosts,
	.parts = parts,
	.role = ".config/opencode/AGENTS.md",
	.skills = ".config/opencode/skills",
	.can = CAN_MODEL | CAN_EFFORT | CAN_SKILLS | CAN_MCP | CAN_TOOLS |
		CAN_DISALLOWED_TOOLS | CAN_PROMPTS,
	.run_words = run_words,
	.wants = wants_variable,
	.check = check_opencode,
	.stage_login = stage_login,
	.assemble = assemble,
	.assemble_mine = assemble_mine,
	.mine_can = CAN_MODEL,
	.event = event,
};
