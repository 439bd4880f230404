/*
 * harness/login.h - a credentials file, less what must not be in a box
 */
#ifndef HARNESS_LOGIN_H
#define HARNESS_LOGIN_H

struct json;
struct json_value;

/* The tree of a file that is JSON, or NULL. */
const struct json_value *login_read(const char *text);

/* Write a value, under its key if it has one; members named `secret` (or NULL) are "". */
void login_copy(struct json *j, const struct json_value *v, const char *secret);

/*
 * The tree as a text, where every member of that name, at any depth, is "": a refresh token is
 * good for one use, and a box that used it would leave the user's own, everywhere else,
 * worthless. Emptied and not left out, for clients that insist on having one.
 */
const char *login_without(const struct json_value *tree, const char *secret);

#endif
