/*
 * harness/codex.c - Codex
 *
 * All declarations are in ~/.codex/config.toml, which the agent cannot write. Codex reads
 * .codex of a project that it trusts, with its MCP servers and hooks, and ignores the AGENTS.md
 * of one that it does not trust. So the project is trusted, and its .codex and .agents/skills
 * are hidden. Hooks would run through a shell and are not offered; Codex has no lists of tools.
 * Codex itself ignores OPENAI_API_KEY and OPENAI_BASE_URL, so they are not passed on.
 */
#include "harness/harness.h"
#include "harness/json-event.h"
#include "harness/login-file.h"
#include "harness/toml.h"
#include "manifest/manifest.h"
#include "plan/request.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

static const char *const run_words[] = { "exec", "e", NULL };

#define SYSTEM_DIR "/etc/codex"

static const char *const keys[] = { "CODEX_API_KEY", NULL };
/* Simultaneous boxes share its databases, so these are in a directory of their own. */
#define DATABASES "sqlite"
static const char *const own_dirs[] = { "sessions", "archived_sessions", DATABASES, NULL };
static const char *const own_files[] = { "history.jsonl", NULL };
/* Traces of other projects. Append new ones, or existing instances would not get them. */
#define DATABASE(name) name ".sqlite", name ".sqlite-wal", name ".sqlite-shm"
static const char *const traces[] = { "log", "shell_snapshots", "memories",
	"memories_extensions", "thread-writer-locks", "attachments", "generated_images",
	"worktrees", "session_index.jsonl", "external_agent_session_imports.json",
	DATABASE("logs_2"), DATABASE("thread_history_1"), DATABASE("state_5"),
	DATABASE("goals_1"), DATABASE("queue_1"), DATABASE("memories_1"),
	DATABASE("agent_message_board_1"), NULL };
static const char *const notes[] = { "installation_id", ".sandbox_migration", NULL };
static const struct part parts[] = {
	{ ".codex", own_dirs, own_files, traces, false, NULL, notes }, { 0 }
};
static const char *const hosts[] = { "api.openai.com", "chatgpt.com", "auth.openai.com", NULL };
static const char *const hide[] = { ".codex", ".agents/skills", NULL };

static const char *stage_login(const char *text)
{
	const struct json_value *tree = login_read(text);

	if (!event_text(tree, "OPENAI_API_KEY") &&
		!event_text(json_member(tree, "tokens"), "access_token"))
		return NULL;
	return login_without(tree, "refresh_token");
}

static long long login_ends(const char *text)
{
	const struct json_value *tokens = json_member(login_read(text), "tokens");
	const char *token = event_text(tokens, "access_token");

	return token ? login_token_ends(token) : 0;
}

static void check_codex(const struct agent *a, problems *bad)
{
	harness_check_shared(&harness_codex, a, bad);
	vec_each(s, &a->use_mcp_servers)
		if (s->name.text[strspn(s->name.text, NAME_CHARS)])
			manifest_problem(bad, s->command.at,
				mem_printf("library.mcpServers.%s", s->name.text),
				"Codex takes letters, digits, '_' and '-' in the name of a "
				"server only");
}

/* ---- configuration ---- */

static void toml_server(struct str *out, const struct mcp_server *s)
{
	struct toml_list list;

	toml_table(out, "mcp_servers", s->name.text);
	toml_text(out, "command", harness_program(&s->command, s->path));
	toml_open(&list, out, "args");
	vec_each(arg, &s->args)
		toml_item(&list, arg->text);
	toml_close(&list);
	/* Codex passes hardly any other variable on to a server. */
	toml_open(&list, out, "env_vars");
	vec_each(e, &s->env)
		if (!harness_literal(e))
			toml_item(&list, e->name);
	toml_close(&list);
	toml_table(out, mem_printf("mcp_servers.%s", s->name.text), "env");
	vec_each(e, &s->env)
		if (harness_literal(e))
			toml_text(out, e->name, harness_literal(e));
}

static bool declared(const struct agent *a, const char *name)
{
	vec_each(e, &a->env)
		if (!strcmp(e->name, name))
			return true;
	return false;
}

/* Variables that the shell tool need not know: the key, and those for one server only. */
static void toml_shell(struct str *out, const struct agent *a)
{
	struct toml_list list;

	toml_table(out, "shell_environment_policy", NULL);
	toml_open(&list, out, "exclude");
	for (size_t i = 0; keys[i]; i++)
		toml_item(&list, keys[i]);
	vec_each(s, &a->use_mcp_servers)
		vec_each(e, &s->env)
			if (!harness_literal(e) && !declared(a, e->name))
				toml_item(&list, e->name);
	toml_close(&list);
}

static const char *config(const struct job *job)
{
	const struct agent *a = job->agent;
	bool ask = a->permissions.skip_prompts == FLAG_OFF;
	struct str out = { 0 };

	if (a->model.text)
		toml_text(&out, "model", a->model.text);
	if (a->effort.text)
		toml_text(&out, "model_reasoning_effort", a->effort.text);
	/* Its own sandbox does not work in a box, and is not needed. */
	toml_text(&out, "sandbox_mode", "danger-full-access");
	toml_text(&out, "approval_policy", ask ? "untrusted" : "never");
	/* Only the workspace's own AGENTS.md. */
	str_add(&out, "project_root_markers = []\n");
	str_add(&out, "check_for_update_on_startup = false\n");
	toml_table(&out, "projects", job->workspace);
	toml_text(&out, "trust_level", "trusted");
	str_add(&out, "\n[skills.bundled]\nenabled = false\n");
	str_add(&out,
		"\n[features]\napps = false\nplugins = false\ndaemon_auto_start = false\n");
	str_add(&out, "\n[analytics]\nenabled = false\n");
	str_add(&out, "\n[tui]\nshow_tooltips = false\n");
	toml_shell(&out, a);
	vec_each(s, &a->use_mcp_servers)
		toml_server(&out, s);
	return out.p;
}

