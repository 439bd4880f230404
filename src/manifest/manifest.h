/*
 * manifest/manifest.h - agents as a project and its user declare them
 *
 * carrel.json ─▶ tree, checked against the key table ─▶ one agent composed ─▶ struct agent
 *
 * Two files are read: the project's and, under it, the user's own. An agent of the project wins
 * whole over the user's of the same name; `extends` composes one from another. A name in an
 * agent's whitelist is looked up in the library of the file that contains the name, then in the
 * other. When the form of a file is wrong, the reader reports every mistake of form and every
 * name that nobody declares, each with its file, line and column. Nothing here prints. Nothing
 * starts as long as anything in the manifest is wrong.
 */
#ifndef MANIFEST_MANIFEST_H
#define MANIFEST_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#include "manifest/limits.h"
#include "base/mem.h"

struct fault;
struct json_value;

#define MANIFEST_NAME "carrel.json"

/* "carrel.json:3:7: agents.x.skils: unknown key (did you mean ...)", safe to print. */
typedef VEC(const char *) problems;

struct manifest_file {
	const char *path; /* absolute */
	const char *dir;  /* where its relative paths begin, canonical */
	const char *name; /* for messages */
	bool project;     /* untrusted until the user approved it */
	bool settings;    /* holds one agent's keys that were set for a project */
	const char *fix;  /* the command that removes one of its keys; or NULL */
	const char *bytes;
	size_t size;
	const struct json_value *tree;
};

struct manifests {
	struct manifest_file *project, *user; /* either may be NULL */
};

/* ---- what an agent says; bound from the tree by manifest/bind.c ---- */

struct said {
	const char *text; /* NULL: not set */
	const struct json_value *at;
};
typedef VEC(struct said) said_vec; /* v is NULL when not even an empty list was given */

struct named {
	const char *name;
	struct said value;
};
typedef VEC(struct named) named_vec;

enum flag { FLAG_UNSAID, FLAG_OFF, FLAG_ON };

struct skill {
	struct said name, source, description;
	const char *path; /* of the directory on the host, canonical */
};

struct mcp_server {
	struct said name, command;
	said_vec args;
	named_vec env;
	const char *path; /* of a command with a slash in it, on the host, canonical */
};

struct plugin {
	struct said name, source;
	const char *path;
};

struct hook {
	struct said name, event, matcher;
	said_vec command;
	unsigned long long timeout;
	const char *path; /* as in struct mcp_server */
};

struct agent_mount {
	struct said self, source, target, mode;
	const char *path; /* of the source, canonical */
};

struct agent_ssh {
	struct said self, host, identity_file, host_name, user, known_host_key;
	unsigned long long port;
};

struct agent {
	bool mine;                     /* the agent that `carrel` alone starts */
	bool project_says;             /* part of it comes from the project's manifest */
	const struct json_value *tree; /* the composed tree; or NULL */
	struct said name, description, extends, harness, model, effort, role, prompt;
	said_vec command, args;
	said_vec skills, mcp_servers, plugins, hooks;
	said_vec tools, allowed_tools, disallowed_tools;
	struct {
		said_vec allow, deny;
		enum flag skip_prompts;
	} permissions;
	named_vec env;
	VEC(struct agent_ssh) ssh;
	struct said home;
	struct {
		struct said mode;
		said_vec protect, hide;
	} workspace;
	VEC(struct agent_mount) mounts;
	struct {
		struct said mode;
		said_vec allow, deny, ports, services;
		enum flag ask, proxy;
	} network;
	struct limits limits;
	unsigned long long uid;
	struct said image, engine;

	/* manifest/library.c: what the names in the whitelists refer to, in that order */
	VEC(struct skill) use_skills;
	VEC(struct mcp_server) use_mcp_servers;
	VEC(struct plugin) use_plugins;
	VEC(struct hook) use_hooks;
	const char *role_path, *role_text; /* the role's file and its text */
};

/*
 * Read the project's manifest in dir, or the file `only`, and the user's. A missing file is a
 * problem only if it was named. If there is none at all, the fault says where carrel looked.
 * Other errors are added to problems, and -EINVAL is returned.
 */
int manifest_load(const char *dir, const char *only, struct manifests *ret, problems *bad,
	struct fault *f);

/* The same, but it is no error if there is none at all. */
int manifest_find(const char *dir, const char *only, struct manifests *ret, problems *bad,
	struct fault *f);

/*
 * Report every undeclared name that an agent refers to, for all agents of both files. Other
 * errors in the files do not stop this: a person fixes both at once.
 */
void manifest_check_names(const struct manifests *m, const char *home, problems *bad);

/* When a start asks the user: "confirm" in the user's own file. */
enum manifest_confirm {
	CONFIRM_CHANGED, /* when this plan was not agreed to in the project before */
	CONFIRM_ALWAYS,
	CONFIRM_NEVER,
};

/* ALWAYS if that file cannot be read, or is invalid. */
enum manifest_confirm manifest_confirm(void);

/* The names of all agents, the project's first; each once. */
void manifest_names(const struct manifests *m, said_vec *ret);

/* The file that a value was read from. */
const struct manifest_file *manifest_origin(const struct said *said);

/* Compose and bind one agent; a fault when there is none of that name. */
int manifest_agent(const struct manifests *m, const char *name, struct agent *ret,
	problems *bad, struct fault *f);

/*
 * The agent that `carrel` alone starts: the user's "mine", the project's over it, and over both
 * the settings for this project (a file of an agent's keys, or NULL).
 */
void manifest_mine(const struct manifests *m, const struct manifest_file *settings,
	struct agent *ret, problems *bad);

/* A file that holds one agent's keys: read it and check it. NULL: there is none. */
struct manifest_file *manifest_settings(const char *path, problems *bad);

/*
 * Look up everything that the agent names: library, role, sources. home is the user's, for `~`
 * and for skills that are in no library.
 */
void manifest_resolve(const struct manifests *m, const char *home, struct agent *a,
	problems *bad);

/*
 * The path that a text in a manifest means: relative to its file, absolute, or below home.
 * Canonical. NULL and a problem when it does not exist, or when a project's manifest names a
 * path inside the project that leads out of it.
 */
const char *manifest_path(const struct said *said, const char *field, const char *home,
	problems *bad);

/* "agents.reviewer.skills" or "mine.model": the full name of a key of the agent. */
const char *manifest_field(const struct agent *a, const char *key);

/* The value of "limits.memory", or of its nearest parent that is set; else the agent itself. */
const struct json_value *manifest_at(const struct agent *a, const char *key);

/* Add "file:line:column: field: ..." about a value, and how to fix it if its file knows. */
void manifest_problem(problems *bad, const struct json_value *at, const char *field,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
