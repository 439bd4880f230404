/*
 * eval/attempts.h - a run directory, read back
 *
 * Everything that speaks about a run (summary, outputs, report) starts here: one call reads
 * run.json and every attempt.json that is there. A run that is under way, or was killed, is
 * read as far as it came.
 *
 *	$XDG_STATE_HOME/carrel/runs/<YYYYmmdd-HHMMSS>-<skill>/
 *	  run.json
 *	  eval-<case>/eval_metadata.json
 *	  eval-<case>/<configuration>/run-<K>/attempt.json	an artifact attempt
 *	  queries/q<NNN>-r<K>/attempt.json			a trigger attempt
 *	  controls/c<N>/attempt.json				a positive control
 *
 * What lies in there may be hostile: agents chose the bytes of transcripts and artifacts, and
 * anybody may hand over a run directory. So links are not followed, sizes are bounded, and a
 * value of the wrong type counts as missing. An attempt.json that cannot be read is an attempt
 * with the outcome error, never one that is left out.
 */
#ifndef EVAL_ATTEMPTS_H
#define EVAL_ATTEMPTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

struct fault;
struct json_value;

enum attempt_kind { ATTEMPT_ARTIFACT, ATTEMPT_TRIGGER, ATTEMPT_CONTROL };

/* A verdict is PASS or FAIL. The others say nothing of the skill, and no rate counts them. */
enum attempt_outcome {
	OUTCOME_PASS,
	OUTCOME_FAIL,
	OUTCOME_ERROR,
	OUTCOME_LIMIT,
	OUTCOME_SKIPPED,
	OUTCOME_UNGRADED,
};
enum { OUTCOMES = OUTCOME_UNGRADED + 1 };

/* What a trigger attempt showed. */
enum attempt_fired { FIRED_NONE, FIRED, FIRED_NOT, FIRED_OTHER, FIRED_ERROR };

enum { TOKENS_INPUT, TOKENS_OUTPUT, TOKENS_CACHE_READ, TOKENS_CACHE_CREATION, TOKEN_KINDS };

struct attempt {
	const char *path; /* below the run directory: "eval-A1/with_skill/run-1" */
	enum attempt_kind kind;
	enum attempt_outcome outcome;
	enum attempt_fired fired;
	bool should_trigger;       /* TRIGGER, CONTROL */
	const char *id;            /* of the case or query; never NULL */
	const char *configuration; /* never NULL; "" for triggers and controls */
	const char *query;         /* or NULL */
	const char *reason;        /* one sentence, or "" */
	const char *started, *ended;
	unsigned int run;                     /* from 1 */
	double seconds, usd;                  /* NAN: not known */
	double turns, exit, retries, denials; /* the same */
	double tokens[TOKEN_KINDS];           /* the same */
	const struct json_value *json;        /* all of attempt.json, or NULL */
};

struct run_dir {
	const char *path;
	int fd;
	const struct json_value *json;                   /* run.json */
	const char *id, *skill;                          /* never NULL */
	const char *harness, *version, *model, *profile; /* "" where run.json does not say */
	const char *started, *ended;                     /* or NULL */
	const char *const *configurations; /* as in run.json; those found are added */
	size_t configuration_count;
	unsigned int planned; /* 0: run.json does not say */
	unsigned int min_n, repeat;
	double threshold;
	const char *memory;           /* where mem.h was when reading began */
	VEC(struct attempt) attempts; /* artifacts, triggers, controls; each in order of name */
};

/* run.json may be missing in a directory that holds attempts; with neither it is a fault. */
int run_dir_read(const char *path, struct run_dir *ret, struct fault *f);

/*
 * A file of a run, NUL-terminated; beneath the directory, through no link. *ret_n is what was
 * read, at most max bytes; *ret_size is how large the file is. NULL and errno.
 */
char *run_dir_file(const struct run_dir *run, const char *dir, const char *name, size_t max,
	size_t *ret_n, size_t *ret_size);

/* What is in a directory of the run, in natural order (run-2 before run-10); NULL ends. */
const char *const *run_dir_list(const struct run_dir *run, const char *dir);

/* Replace a file of the run, or make it, by rename(2); dir is below the run's directory. */
int run_dir_write(const struct run_dir *run, const char *dir, const char *name,
	const char *bytes, size_t n, struct fault *f);

const char *attempt_outcome_name(enum attempt_outcome outcome); /* "pass" */
const char *attempt_fired_name(enum attempt_fired fired);       /* "not_fired"; NULL for NONE */

/* Members of what was read: NULL, NAN or false where the key is missing or of another type. */
const char *member_text(const struct json_value *v, const char *key);
double member_number(const struct json_value *v, const char *key);

#endif
