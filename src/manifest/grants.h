/*
 * manifest/grants.h - what a manifest grants, as lines
 *
 *   agents.reviewer.skills: review
 *   agents.reviewer.env.TOKEN: ?Token for the tracker
 *   agents.reviewer.mounts: mode=ro source=~/data target=/data
 *   agents.reviewer.tools: (none)
 *
 * Each line is safe to print. Two trees that grant the same have the same lines. Two that do
 * not, differ in a line or in the order of a list's lines.
 */
#ifndef MANIFEST_GRANTS_H
#define MANIFEST_GRANTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

struct json_value;

enum { GRANTS_MAX = 15 << 20 }; /* bytes of all lines, with their ends */

typedef VEC(const char *) grant_lines;

/* All lines of a tree, in order; false: beyond GRANTS_MAX. */
bool grants_of(const struct json_value *tree, grant_lines *ret);

/* What a line is about; what a person must see comes first. */
enum grant { GRANT_RUNS, GRANT_WRITES, GRANT_READS, GRANT_NETWORK, GRANT_REST };
enum grant grant_of(const char *line);

/*
 * The length of the path at the beginning of a line; the value begins two bytes later. 0: no
 * path.
 */
size_t grant_path(const char *line);

#endif
