/*
 * cli/cmd-unit.c - carrel unit
 *
 * A unit file has three languages: a line is a setting, in which % begins a specifier; the
 * words of a command are quoted, with \ and $ special; the path of a working directory is
 * neither quoted nor expanded, except for %. What cannot be written in one of them is refused.
 */
#include "cli/cmd.h"
#include "cli/run-args.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* What of our environment decides where carrel and its programs look. */
static const char *const kept[] = { "PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME",
	"XDG_DATA_HOME", "XDG_CACHE_HOME", "CARREL_TRUST" };

static bool is_text(const char *s)
{
	size_t n = strlen(s), length;

	for (; n; s += length, n -= length) {
		length = utf8_length(s, n);
		if (!length || (unsigned char)*s < ' ' || *s == 127)
			return false;
		/* A control character too: it steers some terminals, on which we print. */
		if (length == 2 && *s == '\xc2' && (unsigned char)s[1] < 0xa0)
			return false;
	}
	return true;
}

static int check_text(const char *what, const char *s, struct fault *f)
{
	return is_text(s) ? 0
			  : fault_set(f, 0, "%s has bytes that a unit file cannot have: '%s'",
				    what, str_visible(s));
}

/* ---- the languages ---- */

static void add_escaped(struct str *out, const char *s, const char *doubled,
	const char *backslashed)
{
	for (; *s; s++) {
		if (strchr(doubled, *s))
			str_addc(out, *s);
		else if (strchr(backslashed, *s))
			str_addc(out, '\\');
		str_addc(out, *s);
	}
}

/* ExecStart=, and the path of the program, in which $ is nothing special. */
static void add_program(struct str *out, const char *path)
{
	str_add(out, "ExecStart=\"");
	add_escaped(out, path, "%", "\"\\");
	str_addc(out, '"');
}

static void add_word(struct str *out, const char *word)
{
	str_add(out, " \"");
	add_escaped(out, word, "%$", "\"\\");
	str_addc(out, '"');
}

static void add_line(struct str *out, const char *key, const char *value)
{
	str_add(out, key);
	add_escaped(out, value, "%", "");
	str_addc(out, '\n');
}

static void add_variable(struct str *out, const char *name, const char *value)
{
	str_addf(out, "Environment=\"%s=", name);
	add_escaped(out, value, "%", "\"\\");
	str_add(out, "\"\n");
}

/* ---- the unit ---- */

struct unit {
	const struct run_args *args;
	const struct plan *plan;
	const char *box, *program, *manifest;
};

/* The name is pinned: a service has one box, and a second start must not make another. */
static void add_command(struct str *out, const struct unit *u)
{
	const char *const *word = u->args->request.argv;

	add_program(out, u->program);
	str_add(out, " run -d --foreground -y --name");
	add_word(out, u->box);
	if (u->manifest) {
		str_add(out, " -m");
		add_word(out, u->manifest);
	}
	if (u->args->agent || u->args->mine)
		add_word(out, u->args->agent ? u->args->agent : "mine");
	if (word && *word)
		str_add(out, " --");
	for (; word && *word; word++)
		add_word(out, *word);
	str_addc(out, '\n');
}

/* Variables that the agent takes from the environment: their values stay out of the unit. */
static void add_values(struct str *out, const struct unit *u)
{
	struct str names = { 0 };

	vec_each(e, &u->plan->env)
		if (e->how == ENV_COPY && e->from == ENV_DECLARED)
			str_addf(&names, " %s", e->name);
	if (!names.len)
		return;
	str_addf(out,
		"# The agent takes these from the environment, a line NAME=VALUE each:%s\n",
		names.p);
	str_addf(out, "EnvironmentFile=-%%h/.config/carrel/%s.env\n", u->box);
}

static void add_environment(struct str *out, const struct unit *u)
{
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		const char *value = getenv(kept[i]);

		if (value && *value && is_text(value))
			add_variable(out, kept[i], value);
	}
	add_values(out, u);
}

static void add_unit(struct str *out, const struct unit *u)
{
	str_add(out, "[Unit]\n");
	add_line(out, "Description=carrel box ", u->box);
	str_add(out,
		"StartLimitIntervalSec=10min\nStartLimitBurst=5\n"
		"\n[Service]\nType=notify\nNotifyAccess=main\n");
	add_line(out, "WorkingDirectory=", u->plan->workspace);
	add_command(out, u);
	add_environment(out, u);
	str_add(out,
		"# SIGTERM goes to the supervisor, which passes it on to the agent.\n"
		"KillMode=mixed\nTimeoutStopSec=20s\nSuccessExitStatus=143\n"
		"Restart=on-failure\nRestartSec=5s\n"
		"# What fails before a box is built fails again.\n"
		"RestartPreventExitStatus=125 126 127\n"
		"# Limits of the box are held in this part of the tree.\n"
		"Delegate=yes\n"
		"\n[Install]\nWantedBy=default.target\n");
}

