/*
 * cli/cmd-check.c - carrel check
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "run/probe.h"
#include "host/survey-cgroup.h"
#include "plan/cgroup-facts.h"
#include "plan/held.h"
#include "manifest/limits.h"
#include "box/steps.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct check_args {
	bool json;
};

static const char *const states[] = {
	[PROBE_OK] = "ok",
	[PROBE_FAILED] = "failed",
	[PROBE_NOT_REACHED] = "not reached",
};

static const char *problem(const struct probe *p)
{
	return p->fault.err ? mem_printf("%s: %s", p->fault.text, strerror(p->fault.err))
			    : p->fault.text;
}

static bool works(const probe_vec *probes)
{
	vec_each(p, probes)
		if (p->state != PROBE_OK)
			return false;
	return true;
}

/* ---- limits ---- */

static const char *holder(const struct limit_row *l)
{
	return held_on(survey_cgroup(), geteuid(), l);
}

static void limits_json(struct json *j)
{
	json_open(j, "limits", '[');
	for (const struct limit_row *l = limit_table; l->group != LIMIT_OF_NOBODY; l++) {
		json_open(j, NULL, '{');
		json_string(j, "name", l->name);
		json_string(j, "by", holder(l));
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_limits(struct str *out, const char *by)
{
	const char *between = "";

	for (const struct limit_row *l = limit_first(LIMIT_OF_BOX); l; l = limit_next(l)) {
		const char *held = holder(l);

		if (by ? !held || strcmp(held, by) != 0 : held != NULL)
			continue;
		str_addf(out, "%s%s", between, l->name);
		between = ", ";
	}
}

/* Advice: how this machine could hold more limits. */
static const char *more_limits(const struct cgroup_facts *c)
{
	if (c->how == CGROUP_NONE)
		return "Log in to a session of systemd with cgroup v2 (not su or sudo), or "
		       "start "
		       "carrel with `systemd-run --user --scope -p Delegate=yes carrel ...`. "
		       "In "
		       "a container, give it a cgroup of its own that can be written.";
	return "An administrator can delegate more controllers to you: Delegate=cpu io memory "
	       "pids in /etc/systemd/system/user@.service.d/delegate.conf.";
}

static void limits_text(struct str *out)
{
	static const char *const mechanisms[] = { "cgroup", "rlimit", "tmpfs", "supervisor" };
	const struct cgroup_facts *c = survey_cgroup();
	struct str none = { 0 };

	str_add(out, "limits held by");
	for (size_t i = 0; i < ARRAY_SIZE(mechanisms); i++) {
		struct str names = { 0 };

		add_limits(&names, mechanisms[i]);
		if (names.len)
			str_addf(out, "%s %s: %s", i && out->p[out->len - 1] != 'y' ? ";" : "",
				mechanisms[i], names.p);
	}
	str_add(out, "\n");
	add_limits(&none, NULL);
	if (!none.len)
		return;
	str_addf(out, "limits that cannot be held: %s%s%s\n", none.p, c->why ? ": " : "",
		c->why ? c->why : "");
	str_addf(out, "%-26s %s\n", "", more_limits(c));
}

static void print_json(const probe_vec *probes, const struct utsname *u, struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '{');
	json_bool(&j, "works", works(probes));
	json_string(&j, "kernel", u->release);
	json_open(&j, "layers", '[');
	vec_each(p, probes) {
		json_open(&j, NULL, '{');
		json_string(&j, "name", p->layer);
		json_string(&j, "state", states[p->state]);
		json_string(&j, "detail", p->detail);
		if (p->state == PROBE_FAILED) {
			json_string(&j, "problem", problem(p));
			json_string(&j, "fix", p->fault.fix[0] ? p->fault.fix : NULL);
		}
		json_close(&j, '}');
	}
	json_close(&j, ']');
	limits_json(&j);
	json_open(&j, "steps", '[');
	for (size_t i = 0; native_step_name(i); i++)
		json_string(&j, NULL, native_step_name(i));
	json_close(&j, ']');
	json_close(&j, '}');
	str_addc(out, '\n');
}

/* The broker is the last one, and not every box needs it. */
static bool only_last(const probe_vec *probes)
{
	return probes->n > 1 && probes->v[probes->n - 2].state == PROBE_OK;
}

static void print_text(const probe_vec *probes, const struct utsname *u, struct str *out)
{
	vec_each(p, probes) {
		str_addf(out, "%-12s %-13s ", states[p->state], p->layer);
		str_add_visible(out, p->state == PROBE_FAILED ? problem(p) : p->detail);
		str_addc(out, '\n');
		if (p->state == PROBE_FAILED && p->fault.fix[0])
			str_addf(out, "%-26s %s\n", "", str_visible(p->fault.fix));
	}
	limits_text(out);
	str_addf(out,
		works(probes) ? "carrel works here (Linux %s).\n"
			: only_last(probes)
			? "carrel works here, without network allow and open "
			  "(Linux %s).\n"
			: "carrel cannot run here yet (Linux %s).\n",
		u->release);
}

static int cmd_check(void *args, int argc, char **argv)
{
	const struct check_args *a = args;
	probe_vec probes = { 0 };
	struct utsname u;
	struct str out = { 0 };
	int rc;

	(void)argc, (void)argv;
	uname(&u);
	probe_all(&probes);
	(a->json ? print_json : print_text)(&probes, &u, &out);
	rc = cmd_print(&out);
	return rc ? rc : works(&probes) ? 0 : 1;
}

static const struct opt check_opts[] = {
	OPT_FLAG(0, "json", struct check_args, json, "print the result as JSON"),
	OPT_END,
};

const struct cmd cmd_check_entry = {
	.name = "check",
	.about = "try every layer of a box on this machine",
	.detail =
		"Builds a real box with all its layers and runs a program in it, then says for "
		"each layer whether it came to be, and what to do about what did not. Then it "
		"says which limits can be held here, and by what. The exit status is 0 when "
		"all of them work here, 1 when one does not.",
	.opts = check_opts,
	.size = sizeof(struct check_args),
	.run = cmd_check,
};
