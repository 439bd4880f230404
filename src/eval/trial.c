/*
 * eval/trial.c - one attempt, in the worker
 */
#include "eval/trial.h"
#include "harness/harness.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TRIGGER_TIME = 180,
	ARTIFACT_TIME = 600,
	IDLE_TIME = 300,
	PLAN_BYTES = 8 << 20,
	EVENTS_BYTES = 64 << 20,
};

struct worker {
	const struct bench *bench;
	const struct trial *trial;
	struct stage stage;
	struct transcript transcript;
	struct box_end end;
	size_t turn;      /* of the user's, that was said last */
	const char *part; /* the directory in the making, below the run's */
	int dir;
	const char *plan;
	struct tree_changes changes;
	struct grading grading;
	bool graded;
};

/* ---- the box ---- */

static enum box_stop on_line(void *arg, const char *line, size_t n)
{
	struct worker *w = arg;
	size_t before = w->transcript.calls_n;

	transcript_line(&w->transcript, line, n);
	if (w->transcript.auth_failed)
		return STOP_REFUSED;
	if (w->trial->kind == ATTEMPT_ARTIFACT || w->transcript.calls_n == before)
		return STOP_NOT;
	/* A positive cannot become a negative any more: what follows would cost money. */
	return verdict_fired(&w->transcript, w->stage.skill) == FIRED ? STOP_FIRED : STOP_NOT;
}

static const char *next_turn(void *arg)
{
	struct worker *w = arg;

	return stage_turn(w->bench, w->trial, w->turn++);
}

static bool is_over(void *arg)
{
	struct worker *w = arg;

	return w->transcript.results > (w->turn ? w->turn - 1 : 0);
}

static void set_limits(const struct worker *w, struct box_job *job)
{
	const struct suite_limits *all = &w->bench->suite->limits;
	const struct suite_limits *own = w->trial->c ? &w->trial->c->limits : all;

	job->time = own->time ? own->time : all->time;
	job->idle = own->idle ? own->idle : all->idle;
	if (!job->time)
		job->time = w->trial->c ? ARTIFACT_TIME : TRIGGER_TIME;
	if (!job->idle)
		job->idle = IDLE_TIME;
}

