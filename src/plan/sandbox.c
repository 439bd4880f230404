/*
 * plan/sandbox.c - a text that tells the agent about its box
 *
 * The text is made from the plan, so it is correct. An agent that knows why something fails
 * asks for permission instead of trying ways around it.
 */
#include "plan/internal.h"
#include "plan/plan.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>

enum { MOST_LISTED = 40 };

static void list(const struct plan *p, struct str *out, const char *heading,
	bool (*want)(const struct plan *p, const struct place *place))
{
	size_t n = 0;

	vec_each(place, &p->places) {
		if (!want(p, place))
			continue;
		if (n++ == 0)
			str_addf(out, "\n%s\n\n", heading);
		if (n <= MOST_LISTED) {
			str_add(out, "- `");
			str_add_visible(out, place->target);
			str_add(out, "`\n");
		}
	}
	if (n > MOST_LISTED)
		str_addf(out, "- and %zu more\n", n - MOST_LISTED);
}

static bool writes(const struct plan *p, const struct place *place)
{
	/* What a client keeps for the project is not the agent's concern. */
	(void)p;
	return place->kind == PLACE_BIND && place->rw && !place->own;
}

static bool reads(const struct plan *p, const struct place *place)
{
	return place->kind == PLACE_BIND && !place->rw && !place->device &&
		!path_within(place->target, "/etc") && strcmp(place->why, "system") != 0 &&
		!path_within(place->target, p->workspace);
}

static bool protects(const struct plan *p, const struct place *place)
{
	(void)p;
	return place->kind == PLACE_PROTECT || place->kind == PLACE_STUB;
}

static bool copies(const struct plan *p, const struct place *place)
{
	(void)p;
	return place->kind == PLACE_CONFIG;
}

static bool hides(const struct plan *p, const struct place *place)
{
	(void)p;
	return place->kind == PLACE_HIDE && !place->optional;
}

static bool layers(const struct plan *p, const struct place *place)
{
	(void)p;
	return place->kind == PLACE_OVERLAY && !place->layer;
}

static bool is_layer(const struct plan *p, const struct place *place)
{
	(void)p;
	return place->layer;
}

/* ---- the network ---- */

static size_t count_rules(const struct plan *p, bool deny)
{
	size_t n = 0;

	vec_each(rule, &p->net_rules)
		n += rule->deny == deny;
	return n;
}

static void add_rules(const struct plan *p, struct str *out, bool deny)
{
	size_t n = 0;

	vec_each(rule, &p->net_rules)
		if (rule->deny == deny && n++ < MOST_LISTED)
			str_addf(out, "%s`%s`", n > 1 ? ", " : "", str_visible(rule->text));
	if (n > MOST_LISTED)
		str_addf(out, " and %zu more", n - MOST_LISTED);
}

/* What a refusal looks like from inside. */
static void add_refusals(const struct plan *p, struct str *out)
{
	if (p->frame.network == NETWORK_ALLOW && count_rules(p, false))
		str_add(out, " Where no port is written it is 443 and 80.");
	str_add(out, " TCP only. ");
	if (p->frame.proxy)
		str_addf(out,
			"There is no DNS and no direct connection: programs must use the proxy "
			"at 127.0.0.1:%d (HTTP CONNECT or SOCKS5; `HTTPS_PROXY` and "
			"`ALL_PROXY` are set), which answers 403, or \"not allowed\", for what "
			"may not be reached. ",
			PROXY_PORT);
	else
		str_addf(out,
			"A name that %s does not resolve; a port or address that may not be "
			"reached resets the connection. ",
			p->ask ? "is denied" : "may not be reached");
	if (p->ask)
		str_add(out,
			"The user is asked when you connect to any other host, whether there "
			"is one of that name or not: the connection waits for up to a minute, "
			"and without a yes it is refused. ");
}

