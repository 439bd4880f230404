/*
 * host/contents.h - what is in files whose times do not tell of every write
 *
 * A report after a run knows a changed file by its ctime, which no call sets back. On ext4, xfs
 * and btrfs a store to a mapped page sets it too. Elsewhere it need not: on tmpfs a page that
 * was read before it is written is mapped writable at once, and the kernel hears of no store to
 * it (seen on Linux 6.18). So on other file systems a start reads the files in question, and
 * the end of the run compares.
 */
#ifndef HOST_CONTENTS_H
#define HOST_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/mem.h"

struct walk_entry;

struct content {
	dev_t dev;
	ino_t inode;
	const char *hash; /* NULL: it could not be read, or there was too much to read */
};

/* All 0: empty. */
struct contents {
	VEC(struct content) all;
	bool is_sorted;
	off_t read; /* bytes, by all files together */

	/* The file system that was asked last. */
	dev_t dev;
	bool asked, tells;
};

/* Are the times of what is in the entry's directory not enough? Mostly costs nothing. */
bool contents_are_needed(struct contents *c, const struct walk_entry *e);

/* Before the run: remember the file name in the directory dir, if its times are not enough. */
void contents_remember(struct contents *c, int dir, const char *name);

/*
 * After the run: could the file hold something else than it did, although its ctime is as it
 * was? Yes, if it is new here and its times are not enough. *st is the file's.
 */
bool contents_differ(struct contents *c, int dir, const char *name, const struct stat *st);

#endif
