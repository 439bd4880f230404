/*
 * base/json-value.c - what was read: what is in it, and what it is called
 */
#include "base/json-read.h"

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
