/*
 * manifest/schema.c - the key table itself
 *
 * The order is the order of the documentation.
 */
#include "manifest/keys.h"
#include "manifest/manifest.h"

#include <string.h>

const struct key skill_keys[] = {
	{ "source", KEY_STRING, offsetof(struct skill, source), .required = true,
		.doc = "The skill's directory, with a SKILL.md in it: relative to this file, "
		       "absolute, or below `~`." },
	{ "description", KEY_STRING, offsetof(struct skill, description),
		.doc = "One line for the catalog that the agent reads at its start." },
	{ 0 },
};

const struct key mcp_server_keys[] = {
	{ "command", KEY_STRING, offsetof(struct mcp_server, command), .required = true,
		.doc = "The server's program: a name on the box's PATH, or a path as in "
		       "`source`. It is run without a shell." },
	{ "args", KEY_STRINGS, offsetof(struct mcp_server, args), .words = true,
		.doc = "Its arguments." },
	{ "env", KEY_TEXTS, offsetof(struct mcp_server, env),
		.doc = "Variables for this server alone, in the forms of an agent's `env`." },
	{ 0 },
};

const struct key plugin_keys[] = {
	{ "source", KEY_STRING, offsetof(struct plugin, source), .required = true,
		.doc = "The plugin's directory: relative to this file, absolute, or below "
		       "`~`." },
	{ 0 },
};

const struct key hook_keys[] = {
	{ "event", KEY_STRING, offsetof(struct hook, event), .required = true,
		.doc = "When it runs, in the client's words: `PreToolUse`, `Stop`." },
	{ "matcher", KEY_STRING, offsetof(struct hook, matcher),
		.doc = "For which tools, a pattern of the client's." },
	{ "command", KEY_STRINGS, offsetof(struct hook, command), .required = true,
		.words = true,
		.doc = "The program and its arguments, run without a shell in the box; a path "
		       "with a slash is relative to this file." },
	{ "timeout", KEY_TIME, offsetof(struct hook, timeout), .doc = "How long it may take." },
	{ 0 },
};

static const struct key library_keys[] = {
	{ "skills", KEY_MAP, .keys = skill_keys, .size = sizeof(struct skill), .plain = true,
		.doc = "Skills by name." },
	{ "mcpServers", KEY_MAP, .keys = mcp_server_keys, .size = sizeof(struct mcp_server),
		.plain = true, .doc = "MCP servers by name." },
	{ "plugins", KEY_MAP, .keys = plugin_keys, .size = sizeof(struct plugin), .plain = true,
		.doc = "Plugins of Claude Code by name." },
	{ "hooks", KEY_MAP, .keys = hook_keys, .size = sizeof(struct hook), .plain = true,
		.doc = "Hooks by name: programs that the client runs at its events." },
	{ 0 },
};

#define AT(field) offsetof(struct agent, field)

static const struct key permission_keys[] = {
	{ "allow", KEY_STRINGS, AT(permissions.allow), .joins = true,
		.doc = "Rules in the client's own language for what needs no asking." },
	{ "deny", KEY_STRINGS, AT(permissions.deny), .joins = true,
		.doc = "Rules for what is refused." },
	{ "skipPrompts", KEY_FLAG, AT(permissions.skip_prompts), .standard = "true",
		.doc = "The client does not ask for permission: the box confines the agent." },
	{ 0 },
};

static const struct key workspace_keys[] = {
	{ "mode", KEY_CHOICE, AT(workspace.mode), .choices = "direct|overlay",
		.standard = "\"direct\"",
		.doc = "Whether the agent edits the project itself or a layer on top of it." },
	{ "protect", KEY_STRINGS, AT(workspace.protect), .joins = true,
		.doc = "Paths and patterns that stay read-only, as with --protect." },
	{ "hide", KEY_STRINGS, AT(workspace.hide), .joins = true,
		.doc = "Paths and patterns that read as empty, as with --hide." },
	{ 0 },
};

static const struct key mount_keys[] = {
	{ "source", KEY_STRING, offsetof(struct agent_mount, source), .required = true,
		.doc = "A path of the host: relative to this file, absolute, or below `~`." },
	{ "target", KEY_STRING, offsetof(struct agent_mount, target),
		.doc = "Where it is in the box, absolute or below `~`; the same path if not "
		       "given." },
	{ "mode", KEY_CHOICE, offsetof(struct agent_mount, mode), .choices = "ro|rw",
		.standard = "\"ro\"", .doc = "Whether the agent may write to it." },
	{ 0 },
};

