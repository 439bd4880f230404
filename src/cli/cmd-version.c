/*
 * cli/cmd-version.c - carrel version
 */
#include "cli/cmd.h"
#include "base/str.h"

static int cmd_version(void *args, int argc, char **argv)
{
	struct str text = { 0 };

	(void)args, (void)argc, (void)argv;
	str_add(&text, "carrel " CARREL_VERSION "\n");
	return cmd_print(&text);
}

const struct cmd cmd_version_entry = {
	.name = "version",
	.about = "print the version",
	.run = cmd_version,
};
