/*
 * overlay/layers.h - the layers of one part of an instance, for the files of state/
 *
 * state/instance.h describes the directories. There are two locks. A process holds `change` for
 * a moment while it adds or removes a session or a layer. All running boxes share `busy`, so a
 * process that can lock it exclusively knows that nothing is in use. Each box also locks its
 * session's directory: a session without a lock belongs to a dead box.
 */
#ifndef OVERLAY_LAYERS_H
#define OVERLAY_LAYERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "overlay/tree.h"

struct fault;
struct str;

struct layers {
	int fd;            /* of dir; AT_FDCWD: it is not open */
	const char *dir;   /* HARNESS/PART of the instance */
	const char *users; /* the user's directory that they lie on; NULL: not known */
	/* of struct part: not listed as changes, unless asked for by name */
	const char *const *notes;
};

/* If the file system lacks a feature, add what to do to the fault; -f->err. */
int layers_lacking(struct fault *f);

/*
 * flock(2) the file dir/name, creating it if necessary; the descriptor. _at: relative to the
 * descriptor in struct layers.
 */
int layers_lock(const char *dir, const char *name, int how, struct fault *f);
int layers_lock_at(int fd, const char *dir, const char *name, int how, struct fault *f);

/* The numbered directories in dir/name, the oldest first, and the next number. */
int layers_numbered(const char *dir, const char *name, tree_names *ret, struct fault *f);
int layers_numbered_at(int fd, const char *dir, const char *name, tree_names *ret,
	struct fault *f);
const char *layers_next(const tree_names *have);

/* Does a box hold this session? */
bool layers_is_running(const char *dir, const char *session);

/* The user's directory, open; or TREE_NOTHING, TREE_UNKNOWN. */
int layers_open_users(const struct layers *l);

/*
 * A session's notes say which layers it lies on, and which files were put below its upper
 * directory for the box, by hash. So an unchanged copy can be recognised, even after the box
 * was killed. layers_begin() writes them as the text of a symbolic link, `begun`, which is
 * complete or absent. Without it no box has begun, and nothing of the session is kept.
 * layers_has_begun(): true if in doubt. layers_was_put(): the file is unchanged.
 */
void layers_note(const tree_names *layers, struct str *notes);
void layers_note_put(const char *name, const char *text, struct str *notes);
int layers_begin(const char *session, const struct str *notes, struct fault *f);
bool layers_has_begun(const char *session);
bool layers_was_put(const char *session, int upper, const char *name);

/* The caller of the following functions holds `change`. */

/*
 * Make a box's upper directory the newest layer, unless it is empty. The session is then put to
 * rest: it is kept with a new upper directory, for the next box to reuse, which saves work on
 * the disk. Its name has the process id of the box's init, because the overlay is mounted until
 * that process is gone. 0: there was no box, or it died; then the session is removed.
 */
int layers_freeze(const struct layers *l, const char *session, pid_t init, struct fault *f);

/*
 * Freeze all sessions whose box died. ret: their number. ret_rest: one session at rest, or
 * NULL; all others at rest are removed.
 */
int layers_freeze_dead(const struct layers *l, tree_names *ret, const char **ret_rest,
	struct fault *f);

/*
 * Reuse the session at rest as `session`. Returns its notes, or NULL if it has none;
 * layers_clear() removes them.
 */
int layers_take_rest(const struct layers *l, const char *rest, const char *session,
	const char **ret_notes, struct fault *f);
int layers_clear(const char *session, struct fault *f);

/* Merge all layers that no box uses into one. ret: the remaining layers, or NULL. */
int layers_compact(const struct layers *l, tree_names *ret, struct fault *f);

#endif
