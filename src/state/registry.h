/*
 * state/registry.h - the names of the boxes that run now
 *
 * A name is taken while somebody holds a lock on NAME.lock in the runtime directory, and
 * nobody does any more once its supervisor is gone, however it went. So there is nothing to
 * clean up after a crash, and two starts at the same moment cannot get one name.
 */
#ifndef STATE_REGISTRY_H
#define STATE_REGISTRY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/mem.h"

struct fault;

enum claim_how {
	CLAIM_NEXT,   /* the name, or with -2, -3 ... one that is free, of a few the first */
	CLAIM_STRICT, /* the name or a fault */
};

struct claim {
	const char *name;
	int lock; /* held as long as it is open; -1: only looked */
};

/* Take a name. Released by registry_release(), or by the end of the process. */
int registry_claim(const char *name, enum claim_how how, struct claim *ret, struct fault *f);

/* The name that registry_claim() would take now; creates nothing. */
int registry_peek(const char *name, enum claim_how how, struct claim *ret, struct fault *f);

/* Give the name back and remove its file. Does nothing for a claim that only looked. */
void registry_release(struct claim *claim);

/* Does a box have this name now, as far as can be seen? */
bool registry_is_held(const char *name);

struct registry_box {
	const char *name;
	pid_t pid; /* of its supervisor; 0: not known */
};
typedef VEC(struct registry_box) registry_boxes;

/*
 * The names that are held by locks in the runtime directory, sorted. Boxes that were
 * started without such a directory are not among them.
 */
int registry_list(registry_boxes *ret, struct fault *f);

/*
 * The runtime directory, where sockets may lie beside the locks: ours, and writable by
 * nobody else. A descriptor, or -errno; nothing is made.
 */
int registry_directory(struct fault *f);

#endif
