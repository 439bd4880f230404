#include "run/walk.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	REL_MAX = 4000,     /* a longer path could not be mounted on anyway */
	NAME_LONGEST = 255, /* as on every file system that can be mounted on by name */
	MOST_ENTRIES = 5000000,
	ROOM = 16 * 1024, /* for what one call says of a directory */
};

struct walk {
	const char *root;
	int root_fd;
	bool readable; /* so that its entries can be read from root_fd itself */
	walk_visit *visit;
	void *ctx;
	size_t seen;
	VEC(const char *) todo; /* directories found and not read yet */
	char *rel;              /* of the entry that is visited */
	char *entries;
};

static bool is_directory(int dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int visit_entry(struct walk *w, int dir, size_t prefix, const struct dirent *d,
	struct fault *f)
{
	struct walk_entry entry = { .dir = dir,
		.name = d->d_name,
		.rel = w->rel,
		.inode = d->d_ino,
		.type = d->d_type };

	if (d->d_name[0] == '.' && (!d->d_name[1] || (d->d_name[1] == '.' && !d->d_name[2])))
		return 0;
	w->seen++;
	if (strlen(d->d_name) > NAME_LONGEST)
		return fault_set(f, ENAMETOOLONG, "look at '%.80s...' in '%s'",
			str_visible(d->d_name), str_visible(w->root));
	strcpy(w->rel + prefix, d->d_name);
	entry.is_dir = is_directory(dir, d);
	if (w->visit(w->ctx, &entry) == WALK_ON && entry.is_dir)
		vec_push(&w->todo, mem_strdup(w->rel));
	return 0;
}

static int read_directory(struct walk *w, int dir, const char *rel, size_t prefix,
	struct fault *f)
{
	for (;;) {
		ssize_t n = syscall(SYS_getdents64, dir, w->entries, ROOM);

		if (n == 0 || (n < 0 && errno == ENOENT)) /* removed while open */
			return 0;
		if (n < 0)
			return fault_set(f, errno, "read the directory '%s/%s'",
				str_visible(w->root), str_visible(rel));
		for (ssize_t at = 0; at < n;) {
			const struct dirent *d = (const void *)(w->entries + at);

			int rc = visit_entry(w, dir, prefix, d, f);

			if (rc < 0)
				return rc;
			at += d->d_reclen;
		}
	}
}

/* Somebody else's directory that we may not read: the box may not either. */
static bool belongs_to_another(struct walk *w, const char *rel)
{
	struct stat st;

	return fstatat(w->root_fd, rel, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid != getuid();
}

static int walk_directory(struct walk *w, const char *rel, struct fault *f)
{
	size_t prefix = strlen(rel);
	auto_close int dir = -1;

	if (!prefix && w->readable)
		return read_directory(w, w->root_fd, rel, prefix, f);
	if (prefix > REL_MAX)
		return fault_set(f, ENAMETOOLONG, "look into '%s/%.60s...'",
			str_visible(w->root), str_visible(rel));
	dir = fd_open2(w->root_fd, *rel ? rel : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (dir < 0) {
		/* Gone or replaced since it was listed: then there is nothing of it to see. */
		if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
			return 0;
		if (errno == EACCES && belongs_to_another(w, rel))
			return 0;
		fault_set(f, errno, "look into '%s/%s'", str_visible(w->root),
			str_visible(rel));
		return fault_fix(f, "Make it readable, or keep it out of the box: --hide '%s'.",
			str_visible(rel));
	}
	memcpy(w->rel, rel, prefix);
	if (prefix)
		w->rel[prefix++] = '/';
	return read_directory(w, dir, rel, prefix, f);
}

static int walk_all(struct walk *w, struct fault *f)
{
	struct fault later;
	int rc = 0;

	while (w->todo.n) {
		int one = walk_directory(w, w->todo.v[--w->todo.n], rc < 0 ? &later : f);

		if (rc == 0)
			rc = one;
		if (w->seen > MOST_ENTRIES)
			return fault_set(f, E2BIG, "look at all of '%s': more than %d files",
				str_visible(w->root), MOST_ENTRIES);
	}
	return rc;
}

int walk_tree(const char *root, walk_visit *visit, void *ctx, struct fault *f)
{
	auto_close int fd = openat(AT_FDCWD, root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char entries[ROOM] __attribute__((aligned(8))), rel[REL_MAX + NAME_LONGEST + 2];
	struct walk w = { .root = root, .visit = visit, .ctx = ctx, .readable = fd >= 0 };

	if (fd < 0)
		fd = openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fault_set(f, errno, "open '%s'", str_visible(root));
	w.root_fd = fd;
	w.rel = rel;
	w.entries = entries;
	vec_push(&w.todo, "");
	return walk_all(&w, f);
}
