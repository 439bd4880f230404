/*
 * cli/cmd-port.c - carrel port
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "supervise/control.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

enum { WAIT_MS = 5000 };

struct port_args {
	bool remove;
};

static int cmd_port(void *args, int argc, char **argv)
{
	const struct port_args *a = args;
	const struct json_value *reply;
	struct fault f = { 0 };
	struct str out = { 0 };

	(void)argc;
	if (control_ask(argv[0], control_ask_port(argv[1], a->remove), WAIT_MS, &reply, &f) < 0)
		return cmd_fail(&f);
	str_addf(&out, "port %s of %s is %s\n", str_visible(argv[1]), str_visible(argv[0]),
		a->remove ? "closed" : "open");
	return cmd_print(&out);
}

static const struct opt port_opts[] = {
	OPT_FLAG(0, "remove", struct port_args, remove, "take it away again"),
	OPT_END,
};

const struct cmd cmd_port_entry = {
	.name = "port",
	.args = "BOX [HOST:]PORT",
	.about = "open a port of a running box on this machine's loopback",
	.detail = "PORT is where a server in the box listens, HOST the port of 127.0.0.1 at "
		  "which it is reached; they are the same if there is only one. It holds until "
		  "the box ends.\n"
		  "\n"
		  "  carrel port carrel-app 3000\n"
		  "  carrel port carrel-app 8080:8000\n"
		  "  carrel port carrel-app 8080:8000 --remove",
	.opts = port_opts,
	.size = sizeof(struct port_args),
	.takes = TAKES_BOX,
	.more = 1,
	.run = cmd_port,
};
