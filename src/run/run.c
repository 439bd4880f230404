#include "run/run.h"
#include "run/beside.h"
#include "host/network-policy.h"
#include "run/git-box.h"
#include "run/git-own.h"
#include "run/detached-record.h"
#include "run/killed.h"
#include "host/git-dirs.h"
#include "host/dotfiles.h"
#include "run/lookups.h"
#include "run/found.h"
#include "host/host-program.h"
#include "run/found-report.h"
#include "run/resume.h"
#include "run/secrets.h"
#include "run/ssh-agent.h"
#include "run/workspace-notes.h"
#include "supervise/streams-detached.h"
#include "supervise/streams-own.h"
#include "supervise/supervise.h"
#include "host/survey.h"
#include "host/user-hosts.h"
#include "host/walk-cache.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "overlay/changes.h"
#include "state/agreed.h"
#include "state/boxes.h"
#include "state/instance.h"
#include "state/registry.h"
#include "state/root.h"
#include "state/workspace.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

struct run {
	const struct request *request;
	const struct plan *plan; /* the plan to start; NULL: not made yet */
	struct claim claim;      /* the box's name */
	struct session session;  /* the client's data for the project, if it keeps any */
	const char *unkept;    /* why the box's changes are not saved; NULL: they are, or there
			       are none */
	pid_t ssh_agent;       /* 0: none */
	struct timespec since; /* when the box was begun */
	const char *layers;    /* of its overlay workspace; NULL: none, or examined already */
	struct frame frame;
	struct streams_own own;
	struct streams_detached detached;
	struct supervisor box; /* last: most of it is never used */
};

struct run *run_new(const struct request *r)
{
	struct run *run = mem_alloc(sizeof(*run));

	run->request = r;
	run->claim.lock = -1;
	return run;
}

const char *run_name(const struct run *run)
{
	return run->claim.name;
}

static int take_name(const struct request *r, enum run_for what, struct claim *claim,
	struct host *h, struct fault *f)
{
	enum claim_how how = r->name ? CLAIM_STRICT : CLAIM_NEXT;
	const char *name;
	int rc = plan_name(r, h->workspace.real, &name, f);

	if (rc == 0)
		rc = what == RUN_TO_START ? registry_claim(name, how, claim, f)
					  : registry_peek(name, how, claim, f);
	if (rc == 0)
		h->name = claim->name;
	return rc;
}

/* Find the copy that another box has left, to work on top of it. */
static int find_over(const char *box, struct host *h, struct fault *f)
{
	struct workspace w;
	int rc = workspace_open(box, &w, f);

	if (rc < 0)
		return rc;
	workspace_close(&w);
	if (strcmp(w.root, h->workspace.real) != 0)
		return fault_set(f, 0, "the box '%s' worked on a copy of %s, not of %s", box,
			str_visible(w.root), str_visible(h->workspace.real));
	if (registry_is_held(box))
		return fault_set(f, EBUSY, "work on the copy of the box '%s', which runs", box);
	h->over = path_join(boxes_path(box), "layers");
	return 0;
}

/* Make the directories that a box with an overlay workspace writes to. */
static int make_layers(struct run *run, struct host *h, struct fault *f)
{
	const char *dirs[] = { h->workspace.real, h->git_common };
	int rc = workspace_make(h->name, dirs, h->git_common ? 2 : 1, &run->layers, f);

	h->layers = run->layers;
	return rc;
}

/* The box never ran, or worked on top of another one: drop its layers. */
static void drop_layers(struct run *run)
{
	struct fault ignored = { 0 };

	if (run->layers)
		(void)workspace_drop(run->claim.name, &ignored);
}

/* Examine the changes in the box's copy of the workspace. */
static void end_workspace(struct run *run, struct run_result *result)
{
	struct workspace w;
	struct fault f = { 0 };

	if (!run->layers)
		return;
	if (run->request->over) {
		drop_layers(run);
		return;
	}
	run->layers = NULL;
	if (workspace_end(run->plan->name, result->code, &w, &f) == 0) {
		workspace_notes(&w, &result->notes);
		workspace_close(&w);
		return;
	}
	vec_push(&result->notes,
		mem_printf("what the box changed could not be looked at: %s", fault_line(&f)));
}

/* init: of the box, which may still be exiting; 0: there was none. */
static void end_session(struct run *run, pid_t init)
{
	struct fault f = { 0 };

	if (session_end(&run->session, init, &f) < 0)
		run->unkept = mem_strdup(fault_line(&f));
}

/* Mount a path of the instance, which exists once the box starts. */
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

