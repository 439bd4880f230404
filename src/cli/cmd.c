/*
 * cli/cmd.c - from a command's name to its run function, and what all commands share
 *
 * The only place that prints a fault. Its text may hold bytes from outside; whoever
 * wrote it should have made them visible, but the last filter is here, so that no
 * file name can drive the terminal through an error message.
 */
#include "cli/cmd.h"
#include "cli/help.h"
#include "cli/opt.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cmd_find(const char *name, const struct cmd **ret, struct fault *f)
{
	VEC(const char *) names = { 0 };

	cmd_each(c) {
		if (!strcmp(c->name, name)) {
			*ret = c;
			return 0;
		}
		vec_push(&names, c->name);
	}
	fault_set(f, 0, "unknown command '%s'%s", opt_shown(name),
		opt_suggest(name, names.v, names.n));
	return fault_fix(f,
		"See `carrel --help` for the commands; "
		"`carrel run -- CMD` puts a program into a box.");
}

const char *cmd_paragraph(const char **text, size_t *ret_len)
{
	const char *start = *text, *end;

	if (!start || !*start)
		return NULL;
	end = strstr(start, "\n\n");
	*ret_len = end ? (size_t)(end - start) : strlen(start);
	*text = end ? end + 2 : NULL;
	return start;
}

const char *cmd_synopsis(const struct cmd *c)
{
	return mem_printf("carrel %s%s%s%s", c->name, c->opts ? " [OPTION]..." : "",
		c->args ? " " : "", c->args ? c->args : "");
}

static int check_box(const struct cmd *c, const struct opt_rest *rest, struct fault *f)
{
	if (rest->argc == 1 + c->more || (c->more < 0 && rest->argc > 1) ||
		(c->many && rest->argc))
		return 0;
	if (c->more >= 0 && rest->argc > 1 + c->more)
		return fault_set(f, 0, "'%s' takes nothing more: '%s'", c->name,
			opt_shown(rest->argv[1 + c->more]));
	if (!rest->argc)
		return fault_set(f, 0, "'%s' needs the name of a box", c->name);
	return fault_set(f, 0, "'%s' needs %s after the name of the box", c->name,
		strchr(c->args, ' ') + 1);
}

/* Check the command's words. */
static int check_words(const struct cmd *c, const struct opt_rest *rest, struct fault *f)
{
	unsigned int choice;

	switch (c->takes) {
	case TAKES_LINE:
		if (rest->words <= 1)
			return 0;
		return fault_set(f, 0,
			"unexpected '%s': the command for the box comes after '--'",
			opt_shown(rest->argv[1]));
	case TAKES_TWO:
		if (rest->words <= 2)
			return 0;
		return fault_set(f, 0, "'%s' takes nothing more: '%s'", c->name,
			opt_shown(rest->argv[2]));
	case TAKES_CHOICE:
	case TAKES_WORDS:
		if (rest->argc == 0 && c->optional)
			return 0;
		if (rest->argc == 0)
			return fault_set(f, 0, "'%s' needs a word: %s", c->name, c->choices);
		if (opt_choose(c->choices, rest->argv[0], &choice, f) < 0)
			return fault_set(f, 0, "%s '%s': %s", c->name, opt_shown(rest->argv[0]),
				mem_strdup(f->text));
		if (c->takes == TAKES_WORDS)
			return 0;
		break;
	case TAKES_BOX:
		return check_box(c, rest, f);
	case TAKES_PATHS:
		return 0;
	default:
		break;
	}
	if (rest->argc > (c->takes != TAKES_NOTHING))
		return fault_set(f, 0, "'%s' takes nothing more: '%s'", c->name,
			opt_shown(rest->argv[c->takes != TAKES_NOTHING]));
	return 0;
}

int cmd_dispatch(int argc, char **argv)
{
	struct fault f = { 0 };
	struct opt_rest rest;
	const struct cmd *c;
	void *args;

	if (cmd_find(argv[0], &c, &f) < 0)
		return cmd_fail(&f);
	args = mem_alloc(c->size);
	if (opt_parse(c->opts, c->more < 0 ? OPT_BEFORE_WORDS : OPT_ANYWHERE, args, argc, argv,
		    &rest, &f) < 0 ||
		(!rest.help && check_words(c, &rest, &f) < 0)) {
		if (!f.fix[0])
			fault_fix(&f, "Usage: %s; see `carrel %s --help`.", cmd_synopsis(c),
				c->name);
		cmd_fail(&f);
		return c->usage_exit ? c->usage_exit : EXIT_CARREL;
	}
	if (rest.help)
		return help_print(c);
	if (c->takes == TAKES_LINE || c->takes == TAKES_TWO)
		for (int i = 0; i < rest.words; i++) {
			((const char **)args)[i] = *rest.argv++;
			rest.argc--;
		}
	return c->run(args, rest.argc, rest.argv);
}

/*
 * str_add_visible() without escaping backslashes, because text may have been made visible
 * before.
 */
static void add_harmless(struct str *out, const char *text)
{
	for (;;) {
		size_t n = strcspn(text, "\\");

		str_add_visible(out, mem_strndup(text, n));
		if (!text[n])
			return;
		str_addc(out, '\\');
		text += n + 1;
	}
}

/*
 * One write, so that lines of several carrels do not mix. A failure to write to standard error
 * cannot be reported anywhere.
 */
static void write_lines(const struct str *text)
{
	(void)fd_write_all(STDERR_FILENO, text->p, text->len);
}

/* What to do about a full disk. */
static const char *advice_of(int err)
{
	if (err == ENOSPC)
		return "Make room there: `df -h` shows which disk is full, `df -i` which has "
		       "no files left.";
	return err == EDQUOT ? "Your quota there is used up: make room." : NULL;
}

int cmd_fail(const struct fault *f)
{
	const char *full = advice_of(f->err);
	struct str line = { 0 };

	str_add(&line, "carrel: ");
	if (f->step[0] && strcmp(f->step, "exec"))
		str_addf(&line, "building the box (%s): ", f->step);
	add_harmless(&line, f->text);
	if (f->err)
		str_addf(&line, ": %s", strerror(f->err));
	str_addc(&line, '\n');
	if (f->fix[0] || full) {
		str_add(&line, "  ");
		add_harmless(&line, f->fix[0] ? f->fix : full);
		str_addc(&line, '\n');
	}
	write_lines(&line);
	return EXIT_CARREL;
}

void cmd_note(const char *line)
{
	struct str text = { 0 };

	str_add(&text, line[0] == ' ' ? "" : "carrel: ");
	add_harmless(&text, line);
	str_addc(&text, '\n');
	write_lines(&text);
}

int cmd_problems(const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		cmd_note(lines[i]);
	return EXIT_CARREL;
}

int cmd_print(const struct str *text)
{
	struct fault f = { 0 };
	int rc = fd_write_all(STDOUT_FILENO, text->p, text->len);

	if (rc == 0)
		return EXIT_SUCCESS;
	fault_set(&f, -rc, "write to standard output");
	return cmd_fail(&f);
}

bool cmd_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no_color && *no_color)
		return false;
	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}
