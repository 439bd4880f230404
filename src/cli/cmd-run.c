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
		"AGENT is one that the manifest declares, and what follows `--` are then more "
		"arguments for its client. Without AGENT, what follows `--` is the command. "
		"Without both, or with the word `mine`, it is your own client with your own "
		"configuration, seen through a layer that is kept for this project; `carrel` "
		"alone and `carrel -- ARG` are the same.\n"
		"\n"
		"The box has the system's programs and the toolchains on your PATH, read-only; "
		"the workspace, writable, at the same path as on the host; a home and a `/tmp` "
		"of its own that vanish with it; and nothing else. A command has no network; "
		"an "
		"agent reaches the hosts that its client needs. The plan of it is shown first, "
		"and nothing starts before you said yes to it, or gave -y.\n"
		"\n"
		"Below the workspace, files that programs of the host would execute or obey "
		"(`.git/hooks`, `.git/config`, settings of editors and agents) can be read but "
		"not changed or made, and `.env` and `.env.*` cannot be read. `--protect` and "
		"`--hide` add to these, and `!PATTERN` takes back. A name without wildcards is "
		"one path below the workspace. With wildcards and no slash it is compared with "
		"the last part of a path at any depth, with a slash with the whole path; `*` "
		"stops at a slash and `**` does not.\n"
		"\n"
		"`--allow HOST` lets the box reach that host, beside those of its agent; "
		"`--deny HOST` refuses one, whatever allows it. HOST is a name, `*.name`, an "
		"address, a network or a `@preset`, with `:PORT` where that is not 443 or 80. "
		"With `--network open` every public host is reached that is not denied; what "
		"is not public, this machine included, is refused. Either way all lookups and "
		"connections are written down: `carrel events`. `--network host` is this "
		"machine's own network, with nothing refused and nothing written down. "
		"carrel-network(7) has all of it.\n"
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
	.run = cmd_run,
};
