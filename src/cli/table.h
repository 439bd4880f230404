/*
 * cli/table.h - rows under a heading, for a person
 *
 * Columns are as wide as their contents. The last one holds a path and may be long: if a row
 * does not fit into the terminal, the path gets a line of its own, so that the terminal does
 * not break it.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stddef.h>

#include "base/mem.h"
#include "base/str.h"

enum { TABLE_MOST = 12 };

struct table_row {
	const char *cells[TABLE_MOST]; /* safe to print */
	struct str below;              /* whole lines that belong to it */
};

struct table {
	size_t columns;
	const char *heads[TABLE_MOST];
	bool right[TABLE_MOST]; /* numbers are aligned to the right */
	VEC(struct table_row) rows;
};

/* The width of the terminal fd in columns; 0: it is not a terminal. */
size_t table_width(int fd);

/* Prints nothing without rows. width 0: no limit. */
void table_print(const struct table *t, size_t width, struct str *out);

#endif
