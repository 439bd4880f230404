/*
 * eval/run-schema.c - the JSON Schemas of run.json and attempt.json
 *
 * Tables, as of suites: a member is a row here and a line in run-write.c, summary-text.c or
 * record.c. The tests validate what carrel writes, so a row that is missing is found. Further
 * members may come with later versions; readers ignore what they do not know.
 */
#include "eval/run-schema.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

struct member {
	const char *name, *schema, *about;
};

#define TEXT      "\"type\":\"string\""
#define MAYBE     "\"type\":[\"string\",\"null\"]"
#define FLAG      "\"type\":\"boolean\""
#define COUNT     "\"type\":\"integer\",\"minimum\":0"
#define NUMBER    "\"type\":\"number\",\"minimum\":0"
#define FIGURE    "\"type\":[\"number\",\"null\"]"
#define TEXTS     "\"type\":\"array\",\"items\":{\"type\":\"string\"}"
#define REF(what) "\"$ref\":\"#/$defs/" what "\""
#define MAP(what) "\"type\":\"object\",\"additionalProperties\":{" what "}"

static const struct member run_members[] = {
	{ "version", "\"const\":1", "the version of this format" },
	{ "id", TEXT, "the name of the run's directory" },
	{ "suite", REF("suite"), "what was evaluated" },
	{ "agent", REF("agent"), "which client made the attempts" },
	{ "started", TEXT, "ISO 8601, UTC" },
	{ "ended", MAYBE, "the same; null while the run is under way, or if it was killed" },
	{ "stopped", MAYBE, "why the run ended before its plan" },
	{ "options", REF("options"), "how the run was made" },
	{ "configurations", TEXTS, "the first two are compared" },
	{ "planned", COUNT, "attempts, controls included" },
	{ "spared", COUNT, "attempts that a sequential test made needless" },
	{ "summary", REF("summary"), "the figures, from the run's end on" },
};

static const struct member suite_members[] = {
	{ "path", TEXT, "the suite's file" },
	{ "kind", TEXT, "its format" },
	{ "skill", MAYBE, "the skill's name" },
	{ "skill_path", MAYBE, "its directory" },
	{ "description", MAYBE, "its description, which triggers it" },
	{ "project", MAYBE, "whose copy is the workspace" },
	{ "sha256", TEXT, "of the suite as it was understood" },
};

static const struct member agent_members[] = {
	{ "harness", MAYBE, "claude, codex, gemini, opencode or command" },
	{ "version", MAYBE, "of the client" },
	{ "model", MAYBE, "as it was asked for" },
	{ "profile", "\"enum\":[\"pure\",\"realistic\"]", "bundled skills off or on" },
};

static const struct member option_members[] = {
	{ "repeat", COUNT, "attempts of each case and query" },
	{ "jobs", COUNT, "at a time" },
	{ "threshold", NUMBER, "what part of the attempts must pass" },
	{ "min_n", COUNT, "verdicts that a rate needs" },
	{ "retries", COUNT, "of what the infrastructure failed" },
	{ "usd", NUMBER, "the budget; 0 is none" },
	{ "time", NUMBER, "the budget in seconds; 0 is none" },
	{ "fail_fast", FLAG, "" },
	{ "until_sure", FLAG, "" },
	{ "artifacts", FLAG, "cases were run" },
	{ "triggers", FLAG, "queries were run" },
	{ "filter", MAYBE, "" },
	{ "grader_model", MAYBE, "" },
	{ "trigger_name", MAYBE, "the unique name of the skill in trigger evals" },
};

static const struct member summary_members[] = {
	{ "verdict", "\"enum\":[\"pass\",\"fail\",\"undecided\"]", "exit code 0, 1 or 3" },
	{ "why", TEXT, "one sentence" },
	{ "attempts", MAP(COUNT), "planned, done, and how many ended in each outcome" },
	{ "configurations", MAP(REF("configuration")), "by name" },
	{ "controls", MAP(COUNT), "fired, of" },
	{ "seconds", NUMBER, "of all attempts, added up" },
	{ "usd", NUMBER, "of all attempts, as far as it is known" },
	{ "tokens", REF("tokens"), "of all attempts" },
};

static const struct member summary_may[] = {
	{ "difference", REF("difference"),
		"of the first two configurations, where there are two" },
	{ "triggers", REF("triggers"), "where there are queries" },
};

