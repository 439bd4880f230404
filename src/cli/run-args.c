/*
 * cli/run-args.c - the options that run, plan and shell share, and what they lead to
 *
 * The parsers here check form only: whether a path exists or a variable is set is
 * the survey's and the resolver's to say. Each complaint says what was expected;
 * the option and the value are put in front of it by cli/opt.c.
 */
#include "cli/run-args.h"
#include "cli/cmd.h"
#include "cli/confirm.h"
#include "cli/opt.h"
#include "plan/plan.h"
#include "manifest/trust.h"
#include "run/agent.h"
#include "run/run.h"
#include "base/fault.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- mounts ---- */

#define MOUNT_FORM "SRC[:DST[:ro|rw]]"

enum { MOUNT_SOURCE, MOUNT_TARGET, MOUNT_MODE, MOUNT_PARTS };

/*
 * Split at colons; \: is a colon and \\ a backslash of the path, any other backslash
 * is itself. The number of parts, or more than max when there are too many.
 */
static size_t split_mount(const char *text, const char **parts, size_t max)
{
	struct str part = { 0 };
	size_t n = 0;

	for (const char *at = text;; at++) {
		if (at[0] == '\\' && (at[1] == ':' || at[1] == '\\')) {
			str_addc(&part, *++at);
		} else if (*at && *at != ':') {
			str_addc(&part, *at);
		} else {
			if (n == max)
				return max + 1;
			parts[n++] = part.len ? part.p : "";
			part = (struct str){ 0 };
			if (!*at)
				return n;
		}
	}
}

static int bad_target(const char *source, const char *target, struct fault *f)
{
	bool is_mode = !strcmp(target, "ro") || !strcmp(target, "rw");

	fault_set(f, 0, "DST '%s' is not an absolute path, expected " MOUNT_FORM,
		opt_shown(target));
	if (is_mode)
		fault_fix(f, "To have it at the same path in the box, write '%s::%s'.",
			opt_shown(source), target);
	return -EINVAL;
}

static int parse_mount(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	const char *parts[MOUNT_PARTS] = { "", "", "ro" };
	unsigned int mode;

	if (split_mount(text, parts, MOUNT_PARTS) > MOUNT_PARTS)
		return fault_set(f, 0,
			"too many parts, expected " MOUNT_FORM
			" with \\: for a colon in a path");
	if (!*parts[MOUNT_SOURCE])
		return fault_set(f, 0, "SRC is empty, expected " MOUNT_FORM);
	if (*parts[MOUNT_TARGET] && *parts[MOUNT_TARGET] != '/')
		return bad_target(parts[MOUNT_SOURCE], parts[MOUNT_TARGET], f);
	if (opt_choose("ro|rw", parts[MOUNT_MODE], &mode, f) < 0)
		return fault_set(f, 0, "mode '%s': %s", opt_shown(parts[MOUNT_MODE]),
			mem_strdup(f->text));
	vec_push(&a->request.mounts,
		((struct request_mount){
			.source = parts[MOUNT_SOURCE],
			.target = *parts[MOUNT_TARGET] ? parts[MOUNT_TARGET] : NULL,
			.rw = mode == 1,
			.why = "--mount",
		}));
	return 0;
}

/* ---- environment ---- */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS  "0123456789"

static int parse_env(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	size_t n = strspn(text, LETTERS DIGITS);
	const char *name;

	if (n == 0 || strchr(DIGITS, text[0]) || (text[n] && text[n] != '='))
		return fault_set(f, 0,
			"expected NAME or NAME=VALUE, where NAME is letters, "
			"digits and '_' and begins with no digit");
	name = mem_strndup(text, n);
	vec_push(&a->request.env,
		((struct request_env){
			.name = name,
			.how = text[n] ? ENV_LITERAL : ENV_COPY,
			.value = text[n] ? text + n + 1 : name,
			.from = ENV_ASKED,
			.why = mem_printf("--env %s", name),
		}));
	return 0;
}

/* ---- network ---- */

static int parse_network(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	unsigned int choice;
	int rc = opt_choose("none|allow|open|host", text, &choice, f);

	if (rc < 0)
		return rc;
	a->request.network = (enum network)choice;
	a->request.network_said = true;
	return 0;
}

/* The language of entries is read when all are there: net/policy.h. */
static int parse_allow(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;

	(void)f;
	vec_push(&a->request.hosts,
		((struct request_host){ .entry = text, .origin = "--allow" }));
	return 0;
}

static int parse_deny(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;

	(void)f;
	vec_push(&a->request.hosts,
		((struct request_host){ .entry = text, .origin = "--deny", .deny = true }));
	return 0;
}

