/*
 * cli/cmd-shell.c - carrel shell
 */
#include "cli/cmd.h"
#include "cli/run-args.h"

static int cmd_shell(void *args, int argc, char **argv)
{
	(void)argc, (void)argv;
	return run_args_start(args); /* a request without a command is one for a shell */
}

const struct cmd cmd_shell_entry = {
	.name = "shell",
	.about = "open a shell in a box",
	.detail = "The same box as that of `carrel run` with the same options, and your login "
		  "shell in it.",
	.opts = run_opts,
	.size = sizeof(struct run_args),
	.run = cmd_shell,
};
