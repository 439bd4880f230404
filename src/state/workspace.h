/*
 * state/workspace.h - the overlay of a box's workspace, kept with the record of the box
 *
 *	$XDG_STATE_HOME/carrel/boxes/NAME/
 *	  box.json		what is known at the start: workspace, agent, time
 *	  plan.json		the plan, as `carrel plan --json` prints it
 *	  result.json		what is known at the end: exit code, numbers of changes
 *	  applied.json		`carrel apply` has taken all of it over
 *	  layers/0/		{upper,work}: what the box wrote; kept: copies of the base
 *	  layers/1/		the same for a repository outside of the workspace
 *
 * While layers/ is there and applied.json is not, the box holds changes: no other box gets its
 * name, and `carrel gc` leaves it alone unless it is told otherwise.
 */
#ifndef STATE_WORKSPACE_H
#define STATE_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/mem.h"
#include "overlay/changeset.h"

struct fault;
struct plan;
struct request;

struct workspace {
	const char *box;           /* the box's name */
	const char *root;          /* the directory of the host that it worked on a copy of */
	const char *agent;         /* its agent's name, or NULL */
	const char *git;           /* the repository outside of root, or NULL */
	const char *commit;        /* that was checked out at the start, or NULL */
	VEC(const char *) protect; /* patterns that were asked for, beside those of carrel */
	struct timespec since;
	long long ended; /* 0: it runs, or was killed */
	int code;        /* that it ended with */
	bool applied;
	/* With descriptors, for changeset_find(). Without a repository, its upper is -1. */
	struct changeset changes, repository;
};

/*
 * Make the directories of n layers, each for one directory of the host; the path that they
 * are in. The caller holds the name. A fault if the box holds changes of an earlier run.
 */
int workspace_make(const char *box, const char *const *dirs, size_t n, const char **ret_layers,
	struct fault *f);

/* Write what is known when the box starts. */
int workspace_begin(const struct plan *p, const struct request *r, const struct timespec *since,
	struct fault *f);

/*
 * The box has ended: find what it changed, keep copies of the base and write the result. The
 * layers are removed if nothing changed. ret is as of workspace_open() and changeset_find().
 */
int workspace_end(const char *box, int code, struct workspace *ret, struct fault *f);

/* Open the overlay of a box that runs or has ended; f->err is ENOENT when it has none. */
int workspace_open(const char *box, struct workspace *ret, struct fault *f);
void workspace_close(struct workspace *w);

/* Is the path one that `carrel apply` must not take over unless it is told to? */
bool workspace_protects(const struct workspace *w, const char *path, bool dir);

/* Has the box changes that are neither applied nor discarded? */
bool workspace_holds(const char *box);

/* All changes are on the host now; or they are dropped. The caller holds the name. */
int workspace_applied(const char *box, struct fault *f);
int workspace_drop(const char *box, struct fault *f);

#endif
