/*
 * cli/man.c - the manual page carrel(1), made from the tables
 *
 * roff with the man(7) macros, as mandoc and groff both read them. What is in no
 * table of options stands in tables here.
 */
#include "cli/man.h"
#include "cli/cmd.h"
#include "cli/opt.h"
#include "manifest/keys.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

#ifndef CARREL_DATE
#define CARREL_DATE "2026-11-16" /* of the version */
#endif

struct entry {
	const char *term, *text;
};

static const char description[] =
	"`carrel` runs a program, such as a coding agent, a build or somebody else's script, "
	"in a box. The box has its own home, the directory it works in, the system's programs, "
	"and nothing else of the machine but what you ask for. It needs no root, no daemon and "
	"no image; a box starts in milliseconds and leaves nothing behind.\n"
	"\n"
	"carrel first makes a plan of the box: the command, its environment, every mount in "
	"order, namespaces, limits and layers. It shows a short form of the plan and asks, "
	"unless you agreed to the same plan before. Then it does exactly what the plan says. "
	"If "
	"a layer of the box does not work on this machine, the box does not start; `carrel "
	"check` tries each and says what to do.";

static const struct entry exit_status[] = {
	{ "0-255", "The exit code of the command in the box." },
	{ "1",
		"Of `carrel agents`: some agent cannot be started; of `carrel check`: some "
		"layer does not work here. They say why." },
	{ "125", "carrel itself failed: bad usage, refused, or the box could not be built." },
	{ "126", "The command was found in the box but could not be executed." },
	{ "127", "The command was not found in the box." },
	{ "128+n", "The command was killed by signal n." },
};

static const struct entry environment[] = {
	{ "CARREL_DRY_RUN",
		"Set to anything but `0` and nothing at all, the same as `--dry-run`." },
	{ "CARREL_TRUST",
		"The SHA-256 of a project's manifest, to approve it for this start." },
	{ "CARREL_BOX", "Set inside a box to its name." },
	{ "NO_COLOR", "Set to anything, no colours and no bold text are written." },
};

static const char passed_on[] =
	"A box starts with an empty environment. `TERM`, `LANG`, `LANGUAGE`, `LC_*`, `TZ`, "
	"`COLORTERM`, `NO_COLOR` and `EDITOR` are copied into it when they are set; `HOME`, "
	"`USER`, `LOGNAME`, `SHELL`, `PATH` and `CARREL_BOX` are made for it; with "
	"`--proxy` also `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` and the same three in small "
	"letters; "
	"everything else has to be asked for with `--env`.";

static const struct entry files[] = {
	{ "carrel.json", "In the workspace: the project's manifest." },
	{ "$XDG_CONFIG_HOME/carrel/carrel.json",
		"The user's own (`~/.config/carrel/carrel.json`)." },
	{ "$XDG_CONFIG_HOME/carrel/allow",
		"Hosts that you allow or deny to every box, a line each "
		"(`~/.config/carrel/allow`)." },
	{ "$XDG_STATE_HOME/carrel/trust",
		"Which manifests were approved (`~/.local/state/carrel/trust`)." },
	{ "$XDG_STATE_HOME/carrel/agreed",
		"Which plans you agreed to, by project (`~/.local/state/carrel/agreed`)." },
	{ "$XDG_STATE_HOME/carrel/instances",
		"What your own client keeps for each project "
		"(`~/.local/state/carrel/instances`)." },
	{ "$XDG_STATE_HOME/carrel/boxes",
		"What boxes did on their networks (`~/.local/state/carrel/boxes`)." },
	{ "$XDG_RUNTIME_DIR/carrel",
		"Locks that keep the names of running boxes apart, the sockets by which "
		"`carrel ps`, `allow` and `port` reach them, and those of their ssh-agents." },
	{ "/dev/tty",
		"Where the plan is shown and the question is asked before a box starts." },
	{ "/etc/apparmor.d/carrel",
		"The profile that allows user namespaces to carrel where AppArmor restricts "
		"them." },
};

/* ---- roff ---- */

static void add_char(struct str *out, char c)
{
	static const struct {
		char c;
		const char *roff;
	} special[] = { { '\\', "\\e" }, { '-', "\\-" }, { '\'', "\\(aq" }, { '^', "\\(ha" },
		{ '~', "\\(ti" }, { '"', "\\(dq" } };

	for (size_t i = 0; i < ARRAY_SIZE(special); i++) {
		if (special[i].c == c) {
			str_add(out, special[i].roff);
			return;
		}
	}
	str_addc(out, c);
}

