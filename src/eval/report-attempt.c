/*
 * eval/report-attempt.c - what the report shows of one attempt
 *
 * Everything is bounded, because an agent chose how much there is: each text, the steps of
 * the conversation, the number of files and their sizes. What was cut is said where it was
 * cut. Steps come in the form of ATIF (eval/conversation.h), so that the page needs one
 * reader for all clients.
 */
#include "eval/report.h"
#include "base/diff.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "eval/attempts.h"
#include "eval/conversation.h"

#include <string.h>

enum {
	TRANSCRIPT_MOST = 16 * 1024 * 1024,
	FILE_MOST = 24 * 1024, /* of a text that is shown */
	FILES_MOST = 60,       /* artifacts */
	TEXT_MOST = 16 * 1024, /* of a message, an argument, a result */
	HEAD = 150,
	TAIL = 50, /* steps that are kept where all are too many */
};

/* ---- the conversation ---- */

static void keep_ends(conversation *list)
{
	size_t left_out = list->n - HEAD - TAIL;
	struct said note = {
		.source = STEP_SYSTEM,
		.message = mem_printf("%zu steps are left out here.", left_out),
	};

	memmove(&list->v[HEAD + 1], &list->v[list->n - TAIL], TAIL * sizeof(*list->v));
	list->v[HEAD] = note;
	list->n = HEAD + 1 + TAIL;
}

/* First all of it; else with shorter texts; else without its middle. */
static void add_steps(struct json *j, conversation *list)
{
	static const size_t most[] = { TEXT_MOST, 2048, 300 };

	for (size_t i = 0; i < ARRAY_SIZE(most); i++) {
		struct str out = { 0 };
		struct json piece = { .out = &out };

		if (i == ARRAY_SIZE(most) - 1 && list->n > HEAD + TAIL + 1)
			keep_ends(list);
		conversation_add_json(&piece, NULL, list, most[i]);
		if (out.len <= REPORT_ATTEMPT / 2 || i == ARRAY_SIZE(most) - 1) {
			json_raw(j, "steps", out.p);
			return;
		}
	}
}

static void add_conversation(struct json *j, const struct run_dir *run, const struct attempt *a)
{
	size_t n = 0, size = 0;
	const char *prompt = run_dir_file(run, a->path, "prompt.txt", FILE_MOST, &n, &size);
	const char *bytes =
		run_dir_file(run, a->path, "transcript.jsonl", TRANSCRIPT_MOST, &n, &size);
	conversation list = { 0 };

	conversation_read(bytes ? bytes : "", bytes ? n : 0, prompt, &list);
	add_steps(j, &list);
	json_count(j, "transcript_bytes", bytes ? size : 0);
	if (bytes && size > n)
		json_count(j, "transcript_left_out", size - n);
}

/* ---- files ---- */

/* The end of a file, which is where a program says why it failed. */
static void add_tail(struct json *j, const struct run_dir *run, const struct attempt *a,
	const char *name, const char *key)
{
	size_t n = 0, size = 0;
	const char *bytes = run_dir_file(run, a->path, name, 1024 * 1024, &n, &size);

	if (bytes && n)
		json_string(j, key, utf8_clean(n > FILE_MOST ? bytes + n - FILE_MOST : bytes));
}

/* What changed of a file, if the run kept what it was; else what it is. */
static void add_content(struct json *j, const struct run_dir *run, const struct attempt *a,
	const char *name, bool changed)
{
	size_t n = 0, size = 0, old_n = 0, old_size = 0;
	const char *new =
		run_dir_file(run, path_join(a->path, "artifacts"), name, FILE_MOST, &n, &size);
	const char *old = changed ? run_dir_file(run, path_join(a->path, "before"), name,
					    FILE_MOST, &old_n, &old_size)
				  : NULL;
	struct str diff = { 0 };

	if (!new) {
		json_string(j, "note", "It was not kept, or cannot be read.");
		return;
	}
	json_count(j, "bytes", size);
	if (memchr(new, '\0',
		    n)) { /* other bytes that are no text are shown as what they are */
		json_string(j, "note", "It is no text.");
		return;
	}
	if (size > n)
		json_count(j, "left_out", size - n);
	if (old && diff_is_text(old, old_n) && diff_is_text(new, n) && old_size == old_n &&
		size == n) {
		diff_add(&diff, old, old_n, new, n, "");
		json_string(j, "diff", utf8_clean(diff.p ? diff.p : ""));
		return;
	}
	json_string(j, "text", utf8_clean(new));
}

static void add_files(struct json *j, const struct run_dir *run, const struct attempt *a,
	const char *key)
{
	const struct json_value *list = json_member(json_member(a->json, "artifacts"), key);
	unsigned int count = 0;

	if (!list || list->type != JSON_LIST)
		return;
	json_each(it, list) {
		const char *name = it->type == JSON_STRING ? it->text : member_text(it, "path");

		if (!name)
			continue;
		if (count++ == FILES_MOST) {
			json_open(j, NULL, '{');
			json_string(j, "path", "...");
			json_string(j, "note", "More files are left out.");
			json_close(j, '}');
			return;
		}
		json_open(j, NULL, '{');
		json_string(j, "path", utf8_clean(name));
		json_string(j, "how", key);
		if (strcmp(key, "deleted") != 0)
			add_content(j, run, a, name, strcmp(key, "changed") == 0);
		json_close(j, '}');
	}
}

static void add_graders(struct json *j, const struct attempt *a)
{
	const struct json_value *list = json_member(a->json, "expectations");
	static const char *const keys[] = { "text", "evidence", "grader", "weak" };

	json_open(j, "expectations", '[');
	if (list && list->type == JSON_LIST)
		json_each(it, list) {
			const struct json_value *passed = json_member(it, "passed");

			json_open(j, NULL, '{');
			for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
				const char *text = member_text(it, keys[i]);

				if (text)
					json_string(j, keys[i],
						utf8_clean(mem_strndup(text, TEXT_MOST)));
			}
			if (passed && passed->type == JSON_BOOL)
				json_bool(j, "passed", passed->boolean);
			json_close(j, '}');
		}
	json_close(j, ']');
}

void report_attempt(const struct run_dir *run, const struct attempt *a, struct str *out)
{
	const struct json_value *calls = json_member(a->json, "tool_calls");
	const char *plan = member_text(a->json, "plan");
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "directory", utf8_clean(path_join(run->path, a->path)));
	json_string(&j, "plan", plan ? utf8_clean(plan) : NULL);
	json_string(&j, "started", a->started ? utf8_clean(a->started) : NULL);
	json_string(&j, "ended", a->ended ? utf8_clean(a->ended) : NULL);
	json_real(&j, "exit", a->exit);
	json_real(&j, "retries", a->retries);
	json_real(&j, "denials", a->denials);
	json_string(&j, "reason", utf8_clean(mem_strndup(a->reason, TEXT_MOST)));
	json_open(&j, "tool_calls", '{');
	if (calls && calls->type == JSON_OBJECT)
		json_each(it, calls)
			if (it->type == JSON_NUMBER)
				json_real(&j, utf8_clean(it->key), it->number);
	json_close(&j, '}');
	add_graders(&j, a);
	json_open(&j, "files", '[');
	add_files(&j, run, a, "added");
	add_files(&j, run, a, "changed");
	add_files(&j, run, a, "deleted");
	json_close(&j, ']');
	add_tail(&j, run, a, "stderr.txt", "stderr");
	add_conversation(&j, run, a);
	json_close(&j, '}');
}
