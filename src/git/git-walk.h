/*
 * git/git-walk.h - walk a git directory and report the entries that matter
 *
 * git makes only regular files and directories in a git directory, and the name and place of
 * each say what it is for. So a walk visits every entry of another kind (a link, a FIFO, a
 * socket, a device), and the few files that git runs or obeys. All other files are data, of git
 * or of another tool, and the walk does not look at them: most of the work is one getdents(2)
 * for each directory.
 *
 * Directories full of data whose names are hashes are listed, but their entries are not looked
 * at: objects/xx, and the objects of git-lfs and git-annex.
 */
#ifndef GIT_GIT_WALK_H
#define GIT_GIT_WALK_H

#include <stdbool.h>

struct fault;

enum git_what {
	GIT_ODD,       /* neither a regular file nor a directory */
	GIT_HEAD,      /* of a git directory: of this one, a worktree's or a module's */
	GIT_CONFIG,    /* git obeys it, and runs what it names */
	GIT_LEADS,     /* it redirects git: commondir, gitdir */
	GIT_HOOK,      /* git runs it */
	GIT_TODO,      /* git continues with it: an unfinished rebase, a sequence of picks */
	GIT_REMOTE,    /* git takes the address of a remote from it */
	GIT_ALTERNATE, /* git reads objects from the place that it names */
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

	/* A directory, open as dir, before its entries. May be NULL. */
	void (*entered)(void *ctx, int dir, const char *path);

	/* Less than 0 ends the walk. */
	int (*visit)(void *ctx, const struct git_entry *e, struct fault *f);

	/*
	 * The directory name in dir cannot be read, for this errno. (For the top of the walk it
	 * is AT_FDCWD and its path.) 1: retry; 0: leave it out; less than 0 ends the walk.
	 */
	int (*unseen)(void *ctx, int dir, const char *name, const char *path, int err,
		struct fault *f);
};

/* Walk the git directory at path, which is canonical. If it is gone, nothing is visited. */
int git_walk(const char *path, const struct git_visitor *v, struct fault *f);

#endif
