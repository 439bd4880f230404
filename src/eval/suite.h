/*
 * eval/suite.h - what is to be evaluated: cases, queries, graders
 *
 * One structure for every format that carrel reads: BMAD's first and second, skill-creator's,
 * trigger sets under their many names, and carrel's own, which has all that the others have.
 * The kind of a row is judged by what is in it, never by the name of its file. suite_write()
 * writes the structure in carrel's own format, so what a run records can be read back.
 *
 * A suite is text from outside. Everything wrong with it is reported at once, each problem
 * with its line and column, before anything starts. A case that names a file which is not
 * there would silently test something else, so that is an error, too.
 */
#ifndef EVAL_SUITE_H
#define EVAL_SUITE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

struct fault;
struct json;
struct json_value;
struct str;

enum {
	SUITE_BYTES = 32 << 20, /* the largest file that is read */
	SUITE_REPEAT = 3,       /* attempts of each case and query, if nobody says */
	SUITE_ROWS = 100000,
};

typedef VEC(const char *) text_vec;

enum grader_kind {
	GRADE_MODEL,
	GRADE_EXISTS,
	GRADE_ABSENT,
	GRADE_CONTAINS,
	GRADE_REGEX,
	GRADE_JSON,
	GRADE_UNCHANGED,
	GRADE_TOOL_CALLED,
	GRADE_TOOL_NEVER,
	GRADE_TOOL_ORDER,
	GRADE_COMMAND,
	GRADE_MAX_USD,
	GRADE_MAX_TURNS,
	GRADE_MAX_SECONDS,
	GRADE_KINDS,
};

/* A file of a case: where it is, and its path in the workspace. */
struct suite_file {
	const char *from, *to;
	const char *where; /* "evals.json:3:7", for a complaint about it */
};
typedef VEC(struct suite_file) file_vec;

struct grader {
	enum grader_kind kind;
	const char *text;    /* the sentence that stands in reports */
	const char *path;    /* of a file below the workspace; NULL: the final answer */
	const char *pattern; /* text or regular expression */
	const char *at;      /* JSON: "a.b[0]" */
	const struct json_value *equals; /* JSON: or NULL, then it need only be there */
	text_vec words;                  /* tools, or the command */
	file_vec files;                  /* COMMAND: put into the workspace before it runs */
	double number;                   /* a ceiling, an exit code, how often at least */
};
typedef VEC(struct grader) grader_vec;

const char *grader_name(enum grader_kind kind);

/* 0 is no limit, or the default. */
struct suite_limits {
	unsigned long long time, idle; /* seconds */
	unsigned long long turns;
	double usd;
};

struct suite_case {
	const char *id;   /* as it was written */
	const char *safe; /* as the name of a directory; unique in the suite */
	const char *name; /* for a person; or NULL */
	const char *prompt;
	text_vec turns; /* what the user says after each answer */
	const char *expected;
	file_vec files;
	text_vec setups; /* directories whose contents go into the workspace, in order */
	grader_vec graders;
	struct suite_limits limits;
	text_vec allow;          /* hosts beyond the model's */
	text_vec configurations; /* none: all */
	unsigned int repeat;     /* 0: the suite's */
	const char *where;       /* "evals.json:3:7" */
};
typedef VEC(struct suite_case) case_vec;

struct suite_query {
	const char *query;
	bool should_trigger;
};
typedef VEC(struct suite_query) query_vec;

struct suite_configuration {
	const char *name;
	bool no_skill;
	const char *skill;           /* another directory than the suite's; or NULL */
	const char *harness, *model; /* NULL: the suite's */
	const char *where;           /* "evals.json:3:7" */
};
typedef VEC(struct suite_configuration) configuration_vec;

struct suite_skill {
	const char *dir;  /* canonical; NULL: there is none */
	const char *name; /* as its front matter or its directory says */
	const char *description;
};

struct suite {
	const char *path;         /* the first file that it was read from, canonical */
	const char *trigger_path; /* where its queries are from, if from another; or NULL */
	const char *dir;          /* of path */
	const char *root;         /* what it names must lie below this; NULL: anywhere */
	const char *kind;         /* "bmad", "bmad-v2", "skill-creator", "triggers", "carrel" */
	const char *sha256;       /* of the bytes of its files */
	struct suite_skill skill;
	const char *project; /* whose copy is the workspace; NULL: an empty one */
	const char *harness, *model;
	const char *realistic; /* non-NULL: "realistic"; bundled skills are there */
	text_vec command;      /* of the harness "command" */
	const char *control;   /* the query of the positive control; NULL: carrel's own */
	bool numbered;         /* every id is a whole number */
	unsigned int repeat;
	struct suite_limits limits;
	text_vec allow;
	configuration_vec configurations;
	case_vec cases;
	query_vec queries;
};

/* What is wrong, a line each: "evals.json:3:7: ...". */
typedef VEC(const char *) suite_errors;

struct suite_where {
	const char *given;   /* a skill's directory or a suite's file, as typed */
	const char *evals;   /* --evals, or NULL */
	const char *skill;   /* --skill, or NULL */
	const char *project; /* --project-root, or NULL: the repository that has the skill */
};

/*
 * Find the suite's files, read them and everything they name. notes: which file was taken
 * where two could be meant. -EINVAL with errors where the text is wrong; any other failure is
 * in the fault.
 */
int suite_load(const struct suite_where *where, struct suite *ret, suite_errors *errors,
	text_vec *notes, struct fault *f);

/* ---- suite-read.c ---- */

/* Add what the file has to the suite. Nothing is looked up on the host. */
int suite_read(struct suite *s, const char *path, const char *bytes, size_t n,
	suite_errors *errors);

/* Ids in their safe form; and what is wrong across rows. */
void suite_finish(struct suite *s, suite_errors *errors);

/* ---- suite-grader.c ---- */

struct suite_reader;
void suite_grader(struct suite_reader *r, const struct json_value *v, grader_vec *ret);
void grader_write(struct json *j, const struct grader *g);
void grader_schema(struct json *j, enum grader_kind kind);

/* ---- suite-find.c ---- */

/* The file of the suite as --resume finds it again. */
int suite_resume(const char *path, struct suite *ret, suite_errors *errors, struct fault *f);

/* A skill's name and description, from its SKILL.md. */
int skill_read(const char *dir, struct suite_skill *ret, struct fault *f);

/* The directory of the skill that somebody means who names none: ".", or the only one below. */
int skill_here(const char **ret, struct fault *f);

/* ---- suite-write.c ---- */

void suite_write(const struct suite *s, struct str *out);
void suite_write_files(struct json *j, const file_vec *files);

/* ---- suite-schema.c ---- */

/* The schema of that format, for editors. */
void suite_schema(struct str *out);

/* A suite to begin with, for this skill. */
void suite_example(const struct suite_skill *skill, struct str *out);

#endif
