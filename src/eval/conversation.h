/*
 * eval/conversation.h - a transcript as a conversation
 *
 * Each client prints its own events (HARNESSES: stream-json of Claude Code, `codex exec
 * --json`, Gemini, opencode; a plain command prints anything). Report, ATIF and Inspect all
 * want the same of them: who said what, which tools were called with what, and what came
 * back.
 *
 * The bytes are hostile. A line that is no JSON, or no event that is known, becomes text;
 * nothing makes the reader fail. All text that comes out is UTF-8 without NUL.
 */
#ifndef EVAL_CONVERSATION_H
#define EVAL_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/str.h"

struct json;
struct json_value;

enum step_source { STEP_SYSTEM, STEP_USER, STEP_AGENT };

struct step_call {
	const char *id, *name;              /* never NULL */
	const struct json_value *arguments; /* an object, or NULL */
	const char *result;                 /* NULL: none came */
	bool failed;
};

struct said {
	enum step_source source;
	const char *message;   /* never NULL */
	const char *reasoning; /* AGENT, or NULL */
	const char *model;     /* AGENT, or NULL */
	const char *time;      /* ISO 8601, or NULL */
	const char *key;       /* of the client's message: blocks of one message are one step */
	bool inner;            /* of a sub-agent */
	struct str text;       /* behind message, while it grows */
	VEC(struct step_call) calls; /* AGENT */
};

typedef VEC(struct said) conversation;

/*
 * Read n bytes of a transcript. prompt, if it is not NULL, becomes the first step unless the
 * client says it itself. Lines beyond CONVERSATION_LINE bytes, and steps beyond
 * CONVERSATION_MOST, are left out with a step that says so.
 */
enum { CONVERSATION_LINE = 1024 * 1024, CONVERSATION_MOST = 20000 };
void conversation_read(const char *bytes, size_t n, const char *prompt, conversation *ret);

/*
 * The list as ATIF has it ("steps" of a trajectory). A text of more than text_most bytes is
 * cut, and says by how much; 0: none is.
 */
void conversation_add_json(struct json *j, const char *key, const conversation *s,
	size_t text_most);

/* Text as UTF-8: bytes that are none become U+FFFD. The same pointer where nothing changed. */
const char *utf8_clean(const char *text);

#endif
