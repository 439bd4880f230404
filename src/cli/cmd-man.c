/*
 * cli/cmd-man.c - carrel man
 */
#include "cli/cmd.h"
#include "cli/man.h"
#include "base/str.h"

static int cmd_man(void *args, int argc, char **argv)
{
	struct str text = { 0 };

	(void)args, (void)argc, (void)argv;
	man_page(&text);
	return cmd_print(&text);
}

const struct cmd cmd_man_entry = {
	.name = "man",
	.about = "print the manual page, as roff",
	.detail = "To read it where it is not installed:\n"
		  "\n"
		  "  carrel man | man -l -",
	.run = cmd_man,
};
