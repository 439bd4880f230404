/*
 * state/root.h - which project a directory belongs to
 *
 * carrel keeps everything per project, so two directories share their data exactly if they have
 * the same root. carrel finds the root as git finds its repository, without starting git:
 *
 * - The common git directory (what `git rev-parse --git-common-dir` says) decides. Is it named
 *   .git, the root is the directory that holds it; else (a bare repository, a submodule's
 *   .git/modules/x) it is the root itself, because its neighbours may be strangers. So all
 *   linked worktrees share one root, and a submodule has its own.
 * - Outside git the directory itself is the root.
 * - GIT_DIR, GIT_COMMON_DIR, GIT_OBJECT_DIRECTORY, GIT_CEILING_DIRECTORIES and
 *   GIT_DISCOVERY_ACROSS_FILESYSTEM are obeyed as by git; relative ones count from dir.
 *   A repository's format version is not looked at: a newer git may know it.
 *
 * A .git file, a .git that is a symlink and a commondir file can name any repository of this
 * user, and may have come with a hostile archive. The claim is believed if
 *
 * - it is to a git directory inside the directory that makes it, and none that is the .git
 *   of another directory there;
 * - worktree: the admin directory lies in the common one's worktrees/, and its gitdir file
 *   names the directory;
 * - submodule: core.worktree of the git directory named is the directory;
 * - or, with a note, the worktree was moved by hand: as above, but the path in gitdir does
 *   not exist any more, and .git, a plain file, is as old as gitdir. git writes the two in
 *   one moment, and a file's ctime, which moving its directory does not change, cannot be
 *   set; without that anybody could name a worktree that somebody once removed. After a copy,
 *   or a chmod of .git, `git worktree repair` is needed;
 * - or, with a note, it is the working tree of --separate-git-dir, where git writes down
 *   nothing that points back: the git directory is of no other directory, and .git, a plain
 *   file with one name on the same file system, was last changed, by a rename, too, in the
 *   moment in which the git directory was made. No box can make that one anew where it is
 *   mounted. After a copy, or for a repository that was made separate later, `git config
 *   core.worktree DIRECTORY` is needed.
 *
 * In no case may the named directory contain a .git of its own: then it is a project that
 * pretends to be a git directory. If a claim is not believed, or git would stop at it (a file
 * it cannot read, a repository that is gone), the directory with the .git is its own root, with
 * a note that names the remedy if there is one.
 *
 * carrel differs from git in one point on purpose: git skips a .git that is not a repository
 * and uses the next one further up. Here any .git ends the search, so that a box cannot break
 * its repository and then count as a part of the project around it. (If a .git further up has
 * none of git's files in it, the directory asked about is its own root.)
 *
 * The same holds for a repository further up that belongs to another user, who is neither root
 * nor the owner of the directory asked about: git would refuse it, and in /tmp it may be a
 * trap.
 */
#ifndef STATE_ROOT_H
#define STATE_ROOT_H

struct fault;

struct project {
	const char *root; /* the canonical root of the project */
	const char *tree; /* the directory with the .git that was found, or the git directory */
	const char *id;   /* the first 16 hex digits of root's SHA-256 */
	const char
		*common;  /* its common git directory, canonical; NULL: none that is believed */
	const char *note; /* for the person: something claims to belong elsewhere; or NULL */
};

/* Fails only if dir itself is not a directory, or cannot be resolved. */
int project_find(const char *dir, struct project *ret, struct fault *f);

#endif
