/*
 * cli/cmd-instances.c - carrel instances: the list, reset, and what the other words share
 */
#include "cli/cmd.h"
#include "cli/confirm.h"
#include "cli/instances.h"
#include "cli/opt.h"
#include "cli/table.h"
#include "harness/harness.h"
#include "plan/request.h"
#include "run/agent.h"
#include "host/survey.h"
#include "state/agreed.h"
#include "state/instance.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- shared ---- */

enum { SHORTEST_ID = 4 }; /* a shorter word may be a file's name */

bool instances_is_id(const char *word)
{
	struct fault ignored = { 0 };
	instance_vec all = { 0 };
	size_t n = strlen(word);

	/* A shorter word is a file: with "a" for an ID, `take a b` would mean b alone. */
	if (n < SHORTEST_ID || n > 16 || strspn(word, "0123456789abcdef") != n)
		return false;
	if (n == 16 || instance_list(false, &all, &ignored) < 0)
		return true;
	vec_each(i, &all)
		if (str_starts(i->id, word))
			return true;
	return false;
}

static int none_here(const struct project *p, struct fault *f)
{
	fault_set(f, 0, "nothing is kept for %s yet", str_visible(p->root));
	return fault_fix(f,
		"`carrel` there begins it; `carrel instances` lists what there is.");
}

static int pick_here(struct instance *ret, struct fault *f)
{
	instance_vec all = { 0 };
	const char *dir;
	struct project p;
	int rc = agent_workspace(&(struct request){ 0 }, &dir, f);

	if (rc == 0)
		rc = project_find(dir, &p, f);
	if (rc == 0)
		rc = instance_list(false, &all, f);
	if (rc < 0)
		return rc;
	if (p.note)
		cmd_note(p.note);
	vec_each(i, &all)
		if (!strcmp(i->id, p.id)) {
			*ret = *i;
			return 0;
		}
	return none_here(&p, f);
}

int instances_pick(const char *id, struct instance *ret, struct fault *f)
{
	struct instance i;
	int rc = id ? instance_find(id, &i, f) : pick_here(&i, f);

	if (rc < 0)
		return rc;
	if (i.problem)
		return fault_set(f, 0, "%s %s: nothing was touched", str_visible(i.dir),
			i.problem);
	*ret = i;
	return 0;
}

static const struct part *part_named(const struct harness *h, const char *name)
{
	for (const struct part *p = h ? h->parts : NULL; p && p->path; p++)
		if (!strcmp(instance_part_name(p->path), name))
			return p;
	return NULL;
}

void instances_parts(const struct instance *i, known_parts *ret)
{
	vec_each(one, &i->parts) {
		const struct harness *h = harness_find(one->harness);
		const struct part *p = part_named(h, one->name);
		const char *users = p ? path_join(survey_home(), p->path) : NULL,
			   *real = users ? fd_real_path(users) : NULL;

		if (p && !p->whole)
			vec_push(ret,
				((struct known_part){ h, p->path,
					{ AT_FDCWD, one->dir, real ? real : users,
						p->notes } }));
	}
}

const char *instances_size(unsigned long long bytes)
{
	static const char units[] = "KMGTP";
	double n = (double)bytes;
	size_t u = 0;

	if (bytes < 1024)
		return mem_printf("%llu", bytes);
	for (n /= 1024; n >= 1023.5 && u + 2 < sizeof(units); n /= 1024)
		u++;
	return mem_printf(n < 9.95 ? "%.1f%c" : "%.0f%c", n, units[u]);
}

/* ---- the list ---- */

static void json_instance(struct json *j, const struct instance *i)
{
	json_open(j, NULL, '{');
	json_string(j, "id", i->id);
	json_string(j, "root", i->root);
	json_string(j, "dir", i->dir);
	json_open(j, "harnesses", '[');
	vec_each(name, &i->harnesses)
		json_string(j, NULL, *name);
	json_close(j, ']');
	json_number(j, "bytes", (long long)i->bytes);
	json_number(j, "used", (long long)i->used);
	json_number(j, "running", i->running);
	json_string(j, "problem", i->problem);
	json_close(j, '}');
}

