/*
 * cli/cmd-ps.c - carrel ps
 *
 * Locks tell which boxes exist. Each box is asked for the rest, for a short time. A box that
 * does not answer is still listed: it is starting, or stopped.
 */
#include "cli/cmd.h"
#include "cli/instances.h"
#include "cli/opt.h"
#include "cli/table.h"
#include "supervise/control.h"
#include "host/box-use.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "state/workspace.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json-read.h"
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

enum { WAIT_MS = 300, WATCH_SECONDS = 2, MOST_SAMPLES = 1024 };

struct ps_args {
	bool json, all, watch;
};

/*
 * Processor time of each box at the last look. With --watch each look is a process of its own,
 * which leaves all the memory it took; this is what the next one gets from it.
 */
struct sample {
	long init;
	unsigned long long cpu_usec;
	long long at; /* ms */
};

struct samples {
	struct sample v[MOST_SAMPLES];
	unsigned int n;
};

typedef VEC(const char *) texts;

struct row {
	const char *name;
	bool answered;
	long pid;
	struct box_use use;
	long long cpu;                         /* percent of one processor; -1: not known */
	const char *agent, *project, *network; /* NULL: not known */
	const char *state;                     /* in words */
	long long viewers;                     /* of a detached box; -1: nobody can attach */
	long long since;                       /* seconds of the clock; 0: not known */
	long long connections;                 /* that are open; -1: not known */
	long long sent, received;              /* bytes of all connections; -1: not known */
	bool ended;                            /* only its record is there */
	long long code, ended_at;              /* of such a one, as far as it is known; -1 */
	const char *changes;                   /* of its overlay workspace; NULL: none */
	bool lost;                             /* its network ended before it did */
	texts waiting;                         /* hosts that the user is asked about */
	texts ports; /* ports of this machine that lead into it: HOST:BOX */
};

static const char *text(const struct json_value *status, const char *key)
{
	const struct json_value *v = json_member(status, key);

	return v && v->type == JSON_STRING ? v->text : NULL;
}

static long long number(const struct json_value *status, const char *key, long long otherwise)
{
	const struct json_value *v = json_member(status, key);

	return v && v->type == JSON_NUMBER ? strtoll(v->text, NULL, 10) : otherwise;
}

static bool flag(const struct json_value *status, const char *key)
{
	const struct json_value *v = json_member(status, key);

	return v && v->type == JSON_BOOL && v->boolean;
}

static texts list(const struct json_value *status, const char *key)
{
	const struct json_value *v = json_member(status, key);
	texts all = { 0 };

	if (v && v->type == JSON_LIST)
		json_each(one, v)
			if (one->type == JSON_STRING)
				vec_push(&all, one->text);
	return all;
}

static struct row ask_box(const struct registry_box *box)
{
	struct row row = { .name = box->name,
		.pid = box->pid,
		.cpu = -1,
		.connections = -1,
		.viewers = -1,
		.sent = -1,
		.received = -1 };
	const struct json_value *reply, *status;
	struct fault ignored = { 0 };

	if (control_ask(box->name, control_ask_status(), WAIT_MS, &reply, &ignored) < 0)
		return row;
	status = json_member(reply, "status");
	row.answered = true;
	row.pid = (long)number(status, "pid", row.pid);
	row.use.init = (pid_t)number(status, "init", 0);
	row.use.cgroup = text(status, "cgroup");
	row.state = text(status, "state");
	row.viewers = number(status, "viewers", -1);
	row.agent = text(status, "agent");
	row.project = text(status, "project");
	row.network = text(status, "network");
	row.since = number(status, "since", 0);
	row.connections = number(status, "connections", -1);
	row.sent = number(status, "sent", -1);
	row.received = number(status, "received", -1);
	row.lost = flag(status, "lost");
	row.waiting = list(status, "waiting");
	row.ports = list(status, "ports");
	return row;
}

static void json_list(struct json *j, const char *key, const texts *all)
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

static void json_row(struct json *j, const struct row *r)
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
	json_list(j, "ports", &r->ports);
	json_list(j, "waiting", &r->waiting);
	json_close(j, '}');
}

/* "12s", "3m", "2h10m", "4d3h". */
static const char *age(long long since)
{
	long long s = (long long)time(NULL) - since;

	if (!since || s < 0)
		return "unknown";
	if (s < 60)
		return mem_printf("%llds", s);
	if (s < 3600)
		return mem_printf("%lldm", s / 60);
	if (s < 86400)
		return mem_printf("%lldh%lldm", s / 3600, s % 3600 / 60);
	return mem_printf("%lldd%lldh", s / 86400, s % 86400 / 3600);
}

