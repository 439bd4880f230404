/*
 * harness/env-forms.c - the forms of a value in `env`
 *
 *	?MESSAGE	carrel asks for it on the terminal
 *	${NAME}		the host's variable
 *	!COMMAND ARG	what a program of the host prints
 *	\...		the rest, literally, where it would be one of these
 *
 * Anything else is the value itself.
 */
#include "harness/env-forms.h"
#include "manifest/manifest.h"
#include "plan/request.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS  "0123456789"

/* The name in "${NAME}" exactly, or NULL. */
static const char *variable(const char *text)
{
	size_t n;

	if (!str_starts(text, "${"))
		return NULL;
	n = strspn(text + 2, LETTERS DIGITS);
	if (!n || strchr(DIGITS, text[2]) || strcmp(text + 2 + n, "}") != 0)
		return NULL;
	return mem_strndup(text + 2, n);
}

static bool special(const char *text)
{
	return text[0] == '?' || text[0] == '!' || text[0] == '\\' || variable(text);
}

/*
 * Words separated by white space. Quotes, single or double, keep white space in a word. Inside
 * double quotes and outside of any, a backslash makes the next character literal. NULL when a
 * quote is not closed.
 */
static const char *const *split_words(const char *text)
{
	VEC(const char *) words = { 0 };
	struct str word = { 0 };
	char quote = 0;
	bool in_word = false;

	for (const char *at = text; *at || in_word; at += *at != '\0') {
		if (quote && *at == quote) {
			quote = 0;
		} else if (!*at && quote) {
			return NULL;
		} else if (!quote && (!*at || strchr(" \t\n", *at))) {
			if (in_word)
				vec_push(&words, word.len ? word.p : "");
			word = (struct str){ 0 };
			in_word = false;
		} else if (!quote && (*at == '\'' || *at == '"')) {
			quote = *at;
			in_word = true;
		} else {
			if (*at == '\\' && quote != '\'' && at[1])
				at++;
			str_addc(&word, *at);
			in_word = true;
		}
	}
	if (words.n)
		vec_push(&words, NULL);
	return words.v;
}

const char *env_where(const struct said *value, const char *field)
{
	return mem_printf("%s:%u:%u: %s", str_visible(manifest_origin(value)->name),
		value->at->at.line, value->at->at.column, field);
}

/*
 * `!` runs a program of the user's on the host. A path in the project is refused, because an
 * agent may have written that file.
 */
static void check_command(const struct said *value, const char *field, const char *const *argv,
	problems *bad)
{
	const struct manifest_file *file = manifest_origin(value);

	if (!argv || !*argv[0])
		manifest_problem(bad, value->at, field,
			"expected a command after '!', with quotes in pairs");
	else if (strchr(argv[0], '/') && argv[0][0] != '/')
		manifest_problem(bad, value->at, field,
			"the command %s runs outside the box: name it by an absolute path, "
			"or as it is found on PATH",
			str_visible(argv[0]));
	else if (file->project && path_within(path_clean(argv[0]), file->dir))
		manifest_problem(bad, value->at, field,
			"the command %s runs outside the box, and lies in the project, where "
			"an agent can change it",
			str_visible(argv[0]));
}

void env_check(const struct said *value, const char *field, problems *bad)
{
	if (value->text[0] == '!')
		check_command(value, field, split_words(value->text + 1), bad);
}

struct request_env env_entry(const char *name, const struct said *value, const char *field)
{
	const char *text = value->text, *copied = variable(text);
	struct request_env e = { .name = name, .from = ENV_DECLARED, .value = text };

	e.why = env_where(value, field);
	if (text[0] == '?') {
		e.how = ENV_PROMPT;
		e.value = text + 1;
	} else if (text[0] == '!') {
		e.how = ENV_COMMAND;
		e.argv = split_words(text + 1);
	} else if (copied) {
		e.how = ENV_COPY;
		e.value = copied;
	} else if (text[0] == '\\' && special(text + 1)) {
		e.value = text + 1;
	}
	return e;
}
