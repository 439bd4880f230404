/*
 * state/instance.h - what a client keeps for one project
 *
 *	$XDG_STATE_HOME/carrel/instances/ID/
 *	  version			"1"
 *	  project-root			the canonical path
 *	  settings.json			an agent's keys, for this project alone
 *	  HARNESS/PART/			a part of the home: `.claude` is "claude"
 *	    own/			private to the project, shared by its running boxes
 *	    layers/NNNNNN/		what boxes have changed in the user's configuration
 *	    sessions/NNNNNN/		of a running box: upper, work; begun: see layers.h
 *	    sessions/rest-PID/		of a box that has ended, for the next one to reuse
 *	    hiding/			white-outs over traces of other projects
 *	    busy, change		locks
 *	.gone-...			an instance that is being removed
 *
 * A box sees the user's real directory through overlayfs. The real one is the lowest layer, the
 * frozen layers lie on it, and on top is the box's own layer, which is frozen when the box
 * ends. overlayfs allows no change to a layer in use and no two mounts with one upper
 * directory. So each running box has its own layer, and only layers younger than all running
 * boxes are merged. So boxes that end at the same time lose nothing: if two wrote one file, the
 * one that ended last wins.
 *
 * A process that dies leaves an unlocked session behind, and the next start freezes it. Each
 * box also holds a shared lock on the instance's directory; a process that can lock it
 * exclusively may remove it.
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
	const char *own;           /* the private directory, on the host */
	VEC(const char *) layers;  /* frozen, the newest first */
	const char *session;       /* NULL: only looked at */
	const char *upper, *work;  /* NULL: only looked at, or without layers */
	bool made;                 /* made, not only looked at */
	struct str notes;          /* see layers.h */
	const char *before;        /* the notes of the previous box of this session */
	VEC(struct part_file) put; /* files for the box, below its layer */
	int dir;                   /* of this part, open; -1: only looked at */
	int busy, lock;            /* held while the box runs */
};

struct session {
	const char *dir; /* of the instance */
	const char *harness;
	VEC(struct session_part) parts;
	int lock; /* held while the box runs */
};

/* The directory of an instance, even if it does not exist; NULL: no state directory. */
const char *instance_dir(const char *id);

/*
 * Make the instance if it is new, and a session in it. only_look: make nothing, and use the
 * layers that exist.
 */
int session_begin(const struct project *p, const char *harness, const struct part *parts,
	bool only_look, struct session *ret, struct fault *f);

/* Put a file onto the part's layers, below the box's own; see struct part_file. */
int session_file(struct session_part *part, const struct part_file *file, struct fault *f);

/* Everything is in place and the box may begin: from now on its layer is kept. */
int session_ready(struct session *s, struct fault *f);

/* Make the mount points in the user's own directory. */
int session_prepare(const struct session_part *part, const char *dir, struct fault *f);

/*
 * The box has ended: freeze what it wrote, and merge if no other box runs. Its init may still
 * be ending; 0: there was none.
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
	unsigned long long bytes; /* if sizes were asked for */
	const char *problem;      /* why it cannot be used, for a person; or NULL */
};
typedef VEC(struct instance) instance_vec;

/* The name of a part's directory: "config-opencode" for ".config/opencode". */
const char *instance_part_name(const char *path);

/*
 * Make the project's instance if it is new, and keep it from being removed. Returns the
 * descriptor that holds it, and its directory.
 */
int instance_enter(const struct project *p, const char **ret_dir, struct fault *f);

/* Its directory, without making anything; a fault if it exists and cannot be used. */
int instance_look(const struct project *p, const char **ret_dir, struct fault *f);

/* Write dir/name, all or nothing; the caller holds the lock. */
int instance_write(const char *dir, const char *name, const char *text, struct fault *f);

/*
 * List all instances, with their problems. Fails when the directory of instances is not ours
 * alone, or not a directory. It is no error if there is none.
 */
int instance_list(bool sizes, instance_vec *ret, struct fault *f);

/* Find an instance by the beginning of its id; a fault when there is none, or several. */
int instance_find(const char *id, struct instance *ret, struct fault *f);

/* Does the root still exist? It is gone for certain only if the user could have removed it. */
enum instance_root {
	ROOT_THERE,
	ROOT_GONE,
	ROOT_UNSURE, /* cannot be examined, or is perhaps not mounted */
};
enum instance_root instance_root(const char *root);

/*
 * Remove an instance that no box uses; -EBUSY otherwise. vanished: only if its root is gone at
 * that moment; -EEXIST otherwise. If it is killed, the instance is left whole, or
 * instance_sweep() removes the rest.
 */
int instance_remove(const struct instance *i, bool vanished, struct fault *f);

/* Remove what killed removals have left; returns their number. */
int instance_sweep(bool only_look, unsigned int *ret, struct fault *f);

#endif