static const struct key ssh_keys[] = {
	{ "Host", KEY_STRING, offsetof(struct agent_ssh, host), .required = true,
		.doc = "The name that the agent uses: `ssh NAME`." },
	{ "IdentityFile", KEY_STRING, offsetof(struct agent_ssh, identity_file),
		.required = true,
		.doc = "The private key on the host: absolute, below `~`, or relative to this "
		       "file. It is loaded into an ssh-agent outside of the box." },
	{ "Hostname", KEY_STRING, offsetof(struct agent_ssh, host_name), .required = true,
		.doc = "The host's real name or address." },
	{ "User", KEY_STRING, offsetof(struct agent_ssh, user), .required = true,
		.doc = "The user there." },
	{ "Port", KEY_COUNT, offsetof(struct agent_ssh, port), .required = true,
		.most = "65535", .doc = "The port there." },
	{ "KnownHostKey", KEY_STRING, offsetof(struct agent_ssh, known_host_key),
		.doc = "The host's public key, `ssh-ed25519 AAAA...`. If not given, the keys "
		       "that your own `~/.ssh/known_hosts` has for it." },
	{ 0 },
};

static const struct key network_keys[] = {
	{ "mode", KEY_CHOICE, AT(network.mode), .choices = "none|allow|open|host",
		.standard = "\"allow\"",
		.doc = "`none`: the box's own loopback alone; `allow`: the hosts in `allow`; "
		       "`open`: the public Internet; `host`: the host's network, unfiltered." },
	{ "allow", KEY_STRINGS, AT(network.allow), .joins = true,
		.doc = "Hosts that may be reached: `example.org`, `*.example.org:443`, "
		       "`10.1.0.0/16:5432`, `host.internal:8080` (of this machine), `@github`. "
		       "If not given, those that the client needs; an empty list allows "
		       "nothing." },
	{ "deny", KEY_STRINGS, AT(network.deny), .joins = true,
		.doc = "Hosts that may not be reached, even if an entry allows them." },
	{ "proxy", KEY_FLAG, AT(network.proxy), .standard = "false",
		.doc = "Programs must ask a proxy in the box, HTTP CONNECT or SOCKS5, whose "
		       "variables are set: for kernels without nf_tables or its tproxy." },
	{ "ask", KEY_FLAG, AT(network.ask), .standard = "false",
		.doc = "With mode `allow`: ask about hosts that are in neither list." },
	{ "ports", KEY_STRINGS, AT(network.ports), .joins = true,
		.doc = "Ports of the host's loopback that lead to a server in the box: `3000`, "
		       "or `8080:80` for port 80 of the box." },
	{ "services", KEY_STRINGS, AT(network.services), .joins = true,
		.doc = "Ports of this machine's loopback, such as `5432`, whose service the "
		       "box "
		       "finds on the same port of its own 127.0.0.1." },
	{ 0 },
};

