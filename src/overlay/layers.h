/*
 * overlay/layers.h - the layers of one part of an instance; for the files of state/
 *
 * See state/instance.h for what is where. Two locks keep order: `change` is held for a moment
 * by whoever adds or takes away a session or a layer; `busy` is shared by all boxes that run,
 * so who can have it alone knows that nothing is in use. Besides, each session's directory
 * is locked by its box: one that is not is left over from a dead one.
 */
#ifndef OVERLAY_LAYERS_H
#define OVERLAY_LAYERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "overlay/tree.h"

struct fault;
struct str;

struct layers {
	int fd;                   /* of dir; AT_FDCWD: it is not open */
	const char *dir;          /* HARNESS/PART of the instance */
	const char *users;        /* the user's directory that they lie on; NULL: not known */
	const char *const *notes; /* of struct part: no changes, unless asked for by name */
};

/* Say what to do about a file system that cannot do what the fault is about; -f->err. */
int layers_lacking(struct fault *f);

/* flock(2) the file dir/name, made if need be; the descriptor. _at: as struct layers has it. */
int layers_lock(const char *dir, const char *name, int how, struct fault *f);
int layers_lock_at(int fd, const char *dir, const char *name, int how, struct fault *f);

/* The numbered directories in dir/name, the oldest first, and the number that is next. */
int layers_numbered(const char *dir, const char *name, tree_names *ret, struct fault *f);
int layers_numbered_at(int fd, const char *dir, const char *name, tree_names *ret,
	struct fault *f);
const char *layers_next(const tree_names *have);

/* Does a box hold this session? */
bool layers_is_running(const char *dir, const char *session);

/* The open directory of the user's, or TREE_NOTHING, TREE_UNKNOWN. */
int layers_open_users(const struct layers *l);

/*
 * A session's notes: which layers it lies on, and what was put below its upper directory for
 * the box, by hash, so that a copy of it there can be told from what the box wrote even
 * after everybody has died. They are written down by layers_begin(): as the text of a symbolic
 * link, `begun`, which is there whole or not at all. Without it no box has begun, and nothing
 * of the session is kept. layers_has_begun(): if in doubt, it has. layers_was_put(): it is
 * still as it was.
 */
void layers_note(const tree_names *layers, struct str *notes);
void layers_note_put(const char *name, const char *text, struct str *notes);
int layers_begin(const char *session, const struct str *notes, struct fault *f);
bool layers_has_begun(const char *session);
bool layers_was_put(const char *session, int upper, const char *name);

/* What follows, with `change` held. */

/*
 * A box's upper directory becomes the newest layer, unless there is nothing in it. The session
 * is then put to rest: it is kept, with a new upper directory, under a name with the process
 * id of the box's init, for the next box to take; that spares both some of what a session
 * costs on the disk. Until that process is gone it has the overlay mounted. 0: there was no
 * box, or it died; then the session is removed.
 */
int layers_freeze(const struct layers *l, const char *session, pid_t init, struct fault *f);

/*
 * Freeze all sessions whose box died. ret: those that were there, and in ret_rest one that is
 * at rest, or NULL; all others at rest are removed.
 */
int layers_freeze_dead(const struct layers *l, tree_names *ret, const char **ret_rest,
	struct fault *f);

/*
 * Take the one at rest as `session`: its notes, or NULL if it has none. layers_clear() takes
 * them from it.
 */
int layers_take_rest(const struct layers *l, const char *rest, const char *session,
	const char **ret_notes, struct fault *f);
int layers_clear(const char *session, struct fault *f);

/* All layers into one that no box uses; ret: those that there are now, or NULL. */
int layers_compact(const struct layers *l, tree_names *ret, struct fault *f);

#endif
