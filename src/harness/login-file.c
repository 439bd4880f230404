#include "harness/login-file.h"
#include "harness/json-event.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

const struct json_value *login_read(const char *text)
{
	const struct json_value *tree;
	json_errors errors = { 0 };

	return json_read(text, strlen(text), NULL, &tree, &errors) < 0 ? NULL : tree;
}

/* Recurses no deeper than json_read() does. */
void login_copy(struct json *j, const struct json_value *v, const char *secret)
{
	bool list = v->type == JSON_LIST;

	switch (v->type) {
	case JSON_NULL:
		json_string(j, v->key, NULL);
		return;
	case JSON_BOOL:
		json_bool(j, v->key, v->boolean);
		return;
	case JSON_NUMBER:
		json_raw(j, v->key, v->text);
		return;
	case JSON_STRING:
		json_string(j, v->key,
			secret && v->key && !strcmp(v->key, secret) ? "" : v->text);
		return;
	case JSON_LIST:
	case JSON_OBJECT:
		json_open(j, v->key, list ? '[' : '{');
		json_each(item, v)
			login_copy(j, item, secret);
		json_close(j, list ? ']' : '}');
		return;
	}
}

const char *login_without(const struct json_value *tree, const char *secret)
{
	struct str out = { 0 };
	struct json j = { .out = &out };

	login_copy(&j, tree, secret);
	return out.p;
}

/* Decode base64url without padding, up to the first other character. */
static const char *decoded(const char *text, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789-_";
	struct str out = { 0 };
	unsigned int bits = 0, have = 0;

	for (size_t i = 0; i < n; i++) {
		const char *digit = strchr(digits, text[i]);

		if (!digit || !*digit)
			break;
		bits = (bits << 6 | (unsigned int)(digit - digits)) & 0xffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			str_addc(&out, (char)(bits >> have & 0xff));
		}
	}
	return out.len ? out.p : "";
}

long long login_token_ends(const char *token)
{
	const char *claims = strchr(token, '.'), *end = claims ? strchr(claims + 1, '.') : NULL;

	if (!end)
		return 0;
	claims = decoded(claims + 1, (size_t)(end - claims) - 1);
	return (long long)event_count(login_read(claims), "exp");
}
