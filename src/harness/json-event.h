/* harness/json-event.h - read values from a line of events */
#ifndef HARNESS_JSON_EVENT_H
#define HARNESS_JSON_EVENT_H

#include <stdbool.h>

struct json_value;

/* A member that is a string, or NULL. */
const char *event_text(const struct json_value *v, const char *key);

/* A member that is a number above 0, or 0. */
unsigned long long event_count(const struct json_value *v, const char *key);
double event_amount(const struct json_value *v, const char *key);

/* Is it a string, and this one? */
bool event_is(const struct json_value *v, const char *key, const char *text);

#endif
