/*
 * cli/cmd-schema.c - carrel schema
 *
 * That of manifests comes from the key table. For the plan document its form is a table
 * here, and a writer turns the table into a JSON Schema. plan_json() writes the document; a
 * test holds the two together.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "manifest/keys.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

#define HASH  "^[0-9a-f]{64}$"
#define KINDS "manifest|plan"

enum form {
	TEXT,
	WHOLE, /* a number from 0 on */
	FLAG,
	OBJECT,
};

struct field {
	const char *name; /* NULL ends a table */
	enum form form;
	const char *about;
	bool list;                  /* an array of these */
	bool optional;              /* may be missing */
	const char *choices;        /* TEXT: "ro|rw" */
	const char *pattern;        /* TEXT */
	int constant;               /* WHOLE: this and no other */
	const struct field *fields; /* OBJECT */
};

#define FIELD(name_, form_, about_, ...)                                         \
	{                                                                        \
		.name = (name_), .form = (form_), .about = (about_), __VA_ARGS__ \
	}
#define FIELDS_END           \
	{                    \
		.name = NULL \
	}

static const struct field user_fields[] = {
	FIELD("name", TEXT, "login name inside"),
	FIELD("uid", WHOLE, "user id inside"),
	FIELD("gid", WHOLE, "group id inside"),
	FIELD("host_uid", WHOLE, "user id on the host"),
	FIELD("host_gid", WHOLE, "group id on the host"),
	FIELDS_END,
};

static const struct field instance_fields[] = {
	FIELD("id", TEXT, "the first digits of the root's hash", .pattern = "^[0-9a-f]{16}$"),
	FIELD("root", TEXT, "the directory that stands for the project", .pattern = "^/"),
	FIELDS_END,
};

static const struct field agent_fields[] = {
	FIELD("name", TEXT, "its name in the manifest"),
	FIELD("harness", TEXT, "which client it is"),
	FIELD("model", TEXT, "the model, in the client's words", .optional = true),
	FIELD("skills", TEXT, "skills it has", .list = true),
	FIELD("mcpServers", TEXT, "MCP servers it has", .list = true),
	FIELD("plugins", TEXT, "plugins it has", .list = true),
	FIELD("hooks", TEXT, "hooks that its client runs", .list = true),
	FIELD("tools", TEXT, "the only tools its client has, all of them if empty",
		.list = true),
	FIELD("prompt_bytes", WHOLE, "length of what it is told at its start",
		.optional = true),
	FIELDS_END,
};

static const struct field ssh_fields[] = {
	FIELD("host", TEXT, "its name in the box"),
	FIELD("hostname", TEXT, "its real name or address"),
	FIELD("user", TEXT, "the user there"),
	FIELD("port", WHOLE, "the port there"),
	FIELD("key", TEXT, "path of the key on the host, which stays there", .pattern = "^/"),
	FIELDS_END,
};

static const struct field layer_fields[] = {
	FIELD("landlock", WHOLE, "ABI version in use, 0: no Landlock"),
	FIELD("seccomp", TEXT, "which list of system calls", .choices = "strict|nest"),
	FIELD("no_new_privs", FLAG, "set-user-id programs gain nothing"),
	FIELD("capabilities", TEXT, "capabilities of the command", .list = true),
	FIELDS_END,
};

static const struct field limit_fields[] = {
	FIELD("time", WHOLE, "seconds of wall clock, 0: no limit"),
	FIELD("pids", WHOLE, "processes and threads, 0: no limit"),
	FIELD("files", WHOLE, "open files in each process, 0: the host's limit"),
	FIELD("scratch", WHOLE, "bytes in the box's own file system"),
	FIELD("scratch_inodes", WHOLE, "files in the box's own file system"),
	FIELDS_END,
};

