/*
 * cli/cmd-apply.c - carrel apply
 *
 * overlay/apply.h decides and makes the changes; this file asks and reports. A box chose the
 * paths, so they are shown as text that cannot drive the terminal.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "overlay/apply.h"
#include "overlay/changeset.h"
#include "run/box-branch.h"
#include "run/git-base.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "state/workspace.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_CONFLICT = 1 };

struct apply_args {
	bool check, guarded, json;
	const char *branch;
};

struct applying {
	const struct apply_args *args;
	struct workspace w;
	struct apply a;
	struct git_base base;
	struct claim claim;
	bool commits; /* the box has objects or refs of git that the host has not */
};

/* ---- asking ---- */

/*
 * Paths as in git: relative to the working directory if it is in the project, else to its top.
 */
static int take_paths(struct applying *x, int argc, char **argv, struct fault *f)
{
	const char **list = mem_alloc(((size_t)argc + 1) * sizeof(*list));
	const char *cwd = fd_real_path(".");

	for (int i = 0; i < argc; i++) {
		const char *base = cwd && path_within(cwd, x->w.root) ? cwd : x->w.root;
		const char *full = path_clean(path_join(base, argv[i]));

		if (!path_within(full, x->w.root))
			return fault_set(f, 0, "'%s' is not in %s", str_visible(argv[i]),
				str_visible(x->w.root));
		list[i] = *path_below(full, x->w.root) ? path_below(full, x->w.root) : ".";
	}
	x->a.only = argc ? list : NULL;
	return 0;
}

static bool protects(const void *ctx, const char *path, bool dir)
{
	return workspace_protects(ctx, path, dir);
}

static int recover(struct applying *x, struct fault *f)
{
	enum apply_found found;
	int rc = apply_recover(x->w.changes.lower, x->a.state, &found, f);

	if (rc == 0 && found == APPLY_FINISHED)
		cmd_note("an earlier `carrel apply` of this box was interrupted; finished it");
	if (rc == 0 && found == APPLY_UNDONE)
		cmd_note("an earlier `carrel apply` of this box was interrupted; undid it");
	return rc;
}

static bool is_of_commits(const char *path)
{
	return strstr(path, ".git/objects/") || strstr(path, ".git/refs/") ||
		str_ends(path, ".git/packed-refs");
}

static int prepare_apply(struct applying *x, const char *box, struct fault *f)
{
	int rc = workspace_open(box, &x->w, f);

	if (rc == 0)
		rc = registry_claim(box, CLAIM_STRICT, &x->claim, f);
	if (rc < 0)
		return rc;
	x->a.state = boxes_directory(box, false, f);
	if (x->a.state < 0)
		return x->a.state;
	rc = recover(x, f);
	if (rc == 0)
		rc = changeset_find(&x->w.changes, f);
	x->a.set = &x->w.changes;
	x->a.root = x->w.root;
	x->a.protects = protects;
	x->a.protects_ctx = &x->w;
	x->base.w = &x->w;
	x->a.committed = git_base_find;
	x->a.committed_ctx = &x->base;
	x->a.guarded = x->args->guarded;
	x->commits = x->w.repository.upper >= 0;
	vec_each(c, &x->w.changes.all)
		x->commits |= c->git && is_of_commits(c->path);
	return rc;
}

/* ---- reporting ---- */

static const char *const verdicts[] = {
	[APPLY_TAKEN] = "taken",
	[APPLY_MERGED] = "merged",
	[APPLY_THERE] = "there",
	[APPLY_LEFT] = "left",
	[APPLY_CONFLICT] = "conflict",
};

static const char *const kinds[] = {
	[CHANGED_ADDED] = "added",
	[CHANGED_CHANGED] = "changed",
	[CHANGED_DELETED] = "deleted",
};

static const char *box_path(const struct applying *x, const char *path)
{
	return mem_printf("%s/layers/0/upper/%s", boxes_path(x->w.box), path);
}

static int tell_json(const struct applying *x, bool applied)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	json_string(&j, "box", x->w.box);
	json_string(&j, "workspace", x->w.root);
	json_bool(&j, "applied", applied);
	json_count(&j, "git", x->a.git);
	json_open(&j, "changes", '[');
	vec_each(i, &x->a.items) {
		json_open(&j, NULL, '{');
		json_string(&j, "path", i->change->path);
		json_string(&j, "change", kinds[i->change->kind]);
		json_string(&j, "verdict", verdicts[i->verdict]);
		json_bool(&j, "protected", i->is_guarded);
		json_string(&j, "why", i->why);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	str_addc(&out, '\n');
	return cmd_print(&out);
}

static void tell_item(const struct applying *x, const struct apply_item *i)
{
	const char *path = str_visible(i->change->path);

	if (i->verdict == APPLY_MERGED)
		cmd_note(mem_printf("%s changed here since the box started; merged%s", path,
			i->over_committed ? " over its committed version" : ""));
	if (i->verdict == APPLY_TAKEN && i->is_guarded)
		cmd_note(mem_printf("%s is protected, and taken as you said", path));
	if (i->verdict == APPLY_LEFT)
		cmd_note(mem_printf("left out %s: %s", path, i->why));
	if (i->verdict != APPLY_CONFLICT)
		return;
	cmd_note(mem_printf("%s: %s", path, i->why));
	if (i->change->kind != CHANGED_DELETED)
		cmd_note(mem_printf("  yours: %s; the box's: %s",
			str_visible(path_join(x->w.root, i->change->path)),
			str_visible(box_path(x, i->change->path))));
}

static const char *number_of(size_t n, const char *what)
{
	return mem_printf("%zu %s%s", n, what, n == 1 ? "" : "s");
}

