/* plan/text.h - lines of a plan for a person, shared by its long and short form */
#ifndef PLAN_TEXT_H
#define PLAN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct plan;
struct request_agent;
struct str;

enum { TEXT_INDENT = 11, TEXT_WIDTH = 79 };

/* The label, in bold on a terminal, as wide as the indent. */
void text_heading(struct str *out, bool colour, const char *label);

/* The same and a text, made visible. */
void text_line(struct str *out, bool colour, const char *label, const char *text);

/* A visible text, broken between words; bytes count as columns, which is close enough. */
void text_flow(struct str *out, bool colour, const char *label, const char *text);

/* Items of one kind on as few lines as possible. The other fields begin as 0. */
struct text_wrapped {
	struct str *out;
	bool colour;
	const char *label; /* of the first line */
	size_t width;
	bool begun;
};

void text_wrap(struct text_wrapped *w, const char *text);
void text_wrap_end(struct text_wrapped *w);

/* The mode of its network, in words. */
const char *text_network(const struct plan *p);

/* The client's login and its expiry, and whether the client asks; for agents. */
const char *text_login(const struct request_agent *a);
const char *text_prompts(const struct request_agent *a);

#endif
