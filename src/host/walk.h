/*
 * host/walk.h - look at every directory of a tree, fast and safely
 *
 * For trees a box may have written: symlinks are never followed, each directory is
 * opened beneath the root without passing one, and the walk holds two descriptors at a time.
 *
 * A visitor says by a filter which names matter to it. The walk visits those and all
 * directories, and leaves the rest out. So what was found can be remembered, and a directory
 * that has not changed since is not read again: host/walk-cache.h.
 */
#ifndef HOST_WALK_H
#define HOST_WALK_H

#include <stdbool.h>
#include <sys/types.h>

struct fault;
struct walk;

struct walk_entry {
	struct walk *walk; /* private */
	const char *name;  /* in its directory */
	const char *rel;   /* below the root */
	unsigned long inode;
	unsigned char type; /* as getdents(2) has it, but never DT_UNKNOWN */
	bool is_dir;
};

enum walk_next { WALK_ON, WALK_SKIP /* do not go below this one */ };

typedef enum walk_next walk_visit(void *ctx, const struct walk_entry *entry);

/* A descriptor of the directory that the entry is in, for fstatat(2); -1 and errno. */
int walk_dir(const struct walk_entry *entry);

/* The device that this directory is on. */
dev_t walk_dev(const struct walk_entry *entry);

/* Is there an entry of that name beside it? Only of names that the filter wants. */
bool walk_has(const struct walk_entry *entry, const char *name);

/*
 * Which names matter. The answers depend on the arguments, and on what id stands for, alone:
 * they are remembered with what was found.
 */
struct walk_filter {
	const char *id;
	bool (*whole)(void *ctx, const char *dir);  /* all that is in this directory? */
	bool (*wants)(void *ctx, const char *name); /* else: this name, in any directory? */
};

struct walk_how {
	const char *root;
	walk_visit *visit;
	void *ctx;
	const struct walk_filter *filter; /* NULL: every name matters */
	const char *cache;                /* name of this kind of walk; NULL: it has no cache */
	/*
	 * Hears of every place that cannot be looked at, and why. NULL: the first such place is
	 * the fault, when the walk is over.
	 */
	void (*unseen)(void *ctx, const char *rel, const struct fault *f);
};

/*
 * Visit what matters below the root, directories before what is in them. What cannot be
 * looked at (unreadable, too deep, more than five million entries) is left out and reported,
 * and the walk goes on. A directory that belongs to somebody else and cannot be read is no
 * fault: the box cannot read it either.
 */
int walk_tree(const struct walk_how *how, struct fault *f);

#endif
