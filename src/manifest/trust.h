/*
 * manifest/trust.h - which manifests of projects the user has approved
 *
 * A project's manifest says what runs, what it may read and with which secrets, and it may have
 * come with a clone or been edited by an agent. It counts only once the user has seen it.
 * carrel records the SHA-256 of an approved file at its path. It also keeps what the file
 * granted, line by line, to show a changed one as a difference.
 *
 * The store is $XDG_STATE_HOME/carrel/trust/, with one file for each path, named by the path's
 * SHA-256.
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
	VEC(const char *) added;  /* lines that were not approved before; NEW: all */
	VEC(const char *) gone;   /* lines that were approved and are gone */
};

/*
 * The verdict without the lines, which every start needs: a large manifest has many lines.
 * Otherwise as trust_check().
 */
int trust_verdict(const char *path, const char *bytes, size_t n, struct trust_state *ret,
	struct fault *f);

/*
 * Is the file at path (absolute, canonical) with this content approved? CARREL_TRUST with its
 * hash approves it once. A store that cannot be read is a fault; a missing store is not.
 */
int trust_check(const char *path, const char *bytes, size_t n, const struct json_value *tree,
	struct trust_state *ret, struct fault *f);

/* Approve: record the hash and the grants, all or nothing. */
int trust_give(const char *path, const struct trust_state *state, struct fault *f);

/* Revoke the approval; false: it was not approved. */
int trust_take(const char *path, bool *ret_was, struct fault *f);

/* Write for a person what is granted, or what would change, one indented line each. */
void trust_show(const struct trust_state *state, struct str *out);

#endif
