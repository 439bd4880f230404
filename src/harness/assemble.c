/*
 * harness/assemble.c - what all clients have in common
 */
#include "harness/harness.h"
#include "harness/env-forms.h"
#include "manifest/manifest.h"
#include "plan/layout.h"
#include "plan/request.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>

const struct harness *const harness_all[] = { &harness_claude, &harness_codex, &harness_gemini,
	&harness_opencode, &harness_command, NULL };

const struct harness *harness_find(const char *name)
{
	for (const struct harness *const *h = harness_all; *h; h++)
		if (!strcmp((*h)->name, name))
			return *h;
	return NULL;
}

/* ---- what cannot be ---- */

/* One declaration that a client may not support. */
struct claim {
	const char *key;
	const struct json_value *at; /* NULL: not declared */
	unsigned int needs;          /* enum harness_can */
};

static const struct json_value *first(const said_vec *list)
{
	return list->n ? list->v[0].at : NULL;
}

static void check_claim(const struct harness *h, const struct agent *a, const struct claim *c,
	problems *bad)
{
	if (c->at && !(h->can & c->needs))
		manifest_problem(bad, c->at, manifest_field(a, c->key),
			"%s cannot be given this", h->title);
}

static bool is_said(const struct said *s, const char *text)
{
	return s->text && !strcmp(s->text, text);
}

