/*
 * state/agreed.h - the plans that the user has agreed to, by project
 *
 *	$XDG_STATE_HOME/carrel/agreed/ID	plan_agreement()s, a line each, the newest last
 *
 * ID is that of the project, see state/root.h. carrel does not ask again about a plan that is
 * listed here. Only the newest are kept; the user is asked once more about an older one.
 */
#ifndef STATE_AGREED_H
#define STATE_AGREED_H

#include <stdbool.h>

struct fault;

/* A store that cannot be read is a fault; a missing store is not. */
int agreed_look(const char *id, const char *hash, bool *ret, struct fault *f);

int agreed_add(const char *id, const char *hash, struct fault *f);

/* Forget all that was agreed to in a project; it is no error if there is nothing. */
int agreed_forget(const char *id, struct fault *f);

#endif
