/*
 * overlay/changeset.h - the exact set of files that a box added, changed and deleted
 *
 * Input: the upper layer that a box wrote and the tree of the host that it lies on. Output: one
 * entry for each name that differs, by content, type, mode and extended attributes, never by
 * time stamps: a file that was only touched, or written with the same bytes, is no change.
 * `carrel diff`, `carrel apply`, `carrel race` and evaluations all use this one function.
 *
 * What is exact. The upper layer has everything that the box made, so the box's side is exact
 * once the box has ended. While it runs, each entry is as it was at some moment of the scan.
 * The other side is the tree at the start of the box, of which there is no copy. For each entry
 * it is known as follows:
 *
 *	BASE_SAME	the host's file has not changed since (its ctime is older than the
 *			start): the host's file is the base, exactly
 *	BASE_KEPT	it has changed since, but a copy was kept when the box ended and it
 *			had not changed by then: the copy is the base, exactly
 *	BASE_UNSURE	it has changed since and there is no copy. The present file of the host
 *			stands in for the base; git may have a better one
 *
 * A clock that was set back, or a file server with another clock, can make a changed file look
 * unchanged. With `now` the base is the present tree of the host, whatever it was before.
 *
 * The upper layer is hostile. It is read through descriptors, beneath its root, without
 * following a link or crossing into another mount. Of overlayfs's attributes only `opaque` is
 * obeyed, and of its special files only the white-out. A name that cannot be read is never
 * skipped silently: it becomes an entry that says so, and `partial` is set.
 */
#ifndef OVERLAY_CHANGESET_H
#define OVERLAY_CHANGESET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "base/mem.h"
#include "overlay/changes.h" /* enum change_type */

struct fault;

enum changed_kind { CHANGED_ADDED, CHANGED_CHANGED, CHANGED_DELETED };

/* The properties that differ. 0 for an added or deleted name. */
enum { WHAT_CONTENT = 1, WHAT_MODE = 2, WHAT_TYPE = 4, WHAT_XATTRS = 8 };

enum changed_base { BASE_SAME, BASE_KEPT, BASE_UNSURE };

struct changed_side {
	enum change_type type; /* NONE: nothing is there */
	mode_t mode;           /* all twelve bits */
	unsigned long long size;
	const char *link; /* of a link: where it leads, any bytes */
	dev_t dev;
	ino_t ino; /* two names with one inode are hard links */
	nlink_t links;
	struct timespec mtime, ctime;
};

struct changed {
	const char *path; /* below the root, clean, "." is the root itself; any bytes */
	enum changed_kind kind;
	unsigned int what;
	struct changed_side base, box;
	enum changed_base base_is;
	bool gone;       /* a directory that the box has as it was, and the host has deleted */
	bool git;        /* in a directory or a file named .git */
	bool unreadable; /* the box's side cannot be read: its mode forbids it */
	bool unlisted;   /* a directory whose contents are not in the list: unreadable, or too
			  * deep to have a name (4096 bytes) */
};

struct changeset {
	/* To be set before: */
	int upper, lower;      /* open directories */
	int kept;              /* of changeset_keep(), or -1 */
	struct timespec since; /* when the box started, by CLOCK_REALTIME_COARSE */
	bool now;              /* compare with the present tree of the host */
	/* The result, ordered by path: parents before what is in them. */
	VEC(struct changed) all;
	/* Names of the upper layer that equal those at the start. */
	VEC(const char *) unchanged;
	/* Without directories and names in git directories: */
	size_t added, changed, deleted;
	size_t git;   /* entries with .git set, directories too */
	bool partial; /* an entry is unreadable or unlisted */
};

/* Find all changes. Deleted and added directories are listed with everything in them. */
int changeset_find(struct changeset *s, struct fault *f);

/* Open one side of a plain file for reading; -errno. It may have changed if the box runs. */
int changeset_open_base(const struct changeset *s, const struct changed *c);
int changeset_open_box(const struct changeset *s, const struct changed *c);

/*
 * Save the base in the directory `to`, because the host's own files may change later. Changed
 * or deleted files that the host has not changed yet are copied: files up to 1 MiB and links,
 * 64 MiB in all. Files that the upper layer has unchanged get a hard link: if the host changes
 * them later, the link shows that the box did not. Directories that the upper layer has
 * unchanged are noted. A name that the box added is noted as absent, so that it still counts
 * as added after it was applied.
 */
int changeset_keep(const struct changeset *s, int to, struct fault *f);

#endif
