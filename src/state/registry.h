/*
 * state/registry.h - the names of the boxes that run now
 *
 * A name is taken while somebody holds a lock on NAME.lock in the runtime directory. The lock
 * ends with the supervisor, however it ends. So there is nothing to clean up after a crash, and
 * two starts at the same moment cannot get the same name.
 */
#ifndef STATE_REGISTRY_H
#define STATE_REGISTRY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/mem.h"

struct fault;

enum claim_how {
	CLAIM_NEXT,   /* the name, or the name with -2, -3 ... that is free */
	CLAIM_STRICT, /* the name or a fault */
};

struct claim {
	const char *name;
	int lock; /* held as long as it is open; -1: only looked at */
};

/* Take a name. Released by registry_release(), or by the end of the process. */
int registry_claim(const char *name, enum claim_how how, struct claim *ret, struct fault *f);

/* The name that registry_claim() would take now; creates nothing. */
int registry_peek(const char *name, enum claim_how how, struct claim *ret, struct fault *f);

/* Give the name back and remove its file. Does nothing for a claim that only looked. */
void registry_release(struct claim *claim);

/* Does a box have this name now, as far as carrel can see? */
bool registry_is_held(const char *name);

struct registry_box {
	const char *name;
	pid_t pid; /* of its supervisor; 0: not known */
};
typedef VEC(struct registry_box) registry_boxes;

/*
 * The names with a lock in the runtime directory, sorted. Boxes started without such a
 * directory are not listed.
 */
int registry_list(registry_boxes *ret, struct fault *f);

/*
 * Open the runtime directory, where sockets may lie beside the locks: ours, and writable by
 * nobody else. A descriptor, or -errno; nothing is made.
 */
int registry_directory(struct fault *f);

/* Wait until no box has the name; 0 at once when none has it. */
int registry_wait(const char *name, struct fault *f);

#endif
