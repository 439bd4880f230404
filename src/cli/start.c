/*
 * cli/start.c - from the options of run, plan and shell to a plan that is shown, or a box
 *
 * Theory of operation. A start shows the short form of the plan and asks. For one's own client
 * and for a command the answer is kept by the plan's hash: the same plan in the same project is
 * not asked about again (state/agreed.h). carrel always asks about a declared agent. -y turns
 * the question off, and so can "confirm" in the user's own manifest, which can also turn it
 * always on.
 */
#include "cli/run-args.h"
#include "cli/cmd.h"
#include "cli/confirm.h"
#include "manifest/manifest.h"
#include "manifest/trust.h"
#include "plan/plan.h"
#include "run/agent.h"
#include "run/run.h"
#include "state/agreed.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/notify.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
		.client = a->client,
		.manifest = a->manifest,
		.args = a->request.argv,
		.shell = a->shell,
		/* A plan that is written to a file may still be for a conversation. */
		.headless = any &&
			(a->headless || a->events ||
				(!a->detach &&
					(!isatty(STDIN_FILENO) ||
						(!showing && !isatty(STDOUT_FILENO))))),
		.events = a->events,
		.prompts = a->prompts,
	};

	if (!any && (a->manifest || a->headless || a->events || a->prompts))
		fault_set(&f, 0,
			"-m, --headless, --events and --prompts are for an agent, not for a "
			"command");
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

int run_args_plan(struct run_args *a, const struct plan **ret)
{
	struct agent_result agent = { 0 };
	struct fault f = { 0 };
	int code = load_agent(a, true, &agent);

	if (code)
		return code;
	if (run_plan(run_new(&a->request), RUN_TO_SHOW, ret, &f) < 0)
		return cmd_fail(&f);
	note_untrusted(&agent);
	return 0;
}

int run_args_show(struct run_args *a)
{
	const struct plan *plan = NULL;
	int code = run_args_plan(a, &plan);

	return code ? code : print_plan(plan, a->json);
}

/* Any value except 0 and the empty one means that nothing may start. */
static bool dry_by_environment(void)
{
	const char *value = getenv("CARREL_DRY_RUN");

	return value && *value && strcmp(value, "0") != 0;
}

/* Show what an unapproved manifest grants, or what changed; before the plan. */
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

/* What the user is asked about. */
struct deal {
	const struct plan *plan;
	const struct manifest_file
		*untrusted; /* the manifest that is approved with it; or NULL */
	bool remembered;    /* the user's own client or a command: not asked about twice */
};

/*
 * The short form, then what the manifest grants, and last the programs that run on this
 * machine, so that those stay visible.
 */
