/*
 * cli/help.c - help texts, made from the tables
 *
 * Lines are at most 80 columns wherever they go, so that what is read in a log is
 * what was seen on the terminal. Texts of the tables are ASCII: a byte is a column.
 */
#include "cli/help.h"
#include "cli/cmd.h"
#include "cli/opt.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>
#include <unistd.h>

enum {
	WIDTH = 80,
	COMMAND_COLUMN = 14, /* where the texts of commands begin */
	OPTION_COLUMN = 30,  /* and those of options */
};

static void add_heading(struct str *out, bool bold, const char *text)
{
	str_addf(out, bold ? "\033[1m%s\033[0m" : "%s", text);
}

static void add_spaces(struct str *out, size_t n)
{
	while (n--)
		str_addc(out, ' ');
}

/* The first n bytes of text as lines between indent and WIDTH; the cursor is at indent. */
static void add_wrapped(struct str *out, const char *text, size_t n, size_t indent)
{
	const char *end = text + n;
	size_t column = indent;

	while (text < end) {
		size_t len = strcspn(text, " \n");

		if (len > (size_t)(end - text))
			len = (size_t)(end - text);
		if (column > indent && column + 1 + len > WIDTH) {
			str_addc(out, '\n');
			add_spaces(out, indent);
			column = indent;
		} else if (column > indent) {
			str_addc(out, ' ');
			column++;
		}
		str_addn(out, text, len);
		column += len;
		text += len;
		while (text < end && (*text == ' ' || *text == '\n'))
			text++;
	}
	str_addc(out, '\n');
}

/* A row of two columns; a first one that is too wide gets a line of its own. */
static void add_row(struct str *out, const char *left, size_t column, const char *right)
{
	size_t n = strlen(left);

	str_add(out, left);
	if (n + 2 > column) {
		str_addc(out, '\n');
		n = 0;
	}
	add_spaces(out, column - n);
	add_wrapped(out, right, strlen(right), column);
}

static void add_options(struct str *out, bool bold, const struct opt *opts)
{
	str_addc(out, '\n');
	add_heading(out, bold, "Options:");
	str_addc(out, '\n');
	opt_each(row, opts) {
		struct str left = { 0 };

		if (row->letter)
			str_addf(&left, "  -%c, --%s", row->letter, row->name);
		else
			str_addf(&left, "      --%s", row->name);
		if (row->value)
			str_addf(&left, " %s", row->value);
		add_row(out, left.p, OPTION_COLUMN, row->help);
	}
}

static void add_detail(struct str *out, const char *detail)
{
	const char *start;
	size_t n;

	while ((start = cmd_paragraph(&detail, &n))) {
		str_addc(out, '\n');
		if (*start == ' ')
			str_addf(out, "%.*s\n", (int)n, start);
		else
			add_wrapped(out, start, n, 0);
	}
}

static void write_program(bool bold, struct str *out)
{
	add_heading(out, bold, "Usage:");
	str_addf(out,
		" carrel COMMAND [OPTION]...\n"
		"       carrel [OPTION]... [-- ARG]...   the same as `carrel run mine`\n"
		"\ncarrel: %s.\n\n",
		program_about);
	add_heading(out, bold, "Commands:");
	str_addc(out, '\n');
	cmd_each(c)
		add_row(out, mem_printf("  %s", c->name), COMMAND_COLUMN, c->about);
	add_options(out, bold, program_opts);
	str_add(out,
		"\n`carrel COMMAND --help` tells more about a command, and so does "
		"`man carrel`.\n");
}

static void write_command(const struct cmd *c, bool bold, struct str *out)
{
	add_heading(out, bold, "Usage:");
	str_addf(out, " %s\n\ncarrel %s: %s.\n", cmd_synopsis(c), c->name, c->about);
	add_detail(out, c->detail);
	add_options(out, bold, c->opts);
}

void help_write(const struct cmd *c, bool bold, struct str *out)
{
	if (c)
		write_command(c, bold, out);
	else
		write_program(bold, out);
}

int help_print(const struct cmd *c)
{
	struct str text = { 0 };

	help_write(c, cmd_colour(STDOUT_FILENO), &text);
	return cmd_print(&text);
}
