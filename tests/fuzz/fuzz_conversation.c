/*
 * tests/fuzz/fuzz_conversation.c - any transcript becomes steps whose JSON is valid
 */
#include "fuzz.h"
#include "base/json.h"
#include "base/str.h"
#include "eval/conversation.h"
#include "eval/outputs.h"

#include <string.h>

static void check_json(const conversation *list, size_t most)
{
	struct str out = { 0 };
	struct json j = { .out = &out };

	conversation_add_json(&j, NULL, list, most);
	CHECK(valid_json(out.p, out.len));
}

static void check_text(const char *text)
{
	struct str xml = { 0 }, markdown = { 0 };

	xml_add(&xml, text);
	CHECK(!xml.p || (!strpbrk(xml.p, "<>\"\033") && !strstr(xml.p, "]]>")));
	markdown_add(&markdown, text);
	CHECK(!markdown.p || !strpbrk(markdown.p, "\n\033"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	conversation list = { 0 };
	char *text = mem_strndup((const char *)data, size);

	conversation_read((const char *)data, size, size % 2 ? text : NULL, &list);
	CHECK(list.n <= CONVERSATION_MOST + 2);
	check_json(&list, 0);
	check_json(&list, 5);
	vec_each(step, &list) {
		CHECK(step->message);
		CHECK(step->source == STEP_AGENT || !step->calls.n);
	}
	check_text(text);
	memory_reset();
	return 0;
}
