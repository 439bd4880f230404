/*
 * cli/cmd-race.c - carrel race
 */
#include "cli/cmd.h"
#include "cli/confirm.h"
#include "cli/opt.h"
#include "cli/race.h"
#include "cli/table.h"
#include "state/boxes.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 3, EXIT_NONE = 1 };

struct race_args {
	const char *agent;
	const char *count, *check, *name, *manifest, *apply;
	bool yes, json;
};

/* ---- while they run ---- */

static const char *time_text(long long ms)
{
	return mem_printf("%lld:%02lld", ms / 60000, ms / 1000 % 60);
}

static const char *end_text(const struct race_box *b)
{
	return b->code < 0 ? "-" : b->code == 0 ? "ok" : mem_printf("exit %d", b->code);
}

static const char *check_text(const struct race_box *b)
{
	return b->check < 0 ? "-" : b->check == 0 ? "pass" : "fail";
}

static const char *change_text(const struct race_box *b)
{
	if (!b->files)
		return "nothing";
	return mem_printf("%zu %s +%zu -%zu", b->files, b->files == 1 ? "file" : "files",
		b->added, b->removed);
}

static bool is_live(void)
{
	const char *term = getenv("TERM");

	return table_width(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* On a terminal the last line says what runs, and for how long. */
static void draw_running(const struct race *r)
{
	void *mark = mem_mark();
	struct str line = { 0 };
	size_t width = table_width(STDERR_FILENO);

	vec_each(b, &r->boxes) {
		const char *one = mem_printf("  %s %s%s", b->name,
			b->phase == RACE_CHECKS ? "checks " : "", time_text(race_spent(b)));

		if (b->pid && line.len + strlen(one) < width)
			str_add(&line, one);
	}
	if (is_live())
		(void)dprintf(STDERR_FILENO, "\r%s\033[K", line.len ? line.p : "");
	mem_reset(mark);
}

static void report_phase(const struct race *r, const struct race_box *b)
{
	(void)r;
	if (is_live())
		(void)dprintf(STDERR_FILENO, "\r\033[K");
	if (b->phase == RACE_RUNS)
		cmd_note(mem_printf("%s started", b->name));
	else if (b->phase == RACE_CHECKS)
		cmd_note(mem_printf("%s ended: %s after %s, %s; checking", b->name, end_text(b),
			time_text(b->ms), change_text(b)));
	else if (b->check >= 0)
		cmd_note(mem_printf("%s checked: %s", b->name, check_text(b)));
	else
		cmd_note(mem_printf("%s ended: %s after %s, %s", b->name, end_text(b),
			time_text(b->ms), change_text(b)));
}

/* ---- at the end ---- */

static void add_row(struct table *t, size_t i, const struct race_box *b, bool best)
{
	struct table_row row = { 0 };

	row.cells[0] = mem_printf("%2zu", i + 1);
	row.cells[1] = b->name;
	row.cells[2] = end_text(b);
	row.cells[3] = check_text(b);
	row.cells[4] = time_text(b->ms);
	row.cells[5] = change_text(b);
	row.cells[6] = best ? "best" : "";
	vec_push(&t->rows, row);
}

static int show_table(const struct race *r, int best)
{
	struct table t = { .columns = 7,
		.heads = { " #", "box", "ended", "check", "time", "change", "" },
		.right = { [0] = true, [4] = true } };
	struct str out = { 0 };

	for (size_t i = 0; i < r->boxes.n; i++)
		add_row(&t, i, &r->boxes.v[i], (int)i == best);
	table_print(&t, table_width(STDOUT_FILENO), &out);
	return cmd_print(&out);
}

static int show_json(const struct race *r, int best)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	json_open(&j, NULL, '{');
	json_string(&j, "best", best < 0 ? NULL : r->boxes.v[best].name);
	json_open(&j, "boxes", '[');
	vec_each(b, &r->boxes) {
		json_open(&j, NULL, '{');
		json_string(&j, "box", b->name);
		json_number(&j, "code", b->code);
		if (b->check < 0)
			json_raw(&j, "check", "null");
		else
			json_number(&j, "check", b->check);
		json_number(&j, "ms", b->ms);
		json_count(&j, "files", b->files);
		json_count(&j, "added", b->added);
		json_count(&j, "removed", b->removed);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	str_addc(&out, '\n');
	return cmd_print(&out);
}

static void advise(const struct race *r, int best)
{
	vec_each(b, &r->boxes)
		if (b->code != 0 || b->check > 0)
			cmd_note(mem_printf("what %s said is in %s/%s", b->name,
				boxes_shown(b->name),
				b->code != 0 ? "output.log" : "check.log"));
	if (best >= 0)
		cmd_note(mem_printf("see it with `carrel diff %s`, take it with `carrel apply "
				    "%s`",
			r->boxes.v[best].name, r->boxes.v[best].name));
}

/* ---- */

static int read_count(const char *text, size_t *ret, struct fault *f)
{
	char *end;
	unsigned long n = text ? strtoul(text, &end, 10) : COUNT;

	if (text && (!*text || *end || *text == '-' || n < 1 || n > RACE_MOST))
		return fault_set(f, 0, "-n '%s': a number from 1 to %d", str_visible(text),
			RACE_MOST);
	*ret = n;
	return 0;
}

static const char *const *run_words(const struct race_args *a, char **rest)
{
	VEC(const char *) words = { 0 };

	if (a->manifest) {
		vec_push(&words, "-m");
		vec_push(&words, a->manifest);
	}
	if (a->agent)
		vec_push(&words, a->agent);
	if (*rest)
		vec_push(&words, "--");
	while (*rest)
		vec_push(&words, *rest++);
	vec_push(&words, NULL);
	return words.v;
}

static int ask_race(const struct race_args *a, size_t n, struct fault *f)
{
	const char *what = a->agent ? a->agent : "this command";
	int rc;

	if (a->yes)
		return 0;
	rc = confirm(
		mem_printf("Start %zu boxes of %s at once, unasked, each on a copy of this "
			   "directory?",
			n, str_visible(what)),
		f);
	if (rc < 0)
		return fault_fix(f, "Pass -y to start without asking.");
	return rc ? 0 : fault_set(f, ECANCELED, "start the boxes");
}

static int take_best(const struct race *r, int best)
{
	char *const argv[] = { "apply", (char *)r->boxes.v[best].name, NULL };

	return cmd_dispatch(2, (char **)argv);
}

static int finish_race(const struct race_args *a, const struct race *r)
{
	int best = race_best(r), code = a->json ? show_json(r, best) : show_table(r, best);

	if (code != 0)
		return code;
	if (best < 0) {
		advise(r, best);
		cmd_note(r->check ? "no box changed something and passed the check"
				  : "no box ended well and changed something");
		return EXIT_NONE;
	}
	if (a->apply)
		return take_best(r, best);
	advise(r, best);
	return 0;
}

static int prepare_race(const struct race_args *a, char **rest, struct race *r, struct fault *f)
{
	size_t n = 0;
	int rc = read_count(a->count, &n, f);

	if (rc == 0 && !a->agent && !*rest)
		rc = fault_set(f, 0, "'race' needs an agent, or a command after '--'");
	if (rc == 0 && a->apply && strcmp(a->apply, "best") != 0)
		rc = fault_set(f, 0, "--apply '%s': it can only be 'best'",
			str_visible(a->apply));
	if (rc == 0)
		rc = race_name(r, a->name ? a->name : a->agent ? a->agent : "race", n, f);
	r->run = run_words(a, rest);
	r->check = a->check;
	r->tell = report_phase;
	r->tick = draw_running;
	return rc < 0 ? rc : ask_race(a, n, f);
}

static int cmd_race(void *args, int argc, char **argv)
{
	struct race r = { 0 };
	struct fault f = { 0 };
	int rc = prepare_race(args, argv, &r, &f);

	(void)argc;
	if (rc == 0)
		rc = race_run(&r, &f);
	if (rc == -EINTR && !f.err) {
		cmd_note("interrupted; all boxes have ended");
		return 130;
	}
	return rc < 0 ? cmd_fail(&f) : finish_race(args, &r);
}

static const struct opt race_opts[] = {
	OPT_STR('n', "count", struct race_args, count, "N", "how many boxes; 3 if not given"),
	OPT_STR(0, "check", struct race_args, check, "CMD",
		"a command line for `sh` that is run on what each box has left, without a "
		"network; exit code 0 is a pass"),
	OPT_STR(0, "apply", struct race_args, apply, "best",
		"`carrel apply` the best one at the end"),
	OPT_STR(0, "name", struct race_args, name, "NAME",
		"call the boxes NAME-1, NAME-2, ...; the agent's name if not given"),
	OPT_STR('m', "manifest", struct race_args, manifest, "FILE",
		"read FILE instead of ./carrel.json", .hint = OPT_HINT_FILE),
	OPT_FLAG('y', "yes", struct race_args, yes, "start without asking"),
	OPT_FLAG(0, "json", struct race_args, json, "print the result as JSON"),
	OPT_END,
};

const struct cmd cmd_race_entry = {
	.name = "race",
	.args = "[AGENT] [-- CMD [ARG]...]",
	.about = "run an agent several times at once on copies, and compare",
	.detail =
		"Starts N boxes as `carrel run --overlay` does, all at once: nothing on the "
		"host "
		"changes. When a box has ended, the command of `--check` is run in another box "
		"that sees the workspace as the first has left it, and has no network; what it "
		"writes is dropped. What boxes and checks print is kept in their records, as "
		"`output.log` and `check.log`.\n"
		"\n"
		"At the end a table shows how each ended, whether its check passed, how long "
		"it "
		"took, and how much it changed. The best is the one that ended well, passed, "
		"and "
		"changed the fewest lines, but something. It can be taken at once with "
		"`--apply "
		"best`, or any of them with `carrel apply`. The exit code is 1 if there is no "
		"best one.\n"
		"\n"
		"Ctrl-C ends all boxes; what they changed until then is kept.\n"
		"\n"
		"  carrel race -n 5 fixer --check 'make test'\n"
		"  carrel race -y -n 2 --apply best --check ./test.sh fixer",
	.opts = race_opts,
	.size = sizeof(struct race_args),
	.takes = TAKES_LINE,
	.agents = true,
	.run = cmd_race,
};
