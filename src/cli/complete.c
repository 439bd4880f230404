/*
 * cli/complete.c - completion for shells, made from the tables
 *
 * Each script is a fixed frame around rows that are written for every command and
 * option. What the scripts know is what the tables knew when they were printed. Boxes they
 * find by their control sockets and records; only for agents they run `carrel agents --names`,
 * which reads the manifests and starts nothing. As no option before the command has a
 * value, the first word without a dash is it.
 *
 * Names come from files that others may have written, and bash expands the words that it
 * is to offer: what is not plain is left out there.
 */
#include "cli/complete.h"
#include "cli/cmd.h"
#include "cli/opt.h"
#include "harness/harness.h"
#include "net/policy/policy.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

/* Text with a backslash before each byte that is in special. */
static const char *escaped(const char *text, const char *special)
{
	struct str out = { 0 };

	for (; *text; text++) {
		if (strchr(special, *text))
			str_addc(&out, '\\');
		str_addc(&out, *text);
	}
	return out.len ? out.p : "";
}

/* In single quotes for bash and zsh; inside them fish also reads backslashes. */
static const char *quoted(const char *text)
{
	struct str out = { 0 };

	str_addc(&out, '\'');
	for (; *text; text++)
		str_add(&out, *text == '\'' ? "'\\''" : (char[]){ *text, '\0' });
	str_addc(&out, '\'');
	return out.p;
}

static const char *fish_quoted(const char *text)
{
	return mem_printf("'%s'", escaped(text, "\\'"));
}

/* "a|b" as "a b". */
static const char *spaced(const char *choices)
{
	char *out = mem_strdup(choices);

	for (char *bar = out; (bar = strchr(bar, '|'));)
		*bar = ' ';
	return out;
}

/* The names of all commands, or of those that take a command line. */
static const char *command_names(bool with_line)
{
	struct str out = { 0 };

	cmd_each(c)
		if (!with_line || c->takes == TAKES_LINE)
			str_addf(&out, "%s%s", out.len ? " " : "", c->name);
	return out.len ? out.p : "";
}

/* What is offered for a command's own words, or NULL when nothing is known. */
static const char *words_of(const struct cmd *c)
{
	if (c->takes == TAKES_CHOICE || c->takes == TAKES_WORDS)
		return spaced(c->choices);
	return c->takes == TAKES_COMMAND ? command_names(false) : NULL;
}

/* The last two depend on this machine. */
static const char *preset_names(void)
{
	const struct policy_preset *preset;
	struct str out = { 0 };

	for (size_t i = 0; (preset = policy_preset(i)); i++)
		str_addf(&out, "%s ", preset->name);
	str_add(&out, "@npm @debian");
	return out.p;
}

/* Names that count as agents without being declared: the user's own clients. */
static const char *client_names(void)
{
	struct str out = { 0 };

	str_add(&out, "mine");
	for (size_t i = 0; harness_all[i]; i++)
		if (harness_all[i]->assemble_mine)
			str_addf(&out, " %s", harness_all[i]->name);
	return out.p;
}

/* ---- bash ---- */

