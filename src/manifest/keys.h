/*
 * manifest/keys.h - the key table: all keys of a manifest
 *
 * A row is a key: its type, where its value is bound, its default and its documentation. The
 * checker, the binder, `extends`, the JSON Schema and the manual page read these rows and
 * contain no key themselves.
 */
#ifndef MANIFEST_KEYS_H
#define MANIFEST_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "manifest/manifest.h"

struct json_value;

enum key_type {
	KEY_END,
	KEY_STRING,  /* struct said */
	KEY_CHOICE,  /* struct said, one of .choices */
	KEY_FLAG,    /* enum flag */
	KEY_COUNT,   /* unsigned long long */
	KEY_NUMBER,  /* double */
	KEY_SIZE,    /* unsigned long long: bytes, or "64K", "2G" */
	KEY_TIME,    /* unsigned long long: seconds, or "90s", "1h30m" */
	KEY_STRINGS, /* said_vec */
	KEY_TEXTS,   /* named_vec: an object of strings, whose keys are variables' names */
	KEY_OBJECT,  /* a struct, by .keys */
	KEY_OBJECTS, /* VEC of structs of .size, by .keys; each begins with a struct said */
	KEY_MAP,     /* the same, from an object: the struct said is the name */
};

struct key {
	const char *name;
	enum key_type type;
	size_t offset;
	const struct key *keys; /* ends with KEY_END */
	size_t size;
	const char *choices;   /* "a|b" */
	const char *shorthand; /* OBJECT: a string alone means { shorthand: string } */
	const char *standard;  /* the default, as JSON, where it is not "nothing" */
	const char *most;      /* of a number: the largest value, as one writes it */
	size_t optional;       /* of a number: where to note a question mark; 0: none may be */
	const char *doc;       /* a sentence or two; `this` is literal */
	bool required;
	bool joins; /* a list that `extends` adds to instead of replacing it */
	bool words; /* STRINGS: a command line, in which a word may be empty */
	bool plain; /* MAP: names become file names: letters, digits, . _ - */
};

#define MANIFEST_ENGINES "native" /* the rows of box/engines.c; the first is the default */
#define MANIFEST_CONFIRM "changed|always|never" /* as in enum manifest_confirm */

extern const struct key manifest_keys[]; /* the top of a file */
extern const struct key agent_keys[];
extern const struct key skill_keys[], mcp_server_keys[], plugin_keys[], hook_keys[];

const struct key *key_find(const struct key *keys, const char *name);

/* The object that v means under k: v itself, or one made from the shorthand. */
const struct json_value *key_object(const struct key *k, const struct json_value *v);

/* bind.c: fill the struct at `to` from a tree that was checked. */
void manifest_bind(const struct key *keys, const struct json_value *v, void *to);

/* schema-json.c: the tables as a JSON Schema of draft 2020-12. */
struct str;
void manifest_schema(struct str *out);

/* check.c: add a line, up to a limit: nobody reads a thousand of them. */
void problem_add(problems *bad, const char *line);
void manifest_check(const struct manifest_file *file, const struct key *keys, problems *bad);

/* Report an agent that extends one that does not exist. */
void manifest_check_extends(const struct manifests *m, const struct json_value *agent,
	problems *bad);

#endif
