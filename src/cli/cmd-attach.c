/*
 * cli/cmd-attach.c - carrel attach
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "supervise/attach.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

#define KEYS "ctrl-p,ctrl-q"

struct attach_args {
	bool read_only;
	const char *keys;
};

static int cmd_attach(void *args, int argc, char **argv)
{
	const struct attach_args *a = args;
	struct attach_options o = { .read_only = a->read_only };
	enum attach_end end;
	struct fault f = { 0 };
	int code;

	(void)argc;
	if (attach_parse_keys(a->keys ? a->keys : KEYS, &o, &f) < 0 ||
		attach_box(argv[0], &o, &end, &code, &f) < 0)
		return cmd_fail(&f);
	switch (end) {
	case ATTACH_DETACHED:
		cmd_note(mem_printf("detached from %s, which goes on", str_visible(argv[0])));
		return 0;
	case ATTACH_ENDED:
		return code;
	case ATTACH_LOST:
		break;
	}
	cmd_note(mem_printf("the supervisor of %s is gone, and the box with it",
		str_visible(argv[0])));
	return EXIT_CARREL;
}

static const struct opt attach_opts[] = {
	OPT_FLAG(0, "read-only", struct attach_args, read_only,
		"only look: what is typed here does not reach the box"),
	OPT_STR(0, "detach-keys", struct attach_args, keys, "KEYS",
		"what to type to leave it running; ctrl-p,ctrl-q if not given, and none with "
		"an empty value"),
	OPT_END,
};

const struct cmd cmd_attach_entry = {
	.name = "attach",
	.args = "BOX",
	.about = "look at a detached box, and type into it",
	.detail =
		"The box is one that was started with `carrel run -d`. Its screen is drawn as "
		"it is now, and what you type goes to its program, until you type Ctrl-P "
		"Ctrl-Q: then you are back, and the box goes on. When the box ends, so does "
		"this, with its exit code.\n"
		"\n"
		"Several may be attached to one box. Its terminal has the size of the one who "
		"attached or typed last. Whatever ends it, your terminal is left as it was: "
		"mouse, alternate screen, cursor and the like are undone, and no answer of the "
		"terminal to a question of the box reaches your shell.\n"
		"\n"
		"  carrel attach carrel-app\n"
		"  carrel attach --read-only carrel-app\n"
		"  carrel attach --detach-keys ctrl-] carrel-app",
	.opts = attach_opts,
	.size = sizeof(struct attach_args),
	.takes = TAKES_BOX,
	.run = cmd_attach,
};
