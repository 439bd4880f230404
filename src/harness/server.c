/*
 * harness/server.c - variables of MCP servers, for clients that pass on their own
 *
 * A value that is not in the manifest itself (asked for, copied from the host, printed by a
 * program) must not be in any file. Some clients expand variables in their configuration
 * safely. For the others such a value becomes a variable of the box under the server's name for
 * it, so each name can have only one value.
 */
#include "harness/harness.h"
#include "harness/env-forms.h"
#include "manifest/manifest.h"
#include "plan/request.h"
#include "base/str.h"

#include <string.h>

static const char *field_of(const struct mcp_server *s, const struct named *e)
{
	return mem_printf("library.mcpServers.%s.env.%s", s->name.text, e->name);
}

const char *harness_literal(const struct named *env)
{
	struct request_env e = env_entry(env->name, &env->value, "");

	return e.how == ENV_LITERAL ? e.value : NULL;
}

void harness_share(const struct agent *a, struct request *r)
{
	vec_each(s, &a->use_mcp_servers)
		vec_each(e, &s->env)
			if (!harness_literal(e))
				vec_push(&r->env,
					env_entry(e->name, &e->value, field_of(s, e)));
}

/* A different value for the box's variable of this name; or NULL. */
static const char *other_owner(const struct harness *h, const struct agent *a,
	const struct mcp_server *server, const struct named *env)
{
	const char *own = mem_printf("${%s}", env->name);

	if (!strcmp(env->name, "PATH") || !strcmp(env->name, "HOME"))
		return "the box";
	for (size_t i = 0; h->variables && h->variables[i]; i++)
		if (!strcmp(h->variables[i], env->name) && strcmp(env->value.text, own) != 0)
			return h->title;
	vec_each(e, &a->env)
		if (!strcmp(e->name, env->name) && strcmp(e->value.text, env->value.text) != 0)
			return "the agent";
	for (const struct mcp_server *s = a->use_mcp_servers.v; s < server; s++)
		vec_each(e, &s->env)
			if (!strcmp(e->name, env->name) && !harness_literal(e) &&
				strcmp(e->value.text, env->value.text) != 0)
				return mem_printf("the server %s", s->name.text);
	return NULL;
}

void harness_check_shared(const struct harness *h, const struct agent *a, problems *bad)
{
	vec_each(s, &a->use_mcp_servers) {
		vec_each(e, &s->env) {
			const char *owner = harness_literal(e) ? NULL : other_owner(h, a, s, e);

			if (owner)
				manifest_problem(bad, e->value.at, field_of(s, e),
					"%s takes this value from a variable of the box, and "
					"%s has another of that name",
					h->title, owner);
		}
	}
}