static int run_agent(struct worker *w, struct fault *f)
{
	auto_close int out = openat(w->dir, "transcript.jsonl",
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	auto_close int err = openat(w->dir, "stderr.txt",
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	struct box_job job = {
		.argv = stage_argv(w->bench, w->trial, &w->stage, false),
		.env = stage_env(&w->stage),
		.out = out,
		.err = err,
		.line = on_line,
		.over = w->stage.harness == &harness_command ? NULL : is_over,
		.input = w->trial->c && w->trial->c->turns.n ? next_turn : NULL,
		.arg = w,
	};

	if (out < 0 || err < 0)
		return fault_set(f, errno, "write the transcript");
	set_limits(w, &job);
	return box_run(&job, &w->end, f);
}

/* What the box will be, in words and as a hash. */
static int keep_plan(struct worker *w, struct fault *f)
{
	char *text;
	int code,
		rc = box_output(stage_argv(w->bench, w->trial, &w->stage, true),
			stage_env(&w->stage), 60, PLAN_BYTES, &text, &code, f);

	if (rc < 0 || code != 0)
		return rc; /* the start itself will say why it cannot be */
	w->plan = hash_hex(text, strlen(text));
	return record_file(w->dir, "plan.json", text, strlen(text), f);
}

/* The record of its network: the one box that this state directory knows. */
static void keep_events(struct worker *w)
{
	auto_close int boxes = openat(AT_FDCWD, path_join(w->stage.top, "state/carrel/boxes"),
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree_names names = { 0 };
	struct fault f;
	size_t n;

	if (boxes < 0 || tree_list(boxes, &names) < 0)
		return;
	vec_each(name, &names) {
		int fd = copy_open_file(boxes, mem_printf("%s/events.jsonl", *name));
		const char *text = fd < 0 ? NULL : fd_read_bytes(fd, EVENTS_BYTES, &n);

		if (text)
			(void)record_file(w->dir, "events.jsonl", text, n, &f);
	}
}

static const char *prompt_text(const struct worker *w)
{
	const struct trial *t = w->trial;
	struct str out = { 0 };

	str_add(&out, stage_prompt(w->bench, t));
	for (size_t i = 0; t->c && i < t->c->turns.n; i++)
		str_addf(&out, "\n\n---\n\n%s", t->c->turns.v[i]);
	return out.p;
}

/* ---- judging ---- */

/* What changed files were, for the report. That it cannot be kept is no failure. */
static void keep_originals(struct worker *w)
{
	struct fault f = { 0 };
	text_vec trees = { 0 };
	auto_close int out = -1;

	if (!w->changes.changed.n)
		return;
	if (w->bench->suite->project)
		vec_push(&trees, w->bench->suite->project);
	if (w->trial->c)
		vec_each(setup, &w->trial->c->setups)
			vec_push(&trees, *setup);
	out = copy_make_dirs(w->dir, "before", &f);
	if (out >= 0)
		snapshot_originals(&w->stage.before, &w->changes.changed, &trees, out);
}

static int collect_changes(struct worker *w, struct snapshot *now, struct fault *f)
{
	auto_close int out = copy_make_dirs(w->dir, "artifacts", f);
	int rc = out < 0 ? out : snapshot_take(w->stage.workspace_fd, now, f);

	if (rc == 0)
		rc = snapshot_collect(&w->stage.before, now, w->stage.workspace_fd, out,
			&w->changes, f);
	if (rc == 0)
		keep_originals(w);
	return rc;
}

static void judge_artifact(struct worker *w, const struct snapshot *now, struct record *r)
{
	struct grading *g = &w->grading;
	bool passed = true;
	struct str deleted = { 0 };
	struct fault f;

	if (!w->trial->c->graders.n) {
		r->outcome = OUTCOME_UNGRADED;
		r->reason = "the case has no assertions";
		return;
	}
	vec_each(path, &w->changes.deleted)
		str_addf(&deleted, "%s\n", *path);
	(void)record_file(w->dir, "deleted.txt", deleted.p ? deleted.p : "", deleted.len, &f);
	*g = (struct grading){ .bench = w->bench,
		.trial = w->trial,
		.stage = &w->stage,
		.transcript = &w->transcript,
		.now = now,
		.seconds = w->end.seconds,
		.top = w->stage.top,
		.out = w->dir };
	grade(g);
	w->graded = true;
	r->grading = g;
	vec_each(x, &g->expectations)
		passed &= x->passed == PASSED_YES;
	r->outcome = g->error ? OUTCOME_ERROR : passed ? OUTCOME_PASS : OUTCOME_FAIL;
	r->reason = g->error;
	vec_each(x, &g->expectations)
		if (!r->reason && x->passed == PASSED_NO)
			r->reason = mem_printf("not met: %s", record_short(x->text, 200));
}

static void judge_trigger(struct worker *w, struct record *r)
{
	bool should = w->trial->query ? w->trial->query->should_trigger : true;

	r->fired = verdict_fired(&w->transcript, w->stage.skill);
	r->outcome = (r->fired == FIRED) == should ? OUTCOME_PASS : OUTCOME_FAIL;
	if (w->trial->kind == ATTEMPT_CONTROL && r->fired != FIRED)
		r->reason = verdict_control(&w->transcript, w->stage.skill);
}

static void judge_trial(struct worker *w, struct record *r, struct trial_note *note)
{
	const char *err = fd_read_file(w->dir, "stderr.txt", BOX_STDERR + 1);
	enum run_end end = verdict_end(&w->transcript, &w->end, err ? err : "", &r->reason);
	struct snapshot now = { 0 };
	struct fault f = { 0 };

	if (w->end.stop == STOP_FIRED) {
		end = END_WELL;
		r->reason = NULL;
	}
	r->fired = w->trial->kind == ATTEMPT_ARTIFACT ? FIRED_NONE : FIRED_ERROR;
	r->outcome = end == END_LIMIT ? OUTCOME_LIMIT : OUTCOME_ERROR;
	note->again = end == END_ERROR && verdict_again(&w->transcript, &w->end);
	note->reset_at = note->again ? w->transcript.reset_at : 0;
	note->limited = note->again && (note->reset_at || w->transcript.api_status == 429);
	note->refused = w->transcript.auth_failed;
	if (w->trial->kind == ATTEMPT_ARTIFACT) {
		r->changes = &w->changes;
		if (collect_changes(w, &now, &f) < 0 || now.cut) {
			r->outcome = OUTCOME_ERROR;
			r->reason = now.cut ? "the workspace has more files than are kept"
					    : mem_strdup(fault_line(&f));
			return;
		}
	}
	if (end == END_WELL && w->trial->kind == ATTEMPT_ARTIFACT)
		judge_artifact(w, &now, r);
	else if (end == END_WELL)
		judge_trigger(w, r);
}

/* ---- the record ---- */

static int begin_trial(struct worker *w, unsigned int number, struct fault *f)
{
	const char *prompt;
	int rc;

	w->part = mem_printf(".partial-%u", number);
	rc = tree_remove(w->bench->run_fd, w->part, f);
	if (rc == 0)
		rc = w->dir = copy_make_dirs(w->bench->run_fd, w->part, f);
	if (rc < 0)
		return rc;
	rc = stage_trial(w->bench, w->trial, number, &w->stage, f);
	if (rc < 0)
		return rc;
	w->transcript.harness = w->stage.harness;
	prompt = prompt_text(w);
	rc = record_file(w->dir, "prompt.txt", prompt, strlen(prompt), f);
	return rc < 0 ? rc : keep_plan(w, f);
}

/* Last: from here on the attempt counts. */
static int publish(struct worker *w, const struct record *r, struct fault *f)
{
	const struct trial *t = w->trial;
	auto_close int parent = -1, json = -1;
	int rc = record_write(r, w->dir, f);

	if (rc < 0)
		return rc;
	json = openat(w->dir, "attempt.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (json < 0 || fsync(json) < 0)
		return fault_set(f, errno, "write attempt.json");
	parent = copy_make_dirs(w->bench->run_fd,
		mem_strndup(t->dir, (size_t)(strrchr(t->dir, '/') - t->dir)), f);
	if (parent < 0)
		return parent;
	if (renameat(w->bench->run_fd, w->part, parent, path_base(t->dir)) < 0)
		return fault_set(f, errno, "put %s in place", t->dir);
	return 0;
}

static void fill_note(const struct worker *w, const struct record *r, struct trial_note *note)
{
	note->outcome = r->outcome;
	note->fired = r->fired;
	note->usd = w->transcript.usd + w->grading.usd;
	note->has_usd = w->transcript.has_usd || w->stage.harness == &harness_command;
	note->seconds = w->end.seconds;
	snprintf(note->version, sizeof(note->version), "%s",
		w->transcript.version ? str_visible(w->transcript.version) : "");
	snprintf(note->reason, sizeof(note->reason), "%s",
		r->reason ? record_short(str_visible(r->reason), sizeof(note->reason) - 8)
			  : "");
}

void trial_run(const struct bench *b, const struct trial *t, unsigned int number,
	unsigned int tries, bool last, struct trial_note *ret)
{
	struct worker w = { .bench = b, .trial = t, .dir = -1 };
	struct record r = { .trial = t,
		.bench = b,
		.transcript = &w.transcript,
		.end = &w.end,
		.tries = tries,
		.started = record_time(),
		.outcome = OUTCOME_ERROR };
	struct fault f = { 0 };
	int rc = begin_trial(&w, number, &f);

	if (rc == 0)
		rc = run_agent(&w, &f);
	if (rc == 0) {
		keep_events(&w);
		judge_trial(&w, &r, ret);
	} else {
		r.reason = mem_strdup(fault_line(&f));
		r.fired = t->kind == ATTEMPT_ARTIFACT ? FIRED_NONE : FIRED_ERROR;
	}
	r.ended = record_time();
	r.plan = w.plan;
	fill_note(&w, &r, ret);
	/* That somebody's limit is used up says nothing of the attempt. */
	ret->again &= !last || ret->reset_at;
	if (w.dir >= 0 && !ret->again && w.end.stop != STOP_CANCELLED)
		rc = publish(&w, &r, &f);
	ret->written = w.dir >= 0 && !ret->again && w.end.stop != STOP_CANCELLED && rc == 0;
	if (w.dir >= 0 && !ret->written)
		(void)tree_remove(b->run_fd, w.part, &f);
	(void)tree_remove(AT_FDCWD, mem_printf("%s/%u", b->scratch, number), &f);
}
