/*
 * cli/cmd-ps.c - carrel ps
 *
 * Which boxes there are, their locks say; all else each is asked for, for a short time. One
 * that does not answer is listed nevertheless: it is being begun, or stopped.
 */
#include "cli/cmd.h"
#include "cli/instances.h"
#include "cli/opt.h"
#include "run/control.h"
#include "state/registry.h"
#include "base/fault.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/xdg.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 300 };

struct ps_args {
	bool json;
};

typedef VEC(const char *) texts;

struct row {
	const char *name;
	long pid;
	const char *agent, *project, *network; /* NULL: not known */
	long long since;                       /* seconds of the clock; 0: not known */
	long long connections;                 /* that are open; -1: not known */
	long long sent, received;              /* bytes, by all of them; -1: not known */
	bool lost;                             /* its network ended before it did */
	texts waiting;                         /* hosts that the user is asked about */
	texts ports; /* of this machine, that lead into it: HOST:BOX */
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

static struct row ask(const struct registry_box *box)
{
	struct row row = { .name = box->name,
		.pid = box->pid,
		.connections = -1,
		.sent = -1,
		.received = -1 };
	const struct json_value *reply, *status;
	struct fault ignored = { 0 };

	if (control_ask(box->name, control_ask_status(), WAIT_MS, &reply, &ignored) < 0)
		return row;
	status = json_member(reply, "status");
	row.pid = (long)number(status, "pid", row.pid);
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
	json_string(j, "agent", r->agent);
	json_string(j, "project", r->project);
	json_string(j, "network", r->network);
	json_known(j, "since", r->since ? r->since : -1);
	json_known(j, "connections", r->connections);
	json_known(j, "sent", r->sent);
	json_known(j, "received", r->received);
	json_bool(j, "lost", r->lost);
	json_list(j, "ports", &r->ports);
	json_list(j, "waiting", &r->waiting);
	json_close(j, '}');
}

/* "12s", "3m", "2h10m", "4d3h". */
static const char *age(long long since)
{
	long long s = (long long)time(NULL) - since;

	if (!since || s < 0)
		return "-";
	if (s < 60)
		return mem_printf("%llds", s);
	if (s < 3600)
		return mem_printf("%lldm", s / 60);
	if (s < 86400)
		return mem_printf("%lldh%lldm", s / 3600, s % 3600 / 60);
	return mem_printf("%lldd%lldh", s / 86400, s % 86400 / 3600);
}

static const char *or_dash(const char *s)
{
	return s && *s ? str_visible(s) : "-";
}

/* "8080:80" for a person: "8080 leads to port 80". */
static const char *port_words(const char *pair)
{
	const char *colon = strchr(pair, ':');

	return colon ? mem_printf("%.*s leads to port %s", (int)(colon - pair), pair,
			       str_visible(colon + 1))
		     : str_visible(pair);
}

static const char *size_or_dash(long long bytes)
{
	return bytes >= 0 ? instances_size((unsigned long long)bytes) : "-";
}

static void print_row(struct str *out, const struct row *r, int name, int agent)
{
	str_addf(out, "%-*s  %7s  %-6s  %-*s  %-5s  %4s  %5s  %5s  %s\n", name,
		str_visible(r->name), r->pid ? mem_printf("%ld", r->pid) : "-", age(r->since),
		agent, or_dash(r->agent), or_dash(r->network),
		r->connections >= 0 ? mem_printf("%lld", r->connections) : "-",
		size_or_dash(r->sent), size_or_dash(r->received), or_dash(r->project));
	if (r->lost)
		str_add(out,
			"  its network has ended before it: nothing reaches or leaves it\n");
	vec_each(pair, &r->ports)
		str_addf(out, "  127.0.0.1:%s of the box\n", port_words(*pair));
	vec_each(host, &r->waiting)
		str_addf(out, "  waits for your answer about %s: carrel allow %s %s\n",
			str_visible(*host), r->name, str_visible(*host));
}

typedef VEC(struct row) row_vec;

static void print_text(struct str *out, const row_vec *rows)
{
	int name = 4, agent = 5;

	vec_each(r, rows) {
		int n = (int)strlen(str_visible(r->name)), a = (int)strlen(or_dash(r->agent));

		name = n > name ? n : name;
		agent = a > agent && a <= 30 ? a : agent;
	}
	if (rows->n)
		str_addf(out, "%-*s  %7s  %-6s  %-*s  %-5s  %4s  %5s  %5s  %s\n", name, "BOX",
			"PID", "SINCE", agent, "AGENT", "NET", "OPEN", "SENT", "RECVD",
			"PROJECT");
	vec_each(r, rows)
		print_row(out, r, name, agent);
}

static int cmd_ps(void *args, int argc, char **argv)
{
	const struct ps_args *a = args;
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };
	registry_boxes boxes = { 0 };
	struct fault f = { 0 };
	row_vec rows = { 0 };

	(void)argc, (void)argv;
	if (registry_list(&boxes, &f) < 0)
		return cmd_fail(&f);
	if (!xdg_runtime())
		cmd_note("XDG_RUNTIME_DIR is not set, so no boxes can be found: set it to a "
			 "directory of yours, here and where boxes are started");
	vec_each(box, &boxes)
		vec_push(&rows, ask(box));
	if (!a->json) {
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

static const struct opt ps_opts[] = {
	OPT_FLAG(0, "json", struct ps_args, json, "print it as JSON"),
	OPT_END,
};

const struct cmd cmd_ps_entry = {
	.name = "ps",
	.about = "list the boxes that run",
	.detail =
		"With the process that supervises it, how long it has run, its agent, its "
		"network, the connections that are open, the bytes that they and earlier ones "
		"have sent and received, and the project. Below it are the "
		"ports "
		"of this machine that lead into the box, a host that it asks about with the "
		"command that allows it, and that its network has ended, where that is so. A "
		"dash is what is not known: the box is just being started, or is stopped; and "
		"nothing is counted where the network is `host`.\n"
		"\n"
		"Only boxes of yours that were started with the same `XDG_RUNTIME_DIR` are "
		"found.",
	.opts = ps_opts,
	.size = sizeof(struct ps_args),
	.run = cmd_ps,
};