static const struct field place_fields[] = {
	FIELD("kind", TEXT, "how it comes to be",
		.choices = "link|file|copy|bind|scratch|overlay|proc|pts|pin|protect|"
			   "stub|hide|seal"),
	FIELD("target", TEXT, "path in the box", .pattern = "^/"),
	FIELD("source", TEXT, "path on the host", .optional = true, .pattern = "^/"),
	FIELD("lower", TEXT, "what an overlay lies on, the uppermost first", .optional = true,
		.list = true),
	FIELD("files", TEXT, "files that are put into an overlay at the start",
		.optional = true, .list = true),
	FIELD("text", TEXT, "what a file says, where a link leads", .optional = true),
	FIELD("bytes", WHOLE, "length of a file that is too long to show", .optional = true),
	FIELD("sha256", TEXT, "and the hash of it", .optional = true, .pattern = HASH),
	FIELD("mode", TEXT, "whether it can be written", .choices = "ro|rw"),
	FIELD("type", TEXT, "what stands there", .choices = "dir|file|link"),
	FIELD("optional", FLAG, "left out where the kernel has no such file", .optional = true),
	FIELD("why", TEXT, "what asked for it"),
	FIELDS_END,
};

static const struct field env_fields[] = {
	FIELD("name", TEXT, "name of the variable"),
	FIELD("from", TEXT,
		"copied from the host, made by carrel, declared in a manifest, or given by "
		"the user",
		.choices = "host|set|declared|asked"),
	FIELD("how", TEXT, "where the value of a declared one comes from", .optional = true,
		.choices = "literal|copy|prompt|command"),
	FIELD("command", TEXT, "the program of the host that gives the value", .optional = true,
		.list = true),
	FIELDS_END,
};

static const struct field egress_fields[] = {
	FIELD("allow", TEXT, "what is allowed, presets written out", .list = true),
	FIELD("deny", TEXT, "what is denied, which wins", .list = true),
	FIELD("proxy", FLAG,
		"whether programs must ask a proxy, instead of connecting as they always do"),
	FIELD("ask", FLAG, "whether the user is asked about other hosts"),
	FIELD("ports", TEXT,
		"ports of the host's loopback that lead to a port of the box, as HOST:BOX",
		.list = true, .pattern = "^[0-9]+:[0-9]+$"),
	FIELD("connections", WHOLE, "how many at once"),
	FIELD("traffic", WHOLE, "bytes in both directions, 0: no limit"),
	FIELD("rate", WHOLE, "bytes a second, 0: no limit"),
	FIELDS_END,
};

static const struct field plan_fields[] = {
	FIELD("version", WHOLE, "of this form", .constant = 1),
	FIELD("engine", TEXT, "what builds the box", .choices = "native"),
	FIELD("image", TEXT, "where its programs come from", .choices = "host"),
	FIELD("agent", OBJECT, "the declared agent that is run", .optional = true,
		.fields = agent_fields),
	FIELD("argv", TEXT, "the command and its arguments", .list = true),
	FIELD("input", TEXT, "file in the box that is the command's standard input",
		.optional = true, .pattern = "^/"),
	FIELD("workdir", TEXT, "directory the command starts in", .pattern = "^/"),
	FIELD("workspace", TEXT, "directory the box is for", .pattern = "^/"),
	FIELD("home", TEXT, "home directory in the box", .pattern = "^/"),
	FIELD("instance", OBJECT, "the project whose state a client of the user's would use",
		.fields = instance_fields),
	FIELD("user", OBJECT, "who the command runs as", .fields = user_fields),
	FIELD("namespaces", TEXT, "namespaces of its own", .list = true,
		.choices = "user|mount|pid|ipc|uts|cgroup|net"),
	FIELD("network", TEXT, "what network there is", .choices = "none|allow|open|host"),
	FIELD("egress", OBJECT, "whom it may reach; with network allow and open",
		.optional = true, .fields = egress_fields),
	FIELD("layers", OBJECT, "what else holds the command in", .fields = layer_fields),
	FIELD("limits", OBJECT, "what it may use", .fields = limit_fields),
	FIELD("places", OBJECT, "the file system, in the order it is built", .list = true,
		.fields = place_fields),
	FIELD("env", OBJECT, "the environment; values are never shown", .list = true,
		.fields = env_fields),
	FIELD("ssh", OBJECT, "hosts it may log in to", .list = true, .optional = true,
		.fields = ssh_fields),
	FIELD("collect", TEXT, "what is kept of the box after it ended", .list = true),
	FIELD("notices", TEXT, "what the user should know", .list = true),
	FIELD("name", TEXT, "name of the box; not part of the hash"),
	FIELD("hash", TEXT, "identifies the box: SHA-256 of all that makes it",
		.pattern = HASH),
	FIELDS_END,
};

