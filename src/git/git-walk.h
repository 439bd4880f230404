/*
 * git/git-walk.h - go through a git directory, and say what is in it that matters
 *
 * git itself makes nothing but regular files and directories in a git directory, and what each
 * is for follows from its name and place. So a walk visits what is of another kind (a link, a
 * FIFO, a socket, a device) wherever it lies, and the few files that git runs or obeys.
 * All other files are data, of git or of another tool, and are not looked at: most of the
 * work is one getdents(2) for each directory.
 *
 * Directories full of data whose names are hashes are listed, but what lies in them is not
 * looked at: objects/xx, and the objects of git-lfs and git-annex.
 */
#ifndef GIT_GIT_WALK_H
#define GIT_GIT_WALK_H

#include <stdbool.h>

struct fault;

enum git_what {
	GIT_ODD,       /* neither a regular file nor a directory */
	GIT_HEAD,      /* of a git directory: of this one, a worktree's or a module's */
	GIT_CONFIG,    /* git obeys it, and runs what it names */
	GIT_LEADS,     /* git goes where it says: commondir, gitdir */
	GIT_HOOK,      /* git runs it */
	GIT_TODO,      /* git goes on with it: an unfinished rebase, a sequence of picks */
	GIT_REMOTE,    /* git takes the address of a remote from it */
	GIT_ALTERNATE, /* git reads objects where it says */
};

struct git_entry {
	enum git_what what;
	int dir;              /* descriptor of the directory that it is in */
	const char *dir_path; /* of that, absolute */
	const char *name;
	unsigned long inode;
	unsigned char type; /* as getdents(2) has it, but never DT_UNKNOWN */
	bool written;       /* git writes there, and would write through a link */
};

struct git_visitor {
	void *ctx;

	/* Less than 0 ends the walk. */
	int (*visit)(void *ctx, const struct git_entry *e, struct fault *f);

	/*
	 * The directory name in dir (or, for the top of the walk, AT_FDCWD and its path)
	 * cannot be looked into, for this errno. 1: try once more; 0: leave it out; less than
	 * 0 ends the walk.
	 */
	int (*unseen)(void *ctx, int dir, const char *name, const char *path, int err,
		struct fault *f);
};

/* The git directory at path, which is canonical. It may be gone: then there is nothing. */
int git_walk(const char *path, const struct git_visitor *v, struct fault *f);

#endif