static void print_json(const instance_vec *all, struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '[');
	vec_each(i, all)
		json_instance(&j, i);
	json_close(&j, ']');
	str_addc(out, '\n');
}

static struct table_row row_of(const struct instance *i)
{
	struct table_row row = { 0 };
	struct str clients = { 0 };
	char used[32] = "never";
	struct tm tm;

	vec_each(name, &i->harnesses)
		str_addf(&clients, "%s%s", clients.len ? "," : "", str_visible(*name));
	if (i->used && localtime_r(&i->used, &tm))
		strftime(used, sizeof(used), "%Y-%m-%d %H:%M", &tm);
	row.cells[0] = str_visible(i->id);
	row.cells[1] = clients.len ? clients.p : "none";
	row.cells[2] = instances_size(i->bytes);
	row.cells[3] = mem_strdup(used);
	row.cells[4] = i->running ? mem_printf("%u running", i->running) : "none";
	row.cells[5] = i->root ? str_visible(i->root) : "unknown";
	if (i->problem)
		str_addf(&row.below, "  problem: it %s\n", i->problem);
	else if (instance_root(i->root) == ROOT_GONE)
		str_add(&row.below, "  its root is gone: `carrel gc` removes it\n");
	return row;
}

static void print_text(const instance_vec *all, struct str *out)
{
	struct table t = { .columns = 6,
		.heads = { "ID", "CLIENTS", "SIZE", "LAST USED", "BOXES", "PROJECT" },
		.right = { [2] = true } };

	vec_each(i, all)
		vec_push(&t.rows, row_of(i));
	table_print(&t, table_width(STDOUT_FILENO), out);
}

static int list(const struct instances_args *a, int argc, char **argv)
{
	instance_vec all = { 0 };
	struct fault f = { 0 };
	struct str out = { 0 };

	(void)argc, (void)argv;
	if (instance_list(true, &all, &f) < 0)
		return cmd_fail(&f);
	if (!all.n)
		cmd_note("nothing is kept for any project yet");
	if (a->json)
		print_json(&all, &out);
	else
		print_text(&all, &out);
	return cmd_print(&out);
}

/* ---- reset ---- */

static int ask_reset(const struct instance *i, struct fault *f)
{
	int answer = confirm(
		mem_printf(
			"All that is kept for %s is removed (%s): conversations and history, "
			"settings, and what boxes have changed in your configuration.\n"
			"\nRemove it?",
			str_visible(i->root), i->id),
		f);

	if (answer < 0) {
		fault_set(f, 0, "%s was not removed: there is no terminal to ask on", i->id);
		return fault_fix(f, "Pass -y to remove it without asking.");
	}
	return answer ? 0 : fault_set(f, 0, "%s was not removed", i->id);
}

static int reset(const struct instances_args *a, int argc, char **argv)
{
	struct fault f = { 0 };
	struct str out = { 0 };
	struct instance i;
	int rc = instances_pick(argc ? argv[0] : NULL, &i, &f);

	if (rc == 0 && i.running)
		rc = fault_set(&f, 0, "%s: a box of %s runs; end it first", i.id,
			str_visible(i.root));
	if (rc == 0 && !a->yes)
		rc = ask_reset(&i, &f);
	if (rc == 0)
		rc = instance_remove(&i, false, &f);
	if (rc == 0)
		rc = agreed_forget(i.id, &f);
	if (rc < 0)
		return cmd_fail(&f);
	str_addf(&out, "removed %s of %s\n", i.id, str_visible(i.root));
	return cmd_print(&out);
}

/* ---- the command ---- */

static const struct word {
	const char *name;
	int (*run)(const struct instances_args *a, int argc, char **argv);
	int most; /* words after it; -1: any number */
	bool json, dry, yes;
} words[] = {
	{ "list", list, 0, .json = true },
	{ "diff", instances_diff, 1, .json = true },
	{ "take", instances_take, -1, .json = false },
	{ "drop", instances_drop, -1, .yes = true },
	{ "reset", reset, 1, .yes = true },
	{ "set", instances_set, -1, .json = false },
	{ "import", instances_import, 1, .dry = true },
};