static const char bash_head[] =
	"# bash completion for carrel; to load it: source <(carrel completion bash)\n"
	"\n"
	"_carrel_offer()\n"
	"{\n"
	"\tmapfile -t COMPREPLY < <(compgen \"$@\")\n"
	"}\n"
	"\n"
	"# The words from number $1 on are a command line of their own.\n"
	"_carrel_line()\n"
	"{\n"
	"\tif declare -F _command_offset >/dev/null; then\n"
	"\t\t_command_offset \"$1\"\n"
	"\telif ((COMP_CWORD == $1)); then\n"
	"\t\t_carrel_offer -c -- \"${COMP_WORDS[COMP_CWORD]}\"\n"
	"\telse\n"
	"\t\tcompopt -o default\n"
	"\tfi\n"
	"}\n"
	"\n"
	"# The names of the boxes that run.\n"
	"_carrel_boxes()\n"
	"{\n"
	"\tlocal path name\n"
	"\n"
	"\tfor path in \"${XDG_RUNTIME_DIR-}\"/carrel/*.sock; do\n"
	"\t\tname=${path##*/} name=${name%.sock}\n"
	"\t\t[[ $name == *[!A-Za-z0-9-]* ]] || printf '%s ' \"$name\"\n"
	"\tdone\n"
	"}\n"
	"\n"
	"# The same, and those that have left a record.\n"
	"_carrel_records()\n"
	"{\n"
	"\tlocal path name\n"
	"\n"
	"\t_carrel_boxes\n"
	"\tfor path in \"${XDG_STATE_HOME:-${HOME-}/.local/state}\"/carrel/boxes/*; do\n"
	"\t\tname=${path##*/}\n"
	"\t\t[[ $name == *[!A-Za-z0-9-]* ]] || printf '%s ' \"$name\"\n"
	"\tdone\n"
	"}\n"
	"\n"
	"# The agents that are declared here.\n"
	"_carrel_agents()\n"
	"{\n"
	"\tlocal name\n"
	"\n"
	"\twhile IFS= read -r name; do\n"
	"\t\t[[ $name == *[!A-Za-z0-9._-]* ]] || printf '%s ' \"$name\"\n"
	"\tdone < <(command carrel agents --names 2>/dev/null)\n"
	"}\n"
	"\n"
	"# bash parts words at an @, and yet replaces the @ as well.\n"
	"_carrel_presets()\n"
	"{\n"
	"\t_carrel_offer -W \"$_carrel_preset_names\" -- \"$at$cur\"\n"
	"}\n"
	"\n"
	"_carrel()\n"
	"{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev command= at= i words=0\n"
	"\n"
	"\tCOMPREPLY=()\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t--)\n"
	"\t\t\t[[ \" $_carrel_lines \" != *\" $command \"* ]] || _carrel_line $((i + 1))\n"
	"\t\t\treturn\n"
	"\t\t\t;;\n"
	"\t\t-*) ;;\n"
	"\t\t*)\n"
	"\t\t\t[[ -z $command ]] || words=$((words + 1))\n"
	"\t\t\tcommand=${command:-${COMP_WORDS[i]}}\n"
	"\t\t\t;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\t# --name=value comes as three words, and @name as two.\n"
	"\tfor ((i = COMP_CWORD; i > 0; i--)); do\n"
	"\t\tprev=${COMP_WORDS[i]}\n"
	"\t\tcase $prev in\n"
	"\t\t= | @ | =@)\n"
	"\t\t\t[[ $prev == = ]] || at=@\n"
	"\t\t\t((i < COMP_CWORD)) || cur=\n"
	"\t\t\t;;\n"
	"\t\t*) ((i == COMP_CWORD)) || break ;;\n"
	"\t\tesac\n"
	"\tdone\n";

static const char *bash_value(const struct opt *row)
{
	static const char *const hints[] = {
		[OPT_HINT_NONE] = ":",
		[OPT_HINT_FILE] = "compopt -o default",
		[OPT_HINT_DIR] = "compopt -o dirnames",
		[OPT_HINT_ENV] = "_carrel_offer -e -- \"$cur\"",
		[OPT_HINT_PRESET] = "_carrel_presets",
	};

	if (row->choices)
		return mem_printf("_carrel_offer -W %s -- \"$cur\"",
			quoted(spaced(row->choices)));
	if (row->stems)
		return mem_printf("_carrel_offer -W %s -- \"$cur\" && compopt -o nospace",
			quoted(spaced(row->stems)));
	return hints[row->hint];
}

static void bash_values(struct str *out, const struct cmd *c)
{
	opt_each(row, c->opts) {
		if (!row->value)
			continue;
		str_addf(out, "\t%s:--%s", c->name, row->name);
		if (row->letter)
			str_addf(out, " | %s:-%c", c->name, row->letter);
		str_addf(out, ")\n\t\t%s\n\t\treturn\n\t\t;;\n", bash_value(row));
	}
}

