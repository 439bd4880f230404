/*
 * state/instance.h - what a client keeps for one project
 *
 *	$XDG_STATE_HOME/carrel/instances/ID/
 *	  version			"1"
 *	  project-root			the canonical path, as it is
 *	  settings.json			what an agent may say, for this project alone
 *	  HARNESS/PART/			a part of the home: `.claude` is "claude"
 *	    own/			private to the project, shared by its running boxes
 *	    layers/NNNNNN/		what boxes have changed in the user's configuration
 *	    sessions/NNNNNN/		of a running box: upper, work
 *	    busy, change		locks
 *
 * A box sees the user's real directory through overlayfs: the real one is the lowest layer, the
 * frozen layers lie on it, and on top is the box's own, which becomes a frozen layer
 * when it ends. overlayfs allows no change to a layer that is in use and no two mounts with one
 * upper directory; so each running box has its own, and layers are merged into one only
 * when no box runs (`busy` can be locked). Boxes that end at the same time thus lose nothing:
 * of two that wrote one file, the one that ended last wins.
 *
 * Whoever dies leaves an unlocked session behind, and the next start freezes it.
 */
#ifndef STATE_INSTANCE_H
#define STATE_INSTANCE_H

#include <stdbool.h>
#include <time.h>

#include "base/mem.h"
#include "plan/request.h"

struct fault;
struct project;

struct session_part {
	const struct part *part;
	const char *own;          /* directory of what is private, on the host */
	VEC(const char *) layers; /* frozen, the newest first */
	const char *upper, *work; /* NULL: only looked */
	VEC(struct part_file) files;
	bool made;      /* not only looked at */
	int busy, lock; /* held while the box runs */
};

struct session {
	const char *dir; /* of the instance */
	const char *harness;
	VEC(struct session_part) parts;
};

/* The directory of an instance, whether it is there or not; NULL: no state directory. */
const char *instance_dir(const char *id);

/*
 * Make the instance if it is new, and a session in it. only_look: nothing is made, and the
 * layers are those that are there.
 */
int session_begin(const struct project *p, const char *harness, const struct part *parts,
	bool only_look, struct session *ret, struct fault *f);

/* Put a file into the part's top layer; see struct part_file. */
int session_file(struct session_part *part, const struct part_file *file, struct fault *f);

/* Make in the user's own directory what is to be mounted on there. */
int session_prepare(const struct session_part *part, const char *dir, struct fault *f);

/* The box has ended: freeze what it wrote, merge if nobody else runs. */
int session_end(struct session *s, struct fault *f);

/* ---- all of them ---- */

struct instance {
	const char *id, *dir;
	const char *root; /* NULL: not recorded */
	VEC(const char *) harnesses;
	time_t used;
	unsigned int running;     /* boxes */
	unsigned long long bytes; /* with sizes */
	const char *problem;      /* why it cannot be used; or NULL */
};
typedef VEC(struct instance) instance_vec;

/* Fails when the directory of instances is not ours or looks wrong. */
int instance_list(bool sizes, instance_vec *ret, struct fault *f);

/* Remove an instance that no box uses; -EBUSY otherwise. */
int instance_remove(const struct instance *i, struct fault *f);

#endif
