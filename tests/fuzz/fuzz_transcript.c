/*
 * tests/fuzz/fuzz_transcript.c - whatever a client prints, it is counted and judged
 *
 * The first byte chooses the client, the rest is its stream. Each line is counted; what is
 * kept is text; a verdict can always be given.
 */
#include "fuzz.h"
#include "eval/transcript.h"
#include "eval/trial.h"
#include "harness/harness.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const char *text = (const char *)bytes + 1, *reason = NULL;
	unsigned long long lines = 0;
	struct transcript t = { 0 };
	struct box_end end = { 0 };
	size_t clients = 0;

	if (!n--)
		return 0;
	while (harness_all[clients])
		clients++;
	t.harness = harness_all[bytes[0] % clients];
	while (n) {
		const char *stop = memchr(text, '\n', n);
		size_t length = stop ? (size_t)(stop - text) : n;

		transcript_line(&t, text, length);
		lines++;
		text += length + (stop != NULL);
		n -= length + (stop != NULL);
	}
	CHECK(t.lines == lines && t.calls_n <= t.tool_calls && t.bad_lines <= t.lines);
	if (verdict_end(&t, &end, "", &reason) != END_WELL)
		CHECK(reason && *reason && valid_output(reason));
	CHECK(verdict_fired(&t, "review") != FIRED_ERROR);
	CHECK(*verdict_control(&t, "review"));
	(void)verdict_again(&t, &end);
	transcript_release(&t);
	memory_reset();
	return 0;
}
