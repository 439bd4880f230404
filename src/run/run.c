#include "run/run.h"
#include "run/egress.h"
#include "run/leads.h"
#include "run/planted.h"
#include "run/program.h"
#include "run/secrets.h"
#include "run/ssh-agent.h"
#include "run/supervise.h"
#include "run/survey.h"
#include "run/user-hosts.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "state/instance.h"
#include "state/registry.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PLANTED = 20 };

/* The name of this process's one box. */
static struct claim claim = { .lock = -1 };

static int take_name(const struct request *r, enum run_for what, struct host *h,
	struct fault *f)
{
	enum claim_how how = r->name ? CLAIM_STRICT : CLAIM_NEXT;
	const char *name;
	int rc = plan_name(r, h->workspace.real, &name, f);

	if (rc == 0)
		rc = what == RUN_TO_START ? registry_claim(name, how, &claim, f)
					  : registry_peek(name, how, &claim, f);
	if (rc == 0)
		h->name = claim.name;
	return rc;
}

/* What its client keeps for the project, where it keeps anything. */
static struct session session;

/* Why what the box changed is not kept yet; NULL: it is, or there is nothing. */
static const char *unkept;

/* init: of the box, which may not be all gone yet; 0: there was none. */
static void end_session(pid_t init)
{
	struct fault f = { 0 };

	if (session_end(&session, init, &f) < 0)
		unkept = mem_strdup(fault_line(&f));
}

/* A path of the instance: it is there once the box starts. */
static void add_own(const struct session_part *s, const char *name, bool dir, struct request *r)
{
	vec_push(&r->mounts,
		((struct request_mount){ .source = *name ? path_join(s->own, name) : s->own,
			.target = mem_printf("~/%s%s%s", s->part->path, *name ? "/" : "", name),
			.rw = true,
			.sure = dir ? SURE_DIR : SURE_FILE,
			.why = "this project's own" }));
}

static void add_owns(const struct session_part *s, struct request *r)
{
	const struct part *part = s->part;

	for (size_t i = 0; part->own_dirs && part->own_dirs[i]; i++)
		add_own(s, part->own_dirs[i], true, r);
	for (size_t i = 0; part->own_files && part->own_files[i]; i++)
		add_own(s, part->own_files[i], false, r);
}

static void add_part(const struct session_part *s, struct request *r)
{
	const struct part *part = s->part;
	const char *users = fd_real_path(path_join(survey_home(), part->path));
	struct request_overlay o = { .target = mem_printf("~/%s", part->path),
		.upper = s->upper,
		.work = s->work,
		.why = "your configuration" };

	if (part->whole) {
		add_own(s, "", true, r);
		return;
	}
	if (r->parts_direct) {
		vec_push(&r->mounts,
			((struct request_mount){
				.source = users ? users : path_join(survey_home(), part->path),
				.target = o.target,
				.rw = true,
				.sure = SURE_DIR,
				.users = true,
				.why = "your configuration" }));
		add_owns(s, r);
		return;
	}
	vec_each(layer, &s->layers)
		vec_push(&o.lowers, *layer);
	if (users && part->traces)
		vec_push(&o.lowers, path_join(path_parent(s->own), "hiding"));
	if (users) {
		vec_push(&o.lowers, users);
		leads_of_dir(users, r);
		if (part->plugins)
			leads_of_file(users, part->plugins, r);
	}
	vec_each(file, &s->put) {
		vec_push(&o.files, file->name);
		vec_push(&o.texts, file->text);
	}
	vec_push(&r->overlays, o);
	add_owns(s, r);
}

static int begin_session(struct request *r, enum run_for what, struct fault *f)
{
	struct project p;
	int rc = survey_apart(r->workspace, f);

	if (rc == 0)
		rc = survey_project(r->workspace, &p, f);
	if (rc == 0)
		rc = session_begin(&p, r->agent->harness, r->parts, what == RUN_TO_SHOW,
			&session, f);
	vec_each(part, &session.parts) {
		if (rc == 0 && r->parts_direct && what == RUN_TO_START)
			rc = session_prepare(part, path_join(survey_home(), part->part->path),
				f);
		vec_each(file, &r->part_files)
			if (rc == 0 && !strcmp(file->part, part->part->path))
				rc = session_file(part, file, f);
		if (rc == 0)
			add_part(part, r);
	}
	return rc < 0 ? rc : session_ready(&session, f);
}

void run_release(note_vec *ret)
{
	ssh_agent_stop();
	end_session(0);
	if (unkept)
		vec_push(ret, mem_printf("what the box changed is not kept yet: %s", unkept));
	registry_release(&claim);
}

/* Of this process's one box; NULL: it has no broker. */
static const struct policy *policy;

int run_plan(const struct request *r, enum run_for what, const struct plan **ret,
	struct fault *f)
{
	struct plan *plan = mem_alloc(sizeof(*plan));
	struct request all = *r;
	struct host host;
	int rc = network_is_brokered(r->network) ? user_hosts(&all, f) : 0;

	if (r->ask && !xdg_runtime()) {
		all.ask = false;
		vec_push(&all.notices,
			"XDG_RUNTIME_DIR is not set, so nobody could answer what this box "
			"asks: hosts in no list are refused");
	}
	if (rc == 0)
		rc = egress_policy(&all, &policy, f);
	if (rc == 0 && r->parts)
		rc = begin_session(&all, what, f);
	if (rc == 0)
		rc = survey_host(&all, &host, f);
	if (rc == 0 && all.ssh.n)
		rc = ssh_agent_dir(what == RUN_TO_START, &host.sockets, f);
	if (rc == 0)
		egress_rules(policy, &host.net_rules);
	if (rc == 0)
		rc = take_name(&all, what, &host, f);
	if (rc == 0)
		rc = plan_resolve(&all, &host, plan, f);
	if (rc == 0)
		*ret = plan;
	return rc;
}

