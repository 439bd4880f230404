/*
 * plan/print.c - the plan for a person and for a machine
 *
 * Both read the struct the engine executes. No value of an environment variable is
 * ever printed. Text from outside passes str_visible().
 */
#include "plan/plan.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <sched.h>
#include <string.h>

static const struct {
	unsigned long bit;
	const char *name;
} namespaces[] = {
	{ CLONE_NEWUSER, "user" },
	{ CLONE_NEWNS, "mount" },
	{ CLONE_NEWPID, "pid" },
	{ CLONE_NEWIPC, "ipc" },
	{ CLONE_NEWUTS, "uts" },
	{ CLONE_NEWCGROUP, "cgroup" },
	{ CLONE_NEWNET, "net" },
};

static const char *const place_kinds[] = {
	[PLACE_LINK] = "link",
	[PLACE_FILE] = "file",
	[PLACE_COPY] = "copy",
	[PLACE_BIND] = "bind",
	[PLACE_SCRATCH] = "scratch",
	[PLACE_OVERLAY] = "overlay",
	[PLACE_PROC] = "proc",
	[PLACE_PTS] = "pts",
	[PLACE_PIN] = "pin",
	[PLACE_PROTECT] = "protect",
	[PLACE_STUB] = "stub",
	[PLACE_HIDE] = "hide",
	[PLACE_SEAL] = "seal",
};

const char *place_kind_name(enum place_kind kind)
{
	return place_kinds[kind];
}

const char *env_from_name(enum env_from from)
{
	static const char *const names[] = {
		[ENV_HOST] = "host",
		[ENV_SET] = "set",
		[ENV_DECLARED] = "declared",
		[ENV_ASKED] = "asked",
	};

	return names[from];
}

const char *env_how_name(enum env_how how)
{
	static const char *const names[] = {
		[ENV_LITERAL] = "literal",
		[ENV_COPY] = "copy",
		[ENV_PROMPT] = "prompt",
		[ENV_COMMAND] = "command",
	};

	return names[how];
}

const char *network_name(enum network network)
{
	static const char *const names[] = {
		[NETWORK_NONE] = "none",
		[NETWORK_ALLOW] = "allow",
		[NETWORK_OPEN] = "open",
		[NETWORK_HOST] = "host",
	};

	return names[network];
}

const char *seccomp_name(enum seccomp_program program)
{
	return program == SECCOMP_NEST ? "nest" : "strict";
}

static void json_list(struct json *j, const char *key, const char *const *list)
{
	if (!list)
		return;
	json_open(j, key, '[');
	for (size_t i = 0; list[i]; i++)
		json_string(j, NULL, list[i]);
	json_close(j, ']');
}

static void json_place(struct json *j, const struct place *place, bool for_hash)
{
	json_open(j, NULL, '{');
	json_string(j, "kind", place_kind_name(place->kind));
	json_string(j, "target", place->target);
	/* A box's own layer has another name each time, and so may its agent's socket. */
	if (place->source && !(for_hash && (place->kind == PLACE_OVERLAY || place->named)))
		json_string(j, "source", place->source);
	json_list(j, "lower", place->lowers);
	json_list(j, "files", place->files);
	if (place->brief) {
		json_number(j, "bytes", (long long)strlen(place->text));
		json_string(j, "sha256", hash_hex(place->text, strlen(place->text)));
	} else if (place->text && !place->secret && !(for_hash && place->named)) {
		json_string(j, "text", place->text);
	}
	json_string(j, "mode", place->rw ? "rw" : "ro");
	json_string(j, "type",
		place->kind == PLACE_LINK ? "link"
			: place->dir      ? "dir"
					  : "file");
	if (place->optional)
		json_bool(j, "optional", true);
	json_string(j, "why", place->why);
	json_close(j, '}');
}

static void json_identity(struct json *j, const struct plan *p)
{
	json_open(j, "user", '{');
	json_string(j, "name", p->user);
	json_number(j, "uid", p->frame.uid);
	json_number(j, "gid", p->frame.gid);
	json_number(j, "host_uid", p->frame.host_uid);
	json_number(j, "host_gid", p->frame.host_gid);
	json_close(j, '}');
}