/* Does each box get this file anew, on top of all layers? */
static bool is_put(const struct session_part *s, const char *name)
{
	vec_each(file, &s->put)
		if (!strcmp(file->name, name))
			return true;
	return false;
}

/*
 * Report files that a box changed and the user changed later: boxes do not see the user's
 * version.
 */
static void note_outdated(const struct session_part *s, const char *users, struct request *r)
{
	struct layers l = { .fd = AT_FDCWD,
		.dir = path_parent(s->own),
		.users = users,
		.notes = s->part->notes };
	const char *first = NULL, *more = "";
	tree_names names = { 0 };
	struct fault f = { 0 };
	size_t n = 0;

	if (!s->layers.n || !users)
		return;
	if (changes_outdated(&l, &names, &f) < 0)
		vec_push(&r->notices,
			mem_printf("what boxes changed in %s cannot be compared with it: %s",
				str_visible(users), fault_line(&f)));
	vec_each(name, &names)
		if (!is_put(s, *name) && !n++)
			first = str_visible(mem_printf("~/%s/%s", s->part->path, *name));
	if (n > 1)
		more = mem_printf(" (and %zu more)", n - 1);
	if (n)
		vec_push(&r->notices,
			mem_printf("%s%s: a box changed it, then you did, and boxes see only "
				   "their own; see `carrel instances diff`, `drop`, `take`",
				first, more));
}

static int add_part(const struct session_part *s, struct request *r, struct fault *f)
{
	const struct part *part = s->part;
	const char *users = NULL;
	int rc = look_real(path_join(survey_home(), part->path), &users, f);
	struct request_overlay o = { .target = mem_printf("~/%s", part->path),
		.upper = s->upper,
		.work = s->work,
		.why = "your configuration" };

	if (rc < 0)
		return rc;
	if (part->whole) {
		add_own(s, "", true, r);
		return 0;
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
		return 0;
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
		note_outdated(s, users, r);
	}
	vec_each(file, &s->put) {
		vec_push(&o.files, file->name);
		vec_push(&o.texts, file->text);
	}
	vec_push(&r->overlays, o);
	add_owns(s, r);
	return 0;
}

static int begin_session(struct request *r, enum run_for what, struct session *session,
	struct fault *f)
{
	struct project p;
	int rc = survey_apart(r->workspace, f);

	if (rc == 0)
		rc = survey_project(r->workspace, &p, f);
	if (rc == 0)
		rc = session_begin(&p, r->agent->harness, r->parts, what == RUN_TO_SHOW,
			session, f);
	vec_each(part, &session->parts) {
		if (rc == 0 && r->parts_direct && what == RUN_TO_START)
			rc = session_prepare(part, path_join(survey_home(), part->part->path),
				f);
		vec_each(file, &r->part_files)
			if (rc == 0 && !strcmp(file->part, part->part->path))
				rc = session_file(part, file, f);
		if (rc == 0)
			rc = add_part(part, r, f);
	}
	return rc < 0 ? rc : session_ready(session, f);
}

void run_release(struct run *run, note_vec *ret)
{
	ssh_agent_stop(&run->ssh_agent);
	end_session(run, 0);
	drop_layers(run);
	if (run->unkept)
		vec_push(ret,
			mem_printf("what the box changed is not kept yet: %s", run->unkept));
	registry_release(&run->claim);
}

int run_plan(struct run *run, enum run_for what, const struct plan **ret, struct fault *f)
{
	struct plan *plan = mem_alloc(sizeof(*plan));
	const struct policy *policy = NULL;
	struct request all = *run->request;
	struct host host;
	int rc = network_is_brokered(all.network) ? user_hosts(&all, f) : 0;

	all.overlay |= all.over != NULL;
	if (all.ask && !xdg_runtime()) {
		all.ask = false;
		vec_push(&all.notices,
			"XDG_RUNTIME_DIR is not set, so nobody could answer what this box "
			"asks: hosts in no list are refused");
	}
	if (rc == 0)
		rc = egress_policy(&all, &policy, f);
	if (rc == 0 && all.parts)
		rc = begin_session(&all, what, &run->session, f);
	if (rc == 0)
		rc = survey_host(&all, &host, f);
	if (rc == 0 && !all.overlay)
		git_box_copies(&all, &host);
	if (rc == 0 && all.ssh.n)
		rc = ssh_agent_dir(what == RUN_TO_START, &host.sockets, f);
	if (rc == 0)
		rc = take_name(&all, what, &run->claim, &host, f);
	if (rc == 0 && all.over)
		rc = find_over(all.over, &host, f);
	if (rc == 0 && all.overlay && what == RUN_TO_START)
		rc = make_layers(run, &host, f);
	if (rc < 0)
		return rc;
	git_dirs_mend(host.git, what == RUN_TO_START, &host.notices);
	if (what == RUN_TO_START)
		killed_note(host.name, &host.notices);
	host.policy = policy;
	egress_rules(policy, &host.net_rules);
	git_own(&all, &host);
	rc = plan_resolve(&all, &host, plan, f);
	if (rc < 0)
		return rc;
	if (what == RUN_TO_START)
		run->plan = plan;
	*ret = plan;
	return 0;
}

