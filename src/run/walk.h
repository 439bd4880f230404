/*
 * run/walk.h - look at every entry of a directory tree, fast and safely
 *
 * For trees a box may have written: symlinks are never followed, each directory is
 * opened beneath the root without passing one, and the walk holds one descriptor at a time.
 */
#ifndef RUN_WALK_H
#define RUN_WALK_H

#include <stdbool.h>

struct fault;

struct walk_entry {
	int dir;          /* descriptor of the directory it is in, for fstatat and the like */
	const char *name; /* in that directory */
	const char *rel;  /* below the root */
	unsigned long inode;
	unsigned char type; /* as getdents(2) has it: DT_UNKNOWN on some file systems */
	bool is_dir;
};

enum walk_next { WALK_ON, WALK_SKIP /* do not go below this one */ };

typedef enum walk_next walk_visit(void *ctx, const struct walk_entry *entry);

/*
 * Visit all entries below root, directories before what is in them. What cannot be looked at
 * (unreadable, too deep, more than five million entries) is left out; the first such
 * place is the fault, when the walk is over. A directory that belongs to somebody else and
 * cannot be read is no fault: the box cannot read it either.
 */
int walk_tree(const char *root, walk_visit *visit, void *ctx, struct fault *f);

#endif