static int parse_port(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	struct port_pair pair;
	const char *problem = port_problem(text, &pair);

	if (problem)
		return fault_set(f, 0, "%s", problem);
	vec_push(&a->request.ports, text);
	return 0;
}

/* ---- identity ---- */

static int parse_uid(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	unsigned long long value = 0;

	if (strspn(text, DIGITS) != strlen(text) || !str_parse_size(text, &value) || !value ||
		value > MOST_UID)
		return fault_set(f, 0, "expected a number from 1 to %d", MOST_UID);
	a->request.uid = value;
	return 0;
}

/* ---- patterns ---- */

static int check_pattern(const char *text, struct fault *f)
{
	return text[text[0] == '!'] ? 0
				    : fault_set(f, 0, "expected a path or pattern after '!'");
}

static int parse_protect(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	int rc = check_pattern(text, f);

	if (rc == 0)
		vec_push(&a->request.protect, text);
	return rc;
}

static int parse_hide(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	int rc = check_pattern(text, f);

	if (rc == 0)
		vec_push(&a->request.hide, text);
	return rc;
}

/* ---- limits ---- */

static bool parse_count(const char *text, unsigned long long *ret)
{
	return strspn(text, DIGITS) == strlen(text) && str_parse_size(text, ret);
}

static const struct limit {
	const char *name;
	size_t offset; /* in struct request_limits */
	bool (*parse)(const char *text, unsigned long long *ret);
	unsigned long long max; /* what the kernel or the arithmetic after us can take */
	const char *expected;
} limits[] = {
	{ "time", offsetof(struct request_limits, time), str_parse_duration, 3650 * 86400ULL,
		"a time such as 90s, 30m or 1h30m, at most 3650d" },
	{ "pids", offsetof(struct request_limits, pids), parse_count, 1ULL << 22,
		"a number from 1 to 4194304" },
	{ "files", offsetof(struct request_limits, files), parse_count, 1ULL << 30,
		"a number from 1 to 1073741824" },
	{ "scratch", offsetof(struct request_limits, scratch), str_parse_size, 1ULL << 50,
		"a size such as 512M or 2G, at most 1024T" },
	{ "connections", offsetof(struct request_limits, connections), parse_count,
		MOST_CONNECTIONS, "a number from 1 to 4096" },
	{ "traffic", offsetof(struct request_limits, traffic), str_parse_size, 1ULL << 50,
		"a size such as 500M or 10G, at most 1024T" },
	{ "rate", offsetof(struct request_limits, rate), str_parse_size, 1ULL << 40,
		"a size for each second, such as 500K or 10M, at most 1T" },
};
#define LIMIT_STEMS "time=|pids=|files=|scratch=|connections=|traffic=|rate="

static int unknown_limit(const char *name, struct fault *f)
{
	const char *names[ARRAY_SIZE(limits)];
	struct str known = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		names[i] = limits[i].name;
		str_addf(&known, "%s%s", i ? ", " : "", names[i]);
	}
	return fault_set(f, 0, "unknown limit '%s'%s, expected KEY=VALUE with one of %s",
		opt_shown(name), opt_suggest(name, names, ARRAY_SIZE(limits)), known.p);
}

static int parse_limit(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	size_t n = strcspn(text, "=");
	const char *name = mem_strndup(text, n);

	for (const struct limit *l = limits; l < limits + ARRAY_SIZE(limits); l++) {
		unsigned long long value;

		if (strcmp(l->name, name) != 0)
			continue;
		/* None would be 0, and 0 in a request is the default. */
		if (!text[n] || !l->parse(text + n + 1, &value) || !value || value > l->max)
			return fault_set(f, 0, "expected %s=VALUE with %s", name, l->expected);
		*(unsigned long long *)((char *)&a->request.limits + l->offset) = value;
		return 0;
	}
	return unknown_limit(name, f);
}

/* ---- the table ---- */

_Static_assert(NETWORK_NONE == 0 && NETWORK_ALLOW == 1 && NETWORK_OPEN == 2 &&
		NETWORK_HOST == 3,
	"the order of the choices");