static int ask_start(const struct deal *d, struct fault *f)
{
	bool colour = cmd_colour(STDERR_FILENO);
	struct str text = { 0 }, whole = { 0 };
	struct trust_state trust;
	int rc;

	plan_brief(d->plan, colour, &text);
	str_addc(&text, '\n');
	rc = d->untrusted ? show_trust(d->untrusted, &trust, &text, f) : 0;
	if (rc < 0)
		return rc;
	plan_programs(d->plan, colour, &text);
	plan_print(d->plan, colour, &whole);
	rc = confirm_showing(text.p,
		d->untrusted ? "Approve the manifest and start this box?" : "Start this box?",
		whole.p, f);
	if (rc < 0)
		return rc;
	if (!rc)
		return fault_set(f, 0, "not started");
	return d->untrusted ? trust_give(d->untrusted->path, &trust, f) : 0;
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

/* Was this plan agreed to before? If that is unknown, assume no. */
static bool was_agreed(const struct plan *p)
{
	struct fault f = { 0 };
	bool before = false;

	if (agreed_look(p->project_id, plan_agreement(p), &before, &f) < 0)
		cmd_note(mem_printf("what you agreed to before cannot be read: %s",
			fault_line(&f)));
	return before;
}

static void remember_agreed(const struct plan *p)
{
	struct fault f = { 0 };

	if (agreed_add(p->project_id, plan_agreement(p), &f) < 0)
		cmd_note(mem_printf("your answer is not kept: %s", fault_line(&f)));
}

/* Nobody is asked. The user's own client on a terminal still shows the short plan. */
static void show_unasked(const struct plan *p)
{
	struct str text = { 0 };

	if (p->agent && isatty(STDERR_FILENO) && isatty(STDIN_FILENO)) {
		plan_brief(p, cmd_colour(STDERR_FILENO), &text);
		(void)fd_write_all(STDERR_FILENO, text.p, text.len);
		return;
	}
	vec_each(notice, &p->notices)
		cmd_note(mem_printf("note: %s", *notice));
}

static int settle_question(const struct deal *d, enum manifest_confirm when, struct fault *f)
{
	int rc;

	if (when == CONFIRM_CHANGED && d->remembered && was_agreed(d->plan)) {
		show_unasked(d->plan);
		return 0;
	}
	rc = ask_start(d, f);
	if (rc == 0 && d->remembered)
		remember_agreed(d->plan);
	return rc;
}

/*
 * A plan to show creates nothing, so a "no" leaves nothing behind. The plan to execute is made
 * after the "yes", and must be the same.
 */
static int agree_to(const struct run_args *a, const struct agent_result *agent,
	enum manifest_confirm when, struct run *run, struct fault *f)
{
	const bool own = agent->own || !a->agent;
	struct deal d = { .untrusted = agent->untrusted,
		.remembered = own && !agent->untrusted };
	const struct plan *plan = NULL;
	int rc = run_plan(run, RUN_TO_SHOW, &d.plan, f);

	if (rc == 0)
		rc = settle_question(&d, when, f);
	if (rc == 0)
		rc = run_plan(run, RUN_TO_START, &plan, f);
	if (rc == 0 && strcmp(plan_agreement(d.plan), plan_agreement(plan)) != 0) {
		fault_set(f, 0, "the plan changed while it was looked at: not started");
		return fault_fix(f, "Something changed in the project meanwhile. Try again.");
	}
	return rc;
}

/* With -y nobody sees a plan, so print this on its own. */
static void note_prompts(const struct request *r)
{
	if (r->agent && r->agent->prompts == PROMPTS_OFF && isatty(STDERR_FILENO) &&
		isatty(STDIN_FILENO))
		cmd_note(mem_printf("%s asks for no permission in this box; --prompts lets it",
			r->agent->title));
}

/* Plan, show and ask, as requested. */
static int agree(const struct run_args *a, const struct agent_result *agent, struct run *run,
	struct fault *f)
{
	enum manifest_confirm when = a->yes ? CONFIRM_NEVER : manifest_confirm();

	if (a->yes && agent->untrusted)
		return not_approved(agent, f);
	if (when != CONFIRM_NEVER || agent->untrusted)
		return agree_to(a, agent, when, run, f);
	note_prompts(&a->request);
	return 0;
}

/* The exit code for a box that did not start; see the manual's EXIT STATUS. */
static int fail_box(const struct fault *f)
{
	cmd_fail(f);
	if (strcmp(f->step, "exec") != 0)
		return EXIT_CARREL;
	return f->err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC;
}

/* What the user types to start the same client; NULL: no conversation to resume. */
static const char *again(const struct run_args *a)
{
	bool talks = (a->agent || a->mine) && !a->shell && !a->headless && !a->events &&
		isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);

	if (!talks)
		return NULL;
	if (a->client)
		return mem_printf("carrel %s", a->client);
	return a->agent ? mem_printf("carrel run %s", str_visible(a->agent)) : "carrel";
}

/* ---- detached ---- */

/* Its terminal is that of the box's screen, not the one it was started from. */
static void set_terminal(struct request *r)
{
	vec_each(e, &r->env)
		if (!strcmp(e->name, "TERM"))
			return;
	vec_push(&r->env, ((struct request_env){ .name = "TERM", .value = "xterm-256color" }));
}

/*
 * The pipe on which the command that started a detached box waits for its name; -1: it was
 * sent. A child of that command supervises the box, and uses its terminal until the box runs.
 */
static int waits_for_name = -1;

static bool has_begun; /* the box ran at least once */