static void start_args(const struct job *job, name_vec *argv)
{
	vec_push(argv, job->program);
	if (harness_says_run(&harness_codex, job)) {
		vec_push(argv, "exec");
		if (job->events)
			vec_push(argv, "--json");
	} else if (job->headless) {
		vec_push(argv, "exec");
		vec_push(argv, "--skip-git-repo-check");
		if (job->events)
			vec_push(argv, "--json");
		vec_push(argv, "-");
	} else if (job->agent->prompt.text) {
		vec_push(argv, HARNESS_ASK);
	}
}

static void assemble(const struct job *job, name_vec *argv, struct request *r)
{
	start_args(job, argv);
	harness_home_file(r, ".codex/config.toml", config(job), "settings");
	harness_share(job->agent, r);
}

static void set_option(name_vec *argv, const char *key, const char *text)
{
	struct str value = { 0 };

	str_addf(&value, "%s=", key);
	toml_string(&value, text);
	harness_option(argv, "-c", value.p);
}

/*
 * An administrator's instructions, which Codex adds to the user's own. The option
 * developer_instructions would replace the user's.
 */
static void add_requirements(struct request *r)
{
	vec_push(&r->dirs, ((struct request_dir){ .target = SYSTEM_DIR, .why = "agent" }));
	vec_push(&r->files,
		((struct request_file){ .target = SYSTEM_DIR "/requirements.toml",
			.text = "additional_developer_instructions = \"You run in a "
				"sandbox. " HARNESS_DIR
				"/SANDBOX.md says what it allows: read it first.\"\n",
			.why = "leads to SANDBOX.md",
			.mode = 0444 }));
}

static void assemble_mine(const struct job *job, name_vec *argv, struct request *r)
{
	const struct agent *a = job->agent;

	start_args(job, argv);
	set_option(argv, "sqlite_home", path_join(job->home, ".codex/" DATABASES));
	if (a->model.text)
		harness_option(argv, "--model", a->model.text);
	if (a->effort.text)
		set_option(argv, "model_reasoning_effort", a->effort.text);
	if (a->permissions.skip_prompts != FLAG_OFF)
		vec_push(argv, "--dangerously-bypass-approvals-and-sandbox");
	add_requirements(r);
}

/* ---- events ---- */

/* Codex has no tool for skills: the model reads the SKILL.md of the one it uses. */
static const char *skill_in(const char *command)
{
	const char *end = command ? strstr(command, "/SKILL.md") : NULL, *name = end;

	while (name && name > command && name[-1] != '/')
		name--;
	if (!end || name - command < 8 || strncmp(name - 8, "/skills/", 8) != 0)
		return NULL;
	return mem_strndup(name, (size_t)(end - name));
}

static void read_tool(const struct json_value *item, struct harness_event *ret)
{
	const char *type = event_text(item, "type");
	const char *server = event_text(item, "server"), *tool = event_text(item, "tool");

	if (!type || !strcmp(type, "agent_message") || !strcmp(type, "reasoning") ||
		!strcmp(type, "error") || !strcmp(type, "todo_list"))
		return;
	ret->kind = EVENT_TOOL;
	ret->tool = server && tool ? mem_printf("mcp__%s__%s", server, tool) : type;
	ret->skill = skill_in(event_text(item, "command"));
}

/* The usage is that of the whole run, and includes cached tokens. */
static void read_end(const struct json_value *line, struct harness_event *ret)
{
	const struct json_value *usage = json_member(line, "usage");

	ret->kind = EVENT_RESULT;
	ret->failed = event_is(line, "type", "turn.failed");
	ret->text = event_text(json_member(line, "error"), "message");
	ret->input_tokens = event_count(usage, "input_tokens");
	ret->output_tokens = event_count(usage, "output_tokens");
}

static void event(const struct json_value *line, struct harness_event *ret)
{
	const char *type = event_text(line, "type");
	const struct json_value *item = json_member(line, "item");

	*ret = (struct harness_event){ 0 };
	if (!type)
		return;
	if (!strcmp(type, "thread.started")) {
		ret->kind = EVENT_START;
	} else if (!strcmp(type, "item.started")) {
		read_tool(item, ret);
	} else if (!strcmp(type, "item.completed")) {
		/* An item of type error is only a warning. */
		if (!event_is(item, "type", "agent_message"))
			return;
		ret->kind = EVENT_TEXT;
		ret->text = event_text(item, "text");
	} else if (!strcmp(type, "turn.completed") || !strcmp(type, "turn.failed")) {
		read_end(line, ret);
	} else if (!strcmp(type, "error")) {
		ret->kind = EVENT_ERROR;
		ret->text = event_text(line, "message");
	}
}

const struct harness harness_codex = {
	.name = "codex",
	.title = "Codex",
	.program = "codex",
	.variables = keys,
	.keys = keys,
	.login = ".codex/auth.json",
	.hosts = hosts,
	.parts = parts,
	.role = ".codex/AGENTS.md",
	.skills = ".codex/skills",
	.hide = hide,
	.run_words = run_words,
	.talks = { "sessions", 3, "resume" },
	.can = CAN_MODEL | CAN_EFFORT | CAN_SKILLS | CAN_MCP | CAN_PROMPTS,
	.check = check_codex,
	.stage_login = stage_login,
	.login_ends = login_ends,
	.assemble = assemble,
	.assemble_mine = assemble_mine,
	.mine_can = CAN_MODEL | CAN_EFFORT,
	.event = event,
};
