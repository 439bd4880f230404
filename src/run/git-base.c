/*
 * run/git-base.c - the committed version of a file, as the base of a merge
 *
 * The commit was recorded when the box started. The index is not used: the user may have staged
 * newer content since, and merging over a base that is newer than the box's start would undo
 * it. Objects come from the user's own repository, which the box could not write. git lists the
 * commit once, however many files are asked for.
 */
#include "run/git-base.h"
#include "run/git-program.h"
#include "host/host-program.h"
#include "overlay/apply.h"
#include "state/workspace.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum { MODE = sizeof("100644 blob ") - 1 };

/* A link or a submodule cannot be merged. */
static bool is_file(const char *line)
{
	return str_starts(line, "100644 blob ") || str_starts(line, "100755 blob ");
}

/* git prints the names of a recursive listing in the order of their bytes. */
static void list_files(struct git_base *b)
{
	const char *const words[] = { "--no-replace-objects", "ls-tree", "-r", "-z",
		b->w->commit, NULL };
	const char *said;
	size_t n;

	b->listed = true;
	b->git = b->w->commit ? program_find("git", b->w->root) : NULL;
	if (!b->git || git_program_run(b->git, b->w->root, words, -1, &said, &n) != 0)
		return;
	for (const char *line = said; line < said + n; line += strlen(line) + 1)
		if (is_file(line) && strchr(line, '\t'))
			vec_push(&b->files, line);
}

static int by_path(const void *key, const void *line)
{
	return strcmp(key, strchr(*(const char *const *)line, '\t') + 1);
}

bool git_base_find(void *ctx, const char *path, struct apply_base *ret)
{
	struct git_base *b = ctx;
	const char *const *line, *text, *hash;
	size_t n;

	if (!b->listed)
		list_files(b);
	line = b->files.n ? bsearch(path, b->files.v, b->files.n, sizeof(*b->files.v), by_path)
			  : NULL;
	if (!line || !ret)
		return line != NULL;
	hash = mem_strndup(*line + MODE, strcspn(*line + MODE, "\t"));
	if (git_program_run(b->git, b->w->root,
		    (const char *const[]){
			    "--no-replace-objects", "cat-file", "blob", hash, NULL },
		    -1, &text, &n) != 0)
		return false;
	*ret = (struct apply_base){ text, n, str_starts(*line, "100755") };
	return true;
}
