/*
 * plan/box-env.c - the environment of the box
 *
 * Starts empty. A short list passes from the host, carrel sets what describes the box, and
 * what the user asked for comes last and wins.
 */
#include "plan/internal.h"
#include "plan/layout.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>

static void put_variable(struct plan *p, struct plan_env entry)
{
	vec_each(e, &p->env) {
		if (!strcmp(e->name, entry.name)) {
			*e = entry;
			return;
		}
	}
	vec_push(&p->env, entry);
}

static void set(struct plan *p, const char *name, const char *value, enum env_from from)
{
	put_variable(p, (struct plan_env){ .name = name, .value = value, .from = from });
}

static const char *host_value(const struct host *h, const char *name)
{
	size_t n = strlen(name);

	for (const char *const *e = h->env; *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/* May this variable pass? n is the length of the name. */
static bool passes(const char *name, size_t n)
{
	for (size_t i = 0; i < layout_env_n; i++) {
		const char *pattern = layout_env[i];
		size_t m = 0;

		while (m < n && pattern[m] != '*' && pattern[m] == name[m])
			m++;
		if (pattern[m] == '*' || (m == n && !pattern[m]))
			return true;
	}
	return false;
}

static void copy_passing(const struct host *h, struct plan *p)
{
	for (const char *const *e = h->env; *e; e++) {
		size_t n = strcspn(*e, "=");

		if ((*e)[n] && passes(*e, n))
			set(p, mem_strndup(*e, n), *e + n + 1, ENV_HOST);
	}
}

/* The host's PATH without directories that are not in the box, and with the system's. */
static const char *box_path(const struct host *h, const struct plan *p)
{
	static const char usual[] = "/usr/local/bin:/usr/bin:/bin";
	const char *at = host_value(h, "PATH");
	struct str out = { 0 };
	bool has_system = false;

	for (at = at ? at : ""; *at; at += strcspn(at, ":"), at += *at == ':') {
		const char *entry = path_clean(mem_strndup(at, strcspn(at, ":")));

		if (entry[0] != '/' || !plan_shows(p, entry) ||
			path_within(entry, p->workspace))
			continue;
		str_add(&out, out.len ? ":" : "");
		str_add(&out, entry);
		has_system |= !strcmp(entry, "/usr/bin") || !strcmp(entry, "/bin");
	}
	if (!has_system) {
		str_add(&out, out.len ? ":" : "");
		str_add(&out, usual);
	}
	return out.p;
}

/*
 * Plain HTTP gets no variable of its own: clients would ask the proxy to fetch, not to connect.
 * A client that knows ALL_PROXY, such as curl, connects with SOCKS.
 */
static void add_proxy(struct plan *p)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy", "ALL_PROXY",
		"all_proxy", "NO_PROXY", "no_proxy" };

	for (size_t i = 0; p->frame.proxy && i < ARRAY_SIZE(names); i++)
		set(p, names[i],
			i < 2           ? mem_printf("http://127.0.0.1:%d", PROXY_PORT)
				: i < 4 ? mem_printf("socks5h://127.0.0.1:%d", PROXY_PORT)
					: "localhost,127.0.0.1,::1",
			ENV_SET);
}

int plan_add_env(const struct request *r, const struct host *h, struct plan *p, struct fault *f)
{
	copy_passing(h, p);
	set(p, "HOME", p->home, ENV_SET);
	set(p, "PATH", box_path(h, p), ENV_SET);
	set(p, "USER", p->user, ENV_SET);
	set(p, "LOGNAME", p->user, ENV_SET);
	set(p, "SHELL", h->shell, ENV_SET);
	set(p, "CARREL_BOX", p->name, ENV_SET);
	add_proxy(p);
	vec_each(asked, &r->env) {
		struct plan_env entry = { .name = asked->name,
			.from = asked->from,
			.how = asked->how,
			.argv = asked->argv };

		if (asked->how == ENV_PROMPT)
			entry.message = asked->value;
		else if (asked->how == ENV_LITERAL)
			entry.value = asked->value;
		else if (asked->how == ENV_COPY)
			entry.value = host_value(h, asked->value);
		if (asked->how == ENV_COPY && !entry.value) {
			if (strcmp(asked->name, asked->value) != 0)
				fault_set(f, 0, "%s: %s is not set here", asked->why,
					asked->value);
			else
				fault_set(f, 0, "%s: not set here", asked->why);
			return asked->from == ENV_ASKED
				? fault_fix(f, "Set it, or give the value: --env %s=...",
					  asked->name)
				: fault_fix(f, "Set %s before the start.", asked->value);
		}
		put_variable(p, entry);
	}
	return 0;
}
