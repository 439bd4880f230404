/*
 * cli/cmd-agents.c - carrel agents
 *
 * Each agent is composed and looked up as for a start, as far as that can be told without its
 * client; one that cannot be is listed with what is wrong. Of variables only the names are
 * shown.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "harness/harness.h"
#include "manifest/manifest.h"
#include "manifest/trust.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "run/agent.h"
#include "host/network-policy.h"
#include "host/survey.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDEST = 30 }; /* a longer cell does not widen the column */

struct agents_args {
	const char *manifest;
	bool json, names;
};

struct listed {
	const char *name, *harness; /* harness: NULL when it could not be composed */
	const struct manifest_file *file;
	struct agent agent;
	problems bad;
};
typedef VEC(struct listed) listed_vec;

static void look_up(const struct manifests *m, const char *home, const struct said *name,
	struct listed *ret)
{
	struct listed l = { .name = name->text, .file = manifest_origin(name) };
	const struct harness *h;
	struct fault f = { 0 };

	if (manifest_agent(m, name->text, &l.agent, &l.bad, &f) == 0) {
		h = harness_find(l.agent.harness.text ? l.agent.harness.text : "claude");
		l.harness = h->name;
		manifest_resolve(m, home, &l.agent, &l.bad);
		harness_check(h, &l.agent, harness_home(&l.agent, false), &l.bad);
		egress_check(&l.agent, &l.bad);
	}
	*ret = l;
}

static const char *network_of(const struct agent *a)
{
	return network_name(harness_mode(a));
}

/* The hosts of its manifest, or else the defaults, to which a base URL or a login may add. */
static name_vec allowed_of(const struct listed *l)
{
	const struct harness *h = harness_find(l->harness);
	struct job job = { .agent = &l->agent };
	name_vec hosts = { 0 };

	vec_each(entry, &l->agent.network.allow)
		vec_push(&hosts, entry->text);
	if (harness_mode(&l->agent) != NETWORK_ALLOW || harness_says_hosts(&l->agent))
		return hosts;
	for (size_t i = 0; h->variables && h->variables[i]; i++)
		if (getenv(h->variables[i]))
			vec_push(&job.variables, h->variables[i]);
	harness_hosts(h, &job, &hosts);
	return hosts;
}

/* ---- for programs ---- */

static void json_names(struct json *j, const char *key, const said_vec *names)
{
	json_open(j, key, '[');
	vec_each(name, names)
		json_string(j, NULL, name->text);
	json_close(j, ']');
}

