/*
 * cli/cmd-eval.c - carrel eval
 *
 * What will be done is shown and asked about, as for a box: which suite, which client, how
 * many attempts. The exit code is the verdict: 0 pass, 1 fail, 2 a suite or a command line
 * that is wrong, 3 when there is no verdict because something else broke.
 */
#include "cli/cmd.h"
#include "cli/confirm.h"
#include "cli/eval-plan.h"
#include "cli/eval-progress.h"
#include "cli/opt.h"
#include "cli/run-files.h"
#include "eval/eval-run.h"
#include "eval/suite.h"
#include "eval/outputs.h"
#include "eval/summary.h"
#include "harness/harness.h"
#include "run/agent.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVAL_PASS, EVAL_FAIL, EVAL_USAGE, EVAL_BROKEN };

enum { MODE_BOTH, MODE_ARTIFACT, MODE_TRIGGER };

struct eval_args {
	const char *word, *second;
	const char *evals, *skill, *project, *resume, *model, *harness, *control, *grader_model,
		*variant;
	struct eval_options options;
	struct suite_limits limits;
	unsigned int mode, profile;
	bool yes, dry, json, no_baseline, prompts;
	text_vec allow, services;
	struct run_files files;
};

/* ---- options ---- */

static int parse_number(const char *text, double least, double most, double *ret,
	struct fault *f)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || end == text || !(value >= least && value <= most))
		return fault_set(f, 0, "expected a number from %g to %g", least, most);
	*ret = value;
	return 0;
}

static int parse_count(const char *text, double most, unsigned int *ret, struct fault *f)
{
	double value = 0;
	int rc = text[strspn(text, "0123456789")]
		? fault_set(f, 0, "expected a whole number from 1 to %g", most)
		: parse_number(text, 1, most, &value, f);

	if (rc == 0)
		*ret = (unsigned int)value;
	return rc;
}

static int parse_jobs(void *args, const char *text, struct fault *f)
{
	return parse_count(text, MOST_JOBS, &((struct eval_args *)args)->options.jobs, f);
}

static int parse_repeat(void *args, const char *text, struct fault *f)
{
	return parse_count(text, 10000, &((struct eval_args *)args)->options.repeat, f);
}

static int parse_min_n(void *args, const char *text, struct fault *f)
{
	return parse_count(text, 10000, &((struct eval_args *)args)->options.min_n, f);
}

static int parse_retries(void *args, const char *text, struct fault *f)
{
	double value = 0;
	int rc = parse_number(text, 0, 20, &value, f);

	if (rc == 0) {
		((struct eval_args *)args)->options.retries = (unsigned int)value;
		((struct eval_args *)args)->options.retries_said = true;
	}
	return rc;
}

static int parse_threshold(void *args, const char *text, struct fault *f)
{
	return parse_number(text, 0, 1, &((struct eval_args *)args)->options.threshold, f);
}

static int parse_usd(void *args, const char *text, struct fault *f)
{
	return parse_number(text, 0.000001, 1e6, &((struct eval_args *)args)->options.usd, f);
}

static int parse_time(const char *text, unsigned long long *ret, struct fault *f)
{
	if (!str_parse_duration(text, ret) || !*ret)
		return fault_set(f, 0, "expected a time such as 90s, 30m or 1h30m");
	return 0;
}

static int parse_budget_time(void *args, const char *text, struct fault *f)
{
	return parse_time(text, &((struct eval_args *)args)->options.time, f);
}

static int parse_timeout(void *args, const char *text, struct fault *f)
{
	return parse_time(text, &((struct eval_args *)args)->limits.time, f);
}

static int parse_allow(void *args, const char *text, struct fault *f)
{
	(void)f;
	vec_push(&((struct eval_args *)args)->allow, text);
	return 0;
}

static int parse_service(void *args, const char *text, struct fault *f)
{
	(void)f;
	vec_push(&((struct eval_args *)args)->services, text);
	return 0;
}

static int fail(const struct fault *f, int code)
{
	(void)cmd_fail(f);
	return code;
}

/* ---- the suite ---- */