const struct opt run_opts[] = {
	OPT_FLAG('n', "dry-run", struct run_args, dry, "print the plan and stop"),
	OPT_FLAG('y', "yes", struct run_args, yes, "start without asking"),
	OPT_FLAG(0, "json", struct run_args, json, "print the plan as JSON, with -n or `plan`"),
	OPT_STR('m', "manifest", struct run_args, manifest, "FILE",
		"look for AGENT in FILE instead of carrel.json in the workspace",
		.hint = OPT_HINT_FILE),
	OPT_FLAG(0, "headless", struct run_args, headless,
		"no conversation: the AGENT does what its prompt says and ends; always so "
		"without a terminal"),
	OPT_FLAG(0, "events", struct run_args, events,
		"headless, and print the client's event stream, as JSON lines"),
	OPT_STR(0, "workspace", struct run_args, request.workspace, "DIR",
		"the directory to work in, writable in the box; the working directory if not "
		"given",
		.hint = OPT_HINT_DIR),
	OPT_CALL(0, "mount", parse_mount, MOUNT_FORM,
		"show SRC of the host at DST in the box, read-only unless rw; may be repeated",
		.hint = OPT_HINT_FILE),
	OPT_CALL(0, "env", parse_env, "NAME[=VALUE]",
		"set a variable in the box, with no VALUE as it is here; may be repeated",
		.hint = OPT_HINT_ENV),
	OPT_CALL(0, "network", parse_network, "none|allow|open|host",
		"what network the box has: none (the default of a command), the hosts that are "
		"allowed (the default of an agent, with its client's own), the public "
		"Internet, "
		"or the host's own",
		.choices = "none|allow|open|host"),
	OPT_CALL(0, "allow", parse_allow, "HOST[:PORT]",
		"let the box reach a host: example.org, *.example.org:443, 10.1.0.0/16:5432, "
		"host.internal:8080 (of this machine), @github; may be repeated"),
	OPT_CALL(0, "deny", parse_deny, "HOST[:PORT]",
		"refuse a host, whatever allows it; may be repeated"),
	OPT_FLAG(0, "proxy", struct run_args, request.proxy,
		"with --network allow or open: programs must ask a proxy in the box (HTTP "
		"CONNECT or SOCKS5; its variables are set), for kernels without nf_tables or "
		"its tproxy"),
	OPT_FLAG(0, "ask", struct run_args, request.ask,
		"ask about hosts and ports that are neither allowed nor denied"),
	OPT_CALL(0, "port", parse_port, "[HOST:]BOX",
		"let port HOST of this machine's loopback lead to port BOX of the box; may be "
		"repeated"),
	OPT_CALL(0, "protect", parse_protect, "PATH|PATTERN",
		"keep a path below the workspace read-only; !PATTERN takes back; may be "
		"repeated",
		.hint = OPT_HINT_FILE),
	OPT_CALL(0, "hide", parse_hide, "PATH|PATTERN",
		"keep a path below the workspace unreadable; !PATTERN takes back; may be "
		"repeated",
		.hint = OPT_HINT_FILE),
	OPT_CALL(0, "limit", parse_limit, "KEY=VALUE",
		"limit the box: time=30m, pids=512, files=1024 (open in each process), "
		"scratch=2G (written outside the workspace); of a network with a broker: "
		"connections=100, traffic=5G (in all), rate=10M (a second); may be repeated",
		.stems = LIMIT_STEMS),
	OPT_STR(0, "name", struct run_args, request.name, "NAME",
		"name of the box and its host name; made from the agent's or the workspace's "
		"if not "
		"given"),
	OPT_CALL(0, "uid", parse_uid, "NUMBER",
		"user and group id in the box; outside, its files are yours as always"),
	OPT_CHOICE(0, "engine", struct run_args, engine, "native", "what builds the box"),
	OPT_STR(0, "record", struct run_args, record, "FILE",
		"record the session to FILE, as an asciicast v2", .hint = OPT_HINT_FILE),
	OPT_FLAG(0, "nest", struct run_args, request.nest,
		"let boxes be built inside this one; its walls are weaker for it"),
	OPT_END,
};

/* ---- what they lead to ---- */

static int print_plan(const struct plan *p, bool json)
{
	struct str text = { 0 };

	if (json)
		plan_json(p, &text);
	else
		plan_print(p, cmd_colour(STDOUT_FILENO), &text);
	return cmd_print(&text);
}

void run_args_line(struct run_args *a, int argc, char **argv)
{
	if (argc > 0)
		a->request.argv = (const char *const *)argv;
	if (a->agent ? !strcmp(a->agent, "mine") : argc == 0) {
		a->mine = true;
		a->agent = NULL;
	}
}

/* Turn the agent's name, if there is one, into the rest of the request; 0 or an exit code. */
static int load_agent(struct run_args *a, bool showing, struct agent_result *ret)
{
	const bool any = a->agent || a->mine;
	struct fault f = { 0 };
	struct agent_options o = {
		.name = a->agent,
		.manifest = a->manifest,
		.args = a->request.argv,
		.shell = a->shell,
		/* A plan may go to a file and be that of a conversation all the same. */
		.headless = any &&
			(a->headless || a->events || !isatty(STDIN_FILENO) ||
				(!showing && !isatty(STDOUT_FILENO))),
		.events = a->events,
	};

	if (!any && (a->manifest || a->headless || a->events))
		fault_set(&f, 0,
			"-m, --headless and --events are for an agent, not for a command");
	else if ((!any || agent_request(&o, &a->request, ret, &f) == 0) &&
		request_settle(&a->request, &f) == 0)
		return 0;
	if (ret->bad.n)
		return cmd_problems(ret->bad.v, ret->bad.n);
	return cmd_fail(&f);
}