static void json_reach(struct json *j, const struct listed *l)
{
	const struct agent *a = &l->agent;
	name_vec allowed = l->harness ? allowed_of(l) : (name_vec){ 0 };

	json_open(j, "env", '[');
	vec_each(e, &a->env)
		json_string(j, NULL, e->name);
	json_close(j, ']');
	json_open(j, "network", '{');
	json_string(j, "mode", network_of(a));
	json_open(j, "allow", '[');
	vec_each(host, &allowed)
		json_string(j, NULL, *host);
	json_close(j, ']');
	json_names(j, "deny", &a->network.deny);
	json_close(j, '}');
	json_open(j, "mounts", '[');
	vec_each(m, &a->mounts) {
		json_open(j, NULL, '{');
		json_string(j, "source", m->source.text);
		json_string(j, "target", m->target.text ? m->target.text : m->source.text);
		json_string(j, "mode", m->mode.text ? m->mode.text : "ro");
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_agent(struct json *j, const struct listed *l, bool approved)
{
	const struct agent *a = &l->agent;

	json_open(j, NULL, '{');
	json_string(j, "name", l->name);
	json_string(j, "file", l->file->path);
	json_bool(j, "approved", approved || !l->file->project);
	json_string(j, "harness", l->harness);
	json_string(j, "model", a->model.text);
	json_string(j, "description", a->description.text);
	json_names(j, "skills", &a->skills);
	json_names(j, "mcpServers", &a->mcp_servers);
	json_names(j, "plugins", &a->plugins);
	json_names(j, "hooks", &a->hooks);
	json_names(j, "tools", &a->tools);
	json_reach(j, l);
	json_open(j, "problems", '[');
	vec_each(line, &l->bad)
		json_string(j, NULL, *line);
	json_close(j, ']');
	json_close(j, '}');
}

static void print_json(const listed_vec *list, bool approved, struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '[');
	vec_each(l, list)
		json_agent(&j, l, approved);
	json_close(&j, ']');
	str_addc(out, '\n');
}

/* ---- for a person ---- */

static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

enum { CELLS = 4 };

static void cells_of(const struct listed *l, const char *cells[CELLS])
{
	cells[0] = str_visible(l->name);
	cells[1] = l->harness ? l->harness : "?";
	cells[2] = l->agent.model.text ? str_visible(l->agent.model.text)
		: l->harness && !strcmp(l->harness, "command") ? "no model"
							       : "default model";
	cells[3] = str_visible(l->file->name);
}

static void print_head(const struct listed *l, const size_t widths[CELLS], bool colour,
	struct str *out)
{
	const char *cells[CELLS];

	cells_of(l, cells);
	for (size_t i = 0; i < CELLS; i++) {
		str_addf(out, colour && i == 0 ? "\033[1m%s\033[0m" : "%s", cells[i]);
		for (size_t n = characters(cells[i]); i + 1 < CELLS && n < widths[i] + 2; n++)
			str_addc(out, ' ');
	}
	str_addc(out, '\n');
}

static void row(struct str *out, const char *label, const char *text)
{
	str_addf(out, "  %-12s%s\n", label, text);
}

static void print_names(struct str *out, const char *label, const said_vec *names)
{
	struct str text = { 0 };

	vec_each(name, names) {
		str_add(&text, name == names->v ? "" : ", ");
		str_add_visible(&text, name->text);
	}
	if (names->n)
		row(out, label, text.p);
}

static void print_network(const struct listed *l, struct str *out)
{
	name_vec allowed = allowed_of(l);
	struct str text = { 0 };

	row(out, "network", network_of(&l->agent));
	vec_each(host, &allowed)
		str_addf(&text, "%s%s", text.len ? ", " : "", str_visible(*host));
	if (text.len)
		row(out, "allowed", text.p);
	print_names(out, "denied", &l->agent.network.deny);
}

static void print_reach(const struct listed *l, struct str *out)
{
	const struct agent *a = &l->agent;
	struct str env = { 0 };

	vec_each(e, &a->env)
		str_addf(&env, "%s%s", env.len ? ", " : "", str_visible(e->name));
	if (env.len)
		row(out, "env", env.p);
	print_network(l, out);
	for (size_t i = 0; i < a->mounts.n; i++) {
		const struct agent_mount *m = &a->mounts.v[i];
		struct str text = { 0 };

		str_add_visible(&text, m->source.text);
		if (m->target.text)
			str_addf(&text, " at %s", str_visible(m->target.text));
		str_addf(&text, " (%s)", m->mode.text ? m->mode.text : "ro");
		row(out, i ? "" : "mounts", text.p);
	}
}

static void print_agent(const struct listed *l, struct str *out)
{
	const struct agent *a = &l->agent;

	if (a->description.text)
		row(out, "description", str_visible(a->description.text));
	print_names(out, "skills", &a->skills);
	print_names(out, "mcpServers", &a->mcp_servers);
	print_names(out, "plugins", &a->plugins);
	print_names(out, "hooks", &a->hooks);
	print_names(out, "tools", &a->tools);
	if (l->harness)
		print_reach(l, out);
	vec_each(line, &l->bad)
		row(out, line == l->bad.v ? "problem" : "", *line);
}

static void print_text(const listed_vec *list, bool colour, struct str *out)
{
	size_t widths[CELLS] = { 0 };
	const char *cells[CELLS];

	vec_each(l, list) {
		cells_of(l, cells);
		for (size_t i = 0; i < CELLS; i++) {
			size_t n = characters(cells[i]);

			if (n > widths[i])
				widths[i] = n < WIDEST ? n : WIDEST;
		}
	}
	vec_each(l, list) {
		print_head(l, widths, colour, out);
		print_agent(l, out);
	}
}

/* ---- the command ---- */

/* Say when the project's manifest is not approved; its agents are listed all the same. */
static int check_trust(const struct manifests *m, bool *ret, struct fault *f)
{
	const struct manifest_file *file = m->project;
	struct trust_state state = { .is = TRUST_GIVEN };
	int rc = 0;

	if (file)
		rc = trust_verdict(file->path, file->bytes, file->size, &state, f);
	if (rc < 0)
		return rc;
	*ret = state.is == TRUST_GIVEN;
	if (!*ret)
		cmd_note(mem_printf("%s %s: its agents can be shown, not started",
			str_visible(file->path),
			state.is == TRUST_NEW ? "is not approved"
					      : "has changed since it was approved"));
	return 0;
}

static int load_manifests(const struct agents_args *a, struct manifests *ret,
	bool *ret_approved, problems *bad, struct fault *f)
{
	const char *dir;
	int rc = agent_workspace(&(struct request){ 0 }, &dir, f);

	if (rc == 0)
		rc = manifest_load(dir, a->manifest, ret, bad, f);
	return rc < 0 ? rc : check_trust(ret, ret_approved, f);
}

static int print_only_names(const said_vec *names)
{
	struct str out = { 0 };

	vec_each(name, names)
		str_addf(&out, "%s\n", str_visible(name->text));
	return cmd_print(&out);
}

static int cmd_agents(void *args, int argc, char **argv)
{
	const struct agents_args *a = args;
	bool approved, broken = false;
	struct fault f = { 0 };
	listed_vec list = { 0 };
	struct str out = { 0 };
	said_vec names = { 0 };
	struct manifests m;
	problems bad = { 0 };
	int rc;

	(void)argc, (void)argv;
	if (load_manifests(a, &m, &approved, &bad, &f) < 0)
		return bad.n ? cmd_problems(bad.v, bad.n) : cmd_fail(&f);
	manifest_names(&m, &names);
	if (a->names)
		return print_only_names(&names);
	vec_each(name, &names) {
		struct listed l;

		look_up(&m, survey_home(), name, &l);
		broken |= l.bad.n > 0;
		vec_push(&list, l);
	}
	if (!list.n)
		cmd_note("no agent is declared");
	if (a->json)
		print_json(&list, approved, &out);
	else
		print_text(&list, cmd_colour(STDOUT_FILENO), &out);
	rc = cmd_print(&out);
	return rc ? rc : broken;
}

static const struct opt agents_opts[] = {
	OPT_STR('m', "manifest", struct agents_args, manifest, "FILE",
		"read FILE instead of carrel.json in the working directory",
		.hint = OPT_HINT_FILE),
	OPT_FLAG(0, "json", struct agents_args, json, "print the list as JSON"),
	OPT_FLAG(0, "names", struct agents_args, names,
		"print their names alone, a line each, as completion does"),
	OPT_END,
};

const struct cmd cmd_agents_entry = {
	.name = "agents",
	.about = "list the agents that are declared here",
	.detail = "Lists the agents of `carrel.json` in the working directory and of your own "
		  "in `~/.config/carrel`. If both declare the same name, the project's counts. "
		  "Each is listed with its client, model and file, and with what it gets; of "
		  "variables only the names are shown. An agent that cannot be started as "
		  "declared is listed with what is wrong, and the exit status is then 1.",
	.opts = agents_opts,
	.size = sizeof(struct agents_args),
	.run = cmd_agents,
};
