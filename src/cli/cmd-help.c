/*
 * cli/cmd-help.c - carrel help
 */
#include "cli/cmd.h"
#include "cli/help.h"
#include "base/fault.h"

static int cmd_help(void *args, int argc, char **argv)
{
	const struct cmd *c = NULL;
	struct fault f = { 0 };

	(void)args;
	if (argc > 0 && cmd_find(argv[0], &c, &f) < 0)
		return cmd_fail(&f);
	return help_print(c);
}

const struct cmd cmd_help_entry = {
	.name = "help",
	.args = "[COMMAND]",
	.about = "tell about carrel, or about one command",
	.takes = TAKES_COMMAND,
	.run = cmd_help,
};
