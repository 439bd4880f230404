/*
 * harness/env-forms.h - the forms of a value in `env`
 */
#ifndef HARNESS_ENV_FORMS_H
#define HARNESS_ENV_FORMS_H

#include "manifest/manifest.h"
#include "plan/request.h"

/* Report a value that is invalid. */
void env_check(const struct said *value, const char *field, problems *bad);

/* "carrel.json:3:7: agents.x.env.TOKEN": begins a message about a value. */
const char *env_where(const struct said *value, const char *field);

/* The variable that a checked value makes. */
struct request_env env_entry(const char *name, const struct said *value, const char *field);

#endif
