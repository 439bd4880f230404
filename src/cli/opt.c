/*
 * cli/opt.c - read a command line by its table
 *
 * One pass: an option writes its field (or calls its function) at once, every other
 * word is moved to the front of argv, so what is left of argv at the end are the
 * words in their order. The parser knows no option; it must not print.
 */
#include "cli/opt.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

enum { SHOWN = 120 }; /* bytes of a bad value in a message */

struct parser {
	const struct opt *opts;
	void *args;
	char **argv;
	int argc;
	int next; /* the word to read next */
	bool help;
	struct fault *f;
};

static const struct opt help_row = {
	.type = OPT_TYPE_HELP,
	.letter = 'h',
	.name = "help",
	.help = "print this help and stop",
};

const struct opt *opt_next(const struct opt *opts, const struct opt *prev)
{
	const struct opt *row;

	if (prev == &help_row)
		return NULL;
	row = prev ? prev + 1 : opts;
	return row && row->type != OPT_TYPE_END ? row : &help_row;
}

const char *const *opt_split(const char *choices, size_t *ret_n)
{
	VEC(const char *) parts = { 0 };

	for (const char *at = choices; *at; at += strcspn(at, "|"), at += *at == '|')
		vec_push(&parts, mem_strndup(at, strcspn(at, "|")));
	*ret_n = parts.n;
	return parts.v;
}

const char *opt_suggest(const char *word, const char *const *names, size_t n)
{
	const char *near = str_nearest(word, names, n);

	return near ? mem_printf(" (did you mean '%s'?)", near) : "";
}

const char *opt_shown(const char *text)
{
	const char *seen = str_visible(text);
	size_t n = 0;

	while (seen[n] && n < SHOWN)
		n += utf8_length(seen + n, strlen(seen + n));
	return seen[n] ? mem_printf("%.*s...", (int)n, seen) : seen;
}

int opt_choose(const char *choices, const char *text, unsigned int *ret, struct fault *f)
{
	size_t n;
	const char *const *names = opt_split(choices, &n);
	struct str known = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(names[i], text)) {
			*ret = (unsigned int)i;
			return 0;
		}
		str_addf(&known, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", names[i]);
	}
	return fault_set(f, 0, "expected %s%s", known.p, opt_suggest(text, names, n));
}

/* Add the option and its value before the parser's message. */
static int name_culprit(const struct opt *row, const char *text, struct fault *f)
{
	const char *expected = mem_strdup(f->text), *fix = mem_strdup(f->fix);

	fault_set(f, 0, "--%s '%s': %s", row->name, opt_shown(text), expected);
	return fault_fix(f, "%s", fix);
}

static int store(const struct parser *p, const struct opt *row, const char *text)
{
	void *field = (char *)p->args + row->offset;
	int rc = 0;

	if (!*text) {
		fault_set(p->f, 0, "the value is empty, expected %s", row->value);
		return name_culprit(row, text, p->f);
	}
	if (row->type == OPT_TYPE_STRING)
		*(const char **)field = text;
	else if (row->type == OPT_TYPE_CHOICE)
		rc = opt_choose(row->choices, text, field, p->f);
	else
		rc = row->call(p->args, text, p->f);
	return rc < 0 ? name_culprit(row, text, p->f) : 0;
}

/* text: what is attached to the option, or NULL; the value is then the next word. */
static int store_or_take_next(struct parser *p, const struct opt *row, const char *text)
{
	if (!text && p->next == p->argc)
		return fault_set(p->f, 0, "--%s needs a value: --%s %s", row->name, row->name,
			row->value);
	return store(p, row, text ? text : p->argv[p->next++]);
}

static void set_flag(struct parser *p, const struct opt *row)
{
	if (row->type == OPT_TYPE_HELP)
		p->help = true;
	else
		*(bool *)((char *)p->args + row->offset) = true;
}

static int unknown_long(const struct parser *p, const char *name)
{
	VEC(const char *) names = { 0 };
	const char *near;

	opt_each(row, p->opts)
		vec_push(&names, row->name);
	near = str_nearest(name, names.v, names.n);
	return fault_set(p->f, 0, "unknown option '--%s'%s", opt_shown(name),
		near ? mem_printf(" (did you mean '--%s'?)", near) : "");
}

static int parse_long(struct parser *p, const char *word)
{
	size_t n = strcspn(word, "=");
	const char *name = mem_strndup(word, n), *text = word[n] ? word + n + 1 : NULL;

	for (const struct opt *row = opt_next(p->opts, NULL); row;
		row = opt_next(p->opts, row)) {
		if (strcmp(row->name, name) != 0)
			continue;
		if (row->value)
			return store_or_take_next(p, row, text);
		if (text)
			return fault_set(p->f, 0, "--%s takes no value", row->name);
		set_flag(p, row);
		return 0;
	}
	return unknown_long(p, name);
}

static const struct opt *find_letter(const struct parser *p, char letter)
{
	opt_each(row, p->opts)
		if (row->letter == letter)
			return row;
	return NULL;
}

static int parse_letters(struct parser *p, const char *letters)
{
	for (const char *at = letters; *at && !p->help; at++) {
		const struct opt *row = find_letter(p, *at);

		if (!row)
			return fault_set(p->f, 0, "unknown option '-%s'",
				opt_shown(mem_strndup(at, utf8_length(at, strlen(at)) ?: 1)));
		if (row->value)
			return store_or_take_next(p, row, at[1] ? at + 1 : NULL);
		set_flag(p, row);
	}
	return 0;
}

/* Parse until "--" or, depending on the order, a word; skipped words are moved to *kept on. */
static int parse_options(struct parser *p, enum opt_order order, int *kept, bool *ret_dashes)
{
	while (p->next < p->argc && !p->help) {
		char *word = p->argv[p->next++];
		int rc;

		if (!strcmp(word, "--")) {
			*ret_dashes = true;
			return 0;
		}
		if (word[0] != '-' || !word[1]) {
			p->argv[(*kept)++] = word;
			if (order == OPT_BEFORE_WORDS)
				return 0;
			continue;
		}
		rc = word[1] == '-' ? parse_long(p, word + 2) : parse_letters(p, word + 1);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int opt_parse(const struct opt *opts, enum opt_order order, void *args, int argc, char **argv,
	struct opt_rest *ret, struct fault *f)
{
	struct parser p = { .opts = opts, .args = args, .argv = argv, .argc = argc, .f = f };
	bool dashes = false;
	int kept = 0, words, rc;

	p.next = argc > 0; /* argv[0] is the program or the command */
	rc = parse_options(&p, order, &kept, &dashes);
	if (rc < 0)
		return rc;
	words = kept;
	while (p.next < argc)
		argv[kept++] = argv[p.next++];
	if (argc > 0)
		argv[kept] = NULL;
	*ret = (struct opt_rest){
		.argc = kept,
		.argv = argv,
		.words = dashes ? words : kept,
		.dashes = dashes,
		.help = p.help,
	};
	return 0;
}