#define LIMIT_KEY(name_, type_, most_, such, plan, key)   \
	{ #name_, type_, AT(limits.name_), .most = most_, \
		.optional = AT(limits.name_##_optional), .doc = key },

static const struct key limit_keys[] = {
	/* clang-format off */
	LIMITS_OF_BOX(LIMIT_KEY)
	LIMITS_OF_NETWORK(LIMIT_KEY)
	LIMITS_OF_NOBODY(LIMIT_KEY)
	{ 0 },
	/* clang-format on */
};

const struct key agent_keys[] = {
	{ "description", KEY_STRING, AT(description), .doc = "What this agent is for." },
	{ "extends", KEY_STRING, AT(extends),
		.doc = "Another agent to start from. Keys given here win; whitelists, "
		       "rules, "
		       "mounts and variables are added to its own." },
	{ "harness", KEY_CHOICE, AT(harness), .choices = "claude|codex|gemini|opencode|command",
		.standard = "\"claude\"", .doc = "The client that is run." },
	{ "command", KEY_STRINGS, AT(command), .words = true,
		.doc = "With harness `command`: the program and its arguments." },
	{ "args", KEY_STRINGS, AT(args), .words = true,
		.doc = "More arguments for the client." },
	{ "model", KEY_STRING, AT(model), .doc = "The model, in the client's words." },
	{ "effort", KEY_STRING, AT(effort),
		.doc = "How hard it thinks, in the client's words." },
	{ "role", KEY_STRING, AT(role),
		.doc = "A text file with the agent's standing instructions; it becomes the "
		       "client's CLAUDE.md or AGENTS.md, beside the project's own." },
	{ "prompt", KEY_STRING, AT(prompt), .doc = "The first message to the agent." },
	{ "skills", KEY_STRINGS, AT(skills), .joins = true,
		.doc = "Names of the library's skills, or of those in `~/.claude/skills`." },
	{ "mcpServers", KEY_STRINGS, AT(mcp_servers), .joins = true,
		.doc = "Names of the library's MCP servers." },
	{ "plugins", KEY_STRINGS, AT(plugins), .joins = true,
		.doc = "Names of the library's plugins." },
	{ "hooks", KEY_STRINGS, AT(hooks), .joins = true,
		.doc = "Names of the library's hooks." },
	{ "tools", KEY_STRINGS, AT(tools),
		.doc = "The only tools the client has; all of its own if empty." },
	{ "allowedTools", KEY_STRINGS, AT(allowed_tools), .joins = true,
		.doc = "Tools that need no asking; limits nothing." },
	{ "disallowedTools", KEY_STRINGS, AT(disallowed_tools), .joins = true,
		.doc = "Tools the client does not have." },
	{ "permissions", KEY_OBJECT, .keys = permission_keys,
		.doc = "What the client asks for." },
	{ "env", KEY_TEXTS, AT(env),
		.doc = "Variables. `?MESSAGE` asks on the terminal without echo; `${NAME}` is "
		       "the host's variable; `!COMMAND ARG` is what a program of the host "
		       "prints; anything else is the value itself. A value that begins like "
		       "one of these is written with a backslash in front." },
	{ "ssh", KEY_OBJECTS, AT(ssh), .keys = ssh_keys, .size = sizeof(struct agent_ssh),
		.joins = true,
		.doc = "Hosts that the agent may log in to, with keys that it can use toward "
		       "these and not read." },
	{ "home", KEY_CHOICE, AT(home), .choices = "declared|mine|direct",
		.standard = "\"declared\"",
		.doc = "What is in the agent's home: only what is declared here; your own "
		       "configuration of the client, seen through a layer (`mine`); or that "
		       "itself, writable (`direct`)." },
	{ "workspace", KEY_OBJECT, .keys = workspace_keys, .shorthand = "mode",
		.doc = "How the project is seen." },
	{ "mounts", KEY_OBJECTS, AT(mounts), .keys = mount_keys,
		.size = sizeof(struct agent_mount), .joins = true,
		.doc = "More paths of the host." },
	{ "network", KEY_OBJECT, .keys = network_keys, .shorthand = "mode",
		.doc = "What it can reach." },
	{ "limits", KEY_OBJECT, .keys = limit_keys, .doc = "What it may use up." },
	{ "uid", KEY_COUNT, AT(uid), .most = "60000",
		.doc = "User and group id in the box; outside, its files are yours as always. "
		       "If "
		       "not given, your own." },
	{ "image", KEY_STRING, AT(image), .standard = "\"host\"",
		.doc = "Where the box's programs come from." },
	{ "engine", KEY_CHOICE, AT(engine), .choices = MANIFEST_ENGINES,
		.standard = "\"native\"", .doc = "What builds the box." },
	{ 0 },
};

const struct key manifest_keys[] = {
	{ "$schema", KEY_STRING, .doc = "For editors." },
	{ "confirm", KEY_CHOICE, .choices = MANIFEST_CONFIRM, .standard = "\"changed\"",
		.doc = "In your own file alone: when a start asks. `changed`: about your own "
		       "client or a command if its plan is not one that you agreed to in this "
		       "project before, and about each declared agent; `always`; or `never`. "
		       "Whatever this says, a manifest that is not approved is asked about." },
	{ "library", KEY_OBJECT, .keys = library_keys, .doc = "What agents can use, by name." },
	{ "mine", KEY_OBJECT, .keys = agent_keys,
		.doc = "What `carrel` alone starts: an agent with your own configuration." },
	{ "agents", KEY_MAP, .keys = agent_keys, .size = sizeof(struct agent),
		.doc = "Agents by name." },
	{ 0 },
};

const struct key *key_find(const struct key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (!strcmp(keys->name, name))
			return keys;
	return NULL;
}