/* Text as it is, with every roff request and escape quoted. */
static void add_text(struct str *out, const char *text, size_t n)
{
	if (n && *text == '.')
		str_add(out, "\\&");
	for (size_t i = 0; i < n; i++) {
		add_char(out, text[i]);
		if (text[i] == '\n' && i + 1 < n && text[i + 1] == '.')
			str_add(out, "\\&");
	}
}

/* Text in which `this` is bold. */
static void add_marked(struct str *out, const char *text, size_t n)
{
	const char *end = text + n;
	bool bold = false;

	while (text < end) {
		const char *tick = memchr(text, '`', (size_t)(end - text));

		add_text(out, text, (size_t)((tick ? tick : end) - text));
		if (!tick)
			break;
		bold = !bold;
		str_add(out, bold ? "\\fB" : "\\fR");
		text = tick + 1;
	}
	str_addc(out, '\n');
}

static void add_paragraphs(struct str *out, const char *text)
{
	const char *start;
	size_t n;

	while ((start = cmd_paragraph(&text, &n))) {
		str_add(out, ".PP\n");
		if (*start == ' ') {
			str_add(out, ".nf\n");
			add_text(out, start, n);
			str_add(out, "\n.fi\n");
		} else {
			add_marked(out, start, n);
		}
	}
}

static void add_heading(struct str *out, const char *text)
{
	str_addf(out, ".SH %s\n", text);
}

/* A section's first paragraph must have no .PP before it. */
static void add_section(struct str *out, const char *heading, const char *text)
{
	static const size_t mark = sizeof(".PP\n") - 1;
	struct str body = { 0 };

	add_heading(out, heading);
	add_paragraphs(&body, text);
	str_add(out, body.p + mark);
}

static void add_entries(struct str *out, const char *heading, const struct entry *e, size_t n)
{
	add_heading(out, heading);
	for (; n--; e++) {
		str_add(out, ".TP\n\\fB");
		add_text(out, e->term, strlen(e->term));
		str_add(out, "\\fR\n");
		add_marked(out, e->text, strlen(e->text));
	}
}

/* ---- the tables ---- */

static void add_option(struct str *out, const struct opt *row)
{
	str_add(out, ".TP\n");
	if (row->letter)
		str_addf(out, "\\fB\\-%c\\fR, ", row->letter);
	str_add(out, "\\fB\\-\\-");
	add_text(out, row->name, strlen(row->name));
	str_add(out, "\\fR");
	if (row->value) {
		str_add(out, " \\fI");
		add_text(out, row->value, strlen(row->value));
		str_add(out, "\\fR");
	}
	str_addc(out, '\n');
	add_marked(out, row->help, strlen(row->help));
}

static void add_options(struct str *out, const struct opt *opts)
{
	opt_each(row, opts)
		add_option(out, row);
}

/* Commands with the same table share one list of options, below the first of them. */
static const struct cmd *first_with(const struct opt *opts)
{
	cmd_each(c)
		if (c->opts == opts)
			return c;
	return NULL;
}

static void add_command(struct str *out, const struct cmd *c)
{
	const char *line = cmd_synopsis(c);
	const struct cmd *owner = first_with(c->opts);

	str_add(out, ".SS ");
	add_text(out, line, strlen(line));
	str_addc(out, '\n');
	add_char(out, (char)toupper(c->about[0]));
	add_text(out, c->about + 1, strlen(c->about + 1));
	str_add(out, ".\n");
	add_paragraphs(out, c->detail);
	if (!c->opts)
		return;
	if (owner == c)
		add_options(out, c->opts);
	else
		str_addf(out, ".PP\nThe options are those of \\fBcarrel %s\\fR.\n",
			owner->name);
}

/* ---- the manifest's keys ---- */