struct planning {
	const struct request *request;
	const struct plan *plan;
	void (*note)(const char *line); /* for notices, where nobody was shown the plan */
};

static int get_plan(void *ctx, const struct plan **ret, const struct policy **ret_policy,
	struct fault *f)
{
	struct planning *p = ctx;
	int rc = p->plan ? 0 : run_plan(p->request, RUN_TO_START, &p->plan, f);

	if (rc < 0)
		return rc;
	if (p->note)
		vec_each(notice, &p->plan->notices)
			p->note(mem_printf("note: %s", *notice));
	*ret = p->plan;
	*ret_policy = policy;
	return 0;
}

/* Values that a person or a program of the host must give: now, and not before. */
static int fetch_values(const struct plan *p, struct fault *f)
{
	int rc = 0;

	program_clean_path(p->workspace);
	vec_each(e, &p->env) {
		if (e->value)
			continue;
		rc = e->how == ENV_PROMPT ? secret_ask(e->name, e->message, &e->value, f)
					  : secret_run(e->name, e->argv, &e->value, f);
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* What must be fetched, or asked for, when the plan is agreed on and before the box begins. */
static bool has_secrets(const struct request *r)
{
	if (r->ssh.n)
		return true;
	vec_each(e, &r->env)
		if (e->how == ENV_PROMPT || e->how == ENV_COMMAND)
			return true;
	return false;
}

/* The command reads a file of the box; what comes after us on our own input is not ours. */
static int leave_input(struct fault *f)
{
	auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		return fault_set(f, errno, "open /dev/null");
	return 0;
}

static void note_planted(const planted_vec *found, int rc, const struct fault *f,
	struct run_result *result)
{
	if (rc < 0)
		vec_push(&result->notes,
			mem_printf("could not look for planted files: %s", fault_line(f)));
	if (found->n)
		vec_push(&result->notes,
			"files that programs outside the box would run or obey "
			"appeared or changed; look at them before you go on:");
	for (size_t i = 0; i < found->n && i < MOST_PLANTED; i++)
		vec_push(&result->notes,
			mem_printf("  %s  (%s)", str_visible(found->v[i].rel),
				found->v[i].why));
	if (found->n > MOST_PLANTED)
		vec_push(&result->notes, mem_printf("  and %zu more", found->n - MOST_PLANTED));
}

static void note_lines(const char *text, struct run_result *result)
{
	for (const char *at = text ? text : ""; *at; at += strcspn(at, "\n"), at += *at == '\n')
		vec_push(&result->notes, mem_strndup(at, strcspn(at, "\n")));
}

static void note_outcome(const struct plan *p, const struct run_options *o,
	const struct outcome *outcome, struct run_result *result)
{
	if (outcome->time_is_up)
		vec_push(&result->notes,
			mem_printf("the time limit of %llu s was reached", p->limits.time));
	if (outcome->killed)
		vec_push(&result->notes, "the box was killed from outside");
	if (outcome->net_lost && outcome->net_fault)
		vec_push(&result->notes,
			mem_printf("the box had no network, its broker could not start: %s",
				fault_line(outcome->net_fault)));
	else if (outcome->net_lost)
		vec_push(&result->notes,
			"the broker of the box's network ended before the box did; from then "
			"on "
			"it had none");
	if (outcome->net_error)
		vec_push(&result->notes,
			mem_printf("the record of network events is incomplete: %s",
				strerror(outcome->net_error)));
	note_lines(outcome->net_summary, result);
	if (outcome->record_error)
		vec_push(&result->notes,
			mem_printf("the recording %s is incomplete: %s", str_visible(o->record),
				strerror(outcome->record_error)));
}

int run_box(const struct request *r, const struct plan *p, const struct run_options *o,
	struct run_result *ret, struct fault *f)
{
	struct planning planning = { .request = r, .plan = p, .note = p ? NULL : o->note };
	struct run_result result = { 0 };
	struct fault unseen = { 0 };
	planted_vec found = { 0 };
	struct outcome outcome;
	struct timespec since;
	struct frame frame;
	pid_t init;
	int rc = 0, looked;

	if (r->input)
		rc = leave_input(f);
	if (rc == 0 && has_secrets(r)) {
		if (!planning.plan)
			rc = run_plan(r, RUN_TO_START, &planning.plan, f);
		if (rc == 0)
			rc = fetch_values(planning.plan, f);
		if (rc == 0 && r->ssh.n)
			rc = ssh_agent_start(planning.plan, f);
	}
	if (rc < 0)
		return rc;
	/*
	 * Coarse, as the kernel stamps files: the fine clock could be ahead of a new file. By a
	 * system call, as it is the only one as a rule: to find it in the vDSO takes longer.
	 */
	syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &since);
	plan_frame(r, getuid(), getgid(), survey_ram(), &frame);
	rc = supervise(&frame, get_plan, &planning, o->record, &init, f);
	if (rc < 0)
		return rc;
	/*
	 * First of all: overlayfs writes the whole file system to its disk before it lets go
	 * of it, and what is done there meanwhile waits.
	 */
	end_session(init);
	looked = planted_find(planning.plan, &since, &found, &unseen);
	supervise_end(&outcome);
	planted_add(planning.plan, outcome.replaced, &found);
	result.code = outcome.code;
	note_outcome(planning.plan, o, &outcome, &result);
	note_planted(&found, looked, &unseen, &result);
	*ret = result;
	return 0;
}
