#include "harness/login.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>

const struct json_value *login_read(const char *text)
{
	const struct json_value *tree;
	json_errors errors = { 0 };

	return json_read(text, strlen(text), NULL, &tree, &errors) < 0 ? NULL : tree;
}

/* As deep as json_read() goes, which is not far. */
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
