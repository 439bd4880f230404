/*
 * plan/brief.c - the short form of a plan: what a person must know before a start
 *
 * What runs, where it may write, what it can reach, with which login, whether the client asks,
 * and the box's name. It also shows everything that was asked for beyond the defaults: mounts,
 * variables, ssh hosts, ports. plan_print() shows the rest.
 */
#include "plan/plan.h"
#include "plan/text.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

enum { MOST_HOSTS = 6 };

static const char *command_text(const struct plan *p)
{
	struct str out = { 0 };

	for (size_t i = 0; p->argv[i]; i++) {
		str_add(&out, i ? " " : "");
		str_add_word(&out, p->argv[i]);
	}
	return out.p;
}

/* The user's arguments for the client, with a space before each word. */
static const char *typed_text(const struct plan *p)
{
	struct str out = { 0 };
	size_t n = 0;

	while (p->argv[n])
		n++;
	for (size_t i = n - p->agent->typed; i < n; i++) {
		str_addc(&out, ' ');
		str_add_word(&out, p->argv[i]);
	}
	return out.len ? out.p : "";
}

static const char *runs_text(const struct plan *p)
{
	const struct request_agent *a = p->agent;
	const char *model;

	if (!a || !a->title)
		return mem_printf("%s%s", command_text(p),
			a ? mem_printf(" (agent %s)", str_visible(a->name)) : "");
	model = a->model ? mem_printf(", %s", str_visible(a->model)) : "";
	if (a->own)
		return mem_printf("your own %s%s%s", a->title, model, typed_text(p));
	return mem_printf("agent %s (%s%s)%s", str_visible(a->name), a->title, model,
		typed_text(p));
}

static size_t count_places(const struct plan *p, enum place_kind one, enum place_kind other)
{
	size_t n = 0;

	vec_each(place, &p->places)
		n += (place->kind == one || place->kind == other) && !place->optional;
	return n;
}

/* Is it in the box because somebody asked for it, and not by a rule of carrel's? */
static bool is_asked(const struct place *place)
{
	return place->kind == PLACE_BIND && !place->own &&
		(place->declared || !strcmp(place->why, "--mount"));
}

static void add_writes(const struct plan *p, bool colour, struct str *out)
{
	size_t kept = count_places(p, PLACE_PROTECT, PLACE_STUB);
	size_t hidden = count_places(p, PLACE_HIDE, PLACE_HIDE);
	struct str text = { 0 };

	vec_each(place, &p->places)
		if (place->kind == PLACE_BIND && place->rw && !place->own)
			str_addf(&text, "%s%s", text.len ? ", " : "",
				str_visible(place->target));
	vec_each(place, &p->places)
		if (place->layer)
			str_addf(&text, "%sa copy of %s", text.len ? ", " : "",
				str_visible(place->target));
	if (kept || hidden)
		str_add(&text, "; except");
	if (kept)
		str_addf(&text, " %zu protected", kept);
	if (hidden)
		str_addf(&text, "%s %zu hidden", kept ? " and" : "", hidden);
	if (kept || hidden)
		str_add(&text, kept + hidden == 1 ? " name" : " names");
	text_flow(out, colour, "writes", text.len ? text.p : "nothing of yours");
}

static void add_reads(const struct plan *p, bool colour, struct str *out)
{
	struct str text = { 0 };

	vec_each(place, &p->places) {
		if (!is_asked(place) || place->rw)
			continue;
		str_addf(&text, "%s%s", text.len ? ", " : "", str_visible(place->source));
		if (strcmp(place->source, place->target) != 0)
			str_addf(&text, " at %s", str_visible(place->target));
	}
	if (text.len)
		text_flow(out, colour, "reads", mem_printf("also %s", text.p));
}

/* The allowed hosts, as many as a person reads. */
static const char *hosts_text(const struct plan *p)
{
	struct str text = { 0 };
	size_t n = 0;

	vec_each(rule, &p->net_rules) {
		if (rule->deny)
			continue;
		if (n++ < MOST_HOSTS)
			str_addf(&text, "%s%s", n > 1 ? ", " : "", str_visible(rule->text));
	}
	if (n > MOST_HOSTS)
		str_addf(&text, " and %zu more", n - MOST_HOSTS);
	return n ? text.p : "nothing";
}

static void add_reaches(const struct plan *p, bool colour, struct str *out)
{
	static const char *const modes[] = {
		[NETWORK_NONE] = "nothing: it has no network",
		[NETWORK_OPEN] = "the public Internet, not this machine or its network",
		[NETWORK_HOST] = "all that this machine reaches, its own services too",
	};
	struct str text = { 0 };

	if (p->frame.network == NETWORK_ALLOW)
		str_addf(&text, "%s; %s", hosts_text(p),
			p->ask ? "you are asked about others" : "no other host");
	else
		str_add(&text, modes[p->frame.network]);
	vec_each(port, &p->ports)
		str_addf(&text, "; 127.0.0.1:%u leads to its port %u", port->host, port->box);
	vec_each(s, &p->ssh)
		str_addf(&text, "; ssh %s", str_visible(s->host));
	text_flow(out, colour, "reaches", text.p);
}

static void add_env(const struct plan *p, bool colour, struct str *out)
{
	struct str text = { 0 };

	vec_each(e, &p->env)
		if (e->from == ENV_DECLARED || e->from == ENV_ASKED)
			str_addf(&text, "%s%s", text.len ? " " : "", str_visible(e->name));
	if (text.len)
		text_flow(out, colour, "variables", text.p);
}

void plan_brief(const struct plan *p, bool colour, struct str *out)
{
	const struct request_agent *a = p->agent;

	text_flow(out, colour, "box", str_visible(p->name));
	text_flow(out, colour, "runs", runs_text(p));
	add_writes(p, colour, out);
	add_reads(p, colour, out);
	add_reaches(p, colour, out);
	add_env(p, colour, out);
	if (a && a->login)
		text_flow(out, colour, "login", text_login(a));
	if (a && a->prompts)
		text_flow(out, colour, "prompts", text_prompts(a));
	vec_each(notice, &p->notices)
		text_flow(out, colour, "note", str_visible(*notice));
}

void plan_programs(const struct plan *p, bool colour, struct str *out)
{
	vec_each(e, &p->env) {
		if (e->how != ENV_COMMAND)
			continue;
		text_heading(out, colour, "runs");
		for (size_t i = 0; e->argv[i]; i++) {
			str_add_word(out, e->argv[i]);
			str_addc(out, ' ');
		}
		str_addf(out, "outside of the box, for %s\n", e->name);
	}
}
