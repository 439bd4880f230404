/*
 * cli/cmd-plan.c - carrel plan
 */
#include "cli/cmd.h"
#include "cli/run-args.h"

static int cmd_plan(void *args, int argc, char **argv)
{
	run_args_line(args, argc, argv);
	return run_args_show(args);
}

const struct cmd cmd_plan_entry = {
	.name = "plan",
	.args = "[AGENT] [-- CMD [ARG]...]",
	.about = "print what a box would be, and start nothing",
	.detail = "The plan is complete: `carrel run` with the same options does what it says "
		  "and nothing beyond it. Variables are shown with where their values come "
		  "from, never with the values. "
		  "`--json` prints it for programs, in the form that `carrel schema plan` "
		  "describes; its hash is the same for two boxes that are the same but for "
		  "their names.",
	.opts = run_opts,
	.size = sizeof(struct run_args),
	.takes = TAKES_LINE,
	.agents = true,
	.run = cmd_plan,
};