static void bash_words(struct str *out, const char *name, const struct opt *opts,
	const char *words, enum opt_hint more)
{
	str_addf(out, "\t%s) ", name);
	if (more == OPT_HINT_PRESET)
		str_add(out, "((words)) && _carrel_presets || ");
	str_add(out, "_carrel_offer -W '");
	opt_each(row, opts) {
		if (row->letter)
			str_addf(out, "-%c ", row->letter);
		str_addf(out, "--%s ", row->name);
	}
	str_addf(out, "%s' -- \"$cur\" ;;\n", words ? words : "");
}

static const char *bash_words_of(const struct cmd *c)
{
	if (c->takes == TAKES_BOX)
		return c->ended ? "'\"$(_carrel_records)\"'" : "'\"$(_carrel_boxes)\"'";
	if (c->takes == TAKES_PATHS)
		return "'\"$(compgen -d -- \"$cur\")\"'";
	if (c->agents)
		return mem_printf("%s '\"$(_carrel_agents)\"'", client_names());
	return words_of(c);
}

void complete_bash(struct str *out)
{
	str_add(out, bash_head);
	str_add(out, "\tcase $command:$prev in\n");
	cmd_each(c)
		bash_values(out, c);
	str_add(out, "\tesac\n\tcase $command in\n");
	bash_words(out, "''", program_opts, command_names(false), OPT_HINT_NONE);
	cmd_each(c)
		bash_words(out, c->name, c->opts, bash_words_of(c), c->hint);
	str_addf(out,
		"\tesac\n}\n\n_carrel_lines='%s'\n_carrel_preset_names='%s'\n"
		"complete -F _carrel carrel\n",
		command_names(true), preset_names());
}

/* ---- zsh ---- */

static const char *zsh_action(const struct opt *row)
{
	static const char *const hints[] = {
		[OPT_HINT_NONE] = " ",
		[OPT_HINT_FILE] = "_files",
		[OPT_HINT_DIR] = "_files -/",
		[OPT_HINT_ENV] = "_parameters -g \"*export*\"",
		[OPT_HINT_PRESET] = "_carrel_presets",
	};

	if (row->choices)
		return mem_printf("(%s)", spaced(row->choices));
	if (row->stems)
		return mem_printf("compadd -S \"\" - %s", spaced(row->stems));
	return hints[row->hint];
}

/* One specification for _arguments: '*--name=[help]:VALUE:action'. */
static void zsh_option(struct str *out, const struct opt *row, const char *spelled,
	const char *assign)
{
	struct str spec = { 0 };

	str_addf(&spec, "%s%s%s[%s]", row->type == OPT_TYPE_CALL ? "*" : "", spelled,
		row->value ? assign : "", escaped(row->help, "[]:\\"));
	if (row->value)
		str_addf(&spec, ":%s:%s", escaped(row->value, ":\\"), zsh_action(row));
	str_addf(out, " \\\n\t\t\t%s", quoted(spec.p));
}

static void zsh_arguments(struct str *out, const struct opt *opts)
{
	str_add(out, "_arguments -s -S -C");
	opt_each(row, opts) {
		zsh_option(out, row, mem_printf("--%s", row->name), "=");
		if (row->letter)
			zsh_option(out, row, mem_printf("-%c", row->letter), "+");
	}
}

static void zsh_command(struct str *out, const struct cmd *c)
{
	const char *words = words_of(c);

	str_addf(out, "\t%s)\n\t\t", c->name);
	zsh_arguments(out, c->opts);
	if (c->takes == TAKES_BOX)
		str_addf(out, " \\\n\t\t\t'1: :_carrel_%s'", c->ended ? "records" : "boxes");
	if (c->takes == TAKES_PATHS)
		str_add(out, " \\\n\t\t\t'*: :_files -/'");
	if (c->hint == OPT_HINT_PRESET)
		str_add(out, " \\\n\t\t\t'2: :_carrel_presets'");
	if (c->agents)
		str_add(out, " \\\n\t\t\t'1: :_carrel_agents'");
	if (words)
		str_addf(out, " \\\n\t\t\t'1: :(%s)'", words);
	str_add(out, "\n\t\t;;\n");
}