static void check_client(const struct harness *h, const struct agent *a, problems *bad)
{
	const struct claim claims[] = {
		{ "model", a->model.at, CAN_MODEL },
		{ "effort", a->effort.at, CAN_EFFORT },
		{ "command", first(&a->command), CAN_COMMAND },
		{ "skills", first(&a->skills), CAN_SKILLS },
		{ "mcpServers", first(&a->mcp_servers), CAN_MCP },
		{ "plugins", first(&a->plugins), CAN_PLUGINS },
		{ "hooks", first(&a->hooks), CAN_HOOKS },
		{ "tools", first(&a->tools), CAN_TOOLS },
		{ "allowedTools", first(&a->allowed_tools), CAN_ALLOWED_TOOLS },
		{ "disallowedTools", first(&a->disallowed_tools), CAN_DISALLOWED_TOOLS },
		{ "permissions.allow", first(&a->permissions.allow), CAN_PERMISSIONS },
		{ "permissions.deny", first(&a->permissions.deny), CAN_PERMISSIONS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(claims); i++)
		check_claim(h, a, &claims[i], bad);
	if (a->permissions.skip_prompts == FLAG_OFF && !(h->can & CAN_PROMPTS))
		manifest_problem(bad, manifest_at(a, "permissions.skipPrompts"),
			manifest_field(a, "permissions.skipPrompts"),
			"%s does not ask for permission by itself", h->title);
	if (!h->program && (!a->command.n || !*a->command.v[0].text))
		manifest_problem(bad, a->name.at, manifest_field(a, "command"),
			"is missing: it is what harness \"command\" runs");
}

static void refuse_key(const struct agent *a, const char *key, problems *bad)
{
	manifest_problem(bad, manifest_at(a, key), manifest_field(a, key),
		"this version of carrel cannot do it");
}

/* Keys that the manifest accepts but the box cannot obey yet. They are never ignored. */
static void check_version(const struct agent *a, problems *bad)
{
	for (const struct limit_row *l = limit_first(LIMIT_OF_NOBODY); l; l = limit_next(l))
		if (limit_is_set(&a->limits, l))
			refuse_key(a, mem_printf("limits.%s", l->name), bad);
	if (a->image.text && !is_said(&a->image, "host"))
		refuse_key(a, "image", bad);
}

/* A home holds the user's own files or declared ones, never both. */
static void check_mine(const struct harness *h, const struct agent *a, problems *bad)
{
	const struct {
		const char *key;
		const struct json_value *at;
	} declared[] = {
		{ "role", a->role.at },
		{ "skills", first(&a->skills) },
		{ "mcpServers", first(&a->mcp_servers) },
		{ "plugins", first(&a->plugins) },
		{ "hooks", first(&a->hooks) },
		{ "tools", first(&a->tools) },
		{ "allowedTools", first(&a->allowed_tools) },
		{ "disallowedTools", first(&a->disallowed_tools) },
		{ "permissions.allow", first(&a->permissions.allow) },
		{ "permissions.deny", first(&a->permissions.deny) },
	};

	if (!h->assemble_mine)
		manifest_problem(bad, a->home.at ? a->home.at : a->name.at,
			manifest_field(a, "home"),
			"%s has no configuration of yours that carrel knows", h->title);
	if (a->effort.at && !(h->mine_can & CAN_EFFORT))
		manifest_problem(bad, a->effort.at, manifest_field(a, "effort"),
			"%s takes it from its own configuration", h->title);
	for (size_t i = 0; i < ARRAY_SIZE(declared); i++)
		if (declared[i].at)
			manifest_problem(bad, declared[i].at,
				manifest_field(a, declared[i].key),
				"is for home \"declared\": your own configuration has yours");
}

enum job_home harness_home(const struct agent *a, bool mine)
{
	if (is_said(&a->home, "direct"))
		return HOME_DIRECT;
	if (is_said(&a->home, "declared"))
		return HOME_DECLARED;
	return mine || is_said(&a->home, "mine") ? HOME_MINE : HOME_DECLARED;
}

void harness_check_alone(const struct agent *a, problems *bad)
{
	check_version(a, bad);
	harness_check_network(a, bad);
	ssh_check(a, bad);
	vec_each(e, &a->env)
		env_check(&e->value, manifest_field(a, mem_printf("env.%s", e->name)), bad);
}

void harness_check(const struct harness *h, const struct agent *a, enum job_home home,
	problems *bad)
{
	if (home == HOME_DECLARED)
		check_client(h, a, bad);
	else
		check_mine(h, a, bad);
	harness_check_alone(a, bad);
	if (h->check && home == HOME_DECLARED)
		h->check(a, bad);
	vec_each(s, &a->use_mcp_servers)
		vec_each(e, &s->env)
			env_check(&e->value,
				mem_printf("library.mcpServers.%s.env.%s", s->name.text,
					e->name),
				bad);
}

/* ---- pieces for the clients' files ---- */

const char *harness_file(struct request *r, const char *name, const char *text, const char *why)
{
	const char *path = path_join(HARNESS_DIR, name);

	vec_push(&r->files,
		((struct request_file){
			.target = path, .text = text, .why = why, .mode = 0444 }));
	return path;
}

void harness_home_file(struct request *r, const char *name, const char *text, const char *why)
{
	vec_push(&r->files,
		((struct request_file){ .target = mem_printf("~/%s", name),
			.text = text,
			.why = why,
			.mode = 0444 }));
}

void harness_option(name_vec *argv, const char *name, const char *value)
{
	vec_push(argv, name);
	vec_push(argv, value);
}

void harness_set(struct request *r, const char *name, const char *value)
{
	vec_push(&r->env,
		((struct request_env){
			.name = name, .value = value, .how = ENV_LITERAL, .from = ENV_SET }));
}

static const char *as_variable(struct request *r, struct request_env e, const char *form)
{
	struct str out = { 0 };
	const char *at = strstr(form, "%s");

	e.name = mem_printf("CARREL_VALUE_%zu", r->env.n);
	vec_push(&r->env, e);
	str_addn(&out, form, (size_t)(at - form));
	str_add(&out, e.name);
	str_add(&out, at + 2);
	return out.p;
}

const char *harness_text(struct request *r, const struct said *text, const char *form,
	const char *field)
{
	struct request_env e = { .value = text->text, .from = ENV_DECLARED, .why = field };

	return strchr(text->text, '$') ? as_variable(r, e, form) : text->text;
}

const char *harness_value(struct request *r, const struct named *env, const char *form,
	const char *field)
{
	struct request_env e = env_entry(env->name, &env->value, field);

	/* Literals too: the plan shows files, but never a variable's value. */
	return as_variable(r, e, form);
}

const char *harness_program(const struct said *command, const char *path)
{
	return path ? path : command->text;
}

/* ---- what is the same for all ---- */

/*
 * Mount a path of the host read-only at its own place; inside the workspace it is protected
 * instead.
 */
static void show_path(const struct job *job, struct request *r, const char *path,
	const char *why)
{
	if (!path || layout_in_system(path))
		return;
	if (path_within(path, job->workspace)) {
		if (strcmp(path, job->workspace) != 0)
			vec_push(&r->protect, path_below(path, job->workspace));
		return;
	}
	vec_each(m, &r->mounts)
		if (!strcmp(m->source, path) && (!m->target || !strcmp(m->target, path)))
			return;
	vec_push(&r->mounts,
		((struct request_mount){
			.declared = true, .source = path, .target = path, .why = why }));
}

static void keep_path(const struct job *job, struct request *r, const char *path)
{
	if (path && path_within(path, job->workspace) && strcmp(path, job->workspace) != 0)
		vec_push(&r->protect, path_below(path, job->workspace));
}

static void add_library(const struct harness *h, const struct job *job, struct request *r)
{
	const struct agent *a = job->agent;

	vec_each(s, &a->use_skills) {
		vec_push(&r->mounts,
			((struct request_mount){ .declared = true,
				.source = s->path,
				.target = mem_printf("~/%s/%s", h->skills, s->name.text),
				.why = mem_printf("skill %s", s->name.text) }));
		keep_path(job, r, s->path);
	}
	vec_each(p, &a->use_plugins) {
		vec_push(&r->mounts,
			((struct request_mount){ .declared = true,
				.source = p->path,
				.target = mem_printf(HARNESS_DIR "/plugins/%s", p->name.text),
				.why = mem_printf("plugin %s", p->name.text) }));
		keep_path(job, r, p->path);
	}
	keep_path(job, r, a->role_path);
	vec_each(s, &a->use_mcp_servers)
		show_path(job, r, s->path, mem_printf("MCP server %s", s->name.text));
	vec_each(k, &a->use_hooks)
		show_path(job, r, k->path, mem_printf("hook %s", k->name.text));
}

static void add_mounts(const struct job *job, struct request *r)
{
	vec_each(m, &job->agent->mounts)
		vec_push(&r->mounts,
			((struct request_mount){ .declared = true,
				.source = m->path,
				.target = m->target.text,
				.rw = is_said(&m->mode, "rw"),
				.why = "mount" }));
}

/*
 * Keep what was made for the agent as it is: nothing can be added where the client looks for
 * skills, and the directory around the role cannot be replaced.
 */
static void add_seals(const struct harness *h, struct request *r)
{
	vec_push(&r->dirs, ((struct request_dir){ .target = HARNESS_DIR, .why = "agent" }));
	if (h->skills)
		vec_push(&r->dirs,
			((struct request_dir){
				.target = mem_printf("~/%s", h->skills), .why = "skills" }));
	if (h->role)
		vec_push(&r->dirs,
			((struct request_dir){ .target = mem_printf("~%s",
						       path_parent(mem_printf("/%s", h->role))),
				.why = "the client's own",
				.rw = true }));
}

/* Nobody else would tell a declared agent that it works on a copy. */
static const char *role_text(const struct harness *h, const struct job *job, bool overlay)
{
	static const char copy[] =
		"You work on a copy of the project. The user's own files and branches stay as "
		"they are until the user takes over what you changed: edit, delete and commit "
		"as you need. " HARNESS_DIR "/SANDBOX.md says what else this sandbox allows.\n";
	const char *role = job->agent->role_text;

	if (!overlay || (!role && !h->program))
		return role;
	return role ? mem_printf("%s\n%s", role, copy) : copy;
}

static void add_role(const struct harness *h, const struct job *job, struct request *r)
{
	const char *text = role_text(h, job, r->overlay);

	if (text)
		vec_push(&r->files,
			((struct request_file){ .target = mem_printf("~/%s", h->role),
				.text = text,
				.why = "role",
				.mode = 0444,
				.brief = job->agent->role_text != NULL }));
	if (job->login)
		vec_push(&r->files,
			((struct request_file){ .target = mem_printf("~/%s", h->login),
				.text = job->login,
				.why = "login",
				.mode = 0600,
				.rw = true,
				.secret = true }));
}

/* The prompt goes into a file: every user of the machine could read an argument. */
static void add_prompt(const struct job *job, struct request *r)
{
	if (!job->agent->prompt.text)
		return;
	vec_push(&r->files,
		((struct request_file){ .target = HARNESS_PROMPT,
			.text = job->agent->prompt.text,
			.why = "prompt",
			.mode = 0444,
			.brief = true }));
	if (job->headless)
		r->input = HARNESS_PROMPT;
}

/* The command line wins, so its variables come after those of the client and the manifest. */
static void add_env(const struct harness *h, const struct job *job, struct request *r)
{
	const struct agent *a = job->agent;

	vec_each(name, &job->variables) {
		if (h->wants && !h->wants(a, *name))
			continue;
		vec_push(&r->env,
			((struct request_env){ .name = *name,
				.how = ENV_COPY,
				.value = *name,
				.from = ENV_HOST,
				.why = *name }));
	}
	vec_each(e, &a->env)
		vec_push(&r->env,
			env_entry(e->name, &e->value,
				manifest_field(a, mem_printf("env.%s", e->name))));
}

static void add_names(const said_vec *from, name_vec *to)
{
	vec_each(s, from)
		vec_push(to, s->text);
}

static size_t count_words(const char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

static const struct request_agent *summary(const struct harness *h, const struct job *job)
{
	struct request_agent *s = mem_alloc(sizeof(*s));
	const struct agent *a = job->agent;

	s->name = a->name.text;
	s->title = h->program ? h->title : NULL;
	s->own = a->mine;
	s->login = job->login_name;
	s->login_until = job->login_until;
	s->typed = count_words(job->args) - harness_says_run(h, job);
	if (h->program)
		s->prompts = a->permissions.skip_prompts == FLAG_OFF ? PROMPTS_ON : PROMPTS_OFF;
	s->harness = h->name;
	s->model = a->model.text;
	s->prompt = a->prompt.text;
	add_names(&a->skills, &s->skills);
	add_names(&a->mcp_servers, &s->mcp_servers);
	add_names(&a->plugins, &s->plugins);
	add_names(&a->hooks, &s->hooks);
	add_names(&a->tools, &s->tools);
	return s;
}

static void add_limits(const struct agent *a, struct request *r)
{
	limit_inherit(&r->limits, &a->limits, LIMIT_OF_BOX);
	if (network_is_brokered(r->network))
		limit_inherit(&r->limits, &a->limits, LIMIT_OF_NETWORK);
}

/* The user's own configuration, through the layers that are kept for this project. */
static void add_mine(const struct harness *h, const struct job *job, struct request *r)
{
	r->parts = h->parts;
	r->parts_direct = job->kind == HOME_DIRECT;
	r->sandbox = true;
	vec_push(&r->dirs, ((struct request_dir){ .target = HARNESS_DIR, .why = "agent" }));
	if (r->parts_direct)
		vec_push(&r->notices,
			mem_printf(
				"home \"direct\": this box can change your own "
				"configuration of %s, and hooks in it run outside of any box",
				h->title));
	for (const struct part *p = h->parts; p->path && !r->parts_direct; p++) {
		size_t n = strlen(p->path);

		if (job->login && !strncmp(h->login, p->path, n) && h->login[n] == '/')
			vec_push(&r->part_files,
				((struct part_file){ p->path, h->login + n + 1, job->login }));
	}
}

bool harness_says_run(const struct harness *h, const struct job *job)
{
	const char *first = job->args ? job->args[0] : NULL;

	for (size_t i = 0; first && h->run_words && h->run_words[i]; i++)
		if (!strcmp(first, h->run_words[i]))
			return true;
	return false;
}

/* The last rule about a path decides, and the command line comes last. */
static void put_first(const said_vec *declared, name_vec *rules)
{
	const name_vec asked = *rules;

	memset(rules, 0, sizeof(*rules));
	vec_each(d, declared)
		vec_push(rules, d->text);
	vec_each(rule, &asked)
		vec_push(rules, *rule);
}

void harness_assemble(const struct harness *h, const struct job *job, struct request *r)
{
	const struct agent *a = job->agent;
	__typeof__(r->env) asked = r->env;
	name_vec argv = { 0 };

	memset(&r->env, 0, sizeof(r->env));
	r->agent = summary(h, job);
	harness_network(h, job, r);
	add_limits(a, r);
	if (!r->uid)
		r->uid = a->uid;
	if (!r->engine)
		r->engine = a->engine.text;
	r->overlay |= is_said(&a->workspace.mode, "overlay");
	put_first(&a->workspace.protect, &r->protect);
	put_first(&a->workspace.hide, &r->hide);
	add_mounts(job, r);
	add_prompt(job, r);
	if (job->kind == HOME_DECLARED) {
		add_library(h, job, r);
		add_role(h, job, r);
		add_seals(h, r);
		h->assemble(job, &argv, r);
	} else {
		add_mine(h, job, r);
		h->assemble_mine(job, &argv, r);
	}
	for (size_t i = 0; i < a->args.n; i++)
		vec_push(&argv, a->args.v[i].text);
	/* start_args() has put the client's own word before our options. */
	for (size_t i = harness_says_run(h, job); job->args && job->args[i]; i++)
		vec_push(&argv, job->args[i]);
	vec_push(&argv, NULL);
	r->argv = argv.v;
	ssh_assemble(job, r);
	add_env(h, job, r);
	vec_each(e, &asked)
		vec_push(&r->env, *e);
}
