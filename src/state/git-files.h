/*
 * state/git-files.h - what git's own files say, read without git
 *
 * Repositories, their configuration and the small files by which working trees and git
 * directories name each other. All of it may be hostile: whatever stands in the place of a
 * file (a FIFO, a device, a gigabyte), nothing here waits for it, runs anything, or fails
 * harder than to say that there is nothing to be read.
 *
 * Reading is not believing: who asks decides that, see state/root.h and run/survey-git.c.
 */
#ifndef STATE_GIT_FILES_H
#define STATE_GIT_FILES_H

#include <stdbool.h>

/* The path, taken from base when it is relative, without symlinks; NULL: there is none. */
const char *git_canonical(const char *base, const char *path);

/* Is anything there, be it a symlink that leads nowhere? */
bool git_exists(const char *dir, const char *name);

/*
 * A file of one line that git wrote, as git reads it: without newlines at its end, but with
 * those in the middle, which a path may have. NULL: absent, no file, or beyond a megabyte,
 * where git gives up, too.
 */
char *git_read_text(const char *dir, const char *name);

/*
 * Go through the settings of a configuration file: visit(ctx, section, key, value). As git
 * reads it but for lines that go on in the next one. An absent file has none.
 */
typedef void git_setting_fn(void *ctx, const char *section, const char *key, const char *value);
void git_read_config(const char *file, git_setting_fn *visit, void *ctx);

/* The last value that one such file gives to a key, or NULL. */
const char *git_config_value(const char *file, const char *section, const char *key);

/* Does a linked worktree's admin directory name this canonical directory's .git? */
bool git_points_back(const char *admin, const char *workspace);

enum git_kind {
	GIT_NONE,   /* no git directory: git goes on looking */
	GIT_FOUND,  /* one that git would use */
	GIT_BROKEN, /* git would stop with an error */
};

/*
 * Is this a git directory (HEAD, objects, refs, as git tests it), and which is its common
 * one? As for git with the working directory cwd, which is what a relative GIT_COMMON_DIR or
 * GIT_OBJECT_DIRECTORY counts from. Both results are canonical.
 */
enum git_kind git_look(const char *cwd, const char *dir, const char **ret_git,
	const char **ret_common);

#endif
