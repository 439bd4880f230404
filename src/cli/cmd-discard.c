/*
 * cli/cmd-discard.c - carrel discard, carrel rm
 *
 * Both hold the box's name while they remove, so neither removes the files of a running box.
 */
#include "cli/cmd.h"
#include "cli/confirm.h"
#include "cli/opt.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "state/workspace.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

struct discard_args {
	bool yes;
};

/* Take the name of a box that is not running. */
static int hold_name(const char *box, struct claim *ret, struct fault *f)
{
	if (!boxes_is_name(box))
		return fault_set(f, 0, "a box cannot be named '%s'", str_visible(box));
	if (registry_claim(box, CLAIM_STRICT, ret, f) == 0)
		return 0;
	fault_set(f, 0, "the box '%s' runs", box);
	fault_fix(f, "End it first.");
	return -EBUSY;
}

static int no_terminal(const char *box, const char *what, struct fault *f)
{
	fault_set(f, 0, "%s was not %s: there is no terminal to ask on", box, what);
	return fault_fix(f, "Pass -y to do it without asking.");
}

static const char *summary(const char *box)
{
	struct workspace w;
	struct fault ignored = { 0 };
	const char *text = "some changes";

	if (workspace_open(box, &w, &ignored) < 0)
		return text;
	if (changeset_find(&w.changes, &ignored) == 0)
		text = mem_printf("%zu changed, %zu added and %zu deleted files",
			w.changes.changed, w.changes.added, w.changes.deleted);
	workspace_close(&w);
	return text;
}

/* 1: yes. */
static int ask_removal(const char *box, const char *what, bool yes, struct fault *f)
{
	int answer = 1;

	if (!yes && workspace_holds(box))
		answer =
			confirm(mem_printf("Drop what %s changed (%s)?", box, summary(box)), f);
	return answer < 0 ? no_terminal(box, what, f) : answer;
}

static int discard(const char *box, bool yes, struct fault *f)
{
	struct workspace w;
	int rc = workspace_open(box, &w, f);

	if (rc < 0)
		return rc;
	workspace_close(&w);
	rc = ask_removal(box, "discarded", yes, f);
	if (rc > 0)
		rc = workspace_drop(box, f) < 0 ? -EINVAL : 1;
	return rc;
}

static int report_end(int rc, const char *box, const char *done, const struct fault *f)
{
	if (rc < 0)
		return cmd_fail(f);
	cmd_note(mem_printf(rc ? "%s: %s" : "%s: nothing was removed", box, done));
	return rc ? 0 : EXIT_CARREL;
}

static int remove_record(const char *box, bool yes, struct fault *f)
{
	int rc = boxes_find(box, f);

	if (rc > 0)
		rc = ask_removal(box, "removed", yes, f);
	if (rc > 0)
		rc = boxes_erase(box, f) < 0 ? -EINVAL : 1;
	return rc;
}

/* Hold the box's name while `act` removes something of it. */
static int act_on(const char *box, bool yes, int (*act)(const char *, bool, struct fault *),
	const char *done)
{
	struct claim held;
	struct fault f = { 0 };
	int rc = hold_name(box, &held, &f);

	if (rc < 0)
		return cmd_fail(&f);
	rc = act(box, yes, &f);
	registry_release(&held);
	return report_end(rc, box, done, &f);
}

/* One that fails does not keep the others from being done. */
static int cmd_discard(void *args, int argc, char **argv)
{
	const struct discard_args *a = args;
	int status = 0;

	for (int i = 0; i < argc; i++)
		if (act_on(argv[i], a->yes, discard, "its changes are dropped") != 0)
			status = EXIT_CARREL;
	return status;
}

static int cmd_rm(void *args, int argc, char **argv)
{
	const struct discard_args *a = args;
	int status = 0;

	for (int i = 0; i < argc; i++)
		if (act_on(argv[i], a->yes, remove_record, "its record is removed") != 0)
			status = EXIT_CARREL;
	return status;
}

static const struct opt discard_opts[] = {
	OPT_FLAG('y', "yes", struct discard_args, yes, "do not ask"),
	OPT_END,
};

const struct cmd cmd_discard_entry = {
	.name = "discard",
	.args = "BOX...",
	.about = "drop what a box changed in its copy of the workspace",
	.detail = "For boxes that were started with `--overlay` and have ended. Nothing on the "
		  "host changes. The rest of the record stays; `carrel rm` removes that.",
	.opts = discard_opts,
	.size = sizeof(struct discard_args),
	.takes = TAKES_BOX,
	.many = true,
	.ended = true,
	.run = cmd_discard,
};

const struct cmd cmd_rm_entry = {
	.name = "rm",
	.args = "BOX...",
	.about = "remove the record of a box that has ended",
	.detail =
		"With its plan, events, result and what it changed in a copy of the workspace. "
		"If that is neither applied nor discarded, it asks first.",
	.opts = discard_opts,
	.size = sizeof(struct discard_args),
	.takes = TAKES_BOX,
	.many = true,
	.ended = true,
	.run = cmd_rm,
};