/* Make the plan, unless it was made before, to be shown. */
static int settle_plan(struct run *run, void (*note)(const char *line), struct fault *f)
{
	const struct plan *plan;
	int rc;

	if (run->plan)
		return 0;
	rc = run_plan(run, RUN_TO_START, &plan, f);
	if (rc < 0)
		return rc;
	vec_each(notice, &plan->notices)
		note(mem_printf("note: %s", *notice));
	return 0;
}

/* Put the end of a fetched value into the file that has a placeholder for it. */
static void fill_file(struct place *place, const char *value)
{
	enum { TAIL = 20 };
	const char *at = strstr(place->text, REQUEST_KEY_TAIL);
	size_t n = strlen(value);
	struct str text = { 0 }, tail = { 0 };
	struct json j = { .out = &tail };

	if (!at)
		return;
	json_string(&j, NULL, n > TAIL ? value + n - TAIL : value);
	str_addn(&text, place->text, (size_t)(at - place->text));
	/* Without its quotes, which the file has already. */
	str_addn(&text, tail.p + 1, tail.len - 2);
	str_add(&text, at + strlen(REQUEST_KEY_TAIL));
	place->text = text.p;
}

/*
 * Fetch values from the user or from programs of the host. This happens only after the user has
 * agreed.
 */
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
		vec_each(place, &p->places)
			if (place->fill && !strcmp(place->fill, e->name))
				fill_file(place, e->value);
	}
	return rc;
}

/* Is there anything to fetch or ask for between the agreement and the start? */
static bool has_secrets(const struct request *r)
{
	if (r->ssh.n)
		return true;
	vec_each(e, &r->env)
		if (e->how == ENV_PROMPT || e->how == ENV_COMMAND)
			return true;
	return false;
}

/* The command reads a file of the box, so leave our own input to other programs. */
static int leave_input(struct fault *f)
{
	auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		return fault_set(f, errno, "open /dev/null");
	return 0;
}

static void note_lines(const char *text, struct run_result *result)
{
	for (const char *at = text ? text : ""; *at; at += strcspn(at, "\n"), at += *at == '\n')
		vec_push(&result->notes, mem_strndup(at, strcspn(at, "\n")));
}

static const char *times(unsigned long long n, const char *one, const char *more)
{
	return mem_printf("%llu %s", n, n == 1 ? one : more);
}

static void note_limits(const struct plan *p, const struct outcome *o,
	struct run_result *result)
{
	const struct limits *l = &p->limits;
	note_vec *notes = &result->notes;

	if (o->time_is_up)
		vec_push(notes, mem_printf("the time limit of %llu s was reached", l->time));
	if (o->idle)
		vec_push(notes, mem_printf("the box was idle for %llu s, its limit", l->idle));
	if (o->counts.oom_kills)
		vec_push(notes,
			mem_printf("out of memory: the box reached its limit of %s, and the "
				   "kernel killed %s in it",
				limit_words(l, limit_find("memory")),
				times(o->counts.oom_kills, "process", "processes")));
	if (o->counts.pids_max)
		vec_push(notes,
			mem_printf("out of processes: the box reached its limit of %llu, and "
				   "could not start another %s",
				l->pids, times(o->counts.pids_max, "time", "times")));
	if (o->disk_full)
		vec_push(notes,
			mem_printf("the disk limit of %s was reached",
				limit_words(l, limit_find("disk"))));
	if (o->scratch_full)
		vec_push(notes,
			mem_printf("out of space: the box has filled the %s outside its "
				   "workspace (--limit scratch=SIZE)",
				limit_words(l, limit_find("scratch"))));
}