static bool use_harness(struct suite *s, const struct eval_args *a, struct fault *f)
{
	s->harness = a->harness ? a->harness : s->harness ? s->harness : harness_claude.name;
	s->model = a->model ? a->model : s->model;
	if (!harness_find(s->harness))
		fault_set(f, 0, "there is no client '%s'", opt_shown(s->harness));
	else if (!strcmp(s->harness, "command") && !s->command.n)
		fault_set(f, 0, "the client 'command' needs \"command\" in the suite's agent");
	else if (strcmp(s->harness, "claude") != 0 && s->queries.n &&
		strcmp(s->harness, "codex") != 0 && a->mode != MODE_ARTIFACT)
		fault_set(f, 0,
			"trigger evals work with claude and codex: no other client says "
			"which skill it uses");
	else
		return true;
	return false;
}

static bool is_tried_with(const struct suite_case *c, const struct suite_configuration *k)
{
	vec_each(name, &c->configurations)
		if (!strcmp(*name, k->name))
			return true;
	return !c->configurations.n;
}

/* Tell the user before the start what a client cannot do. */
static bool check_client(const struct suite *s, const struct suite_configuration *k,
	struct fault *f)
{
	const char *client = eval_client_of(s, k);
	bool claude = !strcmp(client, harness_claude.name), limits = false;

	if (!strcmp(client, harness_command.name) && !s->command.n) {
		fault_set(f, 0,
			"configuration %s: the client 'command' needs \"command\" in "
			"the suite's agent",
			k->name);
		return false;
	}
	vec_each(c, &s->cases) {
		if (claude || !is_tried_with(c, k))
			continue;
		limits |= c->limits.turns || c->limits.usd > 0;
		if (!c->turns.n)
			continue;
		fault_set(f, 0,
			"case %s has \"turns\", which work with claude alone; the "
			"configuration "
			"%s is of %s",
			str_visible(c->id), k->name, client);
		fault_fix(f, "Say in the case's \"configurations\" which it is for.");
		return false;
	}
	if (!claude && (limits || s->limits.turns || s->limits.usd > 0))
		cmd_note(mem_printf(
			"limits of turns and usd are held by claude alone, not by %s", client));
	return true;
}

/* What the command line says goes over what the suite says, and becomes part of it. */
static bool settle_suite(struct suite *s, const struct eval_args *a, struct fault *f)
{
	struct suite_skill variant = { 0 };

	if (!use_harness(s, a, f))
		return false;
	if (!s->model && !strcmp(s->harness, "claude"))
		s->model = "sonnet";
	s->control = a->control ? a->control : s->control;
	if (a->profile)
		s->realistic = "realistic";
	if (a->limits.time)
		s->limits.time = a->limits.time;
	if (a->variant && skill_read(a->variant, &variant, f) < 0)
		return false;
	if (!s->configurations.n && s->cases.n) {
		vec_push(&s->configurations,
			((struct suite_configuration){
				.name = "with_skill", .no_skill = !s->skill.dir }));
		if (a->variant)
			vec_push(&s->configurations,
				((struct suite_configuration){
					.name = "variant", .skill = variant.dir }));
		else if (!a->no_baseline && s->skill.dir)
			vec_push(&s->configurations,
				((struct suite_configuration){
					.name = "without_skill", .no_skill = true }));
	}
	vec_each(k, &s->configurations)
		if (a->mode != MODE_TRIGGER && !check_client(s, k, f))
			return false;
	if (s->queries.n && !s->skill.dir) {
		fault_set(f, 0, "trigger queries need a skill: %s is in none",
			str_visible(s->path));
		fault_fix(f, "Name the skill's directory with --skill.");
		return false;
	}
	return true;
}

static int load_suite(const struct eval_args *a, struct suite *ret, struct fault *f)
{
	struct suite_where where = { a->word, a->evals, a->skill, a->project };
	suite_errors errors = { 0 };
	text_vec notes = { 0 };
	int rc = a->resume ? suite_resume(path_join(a->resume, "suite.json"), ret, &errors, f)
			   : suite_load(&where, ret, &errors, &notes, f);

	vec_each(note, &notes)
		cmd_note(*note);
	if (rc < 0 && errors.n) {
		(void)cmd_problems(errors.v, errors.n);
		return EVAL_USAGE;
	}
	if (rc < 0 || !settle_suite(ret, a, f))
		return fail(f, EVAL_USAGE);
	return 0;
}

/* ---- running ---- */

static void set_names(struct engine *e)
{
	const char *hash = path_base(e->bench.scratch);

	/* The same for a whole run, so that a prompt cache can serve it. */
	e->bench.control_name = mem_printf("control-word-%.6s", hash);
	if (e->suite->skill.name)
		e->bench.trigger_name = mem_printf("%.50s-%.6s", e->suite->skill.name, hash);
}

