/*
 * cli/run-args.c - the options that run, plan and shell share
 *
 * The parsers here check form only: the survey and the resolver check whether a path exists or
 * a variable is set. Each error says what was expected; cli/opt.c adds the option and the
 * value.
 */
#include "cli/run-args.h"
#include "cli/opt.h"
#include "box/engine.h"
#include "manifest/keys.h"
#include "base/fault.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Entries are parsed when all of them are known: net/policy/policy.h. */
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

/* The entry allows the service; `services` puts it on the box's own loopback. */
static int parse_service(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	unsigned short port;
	const char *problem = service_problem(text, &port);

	if (problem)
		return fault_set(f, 0, "%s", problem);
	vec_push(&a->request.services, text);
	vec_push(&a->request.hosts,
		((struct request_host){ .entry = mem_printf("host.internal:%u", port),
			.origin = "--service" }));
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

static int parse_engine(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;

	if (!engine_find(text, f))
		return -1;
	a->request.engine = text;
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

#define STEM(name, t, m, s, p, k) "|" #name "="
#define LIMIT_STEMS               (LIMITS_OF_BOX(STEM) LIMITS_OF_NETWORK(STEM) + 1)

static int unknown_limit(const char *name, struct fault *f)
{
	VEC(const char *) names = { 0 };
	struct str known = { 0 };

	for (const struct limit_row *l = limit_table; l->group != LIMIT_OF_NOBODY; l++) {
		str_addf(&known, "%s%s", names.n ? ", " : "", l->name);
		vec_push(&names, l->name);
	}
	return fault_set(f, 0, "unknown limit '%s'%s, expected KEY=VALUE with one of %s",
		opt_shown(name), opt_suggest(name, names.v, names.n), known.p);
}

static int parse_limit(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	size_t n = strcspn(text, "=");
	const char *name = mem_strndup(text, n);

	for (const struct limit_row *l = limit_table; l->group != LIMIT_OF_NOBODY; l++) {
		if (strcmp(l->name, name) != 0)
			continue;
		if (!text[n] || !limit_set(&a->request.limits, l, text + n + 1))
			return fault_set(f, 0, "expected %s=VALUE with %s %s", name, l->such,
				l->most);
		return 0;
	}
	return unknown_limit(name, f);
}

static int parse_restart(void *args, const char *text, struct fault *f)
{
	struct run_args *a = args;
	const char *digits = text + strlen("on-failure:");
	unsigned long n;
	char *end;

	if (!str_starts(text, "on-failure:") || *digits < '1' || *digits > '9' ||
		(n = strtoul(digits, &end, 10)) > 1000 || *end)
		return fault_set(f, 0, "expected on-failure:N, with N from 1 to 1000");
	a->restarts = (unsigned int)n;
	return 0;
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
	OPT_FLAG('d', "detach", struct run_args, detach,
		"leave the box running on a terminal of its own, and print its name: see "
		"`carrel attach`"),
	OPT_FLAG(0, "foreground", struct run_args, foreground,
		"with -d: do not return before the box has ended, for a service manager, which "
		"is told when the box runs: see `carrel unit`"),
	OPT_CALL(0, "restart", parse_restart, "on-failure:N",
		"with -d: start it again when it fails, at most N times",
		.stems = "on-failure:"),
	OPT_FLAG(0, "headless", struct run_args, headless,
		"no conversation: the AGENT does what its prompt says and ends; always so "
		"without a terminal"),
	OPT_FLAG(0, "prompts", struct run_args, prompts,
		"let the client ask for permission, as it does outside; in a box it asks for "
		"none unless this or `permissions.skipPrompts` says otherwise"),
	OPT_FLAG(0, "events", struct run_args, events,
		"headless, and print the client's event stream, as JSON lines"),
	OPT_STR(0, "workspace", struct run_args, request.workspace, "DIR",
		"the directory to work in, writable in the box; the working directory if not "
		"given",
		.hint = OPT_HINT_DIR),
	OPT_FLAG(0, "overlay", struct run_args, request.overlay,
		"work on a copy-on-write copy of the workspace: nothing on the host changes; "
		"see `carrel diff`"),
	OPT_STR(0, "over", struct run_args, request.over, "BOX",
		"work on the copy of the workspace that BOX, started with --overlay, has left; "
		"what is written there is dropped"),
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
		"host.internal:8080 (of this machine), @github; may be repeated",
		.hint = OPT_HINT_PRESET),
	OPT_CALL(0, "deny", parse_deny, "HOST[:PORT]",
		"refuse a host, whatever allows it; may be repeated", .hint = OPT_HINT_PRESET),
	OPT_FLAG(0, "proxy", struct run_args, request.proxy,
		"with --network allow or open: programs must ask a proxy in the box (HTTP "
		"CONNECT or SOCKS5; its variables are set), for kernels without nf_tables or "
		"its tproxy"),
	OPT_FLAG(0, "ask", struct run_args, request.ask,
		"ask about hosts and ports that are neither allowed nor denied"),
	OPT_CALL(0, "port", parse_port, "[HOST:]BOX",
		"let port HOST of this machine's loopback lead to port BOX of the box; may be "
		"repeated"),
	OPT_CALL(0, "service", parse_service, "PORT",
		"let 127.0.0.1:PORT in the box be the service at 127.0.0.1:PORT of this "
		"machine; may be repeated"),
	OPT_CALL(0, "protect", parse_protect, "PATH|PATTERN",
		"keep a path below the workspace read-only; !PATTERN takes back; may be "
		"repeated",
		.hint = OPT_HINT_FILE),
	OPT_CALL(0, "hide", parse_hide, "PATH|PATTERN",
		"let a path below the workspace read as empty; !PATTERN takes back; may be "
		"repeated",
		.hint = OPT_HINT_FILE),
	OPT_CALL(0, "limit", parse_limit, "KEY=VALUE",
		"limit the box: time=30m, idle=10m, memory=4G, swap=1G, cpus=1.5, io=50 "
		"(weight "
		"at the disks), pids=512, files=1024 (open in each process; a quarter less "
		"than "
		"you may have if not given), scratch=2G (written outside the workspace), "
		"disk=2G (written to an overlay workspace, on disk); of a "
		"network with a broker: connections=100, traffic=5G (in all), rate=10M (a "
		"second). A limit that this machine cannot hold is an error, unless it ends "
		"with a question mark: memory=4G?. May be repeated",
		.stems = LIMIT_STEMS),
	OPT_STR(0, "name", struct run_args, request.name, "NAME",
		"name of the box and its host name; made from the agent's or the workspace's "
		"if not "
		"given"),
	OPT_CALL(0, "uid", parse_uid, "NUMBER",
		"user and group id in the box; outside, its files are yours as always"),
	OPT_CALL(0, "engine", parse_engine, MANIFEST_ENGINES,
		"what builds the box; native is the only engine so far",
		.choices = MANIFEST_ENGINES),
	OPT_STR(0, "record", struct run_args, record, "FILE",
		"record the session to FILE, as an asciicast v2", .hint = OPT_HINT_FILE),
	OPT_FLAG(0, "no-git-config", struct run_args, request.no_git,
		"leave your git name, address, defaults and aliases out of the box"),
	OPT_FLAG(0, "nest", struct run_args, request.nest,
		"let boxes be built inside this one; its walls are weaker for it"),
	OPT_END,
};
