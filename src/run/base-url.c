/*
 * run/base-url.c - a client that is told to look for its model elsewhere
 *
 * The value is the user's own or a declared one, and perhaps not a URL at all. Only one host
 * and one port are read from it; the rest is ignored.
 */
#include "run/base-url.h"
#include "harness/harness.h"
#include "net/policy/policy.h"
#include "plan/request.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

struct url {
	char host[NAME_SIZE]; /* canonical */
	enum name_kind kind;
	unsigned short port;
};

static bool url_parse(const char *text, struct url *ret)
{
	bool tls = str_starts(text, "https://");
	const char *at = text + (tls ? 8 : 7), *end, *user, *port;
	struct port_pair pair = { .host = tls ? 443 : 80 };
	struct url url;

	if (!tls && !str_starts(text, "http://"))
		return false;
	end = at + strcspn(at, "/?#");
	user = memrchr(at, '@', (size_t)(end - at));
	at = user ? user + 1 : at;
	port = memchr(at, *at == '[' ? ']' : ':', (size_t)(end - at));
	port = port && *port == ']' ? port + 1 : port;
	port = port ? port : end;
	if (port < end &&
		(*port != ':' ||
			!port_parse(mem_strndup(port + 1, (size_t)(end - port - 1)), &pair)))
		return false;
	url.kind = name_canon(at, (size_t)(port - at), url.host);
	url.port = pair.host;
	*ret = url;
	return url.kind != NAME_BAD;
}

/* Is it a service of this machine, by name or by address? */
static bool is_here(const struct url *u)
{
	struct address a;
	const struct address_range *range;

	if (u->kind == NAME_HOST)
		return name_is_local(u->host) || !strcmp(u->host, POLICY_HOST);
	if (!address_parse(u->host, strlen(u->host), &a))
		return true;
	range = address_range(&a);
	return range && !range->can_open;
}

static const char *url_entry(const struct url *u)
{
	return mem_printf(u->kind == NAME_IPV6 ? "[%s]:%u" : "%s:%u", u->host, u->port);
}

static bool is_listed(const struct request *r, const char *entry)
{
	vec_each(h, &r->hosts)
		if (!h->deny && !strcmp(h->entry, entry))
			return true;
	return false;
}

/* Does the box's own loopback have the service? */
static bool is_service(const struct request *r, unsigned short port)
{
	unsigned short known;

	vec_each(text, &r->services)
		if (!service_problem(*text, &known) && known == port)
			return true;
	return false;
}

static void note_here(const char *name, const struct url *u, struct request *r)
{
	const char *entry = mem_printf(POLICY_HOST ":%u", u->port);

	if (!strcmp(u->host, POLICY_HOST) ? is_listed(r, entry) : is_service(r, u->port))
		return;
	vec_push(&r->notices,
		mem_printf("%s leads to port %u of this machine, which the box does not see: "
			   "--service %u lets it",
			name, u->port, u->port));
}

/* The value, if it comes from the host; a value that is still to be asked for is unknown. */
static const char *value_of(const struct request *r, const char *name)
{
	const char *value = NULL;

	vec_each(e, &r->env)
		if (!strcmp(e->name, name))
			value = e->how == ENV_LITERAL ? e->value
				: e->how == ENV_COPY  ? getenv(e->value)
						      : NULL;
	return value;
}

void base_url_hosts(const struct harness *h, const struct agent *a, struct request *r)
{
	if (!network_is_brokered(r->network))
		return;
	for (size_t i = 0; h->variables && h->variables[i]; i++) {
		const char *name = h->variables[i], *value;
		struct url url;

		value = str_ends(name, "_BASE_URL") ? value_of(r, name) : NULL;
		if (!value || !url_parse(value, &url))
			continue;
		if (is_here(&url))
			note_here(name, &url, r);
		else if (r->network == NETWORK_ALLOW && !harness_says_hosts(a))
			vec_push(&r->hosts,
				((struct request_host){
					.entry = url_entry(&url), .origin = name }));
	}
}
