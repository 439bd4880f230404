/*
 * cli/opt.h - options as a table
 *
 * A row says everything about an option: how it is spelled, where its value goes,
 * what is a good value, what the help says and what a shell may complete. Nothing
 * else in the program knows an option's name.
 *
 * Long options take "--name value" and "--name=value", short ones "-n value" and
 * "-nvalue"; flags can be bundled ("-ny"). After "--" nothing is an option. Given
 * twice, a FLAG is set, STRING and CHOICE keep the last value, and a CALL is called
 * for each. An empty value is never a good one. -h and --help are in every table.
 *
 *	static const struct opt opts[] = {
 *		OPT_FLAG('n', "dry-run", struct args, dry, "print the plan and stop"),
 *		OPT_STR(0, "record", struct args, record, "FILE", "record it"),
 *		OPT_END,
 *	};
 */
#ifndef CLI_OPT_H
#define CLI_OPT_H

#include <stdbool.h>
#include <stddef.h>

struct fault;

enum opt_type {
	OPT_TYPE_END,
	OPT_TYPE_FLAG,   /* sets a bool */
	OPT_TYPE_STRING, /* sets a const char * */
	OPT_TYPE_CHOICE, /* sets an enum: 0 for the first of .choices, 1 for the second */
	OPT_TYPE_CALL,   /* hands the value to .call */
	OPT_TYPE_HELP,   /* --help itself */
};

/* What a shell offers as the value, beyond .choices and .stems. */
enum opt_hint {
	OPT_HINT_NONE,
	OPT_HINT_FILE,
	OPT_HINT_DIR,
	OPT_HINT_ENV,
	OPT_HINT_PRESET, /* "@github" and the like */
};

struct opt {
	enum opt_type type;
	char letter;         /* 0: none */
	const char *name;    /* without the dashes */
	size_t offset;       /* of the field in the command's struct */
	const char *value;   /* "FILE": the value's name in the help; NULL: takes none */
	const char *help;    /* one line, no full stop */
	const char *choices; /* "none|host": the only good values */
	const char *stems;   /* "time=|pids=": how a good value may begin */
	enum opt_hint hint;
	/*
	 * On a bad value the fault says what was expected; the caller adds the option and the
	 * value.
	 */
	int (*call)(void *args, const char *text, struct fault *f);
};

/* More fields of the row may follow each macro's arguments: .stems, .hint. */
#define OPT_FLAG(l, n, type_, field, help_)                        \
	{                                                          \
		.type = OPT_TYPE_FLAG, .letter = (l), .name = (n), \
		.offset = offsetof(type_, field), .help = (help_)  \
	}
#define OPT_STR(l, n, type_, field, value_, help_, ...)                               \
	{                                                                             \
		.type = OPT_TYPE_STRING, .letter = (l), .name = (n),                  \
		.offset = offsetof(type_, field), .value = (value_), .help = (help_), \
		__VA_ARGS__                                                           \
	}
#define OPT_CHOICE(l, n, type_, field, choices_, help_)                                       \
	{                                                                                     \
		.type = OPT_TYPE_CHOICE, .letter = (l), .name = (n),                          \
		.offset = offsetof(type_, field), .value = (choices_), .choices = (choices_), \
		.help = (help_)                                                               \
	}
#define OPT_CALL(l, n, call_, value_, help_, ...)                                   \
	{                                                                           \
		.type = OPT_TYPE_CALL, .letter = (l), .name = (n), .call = (call_), \
		.value = (value_), .help = (help_), __VA_ARGS__                     \
	}
#define OPT_END                      \
	{                            \
		.type = OPT_TYPE_END \
	}

enum opt_order {
	OPT_ANYWHERE,     /* options may follow words */
	OPT_BEFORE_WORDS, /* the first word ends the options: a command may follow */
};

/* The words that are not options. */
struct opt_rest {
	int argc;
	char **argv; /* NULL-terminated */
	int words;   /* how many of them come before a "--" */
	bool dashes; /* a "--" was there */
	bool help;   /* --help was given; nothing after it was read */
};

/*
 * Parse argv[1..] into args. opts may be NULL. argv is NULL-terminated and gets
 * reordered: ret->argv lies in it.
 */
int opt_parse(const struct opt *opts, enum opt_order order, void *args, int argc, char **argv,
	struct opt_rest *ret, struct fault *f);

/* All rows of a table (or NULL), and --help last: start with NULL, NULL ends. */
const struct opt *opt_next(const struct opt *opts, const struct opt *prev);
#define opt_each(row, opts_) \
	for (const struct opt *row = opt_next(opts_, NULL); row; row = opt_next(opts_, row))

/* "a|b" in parts. */
const char *const *opt_split(const char *choices, size_t *ret_n);

/* " (did you mean 'x'?)" with the name nearest to word, or "". */
const char *opt_suggest(const char *word, const char *const *names, size_t n);

/* Text from outside as it may stand in a message: visible, and not endless. */
const char *opt_shown(const char *text);

/* The index of text in "a|b"; a fault that says what was expected and what is near. */
int opt_choose(const char *choices, const char *text, unsigned int *ret, struct fault *f);

#endif
