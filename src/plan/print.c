/*
 * plan/print.c - the plan for a person and for a machine
 *
 * Both read the struct the engine executes. No value of an environment variable is
 * ever printed. Text from outside passes str_visible().
 */
#include "plan/plan.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <sched.h>
#include <sha256.h>
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
		[ENV_HOST] = "host", [ENV_SET] = "set", [ENV_ASKED] = "asked"
	};

	return names[from];
}

const char *network_name(enum network network)
{
	return network == NETWORK_HOST ? "host" : "none";
}

const char *seccomp_name(enum seccomp_program program)
{
	return program == SECCOMP_NEST ? "nest" : "strict";
}

static void json_place(struct json *j, const struct place *place, bool for_hash)
{
	json_open(j, NULL, '{');
	json_string(j, "kind", place_kind_name(place->kind));
	json_string(j, "target", place->target);
	if (place->source)
		json_string(j, "source", place->source);
	if (place->text && !(for_hash && place->named))
		json_string(j, "text", place->text);
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

static void json_layers(struct json *j, const struct plan *p)
{
	json_open(j, "namespaces", '[');
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if (p->frame.namespaces & namespaces[i].bit)
			json_string(j, NULL, namespaces[i].name);
	json_close(j, ']');
	json_string(j, "network", network_name(p->frame.network));
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
	json_number(j, "scratch_inodes", (long long)p->scratch_inodes);
	json_close(j, '}');
}

/* Everything that makes the box what it is; its name and hash are not part of that. */
static void json_body(struct json *j, const struct plan *p, bool for_hash)
{
	json_number(j, "version", 1);
	json_string(j, "engine", p->engine);
	json_open(j, "argv", '[');
	for (size_t i = 0; p->argv[i]; i++)
		json_string(j, NULL, p->argv[i]);
	json_close(j, ']');
	json_string(j, "workdir", p->workdir);
	json_string(j, "workspace", p->workspace);
	json_string(j, "home", p->home);
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
		json_close(j, '}');
	}
	json_close(j, ']');
	json_open(j, "collect", '[');
	json_close(j, ']');
	json_open(j, "notices", '[');
	vec_each(notice, &p->notices)
		json_string(j, NULL, *notice);
	json_close(j, ']');
}

const char *plan_hash(const struct plan *p)
{
	struct str text = { 0 }, hex = { 0 };
	struct json j = { .out = &text };
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX ctx;

	json_open(&j, NULL, '{');
	json_body(&j, p, true);
	json_close(&j, '}');
	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)text.p, text.len);
	SHA256Final(digest, &ctx);
	for (size_t i = 0; i < sizeof(digest); i++)
		str_addf(&hex, "%02x", digest[i]);
	return hex.p;
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
	static const char *const titles[] = { "from here", "set", "asked for" };

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

/* Targets of one sort on as few lines as they need; what moved says where it comes from. */
static void print_places(const struct plan *p, bool colour, struct str *out, const char *label,
	bool (*want)(const struct place *place))
{
	size_t width = 0;
	bool first = true;

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
		if (first || width + one.len > 84) {
			str_add(out, first ? "" : ",\n");
			heading(out, colour, first ? label : "");
			width = 11;
		} else {
			str_add(out, ", ");
		}
		str_add(out, one.p);
		width += one.len + 2;
		first = false;
	}
	if (!first)
		str_addc(out, '\n');
}

static bool is_asked_rw(const struct place *p)
{
	return p->kind == PLACE_BIND && p->rw;
}

static bool is_ro(const struct place *p)
{
	return (p->kind == PLACE_BIND && !p->rw && !p->device) || p->kind == PLACE_COPY;
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

static const char *limits_text(const struct plan *p)
{
	struct str s = { 0 };

	str_addf(&s, "scratch %llu MiB", p->limits.scratch >> 20);
	if (p->limits.pids)
		str_addf(&s, ", %llu processes", p->limits.pids);
	if (p->limits.files)
		str_addf(&s, ", %llu open files", p->limits.files);
	if (p->limits.time)
		str_addf(&s, ", %llu s", p->limits.time);
	return s.p;
}

void plan_print(const struct plan *p, bool colour, struct str *out)
{
	static const char *const network[] = {
		[NETWORK_NONE] = "none (its own loopback)",
		[NETWORK_HOST] =
			"host: everything this machine can reach, its own services too",
	};

	line(out, colour, "box", mem_printf("%s (%s engine)", p->name, p->engine));
	print_command(p, colour, out);
	line(out, colour, "in", p->workdir);
	line(out, colour, "as",
		p->frame.uid == p->frame.host_uid
			? mem_printf("%s (uid %u)", p->user, p->frame.uid)
			: mem_printf("%s (uid %u, uid %u outside)", p->user, p->frame.uid,
				  p->frame.host_uid));
	print_places(p, colour, out, "writes", is_asked_rw);
	print_places(p, colour, out, "protected", is_protected);
	print_places(p, colour, out, "hidden", is_hidden);
	print_places(p, colour, out, "reads", is_ro);
	print_places(p, colour, out, "scratch", is_scratch);
	line(out, colour, "network", network[p->frame.network]);
	print_env(p, colour, out);
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
