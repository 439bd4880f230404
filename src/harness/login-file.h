/* harness/login-file.h - a credentials file, without what must not enter a box */
#ifndef HARNESS_LOGIN_FILE_H
#define HARNESS_LOGIN_FILE_H

struct json;
struct json_value;

/* The tree of a file that is JSON, or NULL. */
const struct json_value *login_read(const char *text);

/* Write a value, under its key if it has one; members named `secret` (or NULL) become "". */
void login_copy(struct json *j, const struct json_value *v, const char *secret);

/*
 * The tree as text, with every member of that name, at any depth, as "". A refresh token works
 * once: if a box used it, the user's own copy would stop working everywhere else. It is emptied
 * and not removed, because some clients insist on having one.
 */
const char *login_without(const struct json_value *tree, const char *secret);

/* When a token of three parts (RFC 7519) expires, in seconds; 0: unknown. */
long long login_token_ends(const char *token);

#endif
