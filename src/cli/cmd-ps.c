/*
 * cli/cmd-ps.c - carrel ps
 */
#include "cli/cmd.h"
#include "cli/box-rows.h"
#include "cli/opt.h"
#include "cli/table.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WATCH_SECONDS = 2 };

struct ps_args {
	bool json, all, watch;
};

static void json_list(struct json *j, const char *key, const box_texts *all)
{
	json_open(j, key, '[');
	vec_each(one, all)
		json_string(j, NULL, *one);
	json_close(j, ']');
}

static void json_known(struct json *j, const char *key, long long value)
{
	if (value >= 0)
		json_number(j, key, value);
	else
		json_raw(j, key, "null");
}

static void json_row(struct json *j, const struct box_row *r)
{
	json_open(j, NULL, '{');
	json_string(j, "name", r->name);
	json_known(j, "pid", r->pid ? r->pid : -1);
	json_string(j, "state", r->state);
	json_known(j, "viewers", r->viewers);
	json_string(j, "agent", r->agent);
	json_string(j, "project", r->project);
	json_string(j, "network", r->network);
	json_known(j, "since", r->since ? r->since : -1);
	json_known(j, "cpu", r->cpu);
	if (r->use.known)
		json_real(j, "cpu_seconds", (double)r->use.cpu_usec / 1e6);
	else
		json_raw(j, "cpu_seconds", "null");
	json_known(j, "memory", r->use.known ? (long long)r->use.memory : -1);
	json_known(j, "connections", r->connections);
	json_known(j, "sent", r->sent);
	json_known(j, "received", r->received);
	json_bool(j, "lost", r->lost);
	json_bool(j, "running", !r->ended);
	json_known(j, "code", r->ended ? r->code : -1);
	json_known(j, "ended", r->ended ? r->ended_at : -1);
	json_string(j, "changes", r->changes);
	json_list(j, "limits", &r->limits);
	json_list(j, "reaches", &r->reaches);
	json_list(j, "ports", &r->ports);
	json_list(j, "waiting", &r->waiting);
	json_close(j, '}');
}

/* "8080:80" for a person: "8080 leads to port 80". */
static const char *port_words(const char *pair)
{
	const char *colon = strchr(pair, ':');

	return colon ? mem_printf("%.*s leads to port %s", (int)(colon - pair), pair,
			       str_visible(colon + 1))
		     : str_visible(pair);
}

static void add_below(struct str *out, const struct box_row *r)
{
	if (r->changes)
		str_addf(out, "  %s\n", r->changes);
	vec_each(limit, &r->limits)
		str_addf(out, "  reached its limit of %s\n", str_visible(*limit));
	if (!r->ended && !r->answered)
		str_add(out, "  does not answer: it is being started, or stopped\n");
	if (r->lost)
		str_add(out,
			"  its network has ended before it: nothing reaches or leaves it\n");
	vec_each(pair, &r->ports)
		str_addf(out, "  127.0.0.1:%s of the box\n", port_words(*pair));
	vec_each(host, &r->waiting)
		str_addf(out, "  waits for your answer about %s: carrel allow %s %s\n",
			str_visible(*host), r->name, str_visible(*host));
}

enum { NAME, AGENT, PROJECT, STATE, AGE, CPU, MEM, NET, COLUMNS };

static struct table_row cells_of(const struct box_row *r)
{
	struct table_row row = { .cells = { [NAME] = str_visible(r->name),
					 [AGENT] = box_agent(r),
					 [PROJECT] = box_project(r),
					 [STATE] = box_state(r),
					 [AGE] = box_age(r),
					 [CPU] = box_cpu(r),
					 [MEM] = box_memory(r),
					 [NET] = box_network(r) } };

	add_below(&row.below, r);
	return row;
}

static void print_text(struct str *out, const box_rows *rows)
{
	struct table t = { .columns = COLUMNS,
		.heads = { "NAME", "AGENT", "PROJECT", "STATE", "AGE", "CPU", "MEM", "NET" } };

	vec_each(r, rows)
		vec_push(&t.rows, cells_of(r));
	table_print(&t, table_width(STDOUT_FILENO), out);
}

