/*
 * cli/cmd-send.c - carrel send
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "supervise/control.h"
#include "base/fault.h"
#include "base/mem.h"

enum { WAIT_MS = 5000 };

struct send_args {
	bool bare;
};

static int cmd_send(void *args, int argc, char **argv)
{
	const struct send_args *a = args;
	const struct json_value *reply;
	struct fault f = { 0 };

	(void)argc;
	if (control_ask(argv[0], control_ask_type(argv[1]), WAIT_MS, &reply, &f) < 0)
		return cmd_fail(&f);
	/* A second message: a client that is pasted a text takes no return within it. */
	if (!a->bare && control_ask(argv[0], control_ask_type("\r"), WAIT_MS, &reply, &f) < 0)
		return cmd_fail(&f);
	return 0;
}

static const struct opt send_opts[] = {
	OPT_FLAG('n', "no-return", struct send_args, bare, "do not press Return after it"),
	OPT_END,
};

const struct cmd cmd_send_entry = {
	.name = "send",
	.args = "BOX TEXT",
	.about = "type a text into a detached box",
	.detail = "The box's program reads TEXT, and then Return, as if somebody who is "
		  "attached had typed them.\n"
		  "\n"
		  "  carrel send carrel-app 'now run the tests'",
	.opts = send_opts,
	.size = sizeof(struct send_args),
	.takes = TAKES_BOX,
	.more = 1,
	.run = cmd_send,
};