/* A service manager's way to know. */
static void tell_manager(const char *name)
{
	notify(mem_printf("READY=1\nSTATUS=carrel attach %s", name));
	if (!has_begun)
		cmd_note(mem_printf("%s runs: carrel attach %s", name, name));
	has_begun = true;
}

/* The box runs: from now on nothing of the terminal or the caller's session is used. */
static void leave_terminal(const char *name)
{
	const char *line = mem_printf("%s\n", name);
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	has_begun = true;
	if (waits_for_name < 0)
		return;
	setsid();
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null >= 0)
			dup2(null, fd);
	(void)fd_write_all(waits_for_name, line, strlen(line));
	fd_close(&waits_for_name);
}

/*
 * In the child -1; else the exit code: 0 when the box runs, and its name is printed. Both share
 * the memory that the child allocates, so the parent allocates nothing.
 */
static int fork_supervisor(void)
{
	char name[128];
	int ends[2], status = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		struct fault f = { 0 };

		fault_set(&f, errno, "start a supervisor for the box");
		return cmd_fail(&f);
	}
	if (pid == 0) {
		close(ends[0]);
		waits_for_name = ends[1];
		return -1;
	}
	close(ends[1]);
	do
		n = read(ends[0], name, sizeof(name));
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return fd_write_all(STDOUT_FILENO, name, (size_t)n) < 0 ? EXIT_CARREL : 0;
	/* It ended, and has reported why. */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Start it again? Wait longer each time, because what fails at once may fail for long. */
static bool begins_again(const struct run_args *a, const struct run_result *result, int code,
	unsigned int tries)
{
	const unsigned int seconds = tries < 5 ? 1U << tries : 30;

	if (result->restart)
		return true;
	if (!code || result->stopped || tries >= a->restarts)
		return false;
	sleep(seconds);
	return true;
}

/* ---- */

/* Run one box, from the plan to its end. A restart was agreed to before. */
static int start_box(struct run_args *a, const struct agent_result *agent, bool again_,
	struct run_result *ret)
{
	const struct run_options options = { .record = again_ ? NULL : a->record,
		.note = cmd_note,
		.again = a->detach ? NULL : again(a),
		.detached = !a->detach  ? NULL
			: a->foreground ? tell_manager
					: leave_terminal };
	struct run *run = run_new(&a->request);
	struct fault f = { 0 };
	int code = 0;

	if (!again_ && agree(a, agent, run, &f) < 0)
		code = cmd_fail(&f);
	else if (run_box(run, &options, ret, &f) < 0)
		code = fail_box(&f);
	a->request.name = run_name(run);
	run_release(run, &ret->notes);
	vec_each(line, &ret->notes)
		cmd_note(*line);
	return code ? code : ret->code;
}

static int check_args(const struct run_args *a, struct fault *f)
{
	const char *problem = xdg_runtime_problem();

	if (a->json) {
		fault_set(f, 0, "--json prints a plan and needs -n");
		return fault_fix(f, "Use `carrel plan --json`, or add -n.");
	}
	if (a->restarts && !a->detach)
		return fault_set(f, 0, "--restart is for a box that is started with -d");
	if (a->foreground && !a->detach)
		return fault_set(f, 0, "--foreground is for a box that is started with -d");
	if (a->detach && problem) {
		fault_set(f, 0, "-d: %s, so nobody could attach to the box or stop it",
			problem);
		return fault_fix(f,
			"Set it to a directory of yours, here and where you attach.");
	}
	return 0;
}

int run_args_start(struct run_args *a)
{
	struct agent_result agent = { 0 };
	struct run_result result = { 0 };
	struct fault f = { 0 };
	int code;

	if (a->dry || dry_by_environment())
		return run_args_show(a);
	if (check_args(a, &f) < 0)
		return cmd_fail(&f);
	if (a->detach && !a->foreground && (code = fork_supervisor()) >= 0)
		return code;
	code = load_agent(a, false, &agent);
	if (code)
		return code;
	if (a->detach)
		set_terminal(&a->request);
	code = start_box(a, &agent, false, &result);
	for (unsigned int tries = 0; has_begun && begins_again(a, &result, code, tries);
		tries++) {
		result = (struct run_result){ 0 };
		code = start_box(a, &agent, true, &result);
	}
	return code;
}