static void json_rules(struct json *j, const char *key, const net_rule_vec *rules, bool deny)
{
	json_open(j, key, '[');
	vec_each(rule, rules)
		if (rule->deny == deny)
			json_string(j, NULL, rule->text);
	json_close(j, ']');
}

/* What the broker is given; there is none in the other modes. */
static void json_egress(struct json *j, const struct plan *p)
{
	if (!network_is_brokered(p->frame.network))
		return;
	json_open(j, "egress", '{');
	json_rules(j, "allow", &p->net_rules, false);
	json_rules(j, "deny", &p->net_rules, true);
	json_bool(j, "proxy", p->frame.proxy);
	json_bool(j, "ask", p->ask);
	json_open(j, "ports", '[');
	vec_each(port, &p->ports)
		json_string(j, NULL, mem_printf("%u:%u", port->host, port->box));
	json_close(j, ']');
	json_number(j, "connections", (long long)p->limits.connections);
	json_number(j, "traffic", (long long)p->limits.traffic);
	json_number(j, "rate", (long long)p->limits.rate);
	json_close(j, '}');
}

static void json_layers(struct json *j, const struct plan *p)
{
	json_open(j, "namespaces", '[');
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if (p->frame.namespaces & namespaces[i].bit)
			json_string(j, NULL, namespaces[i].name);
	json_close(j, ']');
	json_string(j, "network", network_name(p->frame.network));
	json_egress(j, p);
	json_open(j, "layers", '{');
	json_number(j, "landlock", p->landlock_abi);
	json_string(j, "seccomp", seccomp_name(p->seccomp));
	json_bool(j, "no_new_privs", true);
	json_open(j, "capabilities", '[');
	json_close(j, ']');
	json_close(j, '}');
	json_open(j, "limits", '{');
	json_number(j, "time", (long long)p->limits.time);
	json_number(j, "pids", (long long)p->limits.pids);
	json_number(j, "files", (long long)p->limits.files);
	json_number(j, "scratch", (long long)p->limits.scratch);
	json_number(j, "scratch_inodes", (long long)p->frame.scratch_inodes);
	json_close(j, '}');
}

static void json_names(struct json *j, const char *key, const char *const *names, size_t n)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < n; i++)
		json_string(j, NULL, names[i]);
	json_close(j, ']');
}

static void json_agent(struct json *j, const struct request_agent *a)
{
	json_open(j, "agent", '{');
	json_string(j, "name", a->name);
	json_string(j, "harness", a->harness);
	if (a->model)
		json_string(j, "model", a->model);
	json_names(j, "skills", a->skills.v, a->skills.n);
	json_names(j, "mcpServers", a->mcp_servers.v, a->mcp_servers.n);
	json_names(j, "plugins", a->plugins.v, a->plugins.n);
	json_names(j, "hooks", a->hooks.v, a->hooks.n);
	json_names(j, "tools", a->tools.v, a->tools.n);
	if (a->prompt)
		json_number(j, "prompt_bytes", (long long)strlen(a->prompt));
	json_close(j, '}');
}