static const char *or_word(const char *s, const char *word)
{
	return s && *s ? str_visible(s) : word;
}

/* "8080:80" for a person: "8080 leads to port 80". */
static const char *port_words(const char *pair)
{
	const char *colon = strchr(pair, ':');

	return colon ? mem_printf("%.*s leads to port %s", (int)(colon - pair), pair,
			       str_visible(colon + 1))
		     : str_visible(pair);
}

static const char *size_or_word(long long bytes)
{
	return bytes >= 0 ? instances_size((unsigned long long)bytes) : "uncounted";
}

static void add_below(struct str *out, const struct row *r)
{
	if (r->ended)
		str_addf(out, "  ended %s%s%s%s\n",
			r->ended_at > 0 ? mem_printf("%s ago", age(r->ended_at))
					: "at an unknown time",
			r->code >= 0 ? mem_printf(" with %lld", r->code) : "",
			r->changes ? ", " : "", r->changes ? r->changes : "");
	else if (!r->answered)
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

enum { BOX, STATE, PID, SINCE, CPU, MEM, AGENT, NET, SENT, RECVD, PROJECT, COLUMNS };

static const char *state_words(const struct row *r)
{
	if (r->ended)
		return r->code >= 0 ? mem_printf("ended %lld", r->code) : "ended";
	return r->answered ? or_word(r->state, "running") : "silent";
}

/* If a box does not answer, nothing more is known of it. */
static struct table_row cells_of(const struct row *r)
{
	struct table_row row = { 0 };

	for (size_t i = 0; i < COLUMNS; i++)
		row.cells[i] = "";
	row.cells[BOX] = str_visible(r->name);
	row.cells[STATE] = state_words(r);
	row.cells[PID] = r->pid ? mem_printf("%ld", r->pid) : r->ended ? "" : "unknown";
	add_below(&row.below, r);
	if (r->ended) {
		row.cells[AGENT] = or_word(r->agent, "none");
		row.cells[PROJECT] = or_word(r->project, "unknown");
	}
	if (!r->answered)
		return row;
	row.cells[SINCE] = age(r->since);
	row.cells[CPU] = r->cpu >= 0 ? mem_printf("%lld%%", r->cpu) : "n/a";
	row.cells[MEM] = r->use.known ? instances_size(r->use.memory) : "n/a";
	row.cells[AGENT] = or_word(r->agent, "none");
	row.cells[NET] = or_word(r->network, "unknown");
	row.cells[SENT] = size_or_word(r->sent);
	row.cells[RECVD] = size_or_word(r->received);
	row.cells[PROJECT] = or_word(r->project, "unknown");
	return row;
}

typedef VEC(struct row) row_vec;

static void print_text(struct str *out, const row_vec *rows)
{
	struct table t = { .columns = COLUMNS,
		.heads = { "BOX", "STATE", "PID", "SINCE", "CPU", "MEM", "AGENT", "NET", "SENT",
			"RECVD", "PROJECT" },
		.right = { [PID] = true,
			[CPU] = true,
			[MEM] = true,
			[SENT] = true,
			[RECVD] = true } };

	vec_each(r, rows)
		vec_push(&t.rows, cells_of(r));
	table_print(&t, table_width(STDOUT_FILENO), out);
}

/* What a box with an overlay workspace left; before, whose name it is. */
static const char *changes_of(const struct workspace *w, const struct json_value *result)
{
	const char *state = w->applied    ? "applied"
		: workspace_holds(w->box) ? "not applied"
					  : NULL;

	if (!state)
		return NULL;
	if (!result)
		return mem_printf("changes %s", state);
	return mem_printf("%lld changed, %lld added, %lld deleted, %s",
		number(result, "changed", 0), number(result, "added", 0),
		number(result, "deleted", 0), state);
}

static struct row row_of_record(const struct box_record *record)
{
	struct row row = { .name = record->name,
		.ended = true,
		.cpu = -1,
		.code = -1,
		.ended_at = record->used,
		.connections = -1,
		.sent = -1,
		.received = -1 };
	struct fault ignored = { 0 };
	const struct json_value *begun = boxes_json(record->name, "box.json", &ignored);
	const struct json_value *result = boxes_json(record->name, "result.json", &ignored);
	struct workspace w;

	row.agent = text(begun, "agent");
	row.project = text(begun, "workspace");
	row.since = number(begun, "started", 0);
	row.code = number(result, "code", -1);
	row.ended_at = number(result, "ended", row.ended_at);
	if (workspace_open(record->name, &w, &ignored) == 0) {
		row.changes = changes_of(&w, result);
		workspace_close(&w);
	}
	return row;
}

static bool is_running(const registry_boxes *boxes, const char *name)
{
	vec_each(box, boxes)
		if (!strcmp(box->name, name))
			return true;
	return false;
}

static int add_ended(const registry_boxes *boxes, row_vec *rows, struct fault *f)
{
	box_records records = { 0 };
	int rc = boxes_list(&records, f);

	vec_each(record, &records)
		if (rc == 0 && !record->problem && !is_running(boxes, record->name))
			vec_push(rows, row_of_record(record));
	return rc;
}

/* ---- what they use ---- */

static struct sample *sample_of(struct samples *all, long init)
{
	for (unsigned int i = 0; i < all->n; i++)
		if (all->v[i].init == init)
			return &all->v[i];
	/* More boxes than that: those show their average. */
	if (all->n == MOST_SAMPLES)
		return NULL;
	all->v[all->n] = (struct sample){ .init = init };
	return &all->v[all->n++];
}

/* Percent of one processor since the last look, or at the first since the box began. */
static void add_cpu(struct row *r, struct samples *before)
{
	const long long now = clock_ms();
	struct sample *s = sample_of(before, r->use.init);
	unsigned long long used = r->use.cpu_usec;
	long long ms = ((long long)time(NULL) - r->since) * 1000;

	if (s && s->at && now > s->at && used >= s->cpu_usec) {
		used -= s->cpu_usec;
		ms = now - s->at;
	}
	if (s)
		*s = (struct sample){ r->use.init, r->use.cpu_usec, now };
	r->cpu = (long long)(used / 10) / (ms < 1000 ? 1000 : ms);
}

static void add_uses(row_vec *rows, struct samples *before)
{
	struct box_use *uses = mem_alloc((rows->n + 1) * sizeof(*uses));

	for (size_t i = 0; i < rows->n; i++)
		uses[i] = rows->v[i].use;
	box_use_read(uses, rows->n);
	for (size_t i = 0; i < rows->n; i++) {
		rows->v[i].use = uses[i];
		if (uses[i].known && rows->v[i].since)
			add_cpu(&rows->v[i], before);
	}
}

/* ---- the command ---- */

static int show_boxes(const struct ps_args *a, struct samples *before)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };
	registry_boxes boxes = { 0 };
	struct fault f = { 0 };
	row_vec rows = { 0 };
	const char *problem = xdg_runtime_problem();

	if (registry_list(&boxes, &f) < 0)
		return cmd_fail(&f);
	if (problem)
		cmd_note(mem_printf("%s, so no boxes can be found: set it to a directory of "
				    "yours, here and where boxes are started",
			problem));
	vec_each(box, &boxes)
		vec_push(&rows, ask_box(box));
	add_uses(&rows, before);
	if (a->all && add_ended(&boxes, &rows, &f) < 0)
		return cmd_fail(&f);
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
static int watch(const struct ps_args *a, struct samples *before)
{
	const struct timespec pause = { .tv_sec = WATCH_SECONDS };
	int status = 0;

	while (status == 0) {
		pid_t pid = fork();

		if (pid == 0)
			exit(show_boxes(a, before));
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
	struct samples *before = mmap(NULL, sizeof(*before), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct fault f = { 0 };

	(void)argc, (void)argv;
	if (before == MAP_FAILED) {
		fault_set(&f, errno, "get memory");
		return cmd_fail(&f);
	}
	return a->watch ? watch(a, before) : show_boxes(a, before);
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
		"Each row has the box's state (running, waits for input, silent, or ended with "
		"its exit code), the supervising process, how long the box has run, its "
		"processor time in percent of one processor, its memory, its agent, its "
		"network, the bytes that all its connections have sent and received, and the "
		"project. The percentage is the average since the box began; with `--watch` "
		"it is that of the last two seconds. The lines below a row name the ports of "
		"this machine that lead into the box, a host that waits for your answer with "
		"the command that allows it, and say if its network has ended. A box that "
		"does not answer is starting, or stopped. Nothing is counted if the network "
		"is `host`. If a row does not fit into the terminal, the project is on a line "
		"of its own.\n"
		"\n"
		"With `-a` also boxes that have ended: when, with which exit code, and what "
		"changes of an overlay workspace they hold.\n"
		"\n"
		"Only boxes of yours that were started with the same `XDG_RUNTIME_DIR` are "
		"found.",
	.opts = ps_opts,
	.size = sizeof(struct ps_args),
	.run = cmd_ps,
};