static int finish_eval(const struct engine *e, const struct run_files *files, struct fault *f)
{
	struct run_dir run;
	struct summary s;
	struct str out = { 0 };
	int code, rc = run_dir_read(e->bench.run_dir, &run, f);

	if (rc < 0)
		return fail(f, EVAL_BROKEN);
	summary_make(&run, &s);
	if (summary_write(&run, &s, f) < 0 || outputs_write(&run, &s, f) < 0 ||
		run_files_write(files, &run, &s, f) < 0)
		return fail(f, EVAL_BROKEN);
	summary_lines(&run, &s, &out);
	if (e->why)
		str_addf(&out, "stopped   %s\n", str_visible(e->why));
	if (s.verdict != SUMMARY_UNDECIDED)
		str_addf(&out, "verdict   %s: %s\n", summary_verdict_name(s.verdict),
			str_visible(s.why));
	str_addf(&out, "run       %s\nreport    carrel report --open %s\n",
		str_visible(e->bench.run_dir), str_visible(e->bench.run_dir));
	code = s.verdict == SUMMARY_FAIL                                         ? EVAL_FAIL
		: s.verdict == SUMMARY_PASS && e->done + e->spared == e->items.n ? EVAL_PASS
										 : EVAL_BROKEN;
	return cmd_print(&out) ? EVAL_BROKEN : code;
}

static int run(struct engine *e, const struct run_files *files, struct fault *f)
{
	struct progress p;
	struct engine_watch watch = { progress_changed, &p };
	int rc;

	progress_begin(&p, e);
	rc = engine_run(e, &watch, f);
	progress_end(&p);
	scratch_remove(e->bench.scratch, e->lock);
	return rc < 0 ? fail(f, EVAL_BROKEN) : finish_eval(e, files, f);
}

static bool client_is_there(const struct suite *s, const char *client, struct fault *f)
{
	if (!strcmp(client, harness_command.name) ||
		agent_program(harness_find(client), s->dir))
		return true;
	fault_set(f, 0, "the client '%s' is not on your PATH", client);
	fault_fix(f, "Install it, or name another with --harness.");
	return false;
}

static bool clients_are_there(const struct engine *e, struct fault *f)
{
	const struct suite *s = e->suite;
	bool there = true;

	vec_each(item, &e->items)
		if (there && item->state == ITEM_WAITS && item->trial.run == 1)
			there = client_is_there(s,
				item->trial.configuration
					? eval_client_of(s, item->trial.configuration)
					: s->harness,
				f);
	return there;
}

static int start_eval(struct eval_args *a, struct engine *e, struct fault *f)
{
	struct str text = { 0 };
	int answer;

	engine_plan(e);
	if (!e->items.n) {
		fault_set(f, 0, "nothing to do: no case and no query is left of the suite");
		return fail(f, EVAL_USAGE);
	}
	if (a->dry && a->json)
		suite_write(e->suite, &text);
	else
		eval_show_plan(e, &text);
	if (a->dry)
		return cmd_print(&text);
	if (!clients_are_there(e, f))
		return fail(f, EVAL_BROKEN);
	if (a->yes) {
		if (e->options.artifacts && !eval_hosts_agreed(e, f))
			return fail(f, EVAL_USAGE);
		if (cmd_print(&text))
			return EVAL_BROKEN;
	} else {
		answer = confirm(mem_printf("%sStart?", text.p), f);
		if (answer < 0)
			return fail(f, EVAL_USAGE);
		if (!answer)
			return EVAL_BROKEN;
	}
	if (scratch_make(&e->bench.scratch, &e->lock, f) < 0)
		return fail(f, EVAL_BROKEN);
	set_names(e);
	if (engine_open(e, a->resume, f) < 0) {
		scratch_remove(e->bench.scratch, e->lock);
		return fail(f, EVAL_BROKEN);
	}
	return run(e, &a->files, f);
}

/* ---- carrel eval init ---- */

