/*
 * cli/cmd-completion.c - carrel completion
 */
#include "cli/cmd.h"
#include "cli/complete.h"
#include "cli/opt.h"
#include "base/fault.h"
#include "base/str.h"

#define SHELLS "bash|zsh|fish"

static int cmd_completion(void *args, int argc, char **argv)
{
	static void (*const writers[])(struct str * out) = {
		/* in the order of SHELLS */
		complete_bash,
		complete_zsh,
		complete_fish,
	};
	struct fault f = { 0 };
	struct str text = { 0 };
	unsigned int shell;

	(void)args, (void)argc;
	if (opt_choose(SHELLS, argv[0], &shell, &f) < 0)
		BUG("'%s' was checked before", argv[0]);
	writers[shell](&text);
	return cmd_print(&text);
}

const struct cmd cmd_completion_entry = {
	.name = "completion",
	.args = SHELLS,
	.about = "print a completion script for a shell",
	.detail =
		"To have it in every shell from now on, write it where that shell looks:\n"
		"\n"
		"  carrel completion bash > ~/.local/share/bash-completion/completions/carrel\n"
		"  carrel completion zsh > DIR/_carrel      # a DIR of your $fpath\n"
		"  carrel completion fish > ~/.config/fish/completions/carrel.fish",
	.takes = TAKES_CHOICE,
	.choices = SHELLS,
	.run = cmd_completion,
};
