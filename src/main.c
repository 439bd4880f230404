/*
 * main.c - dispatch only
 */
#include "cli/cmd.h"
#include "cli/help.h"
#include "cli/opt.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/str.h"
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

/* carrel alone is a mistake, so its help is a message. */
static int explain(void)
{
	struct str text = { 0 };

	help_write(NULL, cmd_colour(STDERR_FILENO), &text);
	(void)fd_write_all(STDERR_FILENO, text.p, text.len);
	return EXIT_CARREL;
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
	if (rest.argc == 0)
		return explain();
	return cmd_dispatch(rest.argc, rest.argv);
}