static const char zsh_head[] =
	"#compdef carrel\n"
	"# zsh completion for carrel; to load it: source <(carrel completion zsh)\n"
	"\n"
	"_carrel_boxes() {\n"
	"\tcompadd - ${XDG_RUNTIME_DIR-}/carrel/*.sock(N:t:r)\n"
	"}\n"
	"\n"
	"_carrel_records() {\n"
	"\tcompadd - ${XDG_RUNTIME_DIR-}/carrel/*.sock(N:t:r) \\\n"
	"\t\t${XDG_STATE_HOME:-$HOME/.local/state}/carrel/boxes/*(N:t)\n"
	"}\n"
	"\n"
	"_carrel_agents() {\n"
	"\tcompadd - $_carrel_clients ${(f)\"$(command carrel agents --names 2>/dev/null)\"}\n"
	"}\n"
	"\n"
	"_carrel_presets() {\n"
	"\tcompadd - $_carrel_preset_names\n"
	"}\n"
	"\n"
	"_carrel() {\n"
	"\tlocal context curcontext=$curcontext state state_descr line\n"
	"\tlocal -A opt_args\n"
	"\tlocal -i dashes=${words[(i)--]}\n"
	"\n"
	"\tif (( dashes < CURRENT )); then # another command line begins there\n"
	"\t\t[[ \" $_carrel_lines \" == *\" ${words[2]} \"* ]] || return 1\n"
	"\t\tshift $dashes words\n"
	"\t\t(( CURRENT -= dashes ))\n"
	"\t\t_normal\n"
	"\t\treturn\n"
	"\tfi\n"
	"\t";

static const char zsh_tail[] =
	"# Found in $fpath this file is the function itself; sourced, it only defines it.\n"
	"if [[ $funcstack[1] == _carrel ]]; then\n"
	"\t_carrel \"$@\"\n"
	"else\n"
	"\tcompdef _carrel carrel\n"
	"fi\n";

void complete_zsh(struct str *out)
{
	str_add(out, zsh_head);
	zsh_arguments(out, program_opts);
	str_add(out,
		" \\\n\t\t\t'1: :->command' \\\n\t\t\t'*:: :->words'\n"
		"\tif [[ $state == command ]]; then\n"
		"\t\t_describe command _carrel_commands\n"
		"\t\treturn\n"
		"\tfi\n"
		"\t[[ $state == words ]] || return\n"
		"\tcase $words[1] in\n");
	cmd_each(c)
		zsh_command(out, c);
	str_addf(out,
		"\tesac\n}\n\ntypeset -g _carrel_lines='%s'\n"
		"typeset -ga _carrel_clients=(%s)\n"
		"typeset -ga _carrel_preset_names=(%s)\n"
		"typeset -ga _carrel_commands=(\n",
		command_names(true), client_names(), preset_names());
	cmd_each(c)
		str_addf(out, "\t%s\n",
			quoted(mem_printf("%s:%s", c->name, escaped(c->about, ":\\"))));
	str_add(out, ")\n\n");
	str_add(out, zsh_tail);
}

/* ---- fish ---- */

