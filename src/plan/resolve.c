/* plan/resolve.c - from the request and the facts to the plan */
#include "plan/internal.h"
#include "plan/held.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/path.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

enum {
	INSIDE_ROOT_ID = 1000, /* clients refuse to run unattended as uid 0 */
	SCRATCH_INODES = 1000000,
	LARGEST_PAGE = 64 * 1024,
};

#define GIB (1ULL << 30)

int plan_check_workspace(const struct host *h, struct fault *f)
{
	static const char *const never[] = { "/proc", "/dev", "/sys", "/etc" };
	const char *dir = h->workspace.real;

	if (h->workspace.real_kind == KIND_ABSENT)
		return fault_set(f, ENOENT, "workspace %s", str_visible(h->workspace.path));
	if (h->workspace.real_kind != KIND_DIR)
		return fault_set(f, ENOTDIR, "workspace %s", str_visible(h->workspace.path));
	if (path_within(h->home, dir)) {
		fault_set(f, 0, "the workspace %s holds your home directory", str_visible(dir));
		return fault_fix(f,
			"Run carrel in a project's own directory, or name one with "
			"--workspace DIR.");
	}
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (path_within(dir, never[i]) || !dir[1])
			return fault_set(f, 0, "%s cannot be a workspace", str_visible(dir));
	return 0;
}

/*
 * One's own client is the same everywhere, so its boxes and records are named after the
 * project.
 */
static const char *named_after(const struct request *r, const char *workspace)
{
	return r->agent && strcmp(r->agent->name, "mine") != 0 ? r->agent->name
							       : path_base(workspace);
}

int plan_name(const struct request *r, const char *workspace, const char **ret, struct fault *f)
{
	const char *of = named_after(r, workspace);
	char slug[41];
	size_t n = 0;

	if (r->name) {
		size_t len = strlen(r->name);

		if (!len || len > 63 || !isalnum((unsigned char)r->name[0]) ||
			strspn(r->name,
				"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789-") != len)
			return fault_set(f, 0,
				"--name '%s': a name is 1 to 63 letters, digits "
				"and dashes, and begins with a letter or digit",
				str_visible(r->name));
		*ret = r->name;
		return 0;
	}
	for (const char *s = of; *s && n + 1 < sizeof(slug); s++) {
		if (isascii(*s) && isalnum((unsigned char)*s))
			slug[n++] = (char)tolower((unsigned char)*s);
		else if (n && slug[n - 1] != '-')
			slug[n++] = '-';
	}
	while (n && slug[n - 1] == '-')
		n--;
	slug[n] = '\0';
	*ret = mem_printf("carrel-%s", n ? slug : "box");
	return 0;
}

static unsigned long long lesser(unsigned long long a, unsigned long long b)
{
	return a < b ? a : b;
}

/* The kernel allocates whole pages, of 64 KiB at most: round, so that the plan is exact. */
static unsigned long long whole_pages(unsigned long long bytes)
{
	return (bytes + LARGEST_PAGE - 1) / LARGEST_PAGE * LARGEST_PAGE;
}

/* What is written to the tmpfs counts as memory of the box. */
static unsigned long long default_scratch(const struct request *r, const struct host *h)
{
	const unsigned long long share = lesser(h->ram / 4, 8 * GIB);

	if (r->limits.memory && h->cgroup.holds & CGROUP_MEMORY)
		return lesser(share, r->limits.memory / 2);
	return share;
}

void plan_frame(const struct request *r, const struct host *h, struct frame *ret)
{
	const bool own = h->uid && !r->uid;
	const uid_t other = r->uid ? (uid_t)r->uid : INSIDE_ROOT_ID;

	*ret = (struct frame){
		.engine = r->engine ? r->engine : "native",
		.uid = own ? h->uid : other,
		.gid = own ? h->gid : other,
		.host_uid = h->uid,
		.host_gid = h->gid,
		.namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
			CLONE_NEWUTS | CLONE_NEWCGROUP |
			(r->network == NETWORK_HOST ? 0 : CLONE_NEWNET),
		.network = r->network,
		.proxy = r->proxy,
		.low_ports = network_is_brokered(r->network) && request_low_ports(r),
		.nest = r->nest,
		.scratch = whole_pages(r->limits.scratch ? r->limits.scratch
							 : default_scratch(r, h)),
		.scratch_inodes = SCRATCH_INODES,
		.watches = h->watches,
		.cgroup = h->cgroup,
	};
	request_services(r, ret);
	plan_add_early(ret);
}

