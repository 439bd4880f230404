/*
 * cli/cmd-allow.c - carrel allow
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "supervise/control.h"
#include "host/user-hosts.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

enum { WAIT_MS = 5000 };

struct allow_args {
	bool deny, always;
};

static int cmd_allow(void *args, int argc, char **argv)
{
	const struct allow_args *a = args;
	const char *box = argv[0], *entry = argv[1], *what = a->deny ? "denied" : "allowed";
	const struct json_value *reply;
	struct fault f = { 0 };
	struct str out = { 0 };
	bool was = false;

	(void)argc;
	if (control_ask(box, control_ask_decide(entry, a->deny), WAIT_MS, &reply, &f) < 0)
		return cmd_fail(&f);
	str_addf(&out, "%s is %s in %s", str_visible(entry), what, str_visible(box));
	if (a->always) {
		if (user_hosts_add(entry, a->deny, &was, &f) < 0) {
			str_addc(&out, '\n');
			cmd_print(&out);
			return cmd_fail(&f);
		}
		str_addf(&out, ", and %s in all boxes to come: %s", was ? "was already" : "now",
			str_visible(user_hosts_path()));
	}
	str_addc(&out, '\n');
	return cmd_print(&out);
}

static const struct opt allow_opts[] = {
	OPT_FLAG(0, "deny", struct allow_args, deny, "refuse it instead"),
	OPT_FLAG(0, "always", struct allow_args, always,
		"also for all boxes to come, in your own configuration"),
	OPT_END,
};

const struct cmd cmd_allow_entry = {
	.name = "allow",
	.args = "BOX ENTRY",
	.about = "let a running box reach a host",
	.detail = "ENTRY is as for `--allow`: a host, `*.host`, an address or a network, each "
		  "with :PORT or :* or neither, or a preset such as `@github`. It holds from "
		  "now on until the box ends, and answers the question of a box that waits for "
		  "it. A denied host stays denied: a denial always wins.\n"
		  "\n"
		  "With `--always` the entry is also written to "
		  "`$XDG_CONFIG_HOME/carrel/allow`, one a line, as `!ENTRY` with `--deny`. It "
		  "then holds in all boxes whose network is `allow` or `open`.\n"
		  "\n"
		  "  carrel allow carrel-app registry.example.org\n"
		  "  carrel allow carrel-app git.example.org:22 --always\n"
		  "  carrel allow carrel-app telemetry.example.org --deny",
	.opts = allow_opts,
	.size = sizeof(struct allow_args),
	.takes = TAKES_BOX,
	.more = 1,
	.hint = OPT_HINT_PRESET,
	.run = cmd_allow,
};