static void note_untrusted(const struct agent_result *agent)
{
	if (agent->untrusted)
		cmd_note(mem_printf("%s is not approved: it can be shown, not started",
			str_visible(agent->untrusted->path)));
}

int run_args_show(struct run_args *a)
{
	struct agent_result agent = { 0 };
	struct fault f = { 0 };
	const struct plan *plan = NULL;
	int code = load_agent(a, true, &agent);

	if (code)
		return code;
	if (run_plan(&a->request, RUN_TO_SHOW, &plan, &f) < 0)
		return cmd_fail(&f);
	note_untrusted(&agent);
	return print_plan(plan, a->json);
}

/* Anything but 0 and nothing at all: who set it wanted nothing to be started. */
static bool dry_by_environment(void)
{
	const char *value = getenv("CARREL_DRY_RUN");

	return value && *value && strcmp(value, "0") != 0;
}

/* What a manifest that is not approved grants, or what changed; before the plan. */
static int show_trust(const struct manifest_file *file, struct trust_state *ret,
	struct str *out, struct fault *f)
{
	int rc = trust_check(file->path, file->bytes, file->size, file->tree, ret, f);

	if (rc < 0)
		return rc;
	str_addf(out, "%s %s:\n", str_visible(file->path),
		ret->is == TRUST_NEW ? "was not approved yet; it grants"
				     : "has changed since you approved it");
	trust_show(ret, out);
	str_addc(out, '\n');
	return 0;
}

/* 0 when the user said yes to the plan, and with it to a manifest that is new or changed. */
static int ask(const struct plan *p, const struct manifest_file *untrusted, struct fault *f)
{
	struct str question = { 0 };
	struct trust_state trust;
	int rc = untrusted ? show_trust(untrusted, &trust, &question, f) : 0;

	if (rc < 0)
		return rc;
	plan_print(p, cmd_colour(STDERR_FILENO), &question);
	str_add(&question,
		untrusted ? "\nApprove the manifest and start this box?" : "\nStart this box?");
	rc = confirm(question.p, f);
	if (rc < 0)
		return rc;
	if (!rc)
		return fault_set(f, 0, "not started");
	return untrusted ? trust_give(untrusted->path, &trust, f) : 0;
}

static int not_approved(const struct agent_result *agent, struct fault *f)
{
	fault_set(f, 0, "%s %s", str_visible(agent->untrusted->path),
		agent->trust.is == TRUST_NEW ? "is not approved, and -y does not approve it"
					     : "has changed since it was approved");
	return fault_fix(f,
		"See what it grants and approve it: carrel trust; or for this once: "
		"CARREL_TRUST=%s",
		agent->trust.hash);
}

/* Plan, show and ask, as far as that is wanted. */
static int agree(const struct run_args *a, const struct agent_result *agent,
	const struct plan **ret, struct fault *f)
{
	int rc;

	if (a->yes)
		return agent->untrusted ? not_approved(agent, f) : 0;
	rc = run_plan(&a->request, RUN_TO_START, ret, f);
	return rc < 0 ? rc : ask(*ret, agent->untrusted, f);
}

/* The exit code for a box that did not come to be; see the manual's EXIT STATUS. */
static int fail_box(const struct fault *f)
{
	cmd_fail(f);
	if (strcmp(f->step, "exec") != 0)
		return EXIT_CARREL;
	return f->err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC;
}

int run_args_start(struct run_args *a)
{
	struct run_options options = { .record = a->record, .note = cmd_note };
	struct agent_result agent = { 0 };
	struct run_result result = { 0 };
	struct fault f = { 0 };
	const struct plan *plan = NULL;
	int code;

	if (a->dry || dry_by_environment())
		return run_args_show(a);
	if (a->json) {
		fault_set(&f, 0, "--json prints a plan and needs -n");
		fault_fix(&f, "Use `carrel plan --json`, or add -n.");
		return cmd_fail(&f);
	}
	code = load_agent(a, false, &agent);
	if (code)
		return code;
	if (agree(a, &agent, &plan, &f) < 0)
		code = cmd_fail(&f);
	else if (run_box(&a->request, plan, &options, &result, &f) < 0)
		code = fail_box(&f);
	run_release(&result.notes);
	vec_each(line, &result.notes)
		cmd_note(*line);
	return code ? code : result.code;
}
