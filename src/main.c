/*
 * main.c - dispatch only
 */
#include "cli/cmd.h"
#include "cli/help.h"
#include "cli/opt.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/title.h"

#include <fcntl.h>
#include <unistd.h>

/*
 * A standard stream that was closed would be taken by the next file that is opened,
 * and output would go into that file. /dev/null takes its place, open for reading:
 * there is nothing to read, and writing fails as it did before.
 */
static void occupy_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
			_exit(EXIT_CARREL);
}

/* carrel [-- ARG...]: my own client, in this project. */
static int run_mine(int argc, char **args)
{
	char **argv = mem_alloc(((size_t)argc + 4) * sizeof(*argv));

	argv[0] = "run";
	argv[1] = "mine";
	argv[2] = "--";
	for (int i = 0; i < argc; i++)
		argv[3 + i] = args[i];
	return cmd_dispatch(3 + argc, argv);
}

int main(int argc, char **argv)
{
	struct program_args args = { 0 };
	struct fault f = { 0 };
	struct opt_rest rest;

	title_init(argc, argv);
	occupy_standard_streams();
	if (opt_parse(program_opts, OPT_BEFORE_WORDS, &args, argc, argv, &rest, &f) < 0) {
		fault_fix(&f, "See `carrel --help`.");
		return cmd_fail(&f);
	}
	if (rest.help)
		return help_print(NULL);
	if (args.version)
		return cmd_dispatch(1, (char *[]){ "version", NULL });
	if (rest.argc == 0 || rest.dashes)
		return run_mine(rest.argc, rest.argv);
	return cmd_dispatch(rest.argc, rest.argv);
}
