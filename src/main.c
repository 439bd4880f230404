/*
 * main.c - dispatch only
 */
#include "cli/cmd.h"
#include "cli/help.h"
#include "cli/opt.h"
#include "net/broker/broker.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/title.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
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

/* carrel [OPTION]... [-- ARG...]: my own client in this project, as `carrel run mine`. */
static int run_mine(int argc, char **args)
{
	char **argv = mem_alloc(((size_t)argc + 3) * sizeof(*argv));

	argv[0] = "run";
	argv[1] = "mine";
	for (int i = 1; i < argc; i++)
		argv[1 + i] = args[i];
	return cmd_dispatch(argc + 1, argv);
}

/* Options before any command are the program's own, or those of run. */
static bool is_own_option(const char *word)
{
	static const char *const own[] = { "-V", "--version", "-h", "--help" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strcmp(word, own[i]))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct program_args args = { 0 };
	struct fault f = { 0 };
	struct opt_rest rest;

	if (argc == 1 && !strcmp(argv[0], BROKER_ARGV0))
		return broker_main();
	title_init(argc, argv);
	occupy_standard_streams();
	if (argc < 2 || (argv[1][0] == '-' && !is_own_option(argv[1])))
		return run_mine(argc, argv);
	if (opt_parse(program_opts, OPT_BEFORE_WORDS, &args, argc, argv, &rest, &f) < 0) {
		fault_fix(&f, "See `carrel --help`.");
		return cmd_fail(&f);
	}
	if (rest.help)
		return help_print(NULL);
	if (args.version)
		return cmd_dispatch(1, (char *[]){ "version", NULL });
	return cmd_dispatch(rest.argc, rest.argv);
}
