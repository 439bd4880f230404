/*
 * cli/instances.h - the words of `carrel instances`, a file each
 */
#ifndef CLI_INSTANCES_H
#define CLI_INSTANCES_H

#include <stdbool.h>

#include "state/instance.h"
#include "overlay/layers.h"

struct fault;
struct harness;

struct instances_args {
	bool json, dry, yes;
};

/* argv: the words after the subcommand. They return the exit code. */
int instances_diff(const struct instances_args *a, int argc, char **argv);
int instances_take(const struct instances_args *a, int argc, char **argv);
int instances_drop(const struct instances_args *a, int argc, char **argv);
int instances_set(const struct instances_args *a, int argc, char **argv);
int instances_import(const struct instances_args *a, int argc, char **argv);

/* ---- for these files ---- */

/* Is it the beginning of an instance's id, and certainly nothing else? */
bool instances_is_id(const char *word);

/* The instance of that id, or of the working directory (NULL), if it can be used. */
int instances_pick(const char *id, struct instance *ret, struct fault *f);

/* A part of an instance that has layers, and the user's directory below them. */
struct known_part {
	const struct harness *harness;
	const char *path; /* below home */
	struct layers layers;
};
typedef VEC(struct known_part) known_parts;
void instances_parts(const struct instance *i, known_parts *ret);

/* "512", "1.5K", "20M". */
const char *instances_size(unsigned long long bytes);

#endif
