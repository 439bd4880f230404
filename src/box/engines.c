/*
 * box/engines.c - the table of engines
 *
 * The supervisor finds its engine here by the name in the frame, and calls it only through
 * struct engine.
 */
#include "box/engine.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static const struct engine *const engines[] = {
	&engine_native,
};

const struct engine *engine_find(const char *name, struct fault *f)
{
	struct str known = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		if (!strcmp(engines[i]->name, name))
			return engines[i];
		str_addf(&known, "%s%s", i ? ", " : "", engines[i]->name);
	}
	fault_set(f, 0, "this version of carrel has no such engine; it has: %s", known.p);
	return NULL;
}
