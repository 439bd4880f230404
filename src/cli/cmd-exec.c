/*
 * cli/cmd-exec.c - carrel exec
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "supervise/exec-client.h"
#include "base/fault.h"

#include <errno.h>
#include <string.h>

static int cmd_exec(void *args, int argc, char **argv)
{
	struct fault f = { 0 };
	int code;

	(void)args, (void)argc;
	if (exec_in_box(argv[0], (const char *const *)argv + 1, &code, &f) == 0)
		return code;
	cmd_fail(&f);
	if (strcmp(f.step, "exec") != 0)
		return EXIT_CARREL;
	return f.err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC;
}

const struct cmd cmd_exec_entry = {
	.name = "exec",
	.args = "BOX CMD [ARG]...",
	.about = "run one more command in a running box",
	.detail =
		"The command is confined as the box's own is: it is started by the box's init, "
		"in the same namespaces, with the same user, limits, variables and rules. "
		"Streams, terminal and exit code are as with `carrel run`. It ends when the "
		"box does, and when `carrel exec` is killed.\n"
		"\n"
		"  carrel exec carrel-app git log -1\n"
		"  carrel exec carrel-app bash",
	.takes = TAKES_BOX,
	.more = -1,
	.run = cmd_exec,
};