/* ---- the writer ---- */

static void write_fields(struct json *j, const struct field *fields);

static void write_choices(struct json *j, const char *choices)
{
	size_t n;
	const char *const *names = opt_split(choices, &n);

	json_open(j, "enum", '[');
	for (size_t i = 0; i < n; i++)
		json_string(j, NULL, names[i]);
	json_close(j, ']');
}

static void write_form(struct json *j, const struct field *f)
{
	static const char *const types[] = {
		[TEXT] = "string",
		[WHOLE] = "integer",
		[FLAG] = "boolean",
		[OBJECT] = "object",
	};

	json_string(j, "type", types[f->form]);
	if (f->form == WHOLE)
		json_number(j, "minimum", 0);
	if (f->constant)
		json_number(j, "const", f->constant);
	if (f->choices)
		write_choices(j, f->choices);
	if (f->pattern)
		json_string(j, "pattern", f->pattern);
	if (f->fields)
		write_fields(j, f->fields);
}

static void write_field(struct json *j, const struct field *f)
{
	json_open(j, f->name, '{');
	json_string(j, "description", f->about);
	if (f->list) {
		json_string(j, "type", "array");
		json_open(j, "items", '{');
		write_form(j, f);
		json_close(j, '}');
	} else {
		write_form(j, f);
	}
	json_close(j, '}');
}

static void write_fields(struct json *j, const struct field *fields)
{
	json_bool(j, "additionalProperties", false);
	json_open(j, "required", '[');
	for (const struct field *f = fields; f->name; f++)
		if (!f->optional)
			json_string(j, NULL, f->name);
	json_close(j, ']');
	json_open(j, "properties", '{');
	for (const struct field *f = fields; f->name; f++)
		write_field(j, f);
	json_close(j, '}');
}

static void plan_schema(struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '{');
	json_string(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_string(&j, "title", "carrel plan");
	json_string(&j, "description",
		"what `carrel plan --json` prints: all that a box will be");
	json_string(&j, "type", "object");
	write_fields(&j, plan_fields);
	json_close(&j, '}');
	str_addc(out, '\n');
}

static int cmd_schema(void *args, int argc, char **argv)
{
	struct str text = { 0 };

	(void)args;
	if (argc > 0 && !strcmp(argv[0], "plan"))
		plan_schema(&text);
	else
		manifest_schema(&text);
	return cmd_print(&text);
}

const struct cmd cmd_schema_entry = {
	.name = "schema",
	.args = "[" KINDS "]",
	.about = "print the JSON Schema of manifests or plans",
	.detail = "Each is a JSON Schema of draft 2020-12. That of manifests, which is printed "
		  "when nothing is asked for, is for editors: they complete and explain the "
		  "keys of a `carrel.json` that names it. A `carrel.json` may have comments "
		  "and a comma after the last element.\n"
		  "\n"
		  "  carrel schema > carrel.schema.json    # \"$schema\": "
		  "\"./carrel.schema.json\"\n"
		  "\n"
		  "`carrel schema plan` describes what `carrel plan --json` prints. Names of "
		  "files that are not UTF-8 have each such byte there as the lone surrogate "
		  "U+DC80 to U+DCFF.",
	.takes = TAKES_CHOICE,
	.choices = KINDS,
	.optional = true,
	.run = cmd_schema,
};