static void note_outcome(const struct plan *p, const struct run_options *o,
	const struct outcome *outcome, struct run_result *result)
{
	note_limits(p, outcome, result);
	if (outcome->killed && !outcome->counts.oom_kills)
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

static void note_resume(const struct plan *p, const struct timespec *since, const char *again,
	struct run_result *result)
{
	const char *words = resume_words(p, since);

	if (words)
		vec_push(&result->notes,
			mem_printf("to go on with this conversation: %s -- %s", again, words));
}

/*
 * Remember which files git tracks, so that later boxes see them even if they have local
 * changes. A failure only hides such a file.
 */
static void remember_tracked(const struct plan *p)
{
	struct fault unused = { 0 };

	vec_each(key, &p->tracked)
		if (p->project_id)
			(void)agreed_add(p->project_id, *key, &unused);
}

static void note_unseen(const struct fault *f, struct run_result *result)
{
	vec_push(&result->notes,
		mem_printf("could not look for planted files: %s", fault_line(f)));
}

/* Do what comes after the agreement and before the box is begun. */
static int prepare_run(struct run *run, const struct run_options *o, struct fault *f)
{
	const struct request *r = run->request;
	int rc = r->input ? leave_input(f) : 0;

	if (rc < 0 || !has_secrets(r))
		return rc;
	rc = settle_plan(run, o->note, f);
	if (rc == 0)
		rc = fetch_values(run->plan, f);
	if (rc == 0 && r->ssh.n)
		rc = ssh_agent_start(run->plan, &run->ssh_agent, f);
	return rc;
}

/*
 * Until a client attaches, a detached box's terminal has the size of the terminal it was
 * started from.
 */
static struct streams *open_streams(struct run *run, const struct run_options *o)
{
	struct winsize size;

	streams_own_init(&run->own, &run->box.record);
	if (!o->detached)
		return &run->own.base;
	tty_size(&run->own.tty, &size);
	streams_detached_init(&run->detached, &run->box.record,
		(struct screen_size){ size.ws_row, size.ws_col });
	return &run->detached.base;
}

/*
 * begin → plan → start. The same line whether the plan was shown before or is made meanwhile.
 */
static int start_run(struct run *run, const struct run_options *o, struct fault *f)
{
	int rc;

	/* The kernel stamps files with the coarse clock; the fine one may be ahead of it. */
	clock_gettime(CLOCK_REALTIME_COARSE, &run->since);
	survey_frame(run->request, &run->frame);
	rc = supervise_begin(&run->box, &run->frame, open_streams(run, o), o->record, f);
	if (rc < 0)
		return rc;
	rc = settle_plan(run, o->note, f);
	if (rc < 0) {
		supervise_abandon(&run->box);
		return rc;
	}
	if (run->plan->overlay)
		rc = workspace_begin(run->plan, run->request, &run->since, f);
	if (rc == 0)
		rc = detached_begin(run->plan, &run->since, o->detached, f);
	if (rc < 0) {
		supervise_abandon(&run->box);
		return rc;
	}
	if (!run->plan->overlay)
		killed_watch(run->plan, &run->since);
	return supervise_start(&run->box, run->plan, f);
}

/* The box is dead: collect what it left on the host, and the notes for the user. */
static void collect_run(struct run *run, const struct run_options *o, struct run_result *ret)
{
	const struct plan *p = run->plan;
	const int root = run->box.box.root;
	struct fault unseen = { 0 };
	planted_vec found = { 0 };
	name_vec made = { 0 };
	struct outcome outcome;
	const char *missed;
	int looked;

	/*
	 * This comes first: when overlayfs is unmounted, the kernel syncs the whole file
	 * system, and other work on that disk would wait.
	 */
	end_session(run, run->box.box.pid);
	looked = p->overlay ? 0 : planted_find(p, &run->since, &found, &unseen);
	git_box_take(p, root, &made, &ret->notes);
	beside_note(p, root, &ret->notes);
	missed = lookups_missed(p, root);
	supervise_end(&run->box, &outcome);
	planted_add(p, outcome.replaced, &made, &found);
	planted_sort(&found);
	ret->code = outcome.code;
	ret->stopped = outcome.stopped;
	ret->restart = outcome.restart;
	if (o->detached)
		detached_end(p, &outcome, ret);
	note_outcome(p, o, &outcome, ret);
	if (missed && ret->code)
		vec_push(&ret->notes, missed);
	if (looked < 0)
		note_unseen(&unseen, ret);
	report_planted(p, &found, &ret->notes);
	end_workspace(run, ret);
	walk_cache_write();
	remember_tracked(p);
	if (o->again && run->request->parts)
		note_resume(p, &run->since, o->again, ret);
}

int run_box(struct run *run, const struct run_options *o, struct run_result *ret,
	struct fault *f)
{
	struct run_result result = { 0 };
	int rc = prepare_run(run, o, f);

	if (rc == 0)
		rc = start_run(run, o, f);
	if (rc < 0)
		return rc;
	if (o->detached)
		o->detached(run->plan->name);
	supervise_loop(&run->box);
	collect_run(run, o, &result);
	*ret = result;
	return 0;
}
