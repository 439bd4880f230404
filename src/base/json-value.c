/* base/json-value.c - members and type names of values that were read */
#include "base/json-read.h"
#include "base/json.h"

#include <string.h>

const struct json_value *json_member(const struct json_value *v, const char *key)
{
	if (!v || v->type != JSON_OBJECT)
		return NULL;
	for (v = v->first; v && strcmp(v->key, key) != 0;)
		v = v->next;
	return v;
}

const char *json_type_name(enum json_type type)
{
	static const char *const names[] = {
		[JSON_NULL] = "null",
		[JSON_BOOL] = "true or false",
		[JSON_NUMBER] = "a number",
		[JSON_STRING] = "a string",
		[JSON_LIST] = "a list",
		[JSON_OBJECT] = "an object",
	};

	return names[type];
}

void json_copy(struct json *j, const char *key, const struct json_value *v)
{
	switch (v->type) {
	case JSON_NULL:
		json_raw(j, key, "null");
		break;
	case JSON_BOOL:
		json_bool(j, key, v->boolean);
		break;
	case JSON_NUMBER:
		json_raw(j, key, v->text);
		break;
	case JSON_STRING:
		json_string(j, key, v->text);
		break;
	case JSON_LIST:
	case JSON_OBJECT:
		json_open(j, key, v->type == JSON_LIST ? '[' : '{');
		json_each(it, v)
			json_copy(j, it->key, it);
		json_close(j, v->type == JSON_LIST ? ']' : '}');
		break;
	}
}
