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
 *	    sessions/NNNNNN/		of a running box: upper, work; begun: see layers.h
 *	    sessions/rest-PID/		of one that has ended, for the next to use
 *	    hiding/			white-outs of what tells of other projects
 *	    busy, change		locks
 *	.gone-...			an instance that is being removed
 *
 * A box sees the user's real directory through overlayfs: the real one is the lowest layer, the
 * frozen layers lie on it, and on top is the box's own, which becomes a frozen layer
 * when it ends. overlayfs allows no change to a layer that is in use and no two mounts with one
 * upper directory; so each running box has its own, and only layers that came after all running
 * boxes had begun are merged into one. Boxes that end at the same time thus lose nothing:
 * of two that wrote one file, the one that ended last wins.
 *
 * Whoever dies leaves an unlocked session behind, and the next start freezes it. A box has
 * the instance's directory itself locked, too, shared; who can lock it alone may remove it.
 */
#ifndef STATE_INSTANCE_H
#define STATE_INSTANCE_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "plan/request.h"

struct fault;
struct project;

struct session_part {
	const struct part *part;
	const char *own;           /* directory of what is private, on the host */
	VEC(const char *) layers;  /* frozen, the newest first */
	const char *session;       /* NULL: only looked */
	const char *upper, *work;  /* NULL: only looked, or it has no layers */
	bool made;                 /* not only looked at */
	struct str notes;          /* see layers.h */
	const char *before;        /* those of the box before, whose session this was */
	VEC(struct part_file) put; /* for the box to find, below its layer */
	int dir;                   /* of this part, open; -1: only looked */
	int busy, lock;            /* held while the box runs */
};

struct session {
	const char *dir; /* of the instance */
	const char *harness;
	VEC(struct session_part) parts;
	int lock; /* held while the box runs */
};

/* The directory of an instance, whether it is there or not; NULL: no state directory. */
const char *instance_dir(const char *id);

/*
 * Make the instance if it is new, and a session in it. only_look: nothing is made, and the
 * layers are those that are there.
 */
int session_begin(const struct project *p, const char *harness, const struct part *parts,
	bool only_look, struct session *ret, struct fault *f);

/* Put a file on the part's layers, below the box's own; see struct part_file. */
int session_file(struct session_part *part, const struct part_file *file, struct fault *f);

/* All is in place, and the box may begin: from now on what is in its layer is kept. */
int session_ready(struct session *s, struct fault *f);

/* Make in the user's own directory what is to be mounted on there. */
int session_prepare(const struct session_part *part, const char *dir, struct fault *f);

/*
 * The box has ended: freeze what it wrote, merge if nobody else runs. Its init may be on its
 * way out still; 0: there never was one.
 */
int session_end(struct session *s, pid_t init, struct fault *f);

/* ---- all of them ---- */

/* HARNESS/PART of an instance. */
struct instance_part {
	const char *harness, *name, *dir;
};

struct instance {
	const char *id, *dir;
	const char *root; /* NULL: not recorded */
	VEC(const char *) harnesses;
	VEC(struct instance_part) parts;
	time_t used;
	unsigned int running;     /* boxes */
	unsigned long long bytes; /* with sizes */
	const char *problem;      /* why it cannot be used, for a person; or NULL */
};
typedef VEC(struct instance) instance_vec;

/* The name of a part's directory: "config-opencode" for ".config/opencode". */
const char *instance_part_name(const char *path);

/*
 * Make the project's instance if it is new, and keep it from being removed: the descriptor
 * that holds it, and its directory.
 */
int instance_enter(const struct project *p, const char **ret_dir, struct fault *f);

/* Its directory, with nothing made; a fault if it is there and cannot be used. */
int instance_look(const struct project *p, const char **ret_dir, struct fault *f);

/* Write dir/name whole or not at all; the caller is alone with it. */
int instance_write(const char *dir, const char *name, const char *text, struct fault *f);

/*
 * All that is there, with what is wrong with each. Fails when the directory of instances
 * is not ours alone, or is no directory; that there is none is no trouble.
 */
int instance_list(bool sizes, instance_vec *ret, struct fault *f);

/* The one whose id begins like this; a fault when there is none, or several. */
int instance_find(const char *id, struct instance *ret, struct fault *f);

/* What became of a root. It is gone for sure if the user could have removed it himself. */
enum instance_root {
	ROOT_THERE,
	ROOT_GONE,
	ROOT_UNSURE, /* cannot be looked at, or is perhaps not mounted */
};
enum instance_root instance_root(const char *root);

/*
 * Remove an instance that no box uses; -EBUSY otherwise. vanished: only if its root is gone
 * at that moment; -EEXIST otherwise. Killed in between it leaves the whole instance or what
 * instance_sweep() removes.
 */
int instance_remove(const struct instance *i, bool vanished, struct fault *f);

/* Remove what killed removals have left; how many there were. */
int instance_sweep(bool only_look, unsigned int *ret, struct fault *f);

#endif
