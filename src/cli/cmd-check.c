/*
 * cli/cmd-check.c - carrel check
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "run/probe.h"
#include "box/steps.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>
#include <sys/utsname.h>

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
		"each layer whether it came to be, and what to do about what did not. The exit "
		"status is 0 when all of them work here, 1 when one does not.",
	.opts = check_opts,
	.size = sizeof(struct check_args),
	.run = cmd_check,
};