static const struct member rate_members[] = {
	{ "cases", COUNT, "with a verdict" },
	{ "n", COUNT, "verdicts" },
	{ "passed", COUNT, "of these" },
	{ "rate", FIGURE, "passed / n; null without a verdict" },
	{ "low", FIGURE, "of the 95 % interval" },
	{ "high", FIGURE, "of the 95 % interval" },
	{ "effective_n", NUMBER, "independent attempts that n is worth" },
	{ "enough", FLAG, "whether the rate may be quoted" },
};

static const struct member configuration_members[] = {
	{ "outcomes", MAP(COUNT), "attempts by outcome" },
	{ "expectations", COUNT, "judged, of attempts with a verdict" },
	{ "expectations_met", COUNT, "of these" },
	{ "pass_at_k", MAP(FIGURE), "by k" },
	{ "pass_hat_k", MAP(FIGURE), "pass^k, by k" },
	{ "seconds", NUMBER, "of all its attempts" },
	{ "usd", NUMBER, "of all its attempts" },
	{ "tokens", REF("tokens"), "of all its attempts" },
};

static const struct member difference_members[] = {
	{ "cases", COUNT, "with a verdict in both" },
	{ "difference", FIGURE, "first less second, -1 to 1" },
	{ "low", FIGURE, "of the 95 % interval" },
	{ "high", FIGURE, "of the 95 % interval" },
	{ "interval", TEXT, "how it was made" },
	{ "standard_error", FIGURE, "clustered by case" },
	{ "detectable", FIGURE, "found in 4 of 5 runs of this size" },
	{ "normalised_gain", FIGURE, "share of what was left to gain" },
	{ "enough", FLAG, "whether it may be quoted" },
};

static const struct member trigger_members[] = {
	{ "recall", REF("rate"), "of queries that should trigger" },
	{ "specificity", REF("rate"), "of those that should not" },
	{ "matrix", MAP(MAP(COUNT)), "should_trigger and should_not_trigger, by verdict" },
	{ "queries", COUNT, "" },
	{ "queries_passed", COUNT, "at the threshold" },
	{ "queries_failed", COUNT, "the others with a verdict" },
};

static const struct member token_members[] = {
	{ "input", FIGURE, "not from the cache" },
	{ "output", FIGURE, "" },
	{ "cache_read", FIGURE, "" },
	{ "cache_creation", FIGURE, "" },
};

static const struct member attempt_members[] = {
	{ "version", "\"const\":1", "the version of this format" },
	{ "kind", "\"enum\":[\"artifact\",\"trigger\",\"control\"]", "" },
	{ "case", TEXT, "the id of the case or query" },
	{ "configuration", MAYBE, "of an artifact attempt" },
	{ "run", "\"type\":\"integer\",\"minimum\":1", "which repeat" },
	{ "query", MAYBE, "of a trigger attempt" },
	{ "should_trigger", "\"type\":[\"boolean\",\"null\"]", "of a trigger attempt" },
	{ "outcome",
		"\"enum\":[\"pass\",\"fail\",\"error\",\"limit\",\"skipped\",\"ungraded\"]",
		"only the first two are verdicts" },
	{ "verdict", "\"enum\":[\"fired\",\"not_fired\",\"other_skill\",\"error\",null]",
		"of a trigger attempt" },
	{ "reason", TEXT, "why it ended so, or empty" },
	{ "started", TEXT, "ISO 8601, UTC" },
	{ "ended", TEXT, "the same" },
	{ "seconds", NUMBER, "of the agent" },
	{ "exit", "\"type\":\"integer\"", "its exit code" },
	{ "turns", COUNT, "" },
	{ "tokens", REF("tokens"), "of the agent and its sub-agents" },
	{ "usd", FIGURE, "as the client estimates it; null if it did not say" },
	{ "grader_usd", NUMBER, "of model graders" },
	{ "retries", COUNT, "of the client, after failed requests" },
	{ "tries", COUNT, "of carrel, after failures of the infrastructure" },
	{ "tool_calls", MAP(COUNT), "by tool" },
	{ "permission_denials", COUNT, "" },
	{ "client", MAYBE, "the version that the client reports" },
	{ "model", MAYBE, "the model that the client reports" },
	{ "unreadable_lines", COUNT, "of the transcript" },
	{ "expectations", "\"type\":\"array\",\"items\":{" REF("expectation") "}", "" },
	{ "artifacts", REF("artifacts"), "by content, not by time" },
	{ "plan", MAYBE, "the hash of the box" },
};