static void tell_rest(const struct applying *x)
{
	bool guarded = false;

	vec_each(i, &x->a.items)
		guarded |= i->verdict == APPLY_LEFT && i->is_guarded;
	if (guarded)
		cmd_note("`--include-protected` takes what is left out because it is "
			 "protected; look at it first");
	if (x->commits && !x->a.only)
		cmd_note("what the box did in git is not applied, only files are; "
			 "`--as-branch NAME` brings its commits");
}

static void tell_sum(const struct applying *x, bool applied)
{
	const size_t *n = x->a.count;
	size_t done = n[APPLY_TAKEN] + n[APPLY_MERGED];

	if (n[APPLY_CONFLICT])
		cmd_note(mem_printf("nothing applied: %s",
			number_of(n[APPLY_CONFLICT], "conflict")));
	else if (!done)
		cmd_note("nothing to apply");
	else
		cmd_note(mem_printf("%s %s", number_of(done, "change"),
			applied ? "applied" : "can be applied"));
}

/* ---- */

/* Are the chosen paths all that there is? */
static bool is_all_wanted(const struct applying *x)
{
	size_t n = 0;

	vec_each(c, &x->w.changes.all)
		n += !c->git && strcmp(c->path, ".") != 0;
	return !x->a.only || x->a.items.n == n;
}

static bool is_all_taken(const struct applying *x)
{
	return is_all_wanted(x) && !x->a.count[APPLY_LEFT] && !x->commits;
}

static int apply_box(struct applying *x, struct fault *f)
{
	bool conflict, apply;
	int rc = apply_plan(&x->a, f);

	if (rc < 0)
		return rc;
	conflict = x->a.count[APPLY_CONFLICT] > 0;
	apply = !conflict && !x->args->check;
	if (apply)
		rc = apply_run(&x->a, f);
	if (rc == 0 && apply && is_all_taken(x))
		rc = workspace_applied(x->w.box, f);
	if (rc < 0)
		return rc;
	vec_each(i, &x->a.items)
		tell_item(x, i);
	tell_rest(x);
	tell_sum(x, apply);
	if (x->args->json && tell_json(x, apply) != 0)
		return EXIT_CARREL;
	return conflict ? EXIT_CONFLICT : 0;
}

static int bring_branch(struct applying *x, struct fault *f)
{
	struct box_branch made = { 0 };
	int rc = x->a.only || x->args->check
		? fault_set(f, 0,
			  "--as-branch takes all that the box did: no paths, no --check")
		: box_branch_make(&x->w, x->args->branch, &made, f);

	if (rc < 0)
		return rc;
	cmd_note(mem_printf("branch %s is %.12s: %s that this repository did not have%s",
		x->args->branch, made.commit, number_of(made.commits, "commit"),
		made.rest ? ", the last one with what was not committed" : ""));
	return workspace_applied(x->w.box, f);
}

static int cmd_apply(void *args, int argc, char **argv)
{
	struct applying x = { .args = args };
	struct fault f = { 0 };
	int rc = prepare_apply(&x, argv[0], &f);

	if (rc == 0)
		rc = take_paths(&x, argc - 1, argv + 1, &f);
	if (rc == 0)
		rc = x.args->branch ? bring_branch(&x, &f) : apply_box(&x, &f);
	if (x.claim.name)
		registry_release(&x.claim);
	return rc < 0 ? cmd_fail(&f) : rc;
}

static const struct opt apply_opts[] = {
	OPT_FLAG(0, "check", struct apply_args, check,
		"say what would become of each change, and change nothing"),
	OPT_FLAG(0, "include-protected", struct apply_args, guarded,
		"also take what programs outside would run or obey, and links that lead out of "
		"the project"),
	OPT_STR(0, "as-branch", struct apply_args, branch, "NAME",
		"make the branch NAME of the box's commits and of what it had not committed; "
		"the working tree is not touched"),
	OPT_FLAG(0, "json", struct apply_args, json, "also print what became of each change"),
	OPT_END,
};

const struct cmd cmd_apply_entry = {
	.name = "apply",
	.args = "BOX [PATH]...",
	.about = "take over what a box changed in its copy of the workspace",
	.detail =
		"Makes the files of the workspace what the box with `--overlay` made of its "
		"copy: "
		"all of them, or the given ones and all below them. The box must have ended.\n"
		"\n"
		"What has not changed on the host since the box started is taken. What was "
		"changed on both sides is merged line by line, if carrel kept a copy of what "
		"both began with, or git has one in the commit that was checked out when the "
		"box started; otherwise, or where both changed the same lines, it is a "
		"conflict. With one conflict nothing is applied, and the exit code is 1. "
		"Otherwise all changes are made or none: when `carrel apply` is killed, the "
		"next one for that box finishes or undoes it first.\n"
		"\n"
		"Never taken: devices, FIFOs, sockets, set-user-id and set-group-id bits, and "
		"anything in a `.git`. Left out unless `--include-protected` is given: files "
		"that programs outside run or obey without being asked, paths that "
		"`workspace.protect` names, repositories in disguise, and links that lead out "
		"of the project.\n"
		"\n"
		"With `--as-branch` no file of the working tree changes. The commits that the "
		"box made on the branch it had checked out come to the repository as the new "
		"branch NAME; what it had not committed is one commit more, without what git "
		"ignores. Hooks and configuration that the box wrote are never obeyed, and "
		"every "
		"object is checked.\n"
		"\n"
		"Files that are taken have the time of the apply, so that `make` sees them.",
	.opts = apply_opts,
	.size = sizeof(struct apply_args),
	.takes = TAKES_BOX,
	.many = true,
	.ended = true,
	.hint = OPT_HINT_FILE,
	.run = cmd_apply,
};
