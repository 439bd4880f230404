/*
 * cli/cmd-run.c - carrel run
 */
#include "cli/cmd.h"
#include "cli/run-args.h"

static int cmd_run(void *args, int argc, char **argv)
{
	run_args_line(args, argc, argv);
	return run_args_start(args);
}

const struct cmd cmd_run_entry = {
	.name = "run",
	.args = "[AGENT] [-- CMD [ARG]...]",
	.about = "run an agent or a command in a box",
	.detail =
		"AGENT is one that the manifest declares; what follows `--` are then more "
		"arguments for its client. Without AGENT, what follows `--` is the command. "
		"Without both, or with the word `mine`, it is your own client with your own "
		"configuration, seen through a layer that is kept for this project; `carrel` "
		"alone and `carrel -- ARG` are the same. With the name of a client, unless an "
		"agent of that name is declared, it is your client of that name, as in "
		"`carrel codex`. Clients do not ask for permission in a box, because the box "
		"confines them; `--prompts` makes them ask.\n"
		"\n"
		"The box has the system's programs and the toolchains on your PATH, "
		"read-only; the workspace, writable, at the same path as on the host; a home "
		"and a `/tmp` of its own that vanish with it; and nothing else. A command has "
		"no network; an agent reaches the hosts that its client needs. carrel first "
		"shows the important parts of the plan, or all of it if you answer `?`, and "
		"starts nothing before you say yes; -y skips the question. It does not ask "
		"twice about "
		"the same plan of your own client or of a command in one project; `confirm` "
		"in your own manifest changes that to `always` or `never`.\n"
		"\n"
		"Below the workspace, files that programs of the host would execute or obey "
		"(`.git/hooks`, `.git/config`, settings of editors and agents) can be read "
		"but not changed or made, and `.env` and `.env.*` read as empty unless git "
		"tracks them. `--protect` and `--hide` add to these. `!PATTERN` removes one, "
		"except what git runs or obeys; a `!PATTERN` that removes nothing is an "
		"error. A name without wildcards is one path below the workspace. A pattern "
		"without a slash is compared with the last part of a path at any depth, one "
		"with a slash with the whole path; `*` stops at a slash and `**` does not.\n"
		"\n"
		"`--allow HOST` lets the box reach that host, beside those of its agent; "
		"`--deny HOST` refuses one, even if an entry allows it. HOST is a name, "
		"`*.name`, an address, a network or a `@preset`, with `:PORT` if that is not "
		"443 or 80. With `--network open` the box reaches every public host that is "
		"not denied; addresses that are not public, those of this machine included, "
		"are refused. In both modes carrel records all lookups and connections: "
		"`carrel events`. `--network host` is this machine's own network: carrel "
		"refuses and records nothing. carrel-network(7) has the details.\n"
		"\n"
		"In `--mount`, write `\\:` for a colon and `\\\\` for a backslash that is part "
		"of a path; with an empty DST, as in `--mount ~/data::rw`, it is the same as "
		"SRC.\n"
		"\n"
		"  carrel\n"
		"  carrel -- --continue\n"
		"  carrel run reviewer\n"
		"  carrel run -- make test\n"
		"  carrel run --allow @pypi -- pip install -r requirements.txt\n"
		"  carrel run -y --network open --env API_TOKEN -- ./fetch.sh\n"
		"  carrel run --mount ~/data:/data --limit time=30m -- ./train.py",
	.opts = run_opts,
	.size = sizeof(struct run_args),
	.takes = TAKES_LINE,
	.agents = true,
	.run = cmd_run,
};
