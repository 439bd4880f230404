/*
 * manifest/trust.h - which manifests of projects the user has approved
 *
 * A project's manifest says what runs, what it may read and with which secrets, and it may have
 * come with a clone or been edited by an agent. It counts only once the user has seen it.
 * Approved is a file's content (its SHA-256) at a path; beside it, what it granted is kept
 * line by line, so that a changed one can be shown as a difference.
 *
 * In $XDG_STATE_HOME/carrel/trust/, one file for each path, named by the path's SHA-256.
 */
#ifndef MANIFEST_TRUST_H
#define MANIFEST_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

struct fault;
struct json_value;
struct str;

enum trust { TRUST_NEW, TRUST_CHANGED, TRUST_GIVEN };

struct trust_state {
	enum trust is;
	const char *hash;         /* 64 hex digits of the content */
	VEC(const char *) grants; /* every line of what this content grants, safe to print */
	VEC(const char *) added;  /* those not in what was approved; NEW: all */
	VEC(const char *) gone;   /* what was approved and is no more */
};

/*
 * The verdict alone, without lines: what each start needs, and a large manifest has many of
 * them. As trust_check() else.
 */
int trust_verdict(const char *path, const char *bytes, size_t n, struct trust_state *ret,
	struct fault *f);

/*
 * Where does the file at path (absolute, canonical) with this content stand? CARREL_TRUST with
 * its hash approves it for this once. A store that cannot be read is a fault, one that does
 * not exist is not.
 */
int trust_check(const char *path, const char *bytes, size_t n, const struct json_value *tree,
	struct trust_state *ret, struct fault *f);

/* Approve: record the hash and the grants, whole or not at all. */
int trust_give(const char *path, const struct trust_state *state, struct fault *f);

/* Take back; false: it was not approved. */
int trust_take(const char *path, bool *ret_was, struct fault *f);

/* For the person: what is granted, or what would change, a line each, indented. */
void trust_show(const struct trust_state *state, struct str *out);

#endif