/* ---- what cannot be ---- */

static int check_directory(const char *dir, struct fault *f)
{
	const char last = dir[strlen(dir) - 1];
	int rc = check_text("the path of the workspace", dir, f);

	if (rc == 0 && (last == ' ' || last == '\\'))
		rc = fault_set(f, 0,
			"the path of the workspace ends with '%c', which a unit "
			"file cannot have there: '%s'",
			last, str_visible(dir));
	return rc;
}

static int check_values(const struct plan *p, struct fault *f)
{
	vec_each(e, &p->env) {
		if (e->how != ENV_PROMPT)
			continue;
		fault_set(f, 0, "%s is asked for on a terminal, which a service does not have",
			e->name);
		return fault_fix(f,
			"Let a program print it: \"%s\": \"!COMMAND\"; or take it "
			"from the environment: \"${%s}\".",
			e->name, e->name);
	}
	return 0;
}

static int check_words(const struct unit *u, struct fault *f)
{
	const char *const *word = u->args->request.argv;
	int rc = check_text("the path of carrel", u->program, f);

	if (rc == 0 && u->manifest)
		rc = check_text("the path of the manifest", u->manifest, f);
	for (; rc == 0 && word && *word; word++)
		rc = check_text("an argument", *word, f);
	return rc;
}

static int check_unit(const struct unit *u, struct fault *f)
{
	int rc = check_directory(u->plan->workspace, f);

	if (rc == 0)
		rc = check_values(u->plan, f);
	return rc < 0 ? rc : check_words(u, f);
}

/* ---- the command ---- */

static int cmd_unit(void *args, int argc, char **argv)
{
	struct run_args *a = args, asked;
	struct unit u = { .args = &asked, .program = fd_real_path("/proc/self/exe") };
	struct fault f = { 0 };
	struct str out = { 0 };
	int code;

	if (!a->agent && argc == 0) {
		fault_set(&f, 0, "expected the name of an agent");
		fault_fix(&f, "`carrel agents` lists them; `mine` is your own client.");
		return cmd_fail(&f);
	}
	a->detach = true;
	run_args_line(a, argc, argv);
	asked = *a; /* planning completes the request */
	code = run_args_plan(a, &u.plan);
	if (code)
		return code;
	if (a->manifest)
		u.manifest = fd_real_path(a->manifest);
	if (plan_name(&a->request, u.plan->workspace, &u.box, &f) < 0 || check_unit(&u, &f) < 0)
		return cmd_fail(&f);
	add_unit(&out, &u);
	return cmd_print(&out);
}

static const struct opt unit_opts[] = {
	OPT_STR('m', "manifest", struct run_args, manifest, "FILE",
		"look for AGENT in FILE instead of carrel.json in the workspace",
		.hint = OPT_HINT_FILE),
	OPT_STR(0, "workspace", struct run_args, request.workspace, "DIR",
		"the directory to work in; the working directory if not given",
		.hint = OPT_HINT_DIR),
	OPT_STR(0, "name", struct run_args, request.name, "NAME",
		"name of the box; made from the agent's or the workspace's if not given"),
	OPT_END,
};

const struct cmd cmd_unit_entry = {
	.name = "unit",
	.args = "AGENT [-- ARG...]",
	.about = "print a systemd unit that runs an agent as a service",
	.detail =
		"The unit is for your own service manager, not for the machine's. The agent "
		"runs in a detached box: `carrel attach`, `logs`, `send` and `ps` work as with "
		"any other. The service is ready when the agent's program runs. It is started "
		"again when it fails, five times in ten minutes at most, but not when carrel "
		"cannot build the box. `systemctl --user stop` asks the agent to end, and "
		"kills "
		"the box after 20 seconds.\n"
		"\n"
		"Your PATH and the directories of your configuration are written into the "
		"unit. "
		"A value that the manifest takes from the environment is not: put it into "
		"`~/.config/carrel/BOX.env`, which only you may read. A value that is asked "
		"for "
		"on a terminal is refused. The manifest must be approved: `carrel trust`.\n"
		"\n"
		"  carrel unit reviewer > ~/.config/systemd/user/carrel-reviewer.service\n"
		"  systemctl --user daemon-reload\n"
		"  systemctl --user enable --now carrel-reviewer\n"
		"  loginctl enable-linger   # run it also while you are not logged in",
	.opts = unit_opts,
	.size = sizeof(struct run_args),
	.takes = TAKES_LINE,
	.agents = true,
	.run = cmd_unit,
};