bool plan_same_frame(const struct frame *a, const struct frame *b)
{
	return !strcmp(a->engine, b->engine) && a->uid == b->uid &&
		a->host_uid == b->host_uid && a->gid == b->gid && a->host_gid == b->host_gid &&
		a->namespaces == b->namespaces && a->network == b->network &&
		a->proxy == b->proxy && a->low_ports == b->low_ports &&
		a->n_services == b->n_services &&
		!memcmp(a->services, b->services, sizeof(a->services)) && a->nest == b->nest &&
		a->scratch == b->scratch && a->scratch_inodes == b->scratch_inodes &&
		a->watches == b->watches && a->cgroup.how == b->cgroup.how &&
		a->cgroup.holds == b->cgroup.holds && a->cgroup.dir == b->cgroup.dir;
}

static int resolve_layers(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f)
{
	p->seccomp = r->nest ? SECCOMP_NEST : SECCOMP_STRICT;
	/* Landlock forbids every mount, so a box that may build boxes has no Landlock. */
	p->landlock_abi = r->nest ? 0 : h->landlock_abi;
	if (r->nest && h->uid == 0) {
		fault_set(f, 0, "--nest: not when started by root");
		return fault_fix(f,
			"Start carrel as a normal user; the files in /proc that must be "
			"sealed for root would stop a box inside from having its own.");
	}
	if (r->nest)
		vec_push(&p->notices,
			"--nest: Landlock is off and mount and namespace calls are "
			"open in this box");
	if (!r->nest && !h->landlock_abi) {
		fault_set(f, 0,
			"Landlock is not available: this kernel was built or started "
			"without it");
		return fault_fix(f,
			"Linux 5.13 or later with 'landlock' in the list of LSMs is "
			"needed (boot with lsm=landlock,...).");
	}
	if (r->network == NETWORK_HOST && p->landlock_abi < 6)
		vec_push(&p->notices,
			"abstract sockets of this machine (X11, D-Bus) can be reached: "
			"Landlock ABI 6 (Linux 6.12) is needed to close them");
	if (!r->nest && h->landlock_abi < 2)
		vec_push(&p->notices,
			"Landlock ABI 1: files cannot be moved between directories "
			"in the box (Linux 5.19 lifts this)");
	return 0;
}

/* The command of a request without one. */
static const char *const *shell_words(const struct host *h)
{
	const char **words = mem_alloc(2 * sizeof(*words));

	words[0] = h->shell;
	return words;
}

int plan_resolve(const struct request *r, const struct host *h, struct plan *ret,
	struct fault *f)
{
	struct plan p = { .image = "host",
		.agent = r->agent,
		.argv = r->argv,
		.input = r->input,
		.git_user = r->git_user,
		.git_ignore = r->git_ignore,
		.name = h->name };
	int rc;

	plan_frame(r, h, &p.frame);
	p.user = h->user;
	p.home = h->home;
	if ((rc = plan_check_workspace(h, f)) < 0)
		return rc;
	p.workspace = h->workspace.real;
	p.overlay = r->overlay;
	p.project = h->project;
	p.project_id = h->project_id;
	p.workdir = path_within(h->cwd, p.workspace) ? h->cwd : p.workspace;
	if ((!p.name && (rc = plan_name(r, p.workspace, &p.name, f)) < 0) ||
		(rc = held_resolve(r, h, &p, f)) < 0 ||
		(rc = resolve_layers(r, h, &p, f)) < 0 ||
		(rc = plan_add_network(r, h, &p, f)) < 0 ||
		(rc = plan_add_places(r, h, &p, f)) < 0 ||
		(rc = plan_add_ssh(r, h, &p, f)) < 0 || (rc = plan_order_places(&p, f)) < 0)
		return rc;
	if ((rc = plan_add_rules(h, &p, f)) < 0)
		return rc;
	vec_each(place, &p.places)
		if (place->sandbox)
			place->text = plan_sandbox_text(&p);
	rc = plan_add_env(r, h, &p, f);
	if (rc < 0)
		return rc;
	if (!p.argv)
		p.argv = shell_words(h);
	p.policy = h->policy;
	p.known = h->known;
	p.tracked = h->tracked;
	p.git = h->git;
	p.contents = h->contents;
	vec_each(notice, &r->notices)
		vec_push(&p.notices, *notice);
	vec_each(notice, &h->notices)
		vec_push(&p.notices, *notice);
	*ret = p;
	return 0;
}
