/*
 * eval/copy.h - copying trees into a workspace and out of it, and seeing what changed
 *
 * A tree that an agent has had is hostile: links are never followed, only directories and
 * plain files are opened, everything is relative to descriptors, and what is too much is left
 * out and counted.
 */
#ifndef EVAL_COPY_H
#define EVAL_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "eval/suite.h"
#include "base/mem.h"

struct fault;

enum {
	TREE_ENTRIES = 200000, /* of one workspace */
	TREE_LEVELS = 100,
	ARTIFACT_BYTES = 64 << 20,  /* of one file that is kept */
	ARTIFACT_TOTAL = 512 << 20, /* of all files that are kept of one attempt */
};

/* What of a tree is not copied. */
struct copy_skip {
	const char *const *names; /* anywhere; NULL-terminated, or NULL */
	const char *const *tops;  /* in the uppermost directory; the same */
	struct {
		dev_t dev;
		ino_t ino;
	} dirs[4]; /* these directories, whatever their names */
	size_t n;
};

/* Add the directory to those that are skipped, if it is there. */
void copy_skip_dir(struct copy_skip *skip, const char *path);

/* Copy what is in one directory into another: directories, plain files, links as links. */
int copy_tree(const char *from, int to, const struct copy_skip *skip, struct fault *f);

/* Copy a file or a directory to the relative path `as`, and make the directories above it. */
int copy_as(const char *from, int to, const char *as, struct fault *f);

/* Make the directories of a relative path; the last one open, or -errno. */
int copy_make_dirs(int top, const char *path, struct fault *f);

/* Open a plain file below top without following a link anywhere on the way. */
int copy_open_file(int top, const char *path);

/* ---- snapshot.c ---- */

struct snap_entry {
	const char *path; /* relative */
	const char *hash; /* of a file's bytes, or "link:" and where it leads to */
	bool special;     /* neither file nor link nor directory */
	unsigned long long size;
};

struct snapshot {
	VEC(struct snap_entry) entries; /* sorted by path; directories are not in it */
	bool cut;                       /* there was more than TREE_ENTRIES */
};

int snapshot_take(int top, struct snapshot *ret, struct fault *f);
const struct snap_entry *snapshot_find(const struct snapshot *s, const char *path);

struct tree_changes {
	text_vec added, changed, deleted;
	text_vec left_out; /* of the first two: not kept, because of their kind or size */
};

/* Compare, and copy what was added and changed from `now_dir` to `out`. */
int snapshot_collect(const struct snapshot *before, const struct snapshot *now, int now_dir,
	int out, struct tree_changes *ret, struct fault *f);

/*
 * Copy to `out` what changed files were, if they are small and still lie unchanged in one of
 * the trees that the workspace was copied from; the report shows a diff. Later trees win.
 */
enum { ORIGINAL_BYTES = 24 * 1024 };
void snapshot_originals(const struct snapshot *before, const text_vec *changed,
	const text_vec *trees, int out);

#endif
