/*
 * eval/verdict.c - what a run of a client was
 *
 * A run that broke says nothing about the skill. So an error and a limit are never verdicts:
 * "did not fire" is said only of a run that came to its end, and then over all of it, however
 * late a skill was used. Exit codes and subtypes mislead (HTTP errors are a "success" with
 * is_error, SIGINT ends with 0), so neither is asked.
 */
#include "eval/trial.h"
#include "harness/harness.h"
#include "base/str.h"

#include <string.h>

static bool is(const char *text, const char *other)
{
	return text && !strcmp(text, other);
}

/* Without a login the client says so itself, and asks nobody. */
static const char *refused(const struct transcript *t)
{
	return t->api_status || !t->answer ? "the API refused the credential"
					   : mem_printf("the client cannot work here: %s",
						     record_short(str_visible(t->answer), 200));
}

static enum run_end stopped(const struct transcript *t, const struct box_end *end,
	const char **ret_reason)
{
	switch (end->stop) {
	case STOP_TIME:
		*ret_reason = "it reached the limit of time";
		return END_LIMIT;
	case STOP_IDLE:
		*ret_reason = "it printed nothing for too long";
		return END_LIMIT;
	case STOP_FLOOD:
		*ret_reason = "it printed more than is kept";
		return END_LIMIT;
	case STOP_REFUSED:
		*ret_reason = refused(t);
		return END_ERROR;
	case STOP_CANCELLED:
		*ret_reason = "the run was stopped";
		return END_ERROR;
	default:
		return END_WELL;
	}
}

static const char *last_line(const char *text)
{
	size_t n = strlen(text), from;

	while (n && text[n - 1] == '\n')
		n--;
	for (from = n; from && text[from - 1] != '\n';)
		from--;
	return mem_strndup(text + from, n - from);
}

/* What carrel or the client said last before it died. */
static const char *no_result(const struct box_end *end, const char *stderr_tail)
{
	const char *last = last_line(stderr_tail);

	return mem_printf("the client ended with exit code %d and no result%s%s", end->code,
		*last ? ": " : "", record_short(str_visible(last), 200));
}

static enum run_end failed(const struct transcript *t, const char **ret_reason)
{
	if (is(t->subtype, "error_max_turns")) {
		*ret_reason = "it reached the limit of turns";
		return END_LIMIT;
	}
	if (is(t->subtype, "error_max_budget_usd")) {
		*ret_reason = "it reached the limit of dollars";
		return END_LIMIT;
	}
	*ret_reason = mem_printf("the client failed%s: %s",
		t->api_status ? mem_printf(" (HTTP %llu)", t->api_status) : "",
		record_short(str_visible(t->error ? t->error : "it does not say why"), 220));
	return END_ERROR;
}

enum run_end verdict_end(const struct transcript *t, const struct box_end *end,
	const char *stderr_tail, const char **ret_reason)
{
	enum run_end stop = stopped(t, end, ret_reason);

	if (stop != END_WELL)
		return stop;
	if (t->harness == &harness_command) {
		if (end->code == 0)
			return END_WELL;
		*ret_reason = no_result(end, stderr_tail);
		return END_ERROR;
	}
	if (t->done && t->failed)
		return failed(t, ret_reason);
	if (t->done && t->harness == &harness_claude && !t->asked && !t->turns) {
		*ret_reason = mem_printf("the client did not ask the model: %s",
			record_short(str_visible(t->answer ? t->answer : "it says nothing"),
				200));
		return END_ERROR;
	}
	if (t->done)
		return END_WELL;
	*ret_reason = no_result(end, stderr_tail);
	return END_ERROR;
}

/* ---- skills ---- */

/* A plugin's skill is "plugin:name". */
static bool names_skill(const char *said, const char *skill)
{
	const char *colon = said ? strrchr(said, ':') : NULL;

	return said && (!strcmp(said, skill) || (colon && !strcmp(colon + 1, skill)));
}

static bool reads_skill(const char *path, const char *skill)
{
	return path && str_ends(path, mem_printf("/skills/%s/SKILL.md", skill));
}

enum attempt_fired verdict_fired(const struct transcript *t, const char *skill)
{
	bool other = false;

	for (size_t i = 0; i < t->calls_n; i++) {
		const struct tool_call *call = &t->calls[i];

		if (names_skill(call->skill, skill) || reads_skill(call->path, skill))
			return FIRED;
		other |= call->skill != NULL;
	}
	return other ? FIRED_OTHER : FIRED_NOT;
}

static bool is_listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; at && *at; at = strchr(at, '\n'), at += at != NULL)
		if (!strncmp(at, name, n) && at[n] == '\n')
			return true;
	return false;
}

const char *verdict_control(const struct transcript *t, const char *skill)
{
	if (t->harness == &harness_claude && t->began && !t->has_skill_tool)
		return "the client gives the model no Skill tool: it loads no skills at all, "
		       "as "
		       "with --bare; look for the option that turns them on";
	if (t->harness == &harness_claude && t->began && !is_listed(t->skills, skill))
		return "the client did not list the control skill: it does not read "
		       ".claude/skills of a project";
	return "the model was offered the control skill and did not use it";
}

bool verdict_again(const struct transcript *t, const struct box_end *end)
{
	if (end->stop != STOP_NOT || t->auth_failed || !t->failed)
		return false;
	return t->reset_at || t->api_status == 429 || t->api_status == 408 ||
		t->api_status >= 500 || (t->error && strstr(t->error, "onnection"));
}