/* ---- the command ---- */

static int show(const struct ps_args *a, struct box_samples *before)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };
	struct fault f = { 0 };
	box_rows rows = { 0 };
	const char *problem = xdg_runtime_problem();

	if (box_rows_read(a->all, before, &rows, &f) < 0)
		return cmd_fail(&f);
	if (problem)
		cmd_note(mem_printf("%s, so no boxes can be found: set it to a directory of "
				    "yours, here and where boxes are started",
			problem));
	if (!a->json && !rows.n && !problem)
		cmd_note(a->all ? "no box runs, and none has left a record"
				: "no box runs; `carrel ps -a` also lists those that have "
				  "ended");
	if (!a->json) {
		if (a->watch && isatty(STDOUT_FILENO))
			str_add(&out, "\033[H\033[2J"); /* redraw from the top */
		print_text(&out, &rows);
		return cmd_print(&out);
	}
	json_open(&j, NULL, '[');
	vec_each(r, &rows)
		json_row(&j, r);
	json_close(&j, ']');
	str_addc(&out, '\n');
	return cmd_print(&out);
}

/* Until a signal ends it, or its output has no reader. */
static int watch(const struct ps_args *a, struct box_samples *before)
{
	const struct timespec pause = { .tv_sec = WATCH_SECONDS };
	int status = 0;

	while (status == 0) {
		pid_t pid = fork();

		if (pid == 0)
			exit(show(a, before));
		if (pid < 0 || waitpid(pid, &status, 0) < 0)
			return 125;
		if (status == 0)
			nanosleep(&pause, NULL);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}

static int cmd_ps(void *args, int argc, char **argv)
{
	const struct ps_args *a = args;
	struct box_samples *before = mmap(NULL, sizeof(*before), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct fault f = { 0 };

	(void)argc, (void)argv;
	if (before == MAP_FAILED) {
		fault_set(&f, errno, "get memory");
		return cmd_fail(&f);
	}
	return a->watch ? watch(a, before) : show(a, before);
}

static const struct opt ps_opts[] = {
	OPT_FLAG('a', "all", struct ps_args, all,
		"also those that have ended and left a record"),
	OPT_FLAG(0, "json", struct ps_args, json, "print it as JSON"),
	OPT_FLAG(0, "watch", struct ps_args, watch, "print it again every two seconds"),
	OPT_END,
};

const struct cmd cmd_ps_entry = {
	.name = "ps",
	.about = "list the boxes that run",
	.detail =
		"Each row has the box's name, its agent and project, its state, how long it "
		"has "
		"run or when it ended, its processor time in percent of one processor, its "
		"memory, and its network. The state is `running`, `waits for input`, `ended` "
		"with "
		"the exit code, or `silent`: that box does not answer, because it is starting "
		"or "
		"stopped. A box waits for input if its client says so by a bell, a "
		"notification, its title or its progress, or else if it has been silent for "
		"a while. The percentage is the average since the box began; with `--watch` "
		"it is that of the last two seconds. The network is the first host that the "
		"box "
		"was given and how many more, its mode if it has no list, or the host that is "
		"held for your answer. The lines below a row name the ports of this machine "
		"that "
		"lead into the box, the command that allows what is held, and say if its "
		"network "
		"has ended.\n"
		"\n"
		"A detached box that ended by itself is shown for a day, or until `carrel rm`. "
		"With `-a` every box that left a record is shown, and what changes of an "
		"overlay "
		"workspace it holds. `--json` has more: process ids, counts of bytes and "
		"connections, the whole path of the project.\n"
		"\n"
		"Only boxes of yours that were started with the same `XDG_RUNTIME_DIR` are "
		"found.",
	.opts = ps_opts,
	.size = sizeof(struct ps_args),
	.run = cmd_ps,
};
