#include "plan/document.h"
#include "plan/held.h"
#include "plan/plan.h"
#include "manifest/keys.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <sched.h>
#include <string.h>

#define HASH "^[0-9a-f]{64}$"

#define FIELD(name_, form_, about_, ...)                                                 \
	{                                                                                \
		.name = (name_), .form = FIELD_##form_, .about = (about_), ##__VA_ARGS__ \
	}
#define FIELDS_END           \
	{                    \
		.name = NULL \
	}
/* The member of a struct that a row writes. */
#define AT(type, member) .at = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define TEXT_OF(name_, type, member, about_, ...) \
	FIELD(name_, TEXT, about_, .put = put_text, AT(type, member), ##__VA_ARGS__)
#define WHOLE_OF(name_, type, member, about_, ...) \
	FIELD(name_, WHOLE, about_, .put = put_whole, AT(type, member), ##__VA_ARGS__)
#define REAL_OF(name_, type, member, about_, ...) \
	FIELD(name_, REAL, about_, .put = put_real, AT(type, member), ##__VA_ARGS__)
#define FLAG_OF(name_, type, member, about_, ...) \
	FIELD(name_, FLAG, about_, .put = put_flag, AT(type, member), ##__VA_ARGS__)
#define NAMES_OF(name_, type, member, about_, ...)                                   \
	FIELD(name_, TEXT, about_, .list = true, .put = put_names, AT(type, member), \
		##__VA_ARGS__)

/* The arguments of every put function. */
#define PUT struct json *j, const struct field *f, const void *of, enum document_for whom

/* ---- values at a place in a struct ---- */

static void put_fields(struct json *j, const struct field *fields, const void *of,
	enum document_for whom)
{
	for (const struct field *f = fields; f->name; f++)
		f->put(j, f, of, whom);
}

static void put_text(PUT)
{
	const char *text = *(const char *const *)((const char *)of + f->at);

	(void)whom;
	if (text || !f->optional)
		json_string(j, f->name, text);
}

static void put_whole(PUT)
{
	const char *at = (const char *)of + f->at;
	unsigned long long value = 0;

	(void)whom;
	switch (f->size) {
	case sizeof(unsigned short):
		value = *(const unsigned short *)at;
		break;
	case sizeof(unsigned int):
		value = *(const unsigned int *)at;
		break;
	default:
		value = *(const unsigned long long *)at;
	}
	json_number(j, f->name, (long long)value);
}

static void put_real(PUT)
{
	(void)whom;
	json_real(j, f->name, *(const double *)(const void *)((const char *)of + f->at));
}

static void put_flag(PUT)
{
	bool flag = *(const bool *)((const char *)of + f->at);

	(void)whom;
	if (flag || !f->optional)
		json_bool(j, f->name, flag);
}

static void write_names(struct json *j, const char *key, const char *const *names, size_t n)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < n; i++)
		json_string(j, NULL, names[i]);
	json_close(j, ']');
}

static void put_names(PUT)
{
	const name_vec *names = (const name_vec *)((const char *)of + f->at);

	(void)whom;
	write_names(j, f->name, names->v, names->n);
}

/* A list that ends with NULL; one that is NULL itself is left out. */
static void put_words(PUT)
{
	const char *const *words = *(const char *const *const *)((const char *)of + f->at);
	size_t n = 0;

	(void)whom;
	while (words && words[n])
		n++;
	if (words)
		write_names(j, f->name, words, n);
}

static void put_nothing(PUT)
{
	(void)of, (void)whom;
	write_names(j, f->name, NULL, 0);
}

static void put_constant(PUT)
{
	(void)of, (void)whom;
	json_number(j, f->name, f->constant);
}

/* Members of the same struct under a name of their own. */
static void put_object(PUT)
{
	json_open(j, f->name, '{');
	put_fields(j, f->fields, of, whom);
	json_close(j, '}');
}

/* ---- user, project, agent, ssh ---- */

static const struct field user_fields[] = {
	TEXT_OF("name", struct plan, user, "login name inside"),
	WHOLE_OF("uid", struct plan, frame.uid, "user id inside"),
	WHOLE_OF("gid", struct plan, frame.gid, "group id inside"),
	WHOLE_OF("host_uid", struct plan, frame.host_uid, "user id on the host"),
	WHOLE_OF("host_gid", struct plan, frame.host_gid, "group id on the host"),
	FIELDS_END,
};

static const struct field instance_fields[] = {
	TEXT_OF("id", struct plan, project_id, "the first digits of the root's hash",
		.pattern = "^[0-9a-f]{16}$"),
	TEXT_OF("root", struct plan, project, "the directory that stands for the project",
		.pattern = "^/"),
	FIELDS_END,
};

static void put_prompt_bytes(PUT)
{
	const struct request_agent *a = of;

	(void)whom;
	if (a->prompt)
		json_number(j, f->name, (long long)strlen(a->prompt));
}

static void put_prompts(PUT)
{
	const struct request_agent *a = of;

	(void)whom;
	if (a->prompts)
		json_string(j, f->name, a->prompts == PROMPTS_OFF ? "off" : "on");
}

static const struct field agent_fields[] = {
	TEXT_OF("name", struct request_agent, name, "its name in the manifest"),
	TEXT_OF("harness", struct request_agent, harness, "which client it is"),
	TEXT_OF("model", struct request_agent, model, "the model, in the client's words",
		.optional = true),
	NAMES_OF("skills", struct request_agent, skills, "skills it has"),
	NAMES_OF("mcpServers", struct request_agent, mcp_servers, "MCP servers it has"),
	NAMES_OF("plugins", struct request_agent, plugins, "plugins it has"),
	NAMES_OF("hooks", struct request_agent, hooks, "hooks that its client runs"),
	NAMES_OF("tools", struct request_agent, tools,
		"the only tools its client has, all of them if empty"),
	FIELD("prompt_bytes", WHOLE, "length of the prompt it starts with", .optional = true,
		.put = put_prompt_bytes),
	FIELD("prompts", TEXT, "whether its client asks for permission", .choices = "off|on",
		.optional = true, .put = put_prompts),
	FIELDS_END,
};

static void put_agent(PUT)
{
	const struct plan *p = of;

	if (p->agent)
		put_object(j, f, p->agent, whom);
}

static const struct field ssh_fields[] = {
	TEXT_OF("host", struct request_ssh, host, "its name in the box"),
	TEXT_OF("hostname", struct request_ssh, host_name, "its real name or address"),
	TEXT_OF("user", struct request_ssh, user, "the user there"),
	WHOLE_OF("port", struct request_ssh, port, "the port there"),
	TEXT_OF("key", struct request_ssh, key,
		"path of the key on the host, which stays there", .pattern = "^/"),
	FIELDS_END,
};

static void put_ssh(PUT)
{
	const struct plan *p = of;

	if (!p->ssh.n)
		return;
	json_open(j, f->name, '[');
	vec_each(s, &p->ssh) {
		json_open(j, NULL, '{');
		put_fields(j, f->fields, s, whom);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* ---- walls, network, limits ---- */

static void put_namespaces(PUT)
{
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
	const struct plan *p = of;

	(void)whom;
	json_open(j, f->name, '[');
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if (p->frame.namespaces & namespaces[i].bit)
			json_string(j, NULL, namespaces[i].name);
	json_close(j, ']');
}

static void put_network(PUT)
{
	const struct plan *p = of;

	(void)whom;
	json_string(j, f->name, network_name(p->frame.network));
}

static void put_seccomp(PUT)
{
	const struct plan *p = of;

	(void)whom;
	json_string(j, f->name, seccomp_name(p->seccomp));
}

static void put_true(PUT)
{
	(void)of, (void)whom;
	json_bool(j, f->name, true);
}

static const struct field layer_fields[] = {
	WHOLE_OF("landlock", struct plan, landlock_abi, "ABI version in use, 0: no Landlock"),
	FIELD("seccomp", TEXT, "which list of system calls", .choices = "strict|nest",
		.put = put_seccomp),
	FIELD("no_new_privs", FLAG, "set-user-id programs gain nothing", .put = put_true),
	FIELD("capabilities", TEXT, "capabilities of the command", .list = true,
		.put = put_nothing),
	FIELDS_END,
};

static void write_rules(struct json *j, const char *key, const net_rule_vec *rules, bool deny)
{
	json_open(j, key, '[');
	vec_each(rule, rules)
		if (rule->deny == deny)
			json_string(j, NULL, rule->text);
	json_close(j, ']');
}

static void put_allow(PUT)
{
	(void)whom;
	write_rules(j, f->name, &((const struct plan *)of)->net_rules, false);
}

static void put_deny(PUT)
{
	(void)whom;
	write_rules(j, f->name, &((const struct plan *)of)->net_rules, true);
}

static void put_ports(PUT)
{
	const struct plan *p = of;

	(void)whom;
	json_open(j, f->name, '[');
	vec_each(port, &p->ports)
		json_string(j, NULL, mem_printf("%u:%u", port->host, port->box));
	json_close(j, ']');
}

static void put_services(PUT)
{
	const struct plan *p = of;

	(void)whom;
	json_open(j, f->name, '[');
	for (unsigned int i = 0; i < p->frame.n_services; i++)
		json_number(j, NULL, p->frame.services[i]);
	json_close(j, ']');
}

#define LIMIT_KEY_COUNT  WHOLE_OF
#define LIMIT_KEY_SIZE   WHOLE_OF
#define LIMIT_KEY_TIME   WHOLE_OF
#define LIMIT_KEY_NUMBER REAL_OF
#define LIMIT_ROW(name, type, most, such, about, key) \
	LIMIT_##type(#name, struct plan, limits.name, about),

static const struct field egress_fields[] = {
	FIELD("allow", TEXT, "what is allowed, presets written out", .list = true,
		.put = put_allow),
	FIELD("deny", TEXT, "what is denied, which wins", .list = true, .put = put_deny),
	FLAG_OF("proxy", struct plan, frame.proxy,
		"whether programs must ask a proxy, instead of connecting as they always do"),
	FLAG_OF("ask", struct plan, ask, "whether the user is asked about other hosts"),
	FIELD("ports", TEXT,
		"ports of the host's loopback that lead to a port of the box, as HOST:BOX",
		.list = true, .pattern = "^[0-9]+:[0-9]+$", .put = put_ports),
	FIELD("services", WHOLE, "ports of the box's loopback that are those of the host's",
		.list = true, .put = put_services),
	/* clang-format off */
	LIMITS_OF_NETWORK(LIMIT_ROW)
	FIELDS_END,
	/* clang-format on */
};

/* The broker gets these; the other modes have none. */
static void put_egress(PUT)
{
	const struct plan *p = of;

	if (network_is_brokered(p->frame.network))
		put_object(j, f, of, whom);
}

static void put_held(PUT)
{
	const char *by = held_by(of, limit_find(f->name));

	(void)whom;
	if (by)
		json_string(j, f->name, by);
}

#define HELD_ROW(name, type, most, such, about, key)                                   \
	FIELD(#name, TEXT, "what holds this limit", .optional = true, .put = put_held, \
		.choices = "cgroup|rlimit|tmpfs|supervisor"),

static const struct field held_fields[] = {
	/* clang-format off */
	LIMITS_OF_BOX(HELD_ROW)
	FIELDS_END,
	/* clang-format on */
};

static void put_cgroup(PUT)
{
	static const char *const names[] = { [CGROUP_NONE] = "none",
		[CGROUP_BESIDE] = "beside",
		[CGROUP_BELOW] = "below",
		[CGROUP_SYSTEMD] = "systemd" };

	(void)whom;
	json_string(j, f->name, names[((const struct plan *)of)->frame.cgroup.how]);
}

static const struct field limit_fields[] = {
	/* clang-format off */
	LIMITS_OF_BOX(LIMIT_ROW)
	WHOLE_OF("scratch_inodes", struct plan, frame.scratch_inodes,
		"files in the box's own file system"),
	FIELD("cgroup", TEXT,
		"where the box's control group is: beside or below carrel's, or by systemd",
		.choices = "none|beside|below|systemd", .put = put_cgroup),
	FIELD("held", OBJECT, "what holds each limit that is set", .fields = held_fields,
		.put = put_object),
	FIELDS_END,
	/* clang-format on */
};

/* ---- places ---- */

static void put_kind(PUT)
{
	(void)whom;
	json_string(j, f->name, place_kind_name(((const struct place *)of)->kind));
}

/* A box's own layer has another name each time, and so may its agent's socket. */
static void put_source(PUT)
{
	const struct place *place = of;
	bool varies = place->kind == PLACE_OVERLAY || place->named;

	if (place->source && !(whom != FOR_READER && varies))
		json_string(j, f->name, place->source);
}

/* A project gets a new layer with each box that changes something. */
static void put_lower(PUT)
{
	if (whom != FOR_AGREEMENT)
		put_words(j, f, of, whom);
}

/* git in the box ignores names that are absent; the list changes with the project. */
static void put_content(PUT)
{
	const struct place *place = of;

	if (!place->text || place->brief || place->secret ||
		(whom != FOR_READER && place->named) ||
		(whom == FOR_AGREEMENT && !strcmp(place->target, "/etc/carrel/gitignore")))
		return;
	json_string(j, f->name, place->text);
}

static void put_bytes(PUT)
{
	const struct place *place = of;

	(void)whom;
	if (place->brief)
		json_number(j, f->name, (long long)strlen(place->text));
}

static void put_sha256(PUT)
{
	const struct place *place = of;

	(void)whom;
	if (place->brief)
		json_string(j, f->name, hash_hex(place->text, strlen(place->text)));
}

static void put_mode(PUT)
{
	(void)whom;
	json_string(j, f->name, ((const struct place *)of)->rw ? "rw" : "ro");
}

static void put_type(PUT)
{
	const struct place *place = of;

	(void)whom;
	json_string(j, f->name,
		place->kind == PLACE_LINK ? "link"
			: place->dir      ? "dir"
					  : "file");
}

static const struct field place_fields[] = {
	FIELD("kind", TEXT, "how it is made",
		.choices = "link|file|copy|bind|scratch|overlay|proc|pts|pin|protect|"
			   "config|stub|hide|seal",
		.put = put_kind),
	TEXT_OF("target", struct place, target, "path in the box", .pattern = "^/"),
	FIELD("source", TEXT, "path on the host", .optional = true, .pattern = "^/",
		.put = put_source),
	FIELD("lower", TEXT, "what an overlay lies on, the uppermost first", .optional = true,
		.list = true, .put = put_lower, AT(struct place, lowers)),
	FIELD("files", TEXT, "files that are put into an overlay at the start",
		.optional = true, .list = true, .put = put_words, AT(struct place, files)),
	FIELD("text", TEXT, "what a file says, where a link leads", .optional = true,
		.put = put_content),
	FIELD("bytes", WHOLE, "length of a file that is too long to show", .optional = true,
		.put = put_bytes),
	FIELD("sha256", TEXT, "and the hash of it", .optional = true, .pattern = HASH,
		.put = put_sha256),
	FIELD("mode", TEXT, "whether it can be written", .choices = "ro|rw", .put = put_mode),
	FIELD("type", TEXT, "what stands there", .choices = "dir|file|link", .put = put_type),
	FLAG_OF("optional", struct place, optional,
		"left out where the kernel has no such file", .optional = true),
	TEXT_OF("why", struct place, why, "what asked for it"),
	FIELDS_END,
};

/* A person agrees to a protected name, whether it exists already or not. */
static void write_protected(struct json *j, const struct place *place)
{
	json_string(j, "kind", place_kind_name(PLACE_PROTECT));
	json_string(j, "target", place->target);
}

static void put_places(PUT)
{
	const struct plan *p = of;

	json_open(j, f->name, '[');
	vec_each(place, &p->places) {
		bool kept = place->kind == PLACE_STUB || place->kind == PLACE_PROTECT;

		json_open(j, NULL, '{');
		if (whom == FOR_AGREEMENT && kept)
			write_protected(j, place);
		else
			put_fields(j, f->fields, place, whom);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* ---- environment ---- */

static void put_from(PUT)
{
	(void)whom;
	json_string(j, f->name, env_from_name(((const struct plan_env *)of)->from));
}

static void put_how(PUT)
{
	const struct plan_env *e = of;

	(void)whom;
	if (e->from == ENV_DECLARED)
		json_string(j, f->name, env_how_name(e->how));
}

static void put_command(PUT)
{
	const struct plan_env *e = of;

	if (e->how == ENV_COMMAND)
		put_words(j, f, of, whom);
}

static const struct field env_fields[] = {
	TEXT_OF("name", struct plan_env, name, "name of the variable"),
	FIELD("from", TEXT,
		"copied from the host, made by carrel, declared in a manifest, or given by "
		"the user",
		.choices = "host|set|declared|asked", .put = put_from),
	FIELD("how", TEXT, "where the value of a declared one comes from", .optional = true,
		.choices = "literal|copy|prompt|command", .put = put_how),
	FIELD("command", TEXT, "the program of the host that gives the value", .optional = true,
		.list = true, .put = put_command, AT(struct plan_env, argv)),
	FIELDS_END,
};

static void put_env(PUT)
{
	const struct plan *p = of;

	json_open(j, f->name, '[');
	vec_each(e, &p->env) {
		json_open(j, NULL, '{');
		put_fields(j, f->fields, e, whom);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* ---- the document ---- */

/* What users type for their own client is no part of what they agreed to. */
static void put_argv(PUT)
{
	const struct plan *p = of;
	size_t n = 0;

	while (p->argv[n])
		n++;
	if (whom == FOR_AGREEMENT && p->agent && p->agent->typed <= n)
		n -= p->agent->typed;
	write_names(j, f->name, p->argv, n);
}

static void put_notices(PUT)
{
	const struct plan *p = of;

	if (whom != FOR_AGREEMENT)
		write_names(j, f->name, p->notices.v, p->notices.n);
}

/* The name of a box and its hash are no part of the hash. */
static void put_name(PUT)
{
	if (whom == FOR_READER)
		put_text(j, f, of, whom);
}

static void put_hash(PUT)
{
	if (whom == FOR_READER)
		json_string(j, f->name, plan_hash(of));
}

const struct field plan_document[] = {
	FIELD("version", WHOLE, "of this form", .constant = 1, .put = put_constant),
	TEXT_OF("engine", struct plan, frame.engine, "what builds the box",
		.choices = MANIFEST_ENGINES),
	TEXT_OF("image", struct plan, image, "where its programs come from", .choices = "host"),
	FIELD("agent", OBJECT, "the declared agent that is run", .optional = true,
		.fields = agent_fields, .put = put_agent),
	FIELD("argv", TEXT, "the command and its arguments", .list = true, .put = put_argv),
	TEXT_OF("input", struct plan, input,
		"file in the box that is the command's standard input", .optional = true,
		.pattern = "^/"),
	TEXT_OF("workdir", struct plan, workdir, "directory the command starts in",
		.pattern = "^/"),
	TEXT_OF("workspace", struct plan, workspace, "directory the box is for",
		.pattern = "^/"),
	TEXT_OF("home", struct plan, home, "home directory in the box", .pattern = "^/"),
	FIELD("instance", OBJECT, "the project whose state a client of the user's would use",
		.fields = instance_fields, .put = put_object),
	FIELD("user", OBJECT, "who the command runs as", .fields = user_fields,
		.put = put_object),
	FIELD("namespaces", TEXT, "namespaces of its own", .list = true,
		.choices = "user|mount|pid|ipc|uts|cgroup|net", .put = put_namespaces),
	FIELD("network", TEXT, "what network there is", .choices = "none|allow|open|host",
		.put = put_network),
	FIELD("egress", OBJECT, "whom it may reach; with network allow and open",
		.optional = true, .fields = egress_fields, .put = put_egress),
	FIELD("layers", OBJECT, "what else holds the command in", .fields = layer_fields,
		.put = put_object),
	FIELD("limits", OBJECT, "what it may use", .fields = limit_fields, .put = put_object),
	FIELD("places", OBJECT, "the file system, in the order it is built", .list = true,
		.fields = place_fields, .put = put_places),
	FIELD("env", OBJECT, "the environment; values are never shown", .list = true,
		.fields = env_fields, .put = put_env),
	FIELD("ssh", OBJECT, "hosts it may log in to", .list = true, .optional = true,
		.fields = ssh_fields, .put = put_ssh),
	FIELD("collect", TEXT, "what is kept of the box after it ended", .list = true,
		.put = put_nothing),
	FIELD("notices", TEXT, "what the user should know", .list = true, .put = put_notices),
	FIELD("name", TEXT, "name of the box; not part of the hash", .put = put_name,
		AT(struct plan, name)),
	FIELD("hash", TEXT, "identifies the box: SHA-256 of all that makes it", .pattern = HASH,
		.put = put_hash),
	FIELDS_END,
};

static void write_document(struct json *j, const struct plan *p, enum document_for whom)
{
	json_open(j, NULL, '{');
	put_fields(j, plan_document, p, whom);
	json_close(j, '}');
}

static const char *hash_for(const struct plan *p, enum document_for whom)
{
	struct str text = { 0 };
	struct json j = { .out = &text };

	write_document(&j, p, whom);
	return hash_hex(text.p, text.len);
}

const char *plan_hash(const struct plan *p)
{
	return hash_for(p, FOR_HASH);
}

const char *plan_agreement(const struct plan *p)
{
	return hash_for(p, FOR_AGREEMENT);
}

void plan_json(const struct plan *p, struct str *out)
{
	struct json j = { .out = out, .indent = true };

	write_document(&j, p, FOR_READER);
	str_addc(out, '\n');
}
