/*
 * tests/unit/print-root.c - what project_find() says, for the comparison with git
 *
 * Directories come on standard input, each ended by a NUL, since their names may hold anything
 * else; relative ones count from the working directory. For each, five fields are written that
 * end in a NUL, too: root, id, common, note, fault. What is absent is empty.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "state/root.h"

static void put(const char *field)
{
	fputs(field ? field : "", stdout);
	putchar('\0');
}

int main(void)
{
	size_t size = 0;
	char *dir = NULL;

	while (getdelim(&dir, &size, '\0', stdin) > 0) {
		struct fault fault = { 0 };
		struct project p = { 0 };

		if (project_find(dir, &p, &fault) < 0)
			p = (struct project){ 0 };
		put(p.root);
		put(p.id);
		put(p.common);
		put(p.note);
		put(fault.text);
	}
	free(dir);
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
