/*
 * cli/cmd-wait.c - carrel wait
 */
#include "cli/cmd.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RESULT_SIZE = 4096 };

/* How it ended, since then; a fault if nobody wrote that down. */
static int read_code(const char *name, time_t since, int *ret, struct fault *f)
{
	int fd = boxes_open(name, BOXES_RESULT, f);
	const struct json_value *result = NULL, *code, *ended;
	char *text = fd < 0 ? NULL : fd_read_open(fd, RESULT_SIZE);
	json_errors errors = { 0 };

	if (text && json_read(text, strlen(text), NULL, &result, &errors) == 0) {
		code = json_member(result, "code");
		ended = json_member(result, "ended");
		if (code && code->type == JSON_NUMBER && ended && ended->type == JSON_NUMBER &&
			strtoll(ended->text, NULL, 10) >= since) {
			*ret = (int)strtol(code->text, NULL, 10);
			return 0;
		}
	}
	fault_set(f, 0, "how '%s' ended is not known", str_visible(name));
	return fault_fix(f, "It is kept of boxes that were started with -d and not killed.");
}

static int cmd_wait(void *args, int argc, char **argv)
{
	/* What an earlier box of that name left is not the end of one that runs now. */
	const time_t since = registry_is_held(argv[0]) ? time(NULL) : 0;
	struct fault f = { 0 };
	int code = 0;

	(void)args, (void)argc;
	if (!boxes_is_name(argv[0]))
		fault_set(&f, 0, "a box cannot be named '%s'", str_visible(argv[0]));
	else if (registry_wait(argv[0], &f) == 0 && read_code(argv[0], since, &code, &f) == 0)
		return code;
	return cmd_fail(&f);
}

const struct cmd cmd_wait_entry = {
	.name = "wait",
	.args = "BOX",
	.about = "wait for a detached box to end",
	.detail = "The exit code is the box's own; 125 if that is not known. A box that has "
		  "ended already needs no waiting.\n"
		  "\n"
		  "  carrel wait carrel-app",
	.takes = TAKES_BOX,
	.ended = true,
	.run = cmd_wait,
};