/* What would allow it, and what can reach the box. */
static void add_ways(const struct plan *p, struct str *out)
{
	str_add(out,
		"If you need another host, ask the user for it: `--allow NAME[:PORT]` at the "
		"next start, or `carrel allow BOX NAME` while this box runs (BOX is its "
		"hostname); `carrel events BOX` shows them what was refused. Loopback is this "
		"box's own");
	if (p->ports.n) {
		str_add(out, "; the user reaches a server of yours there at");
		vec_each(port, &p->ports)
			str_addf(out, "%s port %u (on the machine: 127.0.0.1:%u)",
				port > p->ports.v ? "," : "", port->box, port->host);
	}
	str_add(out, ".\n");
}

static const char *which_hosts(const struct plan *p)
{
	if (!count_rules(p, false))
		return p->ask ? "no host without asking" : "no host at all";
	return p->ask ? "these hosts without asking: " : "these hosts and no others: ";
}

static void add_network(const struct plan *p, struct str *out)
{
	enum network mode = p->frame.network;

	str_add(out, "Network: ");
	if (mode == NETWORK_HOST) {
		str_add(out, "the machine's own.\n");
		return;
	}
	if (mode == NETWORK_NONE) {
		str_add(out,
			"none but this box's own loopback (`--allow NAME` gives one host, "
			"`--network open` the Internet).\n");
		return;
	}
	if (mode == NETWORK_OPEN)
		str_add(out, "the public Internet, but not this machine nor its local network");
	else
		str_add(out, which_hosts(p));
	if (mode == NETWORK_OPEN && count_rules(p, false))
		str_add(out, "; also ");
	add_rules(p, out, false);
	if (count_rules(p, true)) {
		str_add(out, "; but not ");
		add_rules(p, out, true);
	}
	str_addc(out, '.');
	add_refusals(p, out);
	add_ways(p, out);
}

static void list_hosts(const struct plan *p, struct str *out)
{
	if (p->ssh.n)
		str_add(out,
			"\nYou can log in to these with ssh; the keys are outside of the box "
			"and "
			"work toward these hosts alone:\n\n");
	vec_each(s, &p->ssh)
		str_addf(out, "- `%s` (%s@%s, port %u)\n", s->host, s->user, s->host_name,
			s->port);
}

/* What can be read and written, and what cannot. */
static void add_places(const struct plan *p, struct str *out)
{
	list(p, out,
		"You can write here, and the user sees it at once (more: `--mount PATH::rw`):",
		writes);
	list(p, out,
		"You work on a copy of these. The user's own files stay as they are, and so "
		"do their branches: they see what you changed with `carrel diff BOX` (BOX is "
		"this box's hostname) and decide what to take over. Edit, delete, commit as "
		"you need; others may work on copies of their own at the same time:",
		is_layer);
	list(p, out,
		"You can read and write here, but what you change stays in a layer of this "
		"project's "
		"own; the user sees it with `carrel instances diff` and decides what to keep:",
		layers);
	list(p, out, "You can also read:", reads);
	list_hosts(p, out);
	list(p, out,
		"These cannot be changed, made or removed (an empty one is absent outside, and "
		"`git clean -x` complains about it), because programs outside run or obey "
		"them. Ask the user to make such changes:",
		protects);
	list(p, out,
		"You have a copy of these, which git writes as usual. When this box ends, and "
		"not before, carrel copies your changes that are plain data to the user's own: "
		"what "
		"branches track, remotes with URLs of hosts, submodules, `user.name` and "
		"`user.email`, a sparse checkout. Other settings (hooks, programs, aliases, "
		"URLs that are paths) are dropped; ask the user to make them:",
		copies);
	list(p, out, "These are hidden from you, and read as empty (`--hide '!PATH'`):", hides);
}

const char *plan_sandbox_text(const struct plan *p)
{
	struct str out = { 0 };

	str_add(&out,
		"# Your sandbox\n\n"
		"You run in a box made by carrel, on the user's machine but apart from it. You "
		"may do anything that works here without asking. If something fails, the box "
		"has refused it: it is not broken. Do not look for a way around it, tell the "
		"user what you need. They can allow it at the next start, as noted below.\n\n");
	add_network(p, &out);
	add_places(p, &out);
	str_add(&out,
		"\nYour home, /tmp and what you make beside the workspace (as `git worktree "
		"add "
		"../x` does) belong to this box and are removed with it, except the paths "
		"listed "
		"above. There is no sudo.\n");
	return out.p;
}
