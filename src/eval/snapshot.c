/*
 * eval/snapshot.c - what an agent added, changed and deleted, by content
 *
 * Names and times do not tell: an agent may write a file anew with the same text, or change
 * one and set its time back. So every file is hashed before the agent starts and after its
 * box is dead.
 */
#include "eval/copy.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *link_text(int dir, const char *name)
{
	char text[4096];
	ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);

	return mem_printf("link:%.*s", n < 0 ? 0 : (int)n, text);
}

/* A file that its owner may not read is opened all the same: it is ours by now. */
static int open_any(int dir, const char *name)
{
	int fd = tree_open_file(dir, name);

	if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0600, 0) == 0)
		fd = tree_open_file(dir, name);
	return fd;
}

static int walk_dir(struct snapshot *s, int dir, const char *below, int depth, struct fault *f)
{
	tree_names names = { 0 };
	int rc = tree_list(dir, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		const char *path = mem_printf("%s%s%s", below, *below ? "/" : "", names.v[i]);
		struct snap_entry e = { .path = path };
		auto_close int fd = -1;
		struct stat st;

		if (s->entries.n >= TREE_ENTRIES || depth > TREE_LEVELS) {
			s->cut = true;
			return 0;
		}
		if (fstatat(dir, names.v[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			fd = tree_open(dir, names.v[i]);
			if (fd < 0)
				return fault_set(f, errno, "open %s", str_visible(path));
			rc = walk_dir(s, fd, path, depth + 1, f);
			continue;
		}
		e.size = (unsigned long long)st.st_size;
		e.special = !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode);
		if (S_ISLNK(st.st_mode))
			e.hash = link_text(dir, names.v[i]);
		else if (S_ISREG(st.st_mode) && (fd = open_any(dir, names.v[i])) >= 0)
			e.hash = hash_fd(fd);
		if (!e.hash)
			e.hash = "unreadable";
		vec_push(&s->entries, e);
	}
	return rc < 0 && !f->text[0] ? fault_set(f, -rc, "list %s", str_visible(below)) : rc;
}

static int by_path(const void *a, const void *b)
{
	const struct snap_entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int snapshot_take(int top, struct snapshot *ret, struct fault *f)
{
	struct snapshot s = { 0 };
	int rc = walk_dir(&s, top, "", 0, f);

	if (rc < 0)
		return rc;
	if (s.entries.n)
		qsort(s.entries.v, s.entries.n, sizeof(*s.entries.v), by_path);
	*ret = s;
	return 0;
}

const struct snap_entry *snapshot_find(const struct snapshot *s, const char *path)
{
	struct snap_entry key = { .path = path };

	return s->entries.n ? bsearch(&key, s->entries.v, s->entries.n, sizeof(key), by_path)
			    : NULL;
}

static bool keep_file(int from, const struct snap_entry *e, int out, unsigned long long *total)
{
	const char *base = strrchr(e->path, '/');
	auto_close int dir = -1, in = -1, to = -1;
	struct fault f;

	/* A link in the record could lead a reader of it anywhere. */
	if (e->special || !strncmp(e->hash, "link:", 5) || e->size > ARTIFACT_BYTES ||
		*total + e->size > ARTIFACT_TOTAL)
		return false;
	in = copy_open_file(from, e->path);
	dir = copy_make_dirs(out, base ? mem_strndup(e->path, (size_t)(base - e->path)) : "",
		&f);
	if (in < 0 || dir < 0)
		return false;
	to = openat(dir, base ? base + 1 : e->path,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (to < 0)
		return false;
	for (char buf[1 << 14];;) {
		ssize_t n = read(in, buf, sizeof(buf));

		if (n <= 0)
			break;
		if (fd_write_all(to, buf, (size_t)n) < 0)
			return false;
		*total += (unsigned long long)n;
	}
	return true;
}

int snapshot_collect(const struct snapshot *before, const struct snapshot *now, int now_dir,
	int out, struct tree_changes *ret, struct fault *f)
{
	struct tree_changes c = { 0 };
	unsigned long long total = 0;

	(void)f;
	vec_each(e, &now->entries) {
		const struct snap_entry *was = snapshot_find(before, e->path);

		if (was && !strcmp(was->hash, e->hash) && was->special == e->special)
			continue;
		if (was)
			vec_push(&c.changed, e->path);
		else
			vec_push(&c.added, e->path);
		if (!keep_file(now_dir, e, out, &total))
			vec_push(&c.left_out, e->path);
	}
	vec_each(e, &before->entries)
		if (!snapshot_find(now, e->path))
			vec_push(&c.deleted, e->path);
	*ret = c;
	return 0;
}

/* Is the file below that tree what it was when the workspace was copied? */
static bool is_original(int tree, const struct snap_entry *was)
{
	auto_close int fd = copy_open_file(tree, was->path);
	const char *hash = fd < 0 ? NULL : hash_fd(fd);

	return hash && !strcmp(hash, was->hash);
}

void snapshot_originals(const struct snapshot *before, const text_vec *changed,
	const text_vec *trees, int out)
{
	unsigned long long total = 0;

	vec_each(path, changed) {
		const struct snap_entry *was = snapshot_find(before, *path);

		for (size_t i = trees->n; was && was->size <= ORIGINAL_BYTES && i-- > 0;) {
			auto_close int tree = openat(AT_FDCWD, trees->v[i],
				O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			if (tree >= 0 && is_original(tree, was)) {
				keep_file(tree, was, out, &total);
				break;
			}
		}
	}
}
