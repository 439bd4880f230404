/*
 * eval/trial.h - one attempt, from an empty directory to a record
 *
 * The engine plans trials and gives each to a process of its own, the worker. It stages a
 * workspace, runs the agent's box, judges and grades, and writes everything to a directory
 * beside the final one, which it renames into place as its last act: an attempt is there
 * whole or not at all. What the engine must know at once comes over a pipe, as one struct
 * trial_note.
 *
 * The agent never sees a path of the record. Its workspace is in a scratch directory whose
 * name says nothing of the suite, the skill or the configuration; in the box the directories
 * above it are empty.
 */
#ifndef EVAL_TRIAL_H
#define EVAL_TRIAL_H

#include "eval/attempts.h"
#include "eval/box.h"
#include "eval/copy.h"
#include "eval/suite.h"
#include "eval/transcript.h"

struct fault;
struct harness;

/* What all trials of a run share. */
struct bench {
	const struct suite *suite;
	const char *run_dir; /* canonical */
	int run_fd;
	const char *scratch;      /* canonical; removed at the end */
	const char *trigger_name; /* the skill's unique name in trigger evals */
	const char *control_name;
	text_vec allow, services; /* for every box, from the command line */
	text_vec args;            /* for the client */
	const char *grader_model;
	bool prompts; /* let the client ask for permission, which nobody gives */
};

/* One attempt that is to be made. */
struct trial {
	enum attempt_kind kind;
	const struct suite_case *c;                      /* ARTIFACT */
	const struct suite_query *query;                 /* TRIGGER */
	const struct suite_configuration *configuration; /* ARTIFACT */
	const char *id;                                  /* "A1", "q007", "c1" */
	unsigned int run;                                /* from 1 */
	const char *dir;   /* below the run's: "queries/q007-r3" */
	const char *label; /* "q007#3" */
};

/* From the worker to the engine; fixed, so that it crosses a pipe whole. */
struct trial_note {
	enum attempt_outcome outcome;
	enum attempt_fired fired;
	bool written; /* the directory is in place */
	bool again;   /* the infrastructure failed in a way that may pass */
	bool limited; /* the API said that it is asked too often */
	bool refused; /* it refused the credential: no other attempt can do better */
	bool has_usd; /* the client said what it cost */
	long long
		reset_at; /* the user's limit is used up until then, Unix time; 0: it is not */
	double usd, seconds;
	char version[40], reason[300];
};

/* ---- stage.c ---- */

struct stage {
	const char *top;       /* the trial's scratch directory */
	const char *workspace; /* in it */
	int workspace_fd;
	const char *skill; /* the name under which it was staged; NULL: none */
	const struct harness *harness;
	const char *model;
	const char *manifest; /* path */
	const char *trust;    /* its hash */
	struct snapshot before;
};

int stage_trial(const struct bench *b, const struct trial *t, unsigned int number,
	struct stage *ret, struct fault *f);

/* argv of carrel for the agent's box: `run` with what is said before the agent's name. */
const char *const *stage_argv(const struct bench *b, const struct trial *t,
	const struct stage *s, bool plan);
const char *const *stage_env(const struct stage *s);

/* What the agent is told first. */
const char *stage_prompt(const struct bench *b, const struct trial *t);

/* The prompts of a conversation, as lines for the client's standard input. */
const char *stage_turn(const struct bench *b, const struct trial *t, size_t n);

/* The port of a base URL on this machine's loopback, or NULL. */
const char *stage_service(const struct harness *h);

/* ---- verdict.c ---- */

enum run_end { END_WELL, END_ERROR, END_LIMIT };

/* How the client's run ended, whatever it did; one sentence if not well. */
enum run_end verdict_end(const struct transcript *t, const struct box_end *end,
	const char *stderr_tail, const char **ret_reason);

/* Did a skill fire? Over the whole run. */
enum attempt_fired verdict_fired(const struct transcript *t, const char *skill);

/* Why a control did not fire, in one sentence. */
const char *verdict_control(const struct transcript *t, const char *skill);

/* May the same attempt succeed later? */
bool verdict_again(const struct transcript *t, const struct box_end *end);

/* ---- grade.c ---- */

struct expectation {
	const char *text;
	enum { PASSED_UNKNOWN, PASSED_NO, PASSED_YES } passed;
	const char *evidence;
	const char *grader;
	const char *weak; /* why it proves little; or NULL */
};
typedef VEC(struct expectation) expectation_vec;

struct grading {
	const struct bench *bench;
	const struct trial *trial;
	const struct stage *stage;
	const struct transcript *transcript;
	const struct snapshot *now;
	double seconds;
	const char *top; /* scratch for graders' boxes */
	int out;         /* the attempt's directory in the making */
	expectation_vec expectations;
	double usd;        /* what model graders cost */
	const char *error; /* a grader could not judge; or NULL */
};

void grade(struct grading *g);

/* ---- grade-model.c ---- */

void grade_by_model(struct grading *g);

/* ---- record.c ---- */

struct record {
	const struct trial *trial;
	const struct bench *bench;
	const struct transcript *transcript;
	const struct box_end *end;
	const struct tree_changes *changes;
	const struct grading *grading;
	const char *started, *ended, *plan, *reason;
	enum attempt_outcome outcome;
	enum attempt_fired fired;
	unsigned int tries;
};

/* All files of the attempt's directory but those that were written while it ran. */
int record_write(const struct record *r, int dir, struct fault *f);

/* At most so many bytes of a text, and no part of a character. */
const char *record_short(const char *text, size_t most);

/* eval_metadata.json alone. */
int record_metadata(const struct record *r, int dir, struct fault *f);

/* Write a whole file in dir. */
int record_file(int dir, const char *name, const char *bytes, size_t n, struct fault *f);

/* "2026-11-18T10:15:02Z" */
const char *record_time(void);

/* ---- trial.c ---- */

/* In the worker: make the attempt. number is unique in the run; tries counts from 1. */
void trial_run(const struct bench *b, const struct trial *t, unsigned int number,
	unsigned int tries, bool last, struct trial_note *ret);

#endif
