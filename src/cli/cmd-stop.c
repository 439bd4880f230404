/*
 * cli/cmd-stop.c - carrel stop, carrel restart
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "supervise/control.h"
#include "state/registry.h"
#include "base/fault.h"
#include "base/str.h"

#include <string.h>

enum { WAIT_MS = 5000, SECONDS = 10, MOST_SECONDS = 3600 };

struct stop_args {
	unsigned int seconds;
	bool set;
};

static int parse_seconds(void *args, const char *text, struct fault *f)
{
	struct stop_args *a = args;
	unsigned long long n;

	if (!strcmp(text, "0"))
		n = 0;
	else if (!str_parse_duration(text, &n) || n > MOST_SECONDS)
		return fault_set(f, 0, "expected a time such as 10s or 2m, at most 1h");
	a->seconds = (unsigned int)n;
	a->set = true;
	return 0;
}

static int ask_stop(const struct stop_args *a, const char *name, bool restart, struct fault *f)
{
	const struct json_value *reply;

	return control_ask(name, control_ask_stop(a->set ? a->seconds : SECONDS, restart),
		WAIT_MS, &reply, f);
}

static int cmd_stop(void *args, int argc, char **argv)
{
	struct fault f = { 0 };

	(void)argc;
	if (ask_stop(args, argv[0], false, &f) < 0 || registry_wait(argv[0], &f) < 0)
		return cmd_fail(&f);
	return 0;
}

static int cmd_restart(void *args, int argc, char **argv)
{
	struct fault f = { 0 };

	(void)argc;
	return ask_stop(args, argv[0], true, &f) < 0 ? cmd_fail(&f) : 0;
}

static const struct opt stop_opts[] = {
	OPT_CALL('t', "time", parse_seconds, "TIME",
		"how long it has to end by itself; 10s if not given, 0 for none"),
	OPT_END,
};

const struct cmd cmd_stop_entry = {
	.name = "stop",
	.args = "BOX",
	.about = "end a running box",
	.detail = "The box's command and its process group get SIGTERM; when the time is over "
		  "and the box still runs, all in it is killed. `stop` returns when the box "
		  "has ended.\n"
		  "\n"
		  "  carrel stop carrel-app\n"
		  "  carrel stop -t 1m carrel-app",
	.opts = stop_opts,
	.size = sizeof(struct stop_args),
	.takes = TAKES_BOX,
	.run = cmd_stop,
};

const struct cmd cmd_restart_entry = {
	.name = "restart",
	.args = "BOX",
	.about = "end a detached box and start it again",
	.detail = "Its supervisor stops it, as `carrel stop` would, and begins again with the "
		  "same command line, in the same place and under the same name. Who is "
		  "attached is not any more. A value that somebody must type cannot be asked "
		  "for a second time: such a box ends.\n"
		  "\n"
		  "  carrel restart carrel-app",
	.opts = stop_opts,
	.size = sizeof(struct stop_args),
	.takes = TAKES_BOX,
	.run = cmd_restart,
};
