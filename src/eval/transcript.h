/*
 * eval/transcript.h - what a client's event stream says
 *
 * The stream is read line by line while the client runs, and in the end it is the model's
 * text: any line may be anything. A line that is no JSON is counted and passed over; figures
 * are taken from the final result alone, because the messages before it repeat them in parts.
 *
 * What is kept is allocated by malloc(3): memory from base/mem.h is given back after each
 * line, or a long transcript would fill the machine.
 */
#ifndef EVAL_TRANSCRIPT_H
#define EVAL_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>

struct harness;
struct json_value;

enum { TRANSCRIPT_TOOLS = 20000 }; /* calls that are kept; more are counted */

struct tool_call {
	const char *name;
	const char *skill; /* that is used by it, where that can be seen; or NULL */
	const char *path;  /* that is read; or NULL */
};

struct transcript {
	const struct harness *harness;

	bool began; /* the client said that it started */
	const char *version, *model;
	bool has_skill_tool; /* the model was offered the tool Skill */
	const char *skills;  /* those that the client listed, one a line; or NULL */

	struct tool_call *calls;
	size_t calls_n, calls_size;
	unsigned long long tool_calls; /* also those that are not kept */
	unsigned long long tool_errors;
	unsigned long long steps; /* messages of the model */
	unsigned long long text_bytes;
	const char *last_message; /* id of the message that was counted last */

	bool done, failed; /* there was a result */
	unsigned long long results;
	const char *answer; /* what was said last */
	const char *subtype;
	unsigned long long api_status; /* HTTP, of the result or the last retry */
	unsigned long long turns, denials;
	unsigned long long input, output, cache_read, cache_creation;
	double usd;
	bool has_usd;
	const char *structured; /* JSON, as the client printed it; or NULL */

	unsigned long long retries;
	bool auth_failed; /* the API refused the credential, or there is none */
	bool asked;       /* a model has said something, and not only the client */
	long long
		reset_at; /* the user's limit is used up until then, Unix time; 0: it is not */
	const char *error;
	unsigned long long bytes, lines, bad_lines;
};

/* Read one line, without its end. */
void transcript_line(struct transcript *t, const char *line, size_t n);

/* Free what it has kept. */
void transcript_release(struct transcript *t);

/* ---- transcript-claude.c ---- */

void transcript_claude(struct transcript *t, const struct json_value *line);

/* ---- for the clients' files ---- */

/* Keep a copy in the place of what is there. */
void transcript_set(const char **field, const char *text);
void transcript_call(struct transcript *t, const char *name, const char *skill,
	const char *path);

#endif
