/*
 * cli/cmd-client.c - carrel claude, codex, gemini, opencode: the user's own client of that name
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "cli/run-args.h"
#include "base/fault.h"

static int start_client(const char *client, struct run_args *a, int argc, char **argv)
{
	struct fault f = { 0 };

	if (a->agent) {
		fault_set(&f, 0, "unexpected '%s': what is for %s comes after '--'",
			opt_shown(a->agent), client);
		fault_fix(&f, "As in: carrel %s -- %s", client, opt_shown(a->agent));
		return cmd_fail(&f);
	}
	a->agent = "mine";
	a->client = client;
	run_args_line(a, argc, argv);
	return run_args_start(a);
}

#define DETAIL(title)                                                                          \
	"Starts your own " title " with your own configuration in a box. `carrel` alone does " \
	"the same with the client that `mine` in your manifest names. What follows `--` is "   \
	"for the client. Clients of several names can run side by side in one project. "       \
	"`carrel run NAME` does the same if no agent of that name is declared."

#define CLIENT(id, title)                                      \
	static int cmd_##id(void *args, int argc, char **argv) \
	{                                                      \
		return start_client(#id, args, argc, argv);    \
	}                                                      \
	const struct cmd cmd_##id##_entry = {                  \
		.name = #id,                                   \
		.args = "[-- ARG...]",                         \
		.about = "start your own " title " in a box",  \
		.detail = DETAIL(title),                       \
		.opts = run_opts,                              \
		.size = sizeof(struct run_args),               \
		.takes = TAKES_LINE,                           \
		.run = cmd_##id,                               \
	}

CLIENT(claude, "Claude Code");
CLIENT(codex, "Codex");
CLIENT(gemini, "Gemini CLI");
CLIENT(opencode, "opencode");