static int init(const char *skill_dir)
{
	struct fault f = { 0 };
	struct suite_skill skill;
	struct str text = { 0 }, said = { 0 };
	const char *dir, *path;
	auto_close int fd = -1;

	if (!skill_dir && skill_here(&skill_dir, &f) < 0)
		return fail(&f, EVAL_USAGE);
	if (skill_read(skill_dir, &skill, &f) < 0)
		return fail(&f, EVAL_USAGE);
	suite_example(&skill, &text);
	dir = path_join(skill.dir, "evals");
	path = path_join(dir, "evals.json");
	if (mkdir(dir, 0777) < 0 && errno != EEXIST) {
		fault_set(&f, errno, "make %s", str_visible(dir));
		return fail(&f, EVAL_USAGE);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST) {
		fault_set(&f, 0, "%s is there already, and stays as it is", str_visible(path));
		fault_fix(&f, "To evaluate: carrel eval %s", str_visible(skill_dir));
		return fail(&f, EVAL_USAGE);
	}
	if (fd < 0 || fd_write_all(fd, text.p, text.len) < 0) {
		fault_set(&f, errno, "write %s", str_visible(path));
		return fail(&f, EVAL_USAGE);
	}
	str_addf(&said, "Wrote %s.\nNext: replace its texts, then carrel eval %s\n",
		str_visible(path), str_visible(skill_dir));
	return cmd_print(&said);
}

/* ---- the command ---- */

static int cmd_eval(void *args, int argc, char **argv)
{
	struct eval_args *a = args;
	struct fault f = { 0 };
	struct suite suite = { 0 };
	struct engine e = { .suite = &suite, .options = a->options, .journal = -1, .lock = -1 };
	int code;

	if (a->word && !strcmp(a->word, "init"))
		return init(a->second);
	if (a->second) {
		fault_set(&f, 0, "'eval' takes nothing more: '%s'", opt_shown(a->second));
		return fail(&f, EVAL_USAGE);
	}
	if (!a->word && !a->resume && !a->evals && !a->skill && skill_here(&a->word, &f) < 0)
		return fail(&f, EVAL_USAGE);
	if (a->resume && engine_remember(&e, a->resume, &f) < 0)
		return fail(&f, EVAL_USAGE);
	if (a->resume && a->mode == MODE_BOTH && e.options.artifacts != e.options.triggers)
		a->mode = e.options.artifacts ? MODE_ARTIFACT : MODE_TRIGGER;
	code = load_suite(a, &suite, &f);
	if (code)
		return code;
	e.options.artifacts = a->mode != MODE_TRIGGER;
	e.options.triggers = a->mode != MODE_ARTIFACT;
	e.options.jobs = e.options.jobs ? e.options.jobs : engine_default_jobs();
	if (!e.options.retries_said)
		e.options.retries = EVAL_RETRIES;
	if (e.options.threshold <= 0)
		e.options.threshold = 0.5;
	if (!e.options.min_n) {
		unsigned int repeat = e.options.repeat ? e.options.repeat : suite.repeat;

		e.options.min_n = repeat < 3 ? repeat : 3;
	}
	e.bench = (struct bench){ .suite = &suite,
		.run_fd = -1,
		.allow = a->allow,
		.services = a->services,
		.prompts = a->prompts,
		.grader_model = a->grader_model                           ? a->grader_model
			: !strcmp(suite.harness, "claude") && suite.model ? suite.model
									  : "sonnet" };
	for (int i = 0; i < argc; i++)
		vec_push(&e.bench.args, argv[i]);
	return start_eval(a, &e, &f);
}

