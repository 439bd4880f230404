/*
 * overlay/patch.h - changes as text, in the form that git has for patches
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
	 * Every byte as it is, binary files too, for `git apply`. Else for a person: what is
	 * not visible is escaped, and what is long or binary is only named.
	 */
	bool exact;
	bool colour;
};

/*
 * Add one change. What a patch cannot say (directories, modes but for execution, attributes,
 * special files) is left out of an exact one, and noted in the other.
 */
int patch_add(struct str *out, const struct changeset *s, const struct changed *c,
	const struct patch_style *style, struct fault *f);

/* Lines that were added and removed; false: it is no text, or none that is compared. */
bool patch_count(const struct changeset *s, const struct changed *c, size_t *ret_added,
	size_t *ret_removed);

/* A name as git writes it: in quotes with escapes, unless it is plain. */
void patch_add_name(struct str *out, const char *prefix, const char *path);

/* overlay/patch-binary.c: "GIT binary patch" of both directions. NULL: no file. */
void patch_add_binary(struct str *out, const char *old, size_t old_n, const char *new,
	size_t new_n);

#endif