static const char fish_head[] =
	"# fish completion for carrel; to load it: carrel completion fish | source\n"
	"\n"
	"# Are we after the command $argv[1] (none: before any), and not behind a `--`?\n"
	"function __carrel_at\n"
	"\tset -l words (commandline -opc)[2..-1]\n"
	"\tcontains -- -- $words; and return 1\n"
	"\tset words (string match -v -- '-*' $words)\n"
	"\ttest \"$words[1]\" = \"$argv[1]\"\n"
	"end\n"
	"\n"
	"# Are we behind a `--`, where another command line begins?\n"
	"function __carrel_in_line\n"
	"\tcontains -- -- (commandline -opc)\n"
	"end\n"
	"\n"
	"function __carrel_line\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l first (math (contains -i -- -- $words) + 1)\n"
	"\tset -l line (string escape -- $words[$first..-1]) (commandline -ct)\n"
	"\tcomplete -C \"$line\"\n"
	"end\n"
	"\n"
	"# The same, with $argv[2] words already there.\n"
	"function __carrel_word\n"
	"\t__carrel_at $argv[1]; or return 1\n"
	"\tset -l words (string match -v -- '-*' (commandline -opc)[2..-1])\n"
	"\ttest (count $words) -eq (math $argv[2] + 1)\n"
	"end\n"
	"\n"
	"function __carrel_boxes\n"
	"\tset -l sockets $XDG_RUNTIME_DIR/carrel/*.sock\n"
	"\tstring replace -r '.*/(.*)\\\\.sock$' '$1' -- $sockets\n"
	"end\n"
	"\n"
	"function __carrel_records\n"
	"\tset -l state $XDG_STATE_HOME\n"
	"\ttest -n \"$state\"; or set state $HOME/.local/state\n"
	"\tset -l records $state/carrel/boxes/*\n"
	"\t__carrel_boxes\n"
	"\tstring replace -r '.*/' '' -- $records\n"
	"end\n"
	"\n"
	"function __carrel_agents\n"
	"\tcommand carrel agents --names 2>/dev/null\n"
	"end\n"
	"\n"
	"complete -c carrel -f\n"
	"complete -c carrel -n __carrel_in_line -a '(__carrel_line)'\n";

static const char *fish_value(const struct opt *row)
{
	static const char *const hints[] = {
		[OPT_HINT_NONE] = " -x",
		[OPT_HINT_FILE] = " -r -F",
		[OPT_HINT_DIR] = " -x -a '(__fish_complete_directories)'",
		[OPT_HINT_ENV] = " -x -a '(set -nx)'",
	};

	if (!row->value)
		return "";
	if (row->hint == OPT_HINT_PRESET)
		return mem_printf(" -x -a %s", fish_quoted(preset_names()));
	if (row->choices || row->stems)
		return mem_printf(" -x -a %s",
			fish_quoted(spaced(row->choices ? row->choices : row->stems)));
	return hints[row->hint];
}

static void fish_options(struct str *out, const char *name, const struct opt *opts)
{
	opt_each(row, opts) {
		str_addf(out, "complete -c carrel -n '__carrel_at %s' -l %s", name, row->name);
		if (row->letter)
			str_addf(out, " -s %c", row->letter);
		str_addf(out, "%s -d %s\n", fish_value(row), fish_quoted(row->help));
	}
}

/* Completions by position: boxes, presets, agents. */
static void fish_places(struct str *out, const struct cmd *c)
{
	static const char form[] = "complete -c carrel -n '__carrel_word %s %d' -a '%s'\n";

	if (c->takes == TAKES_BOX)
		str_addf(out, form, c->name, 0,
			c->ended ? "(__carrel_records)" : "(__carrel_boxes)");
	if (c->takes == TAKES_PATHS)
		str_addf(out,
			"complete -c carrel -n '__carrel_at %s' -a "
			"'(__fish_complete_directories)'\n",
			c->name);
	if (c->hint == OPT_HINT_PRESET)
		str_addf(out, form, c->name, 1, preset_names());
	if (c->agents)
		str_addf(out, form, c->name, 0,
			mem_printf("%s (__carrel_agents)", client_names()));
}

void complete_fish(struct str *out)
{
	str_add(out, fish_head);
	fish_options(out, "", program_opts);
	cmd_each(c)
		str_addf(out, "complete -c carrel -n '__carrel_at' -a %s -d %s\n", c->name,
			fish_quoted(c->about));
	cmd_each(c) {
		const char *words = words_of(c);

		fish_options(out, c->name, c->opts);
		fish_places(out, c);
		if (words)
			str_addf(out, "complete -c carrel -n '__carrel_at %s' -a '%s'\n",
				c->name, words);
	}
}
