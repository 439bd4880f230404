/*
 * eval/suite-schema.c - the schema of carrel's own suites, and one to begin with
 */
#include "eval/suite.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>

struct property {
	const char *name, *schema, *about;
};

#define TEXT  "\"type\":\"string\""
#define TEXTS "\"type\":\"array\",\"items\":{\"type\":\"string\"}"
#define COUNT "\"type\":\"integer\",\"minimum\":1"
#define TIME  "\"type\":[\"string\",\"number\"]"
#define FILES                                                                                  \
	"\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\"," \
	"\"properties\":{\"from\":{\"type\":\"string\"},\"to\":{\"type\":\"string\"}},"        \
	"\"required\":[\"from\",\"to\"],\"additionalProperties\":false}]}"
#define LIMITS                                                                         \
	"\"type\":\"object\",\"properties\":{\"time\":{" TIME "},\"idle\":{" TIME "}," \
	"\"turns\":{" COUNT "},\"usd\":{\"type\":\"number\",\"minimum\":0}},"          \
	"\"additionalProperties\":false"
#define NETWORK                                                       \
	"\"type\":\"object\",\"properties\":{\"allow\":{" TEXTS "}}," \
	"\"additionalProperties\":false"

static const struct property whole[] = {
	{ "version", "\"const\":1", "the version of this format" },
	{ "skill", TEXT, "the skill's directory, relative to this file" },
	{ "project", TEXT, "the project whose copy is the workspace" },
	{ "agent",
		"\"type\":\"object\",\"properties\":{\"harness\":{" TEXT "},\"model\":{" TEXT
		"},\"profile\":{\"enum\":[\"pure\",\"realistic\"]},\"command\":{" TEXTS
		"}},\"additionalProperties\":false",
		"which client makes the attempts, and with which model" },
	{ "configurations",
		"\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\","
		"\"properties\":{\"skill\":{\"anyOf\":[{\"const\":false},{\"const\":true},"
		"{" TEXT "}]},\"model\":{" TEXT "},\"harness\":{" TEXT
		"}},\"additionalProperties\":false}",
		"what each case is tried with; with_skill and without_skill if not given" },
	{ "repeat", COUNT, "attempts of each case and query" },
	{ "limits", LIMITS, "what one attempt may take" },
	{ "network", NETWORK, "hosts that artifact evals reach besides the model's" },
	{ "control", TEXT, "the query of the positive control" },
	{ "cases", "\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/case\"}",
		"artifact evals" },
	{ "triggers",
		"\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"query\":"
		"{" TEXT "},\"should_trigger\":{\"type\":\"boolean\"}},\"required\":[\"query\","
		"\"should_trigger\"]}",
		"trigger evals" },
};

static const struct property one_case[] = {
	{ "id", "\"type\":[\"string\",\"integer\"]", "unique in the suite" },
	{ "name", TEXT, "for a person" },
	{ "prompt", TEXT, "what the agent is told" },
	{ "turns", TEXTS, "what it is told after each of its answers" },
	{ "expected_output", TEXT, "what is expected, in short, for the model grader" },
	{ "state_prefix", TEXT, "text before the prompt" },
	{ "files", FILES,
		"put into the workspace; paths are below the project, beside this "
		"file or in the skill" },
	{ "setup", "\"anyOf\":[{" TEXT "},{" TEXTS "}]",
		"directories whose contents go into the workspace" },
	{ "limits", LIMITS, "what an attempt of this case may take" },
	{ "network", NETWORK, "more hosts for this case" },
	{ "configurations", TEXTS, "only these" },
	{ "repeat", COUNT, "attempts of this case" },
	{ "expectations", TEXTS, "sentences that a model judges" },
	{ "graders", "\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/grader\"}",
		"checks that need no model, and more for the model" },
};

static void add_properties(struct json *j, const struct property *list, size_t n)
{
	json_string(j, "type", "object");
	json_open(j, "properties", '{');
	for (size_t i = 0; i < n; i++) {
		json_raw(j, list[i].name,
			mem_printf("{\"description\":\"%s\",%s}", list[i].about,
				list[i].schema));
	}
	json_close(j, '}');
	json_raw(j, "patternProperties", "{\"^[_$]\":true}");
	json_bool(j, "additionalProperties", false);
}

void suite_schema(struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '{');
	json_string(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_string(&j, "title", "A suite of evaluations for carrel");
	add_properties(&j, whole, ARRAY_SIZE(whole));
	json_raw(&j, "required", "[\"version\"]");
	json_open(&j, "$defs", '{');
	json_open(&j, "case", '{');
	add_properties(&j, one_case, ARRAY_SIZE(one_case));
	json_raw(&j, "required", "[\"prompt\"]");
	json_close(&j, '}');
	json_open(&j, "grader", '{');
	json_open(&j, "oneOf", '[');
	for (enum grader_kind k = 0; k < GRADE_KINDS; k++)
		grader_schema(&j, k);
	json_close(&j, ']');
	json_close(&j, '}');
	json_close(&j, '}');
	json_close(&j, '}');
	str_addc(out, '\n');
}

void suite_example(const struct suite_skill *skill, struct str *out)
{
	struct json j = { .out = out, .indent = true };

	json_open(&j, NULL, '{');
	json_number(&j, "version", 1);
	json_string(&j, "_help",
		"Replace every text below. `carrel schema suite` has all keys.");
	json_string(&j, "skill", "..");
	json_open(&j, "cases", '[');
	json_open(&j, NULL, '{');
	json_string(&j, "id", "first");
	json_string(&j, "prompt",
		mem_printf("A task for which the skill %s helps. Write the result to "
			   "result.md.",
			skill->name));
	json_open(&j, "expectations", '[');
	json_string(&j, NULL, "A sentence that is true of good work and false of bad work");
	json_close(&j, ']');
	json_open(&j, "graders", '[');
	json_raw(&j, NULL, "{ \"type\": \"exists\", \"path\": \"result.md\" }");
	json_close(&j, ']');
	json_close(&j, '}');
	json_close(&j, ']');
	json_open(&j, "triggers", '[');
	json_raw(&j, NULL,
		"{ \"query\": \"What somebody says who needs the skill\", "
		"\"should_trigger\": true }");
	json_raw(&j, NULL,
		"{ \"query\": \"What sounds alike and does not need it\", "
		"\"should_trigger\": false }");
	json_close(&j, ']');
	json_close(&j, '}');
	str_addc(out, '\n');
}
