/*
 * cli/cmd.h - a command is one file that ends in one struct cmd
 *
 * Help, man page and completion are derived from these tables; cli/commands.c lists
 * them. main() only looks the command up; cmd_dispatch() parses its options into a
 * zeroed struct of .size bytes, checks its words and calls .run, whose result is the
 * exit code.
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/opt.h"

struct fault;
struct str;

#ifndef CARREL_VERSION
#define CARREL_VERSION "0.1.0"
#endif

/* What a command takes besides options; checked before .run, and completed by shells. */
enum cmd_takes {
	TAKES_NOTHING,
	TAKES_CHOICE,  /* one of .choices; perhaps none, where it is .optional */
	TAKES_COMMAND, /* perhaps the name of one of our commands */
	TAKES_WORD,    /* perhaps one word */
	TAKES_PATHS,   /* files and directories, perhaps none */
	TAKES_WORDS,   /* TAKES_CHOICE, and after it any words: .run checks those */
	TAKES_BOX,     /* the name of a box, and after it .more words: .args is "BOX ..." */
	TAKES_TWO,     /* perhaps one or two words, and after "--" words for a client */
	TAKES_LINE,    /* perhaps an agent's name, and after "--" a command line for the box */
};

struct cmd {
	const char *name;
	const char *args;  /* synopsis after the name and the options, or NULL */
	const char *about; /* one line, no full stop */
	/*
	 * Paragraphs for the man page and --help, or NULL. An empty line separates them. A line
	 * that begins with a space is an example and keeps its line breaks; `this` is literal.
	 */
	const char *detail;
	const struct opt *opts; /* ends with OPT_END, or NULL */
	/*
	 * Size of the struct that the options fill in. With TAKES_LINE it begins with a const
	 * char * for the word before the "--", and .run gets the words after it; with TAKES_TWO
	 * it begins with two of them.
	 */
	size_t size;
	enum cmd_takes takes;
	const char *choices; /* TAKES_CHOICE, TAKES_WORDS: "bash|zsh" */
	bool optional;       /* the same */
	int more;           /* TAKES_BOX; -1: a command line, and options only before the box */
	bool many;          /* TAKES_BOX: any number of words after the box */
	bool ended;         /* TAKES_BOX: also one that has ended and left a record */
	enum opt_hint hint; /* TAKES_BOX: what a shell offers after the box */
	bool agents;        /* TAKES_LINE: the word before the "--" may name an agent */
	int usage_exit;     /* what bad usage exits with; 0: EXIT_CARREL */
	/* argv: what is left after the options, NULL-terminated. */
	int (*run)(void *args, int argc, char **argv);
};

extern const struct cmd *const commands[]; /* NULL-terminated, in the order of the help */
#define cmd_each(c) for (const struct cmd *const *c##_ = commands, *c; (c = *c##_); c##_++)

/* The program itself: what it is in one line, and the options before any command. */
struct program_args {
	bool version;
};
extern const char program_about[];
extern const struct opt program_opts[];

/* Exit codes of carrel itself; see also 128+n. */
enum {
	EXIT_CARREL = 125,      /* carrel failed: bad usage, refused, could not build the box */
	EXIT_CANNOT_EXEC = 126, /* the command is there but cannot be executed */
	EXIT_NOT_FOUND = 127,   /* no such command in the box */
};

/* The command of that name; a fault that names the nearest one. */
int cmd_find(const char *name, const struct cmd **ret, struct fault *f);

/*
 * The next paragraph of a text like .detail, or NULL at the end; *ret_len is its length, and
 * *text is advanced.
 */
const char *cmd_paragraph(const char **text, size_t *ret_len);

/* "carrel run [OPTION]... -- CMD" */
const char *cmd_synopsis(const struct cmd *c);

/* Run the command argv[0] with its options and words; the exit code. */
int cmd_dispatch(int argc, char **argv);

/* Print a fault as "carrel: <what>: <errno text>" and its fix on a second line; returns 125. */
int cmd_fail(const struct fault *f);

/* Print what is wrong with a manifest, a line each, as cmd_note() does; returns 125. */
int cmd_problems(const char *const *lines, size_t n);

/*
 * Print "carrel: <line>" to standard error; a line that begins with a space continues the one
 * before.
 */
void cmd_note(const char *line);

/* Write text to standard output; the exit code: 0, or 125 when it could not all be written. */
int cmd_print(const struct str *text);

/* May output to fd be bold and coloured? Yes on a terminal, unless NO_COLOR is set. */
bool cmd_colour(int fd);

#endif