static void json_ssh(struct json *j, const struct plan *p)
{
	json_open(j, "ssh", '[');
	vec_each(s, &p->ssh) {
		json_open(j, NULL, '{');
		json_string(j, "host", s->host);
		json_string(j, "hostname", s->host_name);
		json_string(j, "user", s->user);
		json_number(j, "port", s->port);
		json_string(j, "key", s->key);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* Everything that makes the box what it is; its name and hash are not part of that. */
static void json_body(struct json *j, const struct plan *p, bool for_hash)
{
	json_number(j, "version", 1);
	json_string(j, "engine", p->engine);
	json_string(j, "image", p->image);
	if (p->agent)
		json_agent(j, p->agent);
	json_open(j, "argv", '[');
	for (size_t i = 0; p->argv[i]; i++)
		json_string(j, NULL, p->argv[i]);
	json_close(j, ']');
	if (p->input)
		json_string(j, "input", p->input);
	json_string(j, "workdir", p->workdir);
	json_string(j, "workspace", p->workspace);
	json_string(j, "home", p->home);
	json_open(j, "instance", '{');
	json_string(j, "id", p->project_id);
	json_string(j, "root", p->project);
	json_close(j, '}');
	json_identity(j, p);
	json_layers(j, p);
	json_open(j, "places", '[');
	vec_each(place, &p->places)
		json_place(j, place, for_hash);
	json_close(j, ']');
	json_open(j, "env", '[');
	vec_each(e, &p->env) {
		json_open(j, NULL, '{');
		json_string(j, "name", e->name);
		json_string(j, "from", env_from_name(e->from));
		if (e->from == ENV_DECLARED)
			json_string(j, "how", env_how_name(e->how));
		if (e->how == ENV_COMMAND)
			json_list(j, "command", e->argv);
		json_close(j, '}');
	}
	json_close(j, ']');
	if (p->ssh.n)
		json_ssh(j, p);
	json_open(j, "collect", '[');
	json_close(j, ']');
	json_open(j, "notices", '[');
	vec_each(notice, &p->notices)
		json_string(j, NULL, *notice);
	json_close(j, ']');
}

const char *plan_hash(const struct plan *p)
{
	struct str text = { 0 };
	struct json j = { .out = &text };

	json_open(&j, NULL, '{');
	json_body(&j, p, true);
	json_close(&j, '}');
	return hash_hex(text.p, text.len);
}

void plan_json(const struct plan *p, struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '{');
	json_body(&j, p, false);
	json_string(&j, "name", p->name);
	json_string(&j, "hash", plan_hash(p));
	json_close(&j, '}');
	str_addc(out, '\n');
}

/* One "  label    text" line, the label in bold on a terminal. */
static void heading(struct str *out, bool colour, const char *label)
{
	str_addf(out, "%s%-11s%s", colour ? "\033[1m" : "", label, colour ? "\033[0m" : "");
}

static void line(struct str *out, bool colour, const char *label, const char *text)
{
	heading(out, colour, label);
	str_add_visible(out, text);
	str_addc(out, '\n');
}

static void print_command(const struct plan *p, bool colour, struct str *out)
{
	heading(out, colour, "command");
	for (size_t i = 0; p->argv[i]; i++) {
		if (i)
			str_addc(out, ' ');
		str_add_word(out, p->argv[i]);
	}
	str_addc(out, '\n');
}

static void print_env(const struct plan *p, bool colour, struct str *out)
{
	static const char *const titles[] = { "from here", "set", "declared", "asked for" };

	for (int from = ENV_HOST; from <= ENV_ASKED; from++) {
		bool first = true;

		vec_each(e, &p->env) {
			if ((int)e->from != from)
				continue;
			if (first) {
				heading(out, colour, from == ENV_HOST ? "env" : "");
				str_addf(out, "%s:", titles[from]);
			}
			first = false;
			str_addc(out, ' ');
			str_add_visible(out, e->name);
		}
		if (!first)
			str_addc(out, '\n');
	}
}

/* Programs of the host that give values: the one thing that runs outside of the box. */
static void print_programs(const struct plan *p, bool colour, struct str *out)
{
	vec_each(e, &p->env) {
		if (e->how != ENV_COMMAND)
			continue;
		heading(out, colour, "runs");
		for (size_t i = 0; e->argv[i]; i++) {
			str_add_word(out, e->argv[i]);
			str_addc(out, ' ');
		}
		str_addf(out, "outside of the box, for %s\n", e->name);
	}
}

/* Things of one sort on as few lines as they need. */
struct wrapped {
	struct str *out;
	bool colour;
	const char *label; /* of the first line */
	size_t width;
	bool begun;
};

static void wrap(struct wrapped *w, const char *text)
{
	size_t n = strlen(text);

	if (!w->begun || w->width + n > 84) {
		str_add(w->out, w->begun ? ",\n" : "");
		heading(w->out, w->colour, w->begun ? "" : w->label);
		w->width = 11;
	} else {
		str_add(w->out, ", ");
	}
	str_add(w->out, text);
	w->width += n + 2;
	w->begun = true;
}

static void wrap_end(struct wrapped *w)
{
	if (w->begun)
		str_addc(w->out, '\n');
}

/* Where it may log in to, and with what. */
static void print_ssh(const struct plan *p, bool colour, struct str *out)
{
	vec_each(s, &p->ssh)
		line(out, colour, s == p->ssh.v ? "ssh" : "",
			mem_printf("%s: %s@%s port %u, with %s, which stays outside", s->host,
				s->user, s->host_name, s->port, s->key));
}

/* What moved says where it comes from. */
static void print_places(const struct plan *p, bool colour, struct str *out, const char *label,
	bool (*want)(const struct place *place))
{
	struct wrapped w = { .out = out, .colour = colour, .label = label };

	vec_each(place, &p->places) {
		struct str one = { 0 };

		if (!want(place))
			continue;
		if (place->kind == PLACE_BIND && strcmp(place->source, place->target)) {
			str_add_visible(&one, place->source);
			str_add(&one, " at ");
		}
		str_add_visible(&one, place->target);
		if (place->kind == PLACE_STUB)
			str_add(&one, " (absent)");
		wrap(&w, one.p);
	}
	wrap_end(&w);
}

static void print_rules(const struct plan *p, bool colour, struct str *out, const char *word,
	bool deny)
{
	struct wrapped w = { .out = out, .colour = colour, .label = "" };

	vec_each(rule, &p->net_rules) {
		const char *text = str_visible(rule->text);

		if (rule->deny == deny)
			wrap(&w, w.begun ? text : mem_printf("%s: %s", word, text));
	}
	wrap_end(&w);
}

static bool allows_any(const struct plan *p)
{
	vec_each(rule, &p->net_rules)
		if (!rule->deny)
			return true;
	return false;
}

static const char *mode_text(const struct plan *p)
{
	static const char *const modes[] = {
		[NETWORK_NONE] = "none (its own loopback)",
		[NETWORK_OPEN] = "open: the public Internet, not this machine or its network",
		[NETWORK_HOST] =
			"host: everything this machine can reach, its own services too",
	};
	bool any = allows_any(p);

	if (p->frame.network != NETWORK_ALLOW)
		return modes[p->frame.network];
	if (p->ask)
		return any ? "allow: these hosts; you are asked about others"
			   : "allow: you are asked about every host";
	return any ? "allow: these hosts and nothing else" : "allow: nothing is allowed";
}

static void print_network(const struct plan *p, bool colour, struct str *out)
{
	struct wrapped ports = { .out = out, .colour = colour, .label = "" };

	line(out, colour, "network", mode_text(p));
	print_rules(p, colour, out, "allowed", false);
	print_rules(p, colour, out, "denied", true);
	if (p->frame.proxy)
		line(out, colour, "",
			mem_printf("by a proxy that programs must ask: 127.0.0.1:%d of the box",
				PROXY_PORT));
	vec_each(port, &p->ports)
		wrap(&ports,
			mem_printf("%s127.0.0.1:%u leads to port %u of the box",
				ports.begun ? "" : "ports: ", port->host, port->box));
	wrap_end(&ports);
}

static bool is_asked_rw(const struct place *p)
{
	return p->kind == PLACE_BIND && p->rw;
}

static bool is_ro(const struct place *p)
{
	return (p->kind == PLACE_BIND && !p->rw && !p->device && !p->named) ||
		p->kind == PLACE_COPY;
}

static bool is_overlay(const struct place *p)
{
	return p->kind == PLACE_OVERLAY;
}

static bool is_scratch(const struct place *p)
{
	return p->kind == PLACE_SCRATCH;
}

static bool is_protected(const struct place *p)
{
	return p->kind == PLACE_PROTECT || p->kind == PLACE_STUB;
}

static bool is_hidden(const struct place *p)
{
	return p->kind == PLACE_HIDE && !p->optional;
}

static void add_limit(struct str *s, unsigned long long n, const char *one, const char *more)
{
	if (n)
		str_addf(s, ", %llu %s", n, n == 1 ? one : more);
}

static const char *limits_text(const struct plan *p)
{
	struct str s = { 0 };

	str_addf(&s, "scratch %llu MiB", p->limits.scratch >> 20);
	add_limit(&s, p->limits.pids, "process", "processes");
	add_limit(&s, p->limits.files, "open file", "open files");
	if (p->limits.time)
		str_addf(&s, ", %llu s", p->limits.time);
	if (p->limits.connections != MOST_CONNECTIONS)
		add_limit(&s, p->limits.connections, "connection", "connections");
	add_limit(&s, p->limits.traffic, "byte of traffic", "bytes of traffic");
	add_limit(&s, p->limits.rate, "byte a second", "bytes a second");
	return s.p;
}

static void print_names(struct str *out, bool colour, const char *label,
	const char *const *names, size_t n)
{
	if (!n)
		return;
	heading(out, colour, label);
	for (size_t i = 0; i < n; i++) {
		str_add(out, i ? ", " : "");
		str_add_visible(out, names[i]);
	}
	str_addc(out, '\n');
}

/* Of the prompt no more than its length and where it begins. */
static const char *prompt_text(const char *prompt)
{
	const char *first = str_visible(mem_strndup(prompt, strcspn(prompt, "\n")));
	size_t n = strlen(prompt), characters = 0, cut = 0;

	for (size_t i = 0; i < n; i++)
		characters += ((unsigned char)prompt[i] & 0xc0) != 0x80;
	while (cut < 200 && first[cut])
		cut += utf8_length(first + cut, strlen(first + cut)) ?: 1;
	return mem_printf("%zu characters: %.*s%s", characters, (int)cut, first,
		first[cut] ? "..." : "");
}

static void print_agent(const struct request_agent *a, bool colour, struct str *out)
{
	line(out, colour, "agent",
		a->model ? mem_printf("%s (%s, %s)", a->name, a->harness, a->model)
			 : mem_printf("%s (%s)", a->name, a->harness));
	print_names(out, colour, "skills", a->skills.v, a->skills.n);
	print_names(out, colour, "MCP", a->mcp_servers.v, a->mcp_servers.n);
	print_names(out, colour, "plugins", a->plugins.v, a->plugins.n);
	print_names(out, colour, "hooks", a->hooks.v, a->hooks.n);
	print_names(out, colour, "tools", a->tools.v, a->tools.n);
	if (a->prompt) {
		heading(out, colour, "prompt");
		str_add(out, prompt_text(a->prompt));
		str_addc(out, '\n');
	}
}

void plan_print(const struct plan *p, bool colour, struct str *out)
{
	line(out, colour, "box",
		mem_printf("%s (%s engine, image %s)", p->name, p->engine, p->image));
	if (p->agent)
		print_agent(p->agent, colour, out);
	print_command(p, colour, out);
	line(out, colour, "in", p->workdir);
	if (p->project)
		line(out, colour, "instance", mem_printf("%s (%s)", p->project_id, p->project));
	line(out, colour, "as",
		p->frame.uid == p->frame.host_uid
			? mem_printf("%s (uid %u)", p->user, p->frame.uid)
			: mem_printf("%s (uid %u, uid %u outside)", p->user, p->frame.uid,
				  p->frame.host_uid));
	print_places(p, colour, out, "writes", is_asked_rw);
	print_places(p, colour, out, "protected", is_protected);
	print_places(p, colour, out, "hidden", is_hidden);
	print_places(p, colour, out, "reads", is_ro);
	print_places(p, colour, out, "layered", is_overlay);
	print_places(p, colour, out, "scratch", is_scratch);
	print_network(p, colour, out);
	print_ssh(p, colour, out);
	print_env(p, colour, out);
	print_programs(p, colour, out);
	line(out, colour, "limits", limits_text(p));
	line(out, colour, "layers",
		mem_printf("namespaces, no capabilities, %s, seccomp %s",
			p->landlock_abi ? mem_printf("Landlock ABI %d", p->landlock_abi)
					: "no Landlock",
			seccomp_name(p->seccomp)));
	line(out, colour, "plan", plan_hash(p));
	vec_each(notice, &p->notices)
		line(out, colour, "note", *notice);
}
