/*
 * cli/eval-plan.h - what carrel eval is about to do, for a person
 */
#ifndef CLI_EVAL_PLAN_H
#define CLI_EVAL_PLAN_H

#include <stdbool.h>

struct engine;
struct fault;
struct str;
struct suite;
struct suite_configuration;

void eval_show_plan(const struct engine *e, struct str *out);

/*
 * The box holds the model's key. Which hosts it reaches beyond the model's is for a person to
 * say: by the answer to the question, or on the command line.
 */
bool eval_hosts_agreed(const struct engine *e, struct fault *f);

/* The name of the client that makes a configuration's attempts. */
const char *eval_client_of(const struct suite *s, const struct suite_configuration *k);

#endif
