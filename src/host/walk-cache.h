/*
 * host/walk-cache.h - what a walk found, so that the next one need not read it again
 *
 * The model is git's untracked cache. For each directory of a tree the cache has the inode
 * number, ctime and mtime, the names of its directories, and the names that matter to the
 * walk. The next walk asks each directory for its times, and reads only those that
 * changed. With a million files in 20,000 directories that is 20,000 calls of stat(2).
 *
 * What the cache cannot see, and why that is no hole:
 *
 * - A file that is changed in place, by write(2) or by a store to a mapped page: the times of
 *   its directory stay. No walk takes more than names, types and inode numbers from the cache;
 *   whoever wants to know whether a file changed looks at the file itself, each time, and
 *   host/contents.h does where the file's own times are not enough.
 * - A change that leaves no trace in the times of the directory. To make, remove, rename or
 *   replace a name sets the directory's ctime to the present. No call sets a ctime, so a
 *   box cannot set it back: utimensat(2) sets the mtime, and the ctime to the present.
 * - A change in the same tick of the clock as the one before. A directory is trusted only if
 *   its ctime was two seconds old when it was read: any later change has another ctime, also
 *   where a file system counts in seconds.
 * - A directory that was exchanged for another: its inode number and ctime differ. For a link:
 *   stat(2) does not follow it, and a link further up is a change of the directory it is in.
 * - A mount: what is on another device than the root is read each time.
 * - A clock that is set back could bring a ctime again. No box can set it; a cache that is
 *   from the future is not used.
 * - A power cut on a file system without a journal, which may bring back a directory's old
 *   times with its new names. No box makes one.
 * - File systems whose ctime others make up (FUSE, NFS, 9p): there is no cache on those, only
 *   on a list of local ones.
 *
 * The cache lies in $XDG_STATE_HOME/carrel/walks, which no box can write. It is written
 * whole, under another name first, and has a checksum. One that cannot be used or written is
 * no failure: all directories are read.
 */
#ifndef HOST_WALK_CACHE_H
#define HOST_WALK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

struct fault;

enum { WALK_NONE = UINT32_MAX };

struct walk_known_dir {
	uint64_t inode;
	int64_t ctime, mtime;
	uint32_t ctime_ns, mtime_ns;
	uint32_t first, n;          /* of the items in it */
	uint32_t names, names_size; /* where their names are */
	uint32_t entries;           /* how many it has, those that do not matter too */
	uint32_t trusted;
};

struct walk_item {
	uint64_t inode;
	uint32_t name;
	uint32_t dir; /* of a directory that was walked: where it is in dirs; or WALK_NONE */
	uint32_t type;
	uint32_t unused;
};

/* The dirs are in the order of the walk, each after the one that it is in. */
struct walk_table {
	VEC(struct walk_known_dir) dirs;
	VEC(struct walk_item) items;
	struct str names; /* each with its NUL */
};

struct walk_cache {
	bool usable;           /* this file system is one of those that can be trusted */
	bool eager;            /* for tests: of small trees too, and without the two seconds */
	dev_t dev;             /* of the root */
	struct timespec begun; /* the walk, by the clock that stamps files */
	struct walk_table old; /* of the last walk; no dirs: there is none */
	const char *root, *kind, *name, *key;
	size_t read; /* entries that had to be read in this walk */
};

/* What the last walk of this kind found below root, which is open as fd; or nothing. */
void walk_cache_open(struct walk_cache *c, const char *kind, const char *root, int fd,
	const char *filter);

/* Is what was known of this directory still so? */
bool walk_cache_holds(const struct walk_cache *c, const struct walk_known_dir *d,
	const struct stat *st);

/* Can a directory that is read now, and looks like that, be trusted later? */
bool walk_cache_trusts(const struct walk_cache *c, const struct stat *st);

/* The walk is over and was complete: this is to be kept, if it is worth it. */
void walk_cache_keep(const struct walk_cache *c, const struct walk_table *found);

/* Write what is to be kept: when the box has ended, as nobody waits then. */
void walk_cache_write(void);

/*
 * Remove caches of roots that are gone, of other versions, and what a killed one left half
 * written; how many there were. A cache of a root that may be back one day stays.
 */
int walk_cache_sweep(bool only_look, unsigned int *ret, struct fault *f);

#endif
