/*
 * git/git-head.c - which commit HEAD leads to, read without git
 */
#include "git/git-head.h"
#include "git/git-files.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <fcntl.h>
#include <string.h>

enum { MOST_LINKS = 10, MOST_REFS = 64 << 20 };

static bool is_hash(const char *text, size_t n)
{
	return (n == 40 || n == 64) && strspn(text, "0123456789abcdef") >= n;
}

/* "HASH refs/heads/x" lines. */
static const char *find_packed(const char *text, const char *ref)
{
	for (const char *line = text; line && *line;
		line = strchr(line, '\n'), line += line != NULL) {
		size_t n = strcspn(line, " \n"), len = strlen(ref);

		if (is_hash(line, n) && !strncmp(line + n + 1, ref, len) &&
			line[n + 1 + len] == '\n')
			return mem_strndup(line, n);
	}
	return NULL;
}

static bool is_ref(const char *ref)
{
	return str_starts(ref, "refs/") && !strstr(ref, "..") && !strstr(ref, "//") &&
		!strchr(ref, '\\') && !str_ends(ref, "/");
}

const char *git_head(git_head_fn *read, const void *ctx)
{
	const char *text = read(ctx, true, "HEAD"), *packed;

	for (int i = 0; text && i < MOST_LINKS; i++) {
		size_t n = strcspn(text, "\r\n");
		const char *ref;

		if (is_hash(text, n))
			return mem_strndup(text, n);
		ref = mem_strndup(text, n);
		if (!str_starts(ref, "ref: ") || !is_ref(ref + 5))
			return NULL;
		text = read(ctx, false, ref + 5);
		packed = text ? NULL : read(ctx, false, "packed-refs");
		if (!text)
			return packed ? find_packed(packed, ref + 5) : NULL;
	}
	return NULL;
}

/* ---- of a working tree ---- */

/* A linked worktree has a file in the place of its git directory. */
const char *git_dir_of(const char *root)
{
	const char *text = git_read_text(root, ".git");

	return text && str_starts(text, "gitdir: ") ? git_canonical(root, text + 8)
						    : path_join(root, ".git");
}

struct on_disk {
	const char *git, *common;
};

static const char *read_file(const void *ctx, bool own, const char *name)
{
	const struct on_disk *d = ctx;
	int fd = openat(AT_FDCWD, path_join(own ? d->git : d->common, name),
		O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? NULL : fd_read_open(fd, MOST_REFS);
}

const char *git_head_of(const char *root)
{
	const char *dir = git_dir_of(root);
	struct on_disk d;

	if (!dir || git_look(root, dir, &d.git, &d.common) != GIT_FOUND)
		return NULL;
	return git_head(read_file, &d);
}