static const struct member expectation_members[] = {
	{ "text", TEXT, "what was asserted" },
	{ "passed", "\"type\":[\"boolean\",\"null\"]", "null: its grader failed" },
	{ "evidence", TEXT, "what the grader saw" },
	{ "grader", TEXT, "its type" },
	{ "weak", MAYBE, "why the assertion proves little" },
};

static const struct member artifact_members[] = {
	{ "added", TEXTS, "in artifacts/" },
	{ "changed", TEXTS, "in artifacts/; what small ones were is in before/" },
	{ "deleted", TEXTS, "" },
	{ "left_out", TEXTS, "links, devices and what was too large" },
};

static void add_properties(struct json *j, const struct member *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_raw(j, list[i].name,
			mem_printf("{%s%s%s%s}", *list[i].about ? "\"description\":\"" : "",
				list[i].about, *list[i].about ? "\"," : "", list[i].schema));
}

static void add_required(struct json *j, const struct member *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_string(j, NULL, list[i].name);
}

/* The body of an object with these members, and perhaps those of another list. */
static void add_object(struct json *j, const struct member *list, size_t n,
	const struct member *more, size_t more_n, bool all)
{
	json_string(j, "type", "object");
	json_open(j, "required", '[');
	add_required(j, list, n);
	add_required(j, more, all ? more_n : 0);
	json_close(j, ']');
	json_open(j, "properties", '{');
	add_properties(j, list, n);
	add_properties(j, more, more_n);
	json_close(j, '}');
}

static void add_def(struct json *j, const char *name, const struct member *list, size_t n)
{
	json_open(j, name, '{');
	add_object(j, list, n, NULL, 0, false);
	json_close(j, '}');
}

static void begin(struct json *j, const char *title)
{
	json_open(j, NULL, '{');
	json_string(j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_string(j, "title", title);
}

static void end(struct json *j)
{
	json_close(j, '}');
	json_close(j, '}');
	str_addc(j->out, '\n');
}

void run_schema(struct str *out)
{
	struct json j = { .out = out, .indent = true };
	size_t n = ARRAY_SIZE(run_members) - 1; /* the summary comes at the end of a run */

	begin(&j, "run.json of an evaluation by carrel");
	add_object(&j, run_members, n, &run_members[n], 1, false);
	json_open(&j, "$defs", '{');
	add_def(&j, "suite", suite_members, ARRAY_SIZE(suite_members));
	add_def(&j, "agent", agent_members, ARRAY_SIZE(agent_members));
	add_def(&j, "options", option_members, ARRAY_SIZE(option_members));
	json_open(&j, "summary", '{');
	add_object(&j, summary_members, ARRAY_SIZE(summary_members), summary_may,
		ARRAY_SIZE(summary_may), false);
	json_close(&j, '}');
	add_def(&j, "rate", rate_members, ARRAY_SIZE(rate_members));
	json_open(&j, "configuration", '{');
	add_object(&j, rate_members, ARRAY_SIZE(rate_members), configuration_members,
		ARRAY_SIZE(configuration_members), true);
	json_close(&j, '}');
	add_def(&j, "difference", difference_members, ARRAY_SIZE(difference_members));
	add_def(&j, "triggers", trigger_members, ARRAY_SIZE(trigger_members));
	add_def(&j, "tokens", token_members, ARRAY_SIZE(token_members));
	end(&j);
}

void attempt_schema(struct str *out)
{
	struct json j = { .out = out, .indent = true };

	begin(&j, "attempt.json of an evaluation by carrel");
	add_object(&j, attempt_members, ARRAY_SIZE(attempt_members), NULL, 0, false);
	json_open(&j, "$defs", '{');
	add_def(&j, "tokens", token_members, ARRAY_SIZE(token_members));
	add_def(&j, "expectation", expectation_members, ARRAY_SIZE(expectation_members));
	add_def(&j, "artifacts", artifact_members, ARRAY_SIZE(artifact_members));
	end(&j);
}
