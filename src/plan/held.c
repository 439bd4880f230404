/*
 * plan/held.c - which mechanism holds each limit of a box
 *
 * Theory of operation. A limit on memory, swap, processor time or disk bandwidth needs a
 * control group: an rlimit counts one process, and a box has many. The kernel counts processes
 * by an rlimit as well, but not those of root. The tmpfs, the supervisor and the broker hold
 * theirs everywhere.
 *
 * The supervisor counts what a box writes to layers of its own. What it writes to the user's
 * directories cannot be told from what others write there, so without a copy of the workspace
 * nothing holds that limit.
 *
 * A limit that somebody asked for and that nothing can hold stops the start, unless it is
 * optional. A default exists only where something holds it.
 */
#include "plan/held.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/str.h"

#include <string.h>

enum {
	DEFAULT_PIDS = 4096,
	MOST_FILES = 64 * 1024,
	LEAST_LEFT = 320, /* open files left to the user: more than one message carries */
};

static const struct {
	const char *limit;
	unsigned int controller; /* that holds it; 0: none does */
	const char *other;       /* what holds it without the controller; NULL: nothing */
} holders[] = {
	{ "time", 0, "supervisor" },
	{ "idle", 0, "supervisor" },
	{ "pids", CGROUP_PIDS, "rlimit" }, /* not root's */
	{ "files", 0, "rlimit" },
	{ "scratch", 0, "tmpfs" },
	{ "disk", 0, "supervisor" }, /* of a copy of the workspace */
	{ "memory", CGROUP_MEMORY, NULL },
	{ "swap", CGROUP_SWAP, NULL },
	{ "cpus", CGROUP_CPU, NULL },
	{ "io", CGROUP_IO, NULL },
};

const char *held_on(const struct cgroup_facts *c, unsigned int uid, const struct limit_row *l)
{
	if (l->group == LIMIT_OF_NETWORK)
		return "broker";
	for (size_t i = 0; i < ARRAY_SIZE(holders); i++) {
		if (strcmp(holders[i].limit, l->name) != 0)
			continue;
		if (holders[i].controller & c->holds)
			return "cgroup";
		return holders[i].controller && !uid ? NULL : holders[i].other;
	}
	return NULL;
}

const char *held_by(const struct plan *p, const struct limit_row *l)
{
	if (!limit_is_set(&p->limits, l))
		return NULL;
	return held_on(&p->frame.cgroup, p->frame.host_uid, l);
}

static bool needs_copy(const struct limit_row *l)
{
	return !strcmp(l->name, "disk");
}

static const char *why_not(const struct limit_row *l, const struct cgroup_facts *c)
{
	const char *why = needs_copy(l)
		? "the box works on the workspace itself, and what it writes there cannot be "
		  "told from what others write"
		: c->how == CGROUP_NONE
		? c->why
		: mem_printf("no controller for %s is delegated to you", l->name);

	/* An rlimit would hold it for any other user. */
	return strcmp(l->name, "pids") != 0
		? why
		: mem_printf("the kernel does not count root's processes, and %s", why);
}

/* Nothing holds a limit that was asked for. */
static int not_held(const struct limit_row *l, const struct cgroup_facts *c, struct plan *p,
	struct fault *f)
{
	const char *why = why_not(l, c);

	if (limit_is_optional(&p->limits, l)) {
		vec_push(&p->notices, mem_printf("%s is not limited: %s", l->name, why));
		limit_clear(&p->limits, l);
		return 0;
	}
	fault_set(f, 0, "--limit %s cannot be held here: %s", l->name, why);
	if (needs_copy(l))
		return fault_fix(f,
			"It limits a copy of the workspace (--overlay, or workspace.mode "
			"\"overlay\"). With a question mark (%s=VALUE?) the box starts without "
			"it.",
			l->name);
	return fault_fix(f,
		"`carrel check` says which limits can be held, and what to do for the others. "
		"With a question mark (%s=VALUE?) the box starts without a limit that cannot.",
		l->name);
}

static unsigned long long lesser(unsigned long long a, unsigned long long b)
{
	return a < b ? a : b;
}

/*
 * The kernel counts descriptors in flight over sockets for all of a user's processes together,
 * and compares the count with the sender's own soft limit of open files. A box can send as many
 * as its hard limit plus those of one message. So its limit is lower than that of the user's
 * programs, which can then still send.
 */
static unsigned long long default_files(unsigned long long users)
{
	const unsigned long long left = users / 4 > LEAST_LEFT ? users / 4 : LEAST_LEFT;

	return lesser(users > 2 * LEAST_LEFT ? users - left : users / 2, MOST_FILES);
}

/* The user's own limit also counts the processes of boxes, so a box gets half of it. */
static unsigned long long default_pids(const struct host *h)
{
	return h->uid ? lesser(DEFAULT_PIDS, lesser(h->max_pids, h->pids / 2)) : DEFAULT_PIDS;
}

/* A box may take much of the machine, and never all of it. */
static void add_defaults(const struct host *h, struct plan *p)
{
	struct limits *l = &p->limits;

	if (!l->pids && (h->uid || h->cgroup.holds & CGROUP_PIDS))
		l->pids = default_pids(h);
	if (!l->files)
		l->files = default_files(h->open_files);
	if (!l->memory && h->cgroup.holds & CGROUP_MEMORY)
		l->memory = h->ram / 4 * 3;
	if (!l->swap && h->cgroup.holds & CGROUP_SWAP)
		l->swap = h->swap / 2;
	if (!l->connections && network_is_brokered(p->frame.network))
		l->connections = MOST_CONNECTIONS;
	l->scratch = p->frame.scratch;
}

int held_resolve(const struct request *r, const struct host *h, struct plan *p, struct fault *f)
{
	int rc = 0;

	p->limits = r->limits;
	for (const struct limit_row *l = limit_first(LIMIT_OF_BOX); rc == 0 && l;
		l = limit_next(l))
		if (limit_is_set(&p->limits, l) &&
			(!held_on(&h->cgroup, h->uid, l) || (needs_copy(l) && !p->overlay)))
			rc = not_held(l, &h->cgroup, p, f);
	if (rc == 0)
		add_defaults(h, p);
	return rc;
}