static const char manifest[] =
	"Agents are declared in `carrel.json` in the workspace, over a file of the same form "
	"in "
	"`$XDG_CONFIG_HOME/carrel`. It is JSON; comments, and a comma after the last element, "
	"are taken as well. An agent of the project wins whole over one of the same name in "
	"the "
	"user's file. A name in an agent's list is looked for in the library of the file that "
	"wrote it down, then in the other one.\n"
	"\n"
	"A project's manifest does not count before the user has approved it, by `carrel "
	"trust` "
	"or at the question before a start; a changed one is shown again, as what changed. For "
	"programs, CARREL_TRUST with the SHA-256 of the file approves it once.\n"
	"\n"
	"Keys in NAME stand for any name; a key that is needed is marked so.";

static const char *key_kind(const struct key *k)
{
	static const char *const kinds[] = {
		[KEY_STRING] = "a string",
		[KEY_CHOICE] = "a string",
		[KEY_FLAG] = "true or false",
		[KEY_COUNT] = "a number",
		[KEY_NUMBER] = "a number",
		[KEY_SIZE] = "a size",
		[KEY_TIME] = "a time",
		[KEY_STRINGS] = "a list of strings",
		[KEY_TEXTS] = "an object of strings",
		[KEY_OBJECT] = "an object",
		[KEY_OBJECTS] = "a list of objects",
		[KEY_MAP] = "an object",
		[KEY_END] = "",
	};

	return k->choices ? mem_printf("one of %s", k->choices) : kinds[k->type];
}

/* What separates the path of a key from the names of the keys below it. */
static const char *key_below(const struct key *k)
{
	return k->type == KEY_MAP ? ".NAME" : k->type == KEY_OBJECTS ? "[]" : "";
}

/* A later key beside it with the same keys, which are listed there. */
static const struct key *key_alike(const struct key *k)
{
	for (const struct key *other = k + 1; k->keys && other->name; other++)
		if (other->keys == k->keys)
			return other;
	return NULL;
}

static void add_keys(struct str *out, const struct key *keys, const char *prefix)
{
	for (const struct key *k = keys; k->name; k++) {
		const char *path = mem_printf("%s%s", prefix, k->name), *text;
		const struct key *alike = key_alike(k);

		str_add(out, ".TP\n\\fB");
		add_text(out, path, strlen(path));
		str_add(out, "\\fR\n");
		text = mem_printf("%s (%s%s%s%s)", k->doc, key_kind(k),
			k->required ? "; needed" : "", k->standard ? "; default " : "",
			k->standard ? k->standard : "");
		if (alike)
			text = mem_printf("%s Its keys are those of `%s%s%s`, below.", text,
				prefix, alike->name, key_below(alike));
		add_marked(out, text, strlen(text));
		if (k->keys && !alike)
			add_keys(out, k->keys, mem_printf("%s%s.", path, key_below(k)));
	}
}

static void add_synopsis(struct str *out)
{
	add_heading(out, "SYNOPSIS");
	cmd_each(c) {
		const char *line = cmd_synopsis(c);
		size_t name = strlen("carrel ") + strlen(c->name);

		str_add(out, c == commands[0] ? "\\fB" : ".br\n\\fB");
		add_text(out, line, name);
		str_add(out, "\\fR");
		add_text(out, line + name, strlen(line + name));
		str_addc(out, '\n');
	}
}

void man_page(struct str *out)
{
	str_add(out, ".TH CARREL 1 " CARREL_DATE " \"carrel " CARREL_VERSION "\"\n");
	add_heading(out, "NAME");
	str_addf(out, "carrel \\- %s\n", program_about);
	add_synopsis(out);
	add_section(out, "DESCRIPTION", description);
	add_heading(out, "OPTIONS");
	add_options(out, program_opts);
	add_heading(out, "COMMANDS");
	str_add(out, "Every command has \\fB\\-\\-help\\fR.\n");
	cmd_each(c)
		add_command(out, c);
	add_section(out, "THE MANIFEST", manifest);
	add_keys(out, manifest_keys, "");
	add_entries(out, "EXIT STATUS", exit_status, ARRAY_SIZE(exit_status));
	add_entries(out, "ENVIRONMENT", environment, ARRAY_SIZE(environment));
	add_paragraphs(out, passed_on);
	add_entries(out, "FILES", files, ARRAY_SIZE(files));
	add_heading(out, "SEE ALSO");
	str_add(out,
		".BR carrel\\-network (7),\n.BR bwrap (1),\n.BR seccomp (2),\n"
		".BR landlock (7),\n"
		".BR mount_namespaces (7),\n.BR user_namespaces (7)\n");
}
