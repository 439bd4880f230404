/*
 * plan/print.c - the plan for a person
 *
 * It reads the struct that the engine executes, as the document for machines does
 * (plan/document.c). No value of an environment variable is ever printed. Text from outside
 * passes str_visible().
 */
#include "plan/held.h"
#include "plan/plan.h"
#include "plan/text.h"
#include "base/mem.h"
#include "base/str.h"

#include <sched.h>
#include <string.h>

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
	[PLACE_CONFIG] = "config",
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

static void print_command(const struct plan *p, bool colour, struct str *out)
{
	text_heading(out, colour, "command");
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
				text_heading(out, colour, from == ENV_HOST ? "env" : "");
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

/* Hosts to log in to, and with which key. */
static void print_ssh(const struct plan *p, bool colour, struct str *out)
{
	vec_each(s, &p->ssh)
		text_line(out, colour, s == p->ssh.v ? "ssh" : "",
			mem_printf("%s: %s@%s port %u, with %s, which stays outside", s->host,
				s->user, s->host_name, s->port, s->key));
}

/* A moved place shows its source. */
static void print_places(const struct plan *p, bool colour, struct str *out, const char *label,
	bool (*want)(const struct place *place))
{
	struct text_wrapped w = { .out = out, .colour = colour, .label = label };

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
		text_wrap(&w, one.p);
	}
	text_wrap_end(&w);
}

static void print_rules(const struct plan *p, bool colour, struct str *out, const char *word,
	bool deny)
{
	struct text_wrapped w = { .out = out, .colour = colour, .label = "" };

	vec_each(rule, &p->net_rules) {
		const char *text = str_visible(rule->text);

		if (rule->deny == deny)
			text_wrap(&w, w.begun ? text : mem_printf("%s: %s", word, text));
	}
	text_wrap_end(&w);
}

static void print_network(const struct plan *p, bool colour, struct str *out)
{
	struct text_wrapped ports = { .out = out, .colour = colour, .label = "" };

	text_line(out, colour, "network", text_network(p));
	print_rules(p, colour, out, "allowed", false);
	print_rules(p, colour, out, "denied", true);
	if (p->frame.proxy)
		text_line(out, colour, "",
			mem_printf("by a proxy that programs must ask: 127.0.0.1:%d of the box",
				PROXY_PORT));
	vec_each(port, &p->ports)
		text_wrap(&ports,
			mem_printf("%s127.0.0.1:%u leads to port %u of the box",
				ports.begun ? "" : "ports: ", port->host, port->box));
	text_wrap_end(&ports);
	for (unsigned int i = 0; i < p->frame.n_services; i++)
		text_line(out, colour, "",
			mem_printf("127.0.0.1:%u of the box is that of this machine",
				p->frame.services[i]));
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
	return p->kind == PLACE_OVERLAY && !p->layer;
}

static bool is_layer(const struct place *p)
{
	return p->layer;
}

static bool is_scratch(const struct place *p)
{
	return p->kind == PLACE_SCRATCH;
}

static bool is_protected(const struct place *p)
{
	return p->kind == PLACE_PROTECT || p->kind == PLACE_CONFIG || p->kind == PLACE_STUB;
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

/* ", memory 4 GiB (cgroup)" */
static void add_held(struct str *s, const struct plan *p, const char *name)
{
	const struct limit_row *l = limit_find(name);
	const char *by = held_by(p, l);

	if (by)
		str_addf(s, ", %s %s (%s)", name, limit_words(&p->limits, l), by);
}

static const char *limits_text(const struct plan *p)
{
	struct str s = { 0 };

	str_addf(&s, "scratch %llu MiB", p->limits.scratch >> 20);
	add_held(&s, p, "disk");
	add_limit(&s, p->limits.pids, "process", "processes");
	if (p->limits.pids)
		str_addf(&s, " (%s)", held_by(p, limit_find("pids")));
	add_limit(&s, p->limits.files, "open file", "open files");
	if (p->limits.time)
		str_addf(&s, ", %llu s", p->limits.time);
	if (p->limits.idle)
		str_addf(&s, ", %llu s idle", p->limits.idle);
	add_held(&s, p, "memory");
	add_held(&s, p, "swap");
	add_held(&s, p, "cpus");
	add_held(&s, p, "io");
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
	text_heading(out, colour, label);
	for (size_t i = 0; i < n; i++) {
		str_add(out, i ? ", " : "");
		str_add_visible(out, names[i]);
	}
	str_addc(out, '\n');
}

/* The length of the prompt and its beginning. */
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
	text_line(out, colour, "agent",
		a->model ? mem_printf("%s (%s, %s)", a->name, a->harness, a->model)
			 : mem_printf("%s (%s)", a->name, a->harness));
	print_names(out, colour, "skills", a->skills.v, a->skills.n);
	print_names(out, colour, "MCP", a->mcp_servers.v, a->mcp_servers.n);
	print_names(out, colour, "plugins", a->plugins.v, a->plugins.n);
	print_names(out, colour, "hooks", a->hooks.v, a->hooks.n);
	print_names(out, colour, "tools", a->tools.v, a->tools.n);
	if (a->prompt) {
		text_heading(out, colour, "prompt");
		str_add(out, prompt_text(a->prompt));
		str_addc(out, '\n');
	}
}

void plan_print(const struct plan *p, bool colour, struct str *out)
{
	text_line(out, colour, "box",
		mem_printf("%s (%s engine, image %s)", p->name, p->frame.engine, p->image));
	if (p->agent)
		print_agent(p->agent, colour, out);
	print_command(p, colour, out);
	if (p->agent && p->agent->login)
		text_line(out, colour, "login", text_login(p->agent));
	if (p->agent && p->agent->prompts)
		text_line(out, colour, "prompts", text_prompts(p->agent));
	text_line(out, colour, "in", p->workdir);
	if (p->project)
		text_line(out, colour, "instance",
			mem_printf("%s (%s)", p->project_id, p->project));
	text_line(out, colour, "as",
		p->frame.uid == p->frame.host_uid
			? mem_printf("%s (uid %u)", p->user, p->frame.uid)
			: mem_printf("%s (uid %u, uid %u outside)", p->user, p->frame.uid,
				  p->frame.host_uid));
	if (p->git_user)
		text_line(out, colour, "git", p->git_user);
	print_places(p, colour, out, "writes", is_asked_rw);
	print_places(p, colour, out, "protected", is_protected);
	print_places(p, colour, out, "hidden", is_hidden);
	print_places(p, colour, out, "reads", is_ro);
	print_places(p, colour, out, "copies", is_layer);
	print_places(p, colour, out, "layered", is_overlay);
	print_places(p, colour, out, "scratch", is_scratch);
	print_network(p, colour, out);
	print_ssh(p, colour, out);
	print_env(p, colour, out);
	plan_programs(p, colour, out);
	text_line(out, colour, "limits", limits_text(p));
	text_line(out, colour, "layers",
		mem_printf("namespaces, no capabilities, %s, seccomp %s",
			p->landlock_abi ? mem_printf("Landlock ABI %d", p->landlock_abi)
					: "no Landlock",
			seccomp_name(p->seccomp)));
	text_line(out, colour, "plan", plan_hash(p));
	vec_each(notice, &p->notices)
		text_flow(out, colour, "note", str_visible(*notice));
}
