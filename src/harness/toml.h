/*
 * harness/toml.h - writing TOML
 *
 *	toml_table(&out, "mcp_servers", "docs");	[mcp_servers."docs"]
 *	toml_key(&out, "args");				"args" =
 *	toml_string(&out, "a \"b\"");			"a \"b\""
 */
#ifndef HARNESS_TOML_H
#define HARNESS_TOML_H

struct str;

/* The quoted form; a byte that is not UTF-8, which TOML cannot hold, becomes U+FFFD. */
void toml_string(struct str *out, const char *text);

/* The head of a table; name NULL: the group itself, a bare word. */
void toml_table(struct str *out, const char *group, const char *name);

/* "key" = , and the same with its value on a line of its own. */
void toml_key(struct str *out, const char *key);
void toml_text(struct str *out, const char *key, const char *value);

/* [ "a", "b" ] */
struct toml_list {
	struct str *out;
	unsigned int n;
};
void toml_open(struct toml_list *list, struct str *out, const char *key);
void toml_item(struct toml_list *list, const char *text);
void toml_close(struct toml_list *list);

#endif