static const struct opt eval_opts[] = {
	OPT_FLAG('y', "yes", struct eval_args, yes, "start without asking"),
	OPT_FLAG('n', "dry-run", struct eval_args, dry, "say what would be done and stop"),
	OPT_FLAG(0, "json", struct eval_args, json,
		"with -n: print the suite as it was understood, in carrel's own format"),
	OPT_STR(0, "evals", struct eval_args, evals, "PATH",
		"the suite, or the directory it is in", .hint = OPT_HINT_FILE),
	OPT_STR(0, "skill", struct eval_args, skill, "DIR", "the skill that a suite is about",
		.hint = OPT_HINT_DIR),
	OPT_STR(0, "variant", struct eval_args, variant, "DIR",
		"compare with this skill instead of none", .hint = OPT_HINT_DIR),
	OPT_FLAG(0, "no-baseline", struct eval_args, no_baseline,
		"make no attempts without the skill"),
	OPT_STR(0, "project-root", struct eval_args, project, "DIR",
		"the project whose copy is the workspace; the repository that the skill is in "
		"if not given",
		.hint = OPT_HINT_DIR),
	OPT_STR(0, "output-dir", struct eval_args, options.output_dir, "DIR",
		"make the run's directory in DIR", .hint = OPT_HINT_DIR),
	OPT_STR(0, "resume", struct eval_args, resume, "RUN",
		"go on with a run: make the attempts that it lacks", .hint = OPT_HINT_DIR),
	OPT_CHOICE(0, "mode", struct eval_args, mode, "both|artifact|trigger",
		"which evals of the suite"),
	OPT_STR(0, "filter", struct eval_args, options.filter, "ID[,ID]...",
		"only these cases and queries; * and ? match"),
	OPT_CALL(0, "repeat", parse_repeat, "N", "attempts of each case and query (3)"),
	OPT_CALL('j', "jobs", parse_jobs, "N",
		"attempts at a time; by cores and memory if not given"),
	OPT_STR(0, "harness", struct eval_args, harness, "CLIENT",
		"the client that makes the attempts (claude)"),
	OPT_STR(0, "model", struct eval_args, model, "MODEL", "its model (sonnet)"),
	OPT_STR(0, "grader-model", struct eval_args, grader_model, "MODEL",
		"the model that judges sentences; the same if not given"),
	OPT_CHOICE(0, "profile", struct eval_args, profile, "pure|realistic",
		"whether the client's own skills are there to compete"),
	OPT_STR(0, "control", struct eval_args, control, "QUERY",
		"what to ask of the control skill, which must fire"),
	OPT_CALL(0, "timeout", parse_timeout, "TIME", "limit of one attempt (10m, 3m)"),
	OPT_CALL(0, "max-usd", parse_usd, "USD", "start no more when so much is spent"),
	OPT_CALL(0, "max-time", parse_budget_time, "TIME", "start no more after so long"),
	OPT_CALL(0, "retries", parse_retries, "N",
		"try again what the infrastructure failed (2)"),
	OPT_CALL(0, "threshold", parse_threshold, "RATE",
		"what part of the attempts must pass (0.5)"),
	OPT_CALL(0, "min-n", parse_min_n, "N", "give no verdict on fewer attempts"),
	OPT_FLAG(0, "fail-fast", struct eval_args, options.fail_fast,
		"start no more after the first failure"),
	OPT_FLAG(0, "until-sure", struct eval_args, options.until_sure,
		"end the repeats of a case or query once a sequential test has decided it"),
	OPT_FLAG(0, "prompts", struct eval_args, prompts,
		"let the client ask for permission, which nobody gives"),
	OPT_CALL(0, "allow", parse_allow, "HOST[:PORT]",
		"let artifact evals reach a host; may be repeated", .hint = OPT_HINT_PRESET),
	OPT_CALL(0, "service", parse_service, "PORT",
		"let every box find the service at 127.0.0.1:PORT of this machine; may be "
		"repeated"),
	OPT_STR(0, "junit", struct eval_args, files.junit, "FILE", "write JUnit XML at the end",
		.hint = OPT_HINT_FILE),
	OPT_STR(0, "markdown", struct eval_args, files.markdown, "FILE",
		"write a summary in Markdown at the end", .hint = OPT_HINT_FILE),
	OPT_STR(0, "csv", struct eval_args, files.csv, "FILE",
		"write a row for each attempt at the end", .hint = OPT_HINT_FILE),
	OPT_STR(0, "inspect", struct eval_args, files.inspect, "FILE",
		"write a log for Inspect's viewer at the end", .hint = OPT_HINT_FILE),
	OPT_END,
};

const struct cmd cmd_eval_entry = {
	.name = "eval",
	.usage_exit = 2,
	.args = "[SKILL|SUITE] | init [SKILL] [-- ARG...]",
	.about = "evaluate a skill, each attempt in a clean box",
	.detail = "It reads suites of BMAD, of Anthropic's skill-creator and in carrel's own "
		  "format (`carrel schema suite`), and makes every attempt in a box that has "
		  "nothing of yours: an empty home, a copy of the project, the skill. Artifact "
		  "evals are graded by what the agent left behind, with the skill and without; "
		  "trigger evals by whether the skill was used. Without SKILL it is the one of "
		  "the "
		  "working directory, or the only one below it. Words after `--` go to "
		  "the client.\n"
		  "\n"
		  "An attempt that broke is an error and never a verdict. A run's directory "
		  "stays; its path is printed last. The exit code is 0 for pass, 1 for fail, 2 "
		  "for a wrong suite or command line, 3 when there is no verdict.\n"
		  "\n"
		  "  carrel eval skills/review\n"
		  "  carrel eval init skills/review",
	.opts = eval_opts,
	.size = sizeof(struct eval_args),
	.takes = TAKES_TWO,
	.run = cmd_eval,
};
