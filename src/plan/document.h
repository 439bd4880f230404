/*
 * plan/document.h - the plan as a JSON document, and what the document looks like
 *
 * One table says which members there are, what each means and how its value is written. The
 * document, the hash of a box and `carrel schema plan` all come from it, so a new member is one
 * row.
 */
#ifndef PLAN_DOCUMENT_H
#define PLAN_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

struct json;

/* A hash leaves out what differs each time, an agreement also what grants nothing. */
enum document_for { FOR_READER, FOR_HASH, FOR_AGREEMENT };

enum field_form {
	FIELD_TEXT,
	FIELD_WHOLE, /* a number from 0 on */
	FIELD_REAL,  /* the same, not only whole ones */
	FIELD_FLAG,
	FIELD_OBJECT,
};

struct field {
	const char *name; /* NULL ends a table */
	enum field_form form;
	const char *about;
	bool list;                  /* an array of these */
	bool optional;              /* may be missing */
	const char *choices;        /* TEXT: "ro|rw" */
	const char *pattern;        /* TEXT */
	int constant;               /* WHOLE: this and no other */
	const struct field *fields; /* OBJECT */

	/* How the value is written. `of` is the struct that the table is about. */
	void (*put)(struct json *j, const struct field *f, const void *of,
		enum document_for whom);
	size_t at, size; /* of the member of that struct */
};

extern const struct field plan_document[];

#endif
