/*
 * cli/cmd-shell.c - carrel shell
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "cli/run-args.h"
#include "base/fault.h"

static int cmd_shell(void *args, int argc, char **argv)
{
	struct run_args *a = args;
	bool asked = a->agent != NULL; /* without a word it is a shell in a plain box */
	struct fault f = { 0 };

	if (argc > 0) {
		fault_set(&f, 0, "unexpected '%s': a shell takes no command",
			opt_shown(argv[0]));
		fault_fix(&f, "To run a command: carrel run -- CMD.");
		return cmd_fail(&f);
	}
	run_args_line(a, 0, NULL);
	a->mine &= asked;
	a->shell = true;
	return run_args_start(a); /* a request without a command is one for a shell */
}

const struct cmd cmd_shell_entry = {
	.name = "shell",
	.args = "[AGENT]",
	.about = "open a shell in a box",
	.detail = "The same box as that of `carrel run` with the same options and AGENT, and "
		  "your login shell in it. Without AGENT it is a plain box, as `carrel run -- "
		  "CMD` "
		  "has it; `carrel shell mine` is that of your own client.",
	.opts = run_opts,
	.size = sizeof(struct run_args),
	.takes = TAKES_LINE,
	.agents = true,
	.run = cmd_shell,
};