static int check_words(const struct word *w, const struct instances_args *a, int argc,
	char **argv, struct fault *f)
{
	const char *wrong = a->json && !w->json ? "--json"
		: a->dry && !w->dry             ? "--dry-run"
		: a->yes && !w->yes             ? "--yes"
						: NULL;

	if (wrong)
		return fault_set(f, 0, "'instances %s' takes no %s", w->name, wrong);
	if (w->most >= 0 && argc > w->most)
		return fault_set(f, 0, "'instances %s' takes nothing more: '%s'", w->name,
			opt_shown(argv[w->most]));
	return 0;
}

static int cmd_instances(void *args, int argc, char **argv)
{
	const char *name = argc ? argv[0] : "list";
	int rest = argc ? argc - 1 : 0;
	struct fault f = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(words[i].name, name) != 0)
			continue;
		if (check_words(&words[i], args, rest, argv + 1, &f) < 0) {
			fault_fix(&f, "See `carrel instances --help`.");
			return cmd_fail(&f);
		}
		return words[i].run(args, rest, argc ? argv + 1 : argv);
	}
	BUG("no word '%s'", name); /* cmd_dispatch() has checked it */
}

static const struct opt instances_opts[] = {
	OPT_FLAG(0, "json", struct instances_args, json, "list, diff: print it as JSON"),
	OPT_FLAG('n', "dry-run", struct instances_args, dry,
		"import: only say what would be done"),
	OPT_FLAG('y', "yes", struct instances_args, yes, "drop, reset: do not ask"),
	OPT_END,
};

const struct cmd cmd_instances_entry = {
	.name = "instances",
	.args = "[WORD [ARG]...]",
	.about = "what is kept for each project",
	.detail =
		"A client that is started without an agent's name keeps conversations and "
		"history per project. It sees your own configuration through a layer that "
		"takes its changes. ID is the beginning of an instance's id; the default is "
		"the one of the working directory.\n"
		"\n"
		"`list`, or no word: all of them, with size, last use, running boxes, and "
		"root.\n"
		"\n"
		"`diff [ID]`: what boxes have changed in your configuration, as the next box "
		"will see it. `!` marks what would run or be obeyed outside of a box if it "
		"were yours. It does not list what the client records about its sessions "
		"(plans, logs, its own `.claude.json`) or about itself (counters, its id).\n"
		"\n"
		"`take [ID] FILE...`: make such a change yours; here an ID needs four digits "
		"or more. carrel shows each file and asks at the terminal; no option says "
		"yes. For a directory (a skill that an agent made, for example) it shows and "
		"takes all changes at once, or nothing if there is a link or a device in it. "
		"Not while a box of the project runs.\n"
		"\n"
		"`drop [ID] FILE...`: forget the boxes' version of a file, or of all files in "
		"a directory, so that the next box sees yours. carrel shows it and asks "
		"first. Use it for a file that you changed after a box did, which a start and "
		"`diff` mention: boxes see their own copy until it is dropped or taken. "
		"carrel keeps no copy of the original, so it cannot merge the two. Not while "
		"a box of the project runs.\n"
		"\n"
		"`reset [ID]`: remove all that is kept for it, and the plans that you agreed "
		"to there.\n"
		"\n"
		"`set [ID] KEY=VALUE...`: settings for this project alone, with an agent's "
		"keys; `KEY=` removes one, and without a KEY they are printed:\n"
		"\n"
		" carrel instances set model=opus env.LOG=debug permissions.skipPrompts=false\n"
		"\n"
		"`import [DIR]`: copy conversations and prompts that another tool kept per "
		"project in DIR (`~/.claudebox`): `projects/HASH/project-root`.",
	.opts = instances_opts,
	.size = sizeof(struct instances_args),
	.takes = TAKES_WORDS,
	.choices = "list|diff|take|drop|reset|set|import",
	.optional = true,
	.run = cmd_instances,
};
