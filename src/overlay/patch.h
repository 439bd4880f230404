/*
 * overlay/patch.h - changes as text, in git's patch format
 */
#ifndef OVERLAY_PATCH_H
#define OVERLAY_PATCH_H

#include <stdbool.h>
#include <stddef.h>

struct changed;
struct changeset;
struct fault;
struct str;

struct patch_style {
	/*
	 * Keep every byte, binary files too, for `git apply`. Otherwise for a person: invisible
	 * characters are escaped, and long or binary files are only named.
	 */
	bool exact;
	bool colour;
};

/*
 * Add one change. An exact patch omits what the format cannot express (directories, modes
 * except the execute bit, attributes, special files); the other form notes it.
 */
int patch_add(struct str *out, const struct changeset *s, const struct changed *c,
	const struct patch_style *style, struct fault *f);

/*
 * Count lines that were added and removed; false: the file is not text, or too long to compare.
 */
bool patch_count(const struct changeset *s, const struct changed *c, size_t *ret_added,
	size_t *ret_removed);

/* A name as git writes it: in quotes with escapes, unless it is plain. */
void patch_add_name(struct str *out, const char *prefix, const char *path);

/* overlay/patch-binary.c: "GIT binary patch" of both directions. NULL: no file. */
void patch_add_binary(struct str *out, const char *old, size_t old_n, const char *new,
	size_t new_n);

#endif
