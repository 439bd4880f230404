#include "harness/json-event.h"
#include "base/json-read.h"

#include <string.h>

const char *event_text(const struct json_value *v, const char *key)
{
	const struct json_value *member = json_member(v, key);

	return member && member->type == JSON_STRING ? member->text : NULL;
}

double event_amount(const struct json_value *v, const char *key)
{
	const struct json_value *member = json_member(v, key);

	return member && member->type == JSON_NUMBER && member->number > 0 ? member->number : 0;
}

/* The client writes the stream, and in the end the model: it may contain any number. */
unsigned long long event_count(const struct json_value *v, const char *key)
{
	double number = event_amount(v, key);

	return number < 1e18 ? (unsigned long long)number : 0;
}

bool event_is(const struct json_value *v, const char *key, const char *text)
{
	const char *said = event_text(v, key);

	return said && !strcmp(said, text);
}
