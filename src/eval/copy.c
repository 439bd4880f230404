/*
 * eval/copy.c - copying trees
 */
#include "eval/copy.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

struct copier {
	const struct copy_skip *skip;
	size_t entries;
	struct fault *fault;
};

void copy_skip_dir(struct copy_skip *skip, const char *path)
{
	struct stat st;

	if (!path || skip->n == ARRAY_SIZE(skip->dirs) || stat(path, &st) < 0)
		return;
	skip->dirs[skip->n].dev = st.st_dev;
	skip->dirs[skip->n++].ino = st.st_ino;
}

static bool is_listed(const char *name, const char *const *list)
{
	for (; list && *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

static bool is_skipped(const struct copier *c, const char *name, const struct stat *st,
	int depth)
{
	const struct copy_skip *skip = c->skip;

	if (!skip)
		return false;
	for (size_t i = 0; i < skip->n; i++)
		if (skip->dirs[i].dev == st->st_dev && skip->dirs[i].ino == st->st_ino)
			return true;
	return is_listed(name, skip->names) || (!depth && is_listed(name, skip->tops));
}

static int copy_bytes(int in, int out)
{
	/* One that shares the blocks costs nothing, where the file system can. */
	if (ioctl(out, FICLONE, in) == 0)
		return 0;
	for (;;) {
		ssize_t n = sendfile(out, in, NULL, 1 << 20);

		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int copy_file(int from, const char *name, int to, const char *as)
{
	auto_close int in = tree_open_file(from, name), out = -1;
	struct stat st;

	if (in < 0 || fstat(in, &st) < 0)
		return -errno;
	out = openat(to, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		(st.st_mode & 0777) | 0600);
	/* What is staged later wins over what was there. */
	if (out < 0 && errno == EEXIST && unlinkat(to, as, 0) == 0)
		out = openat(to, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			(st.st_mode & 0777) | 0600);
	return out < 0 ? -errno : copy_bytes(in, out);
}

static int copy_link(int from, const char *name, int to, const char *as)
{
	char text[4096];
	ssize_t n = readlinkat(from, name, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	(void)unlinkat(to, as, 0);
	return symlinkat(text, to, as) < 0 ? -errno : 0;
}

static int copy_dir(struct copier *c, int from, int to, int depth);

static int copy_entry(struct copier *c, int from, const char *name, int to, const char *as,
	int depth)
{
	auto_close int in = -1, out = -1;
	struct stat st;
	int rc = 0;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT
			? 0
			: fault_set(c->fault, errno, "copy %s", str_visible(name));
	if (is_skipped(c, name, &st, depth))
		return 0;
	if (++c->entries > TREE_ENTRIES || depth > TREE_LEVELS)
		return fault_set(c->fault, E2BIG, "copy more than %d files", TREE_ENTRIES);
	if (S_ISREG(st.st_mode)) {
		rc = copy_file(from, name, to, as);
	} else if (S_ISLNK(st.st_mode)) {
		rc = copy_link(from, name, to, as);
	} else if (S_ISDIR(st.st_mode)) {
		in = openat(from, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (in < 0)
			return fault_set(c->fault, errno, "open %s", str_visible(name));
		if (mkdirat(to, as, 0755) < 0 && errno != EEXIST)
			return fault_set(c->fault, errno, "make %s", str_visible(as));
		out = openat(to, as, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		return out < 0 ? fault_set(c->fault, errno, "open %s", str_visible(as))
			       : copy_dir(c, in, out, depth + 1);
	}
	return rc < 0 ? fault_set(c->fault, -rc, "copy %s", str_visible(name)) : 0;
}

static int copy_dir(struct copier *c, int from, int to, int depth)
{
	tree_names names = { 0 };
	int rc = tree_list(from, &names);

	if (rc < 0)
		return fault_set(c->fault, -rc, "list a directory");
	for (size_t i = 0; rc == 0 && i < names.n; i++)
		rc = copy_entry(c, from, names.v[i], to, names.v[i], depth);
	return rc;
}

int copy_tree(const char *from, int to, const struct copy_skip *skip, struct fault *f)
{
	struct copier c = { .skip = skip, .fault = f };
	auto_close int in = openat(AT_FDCWD, from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (in < 0)
		return fault_set(f, errno, "open %s", str_visible(from));
	return copy_dir(&c, in, to, 0);
}

int copy_make_dirs(int top, const char *path, struct fault *f)
{
	int dir = fcntl(top, F_DUPFD_CLOEXEC, 0);

	for (const char *at = path; dir >= 0 && *at;) {
		size_t n = strcspn(at, "/");
		const char *name = mem_strndup(at, n);
		int next = -1;

		if (n && (mkdirat(dir, name, 0755) == 0 || errno == EEXIST))
			next = openat(dir, name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		else if (!n)
			next = fcntl(dir, F_DUPFD_CLOEXEC, 0);
		close(dir);
		dir = next;
		at += n + (at[n] == '/');
	}
	return dir < 0 ? fault_set(f, errno, "make the directory %s", str_visible(path)) : dir;
}

int copy_as(const char *from, int to, const char *as, struct fault *f)
{
	struct copier c = { .fault = f };
	const char *base = strrchr(as, '/');
	auto_close int in =
		openat(AT_FDCWD, path_parent(from), O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int out = -1;

	out = copy_make_dirs(to, base ? mem_strndup(as, (size_t)(base - as)) : "", f);
	if (out < 0)
		return out;
	if (in < 0)
		return fault_set(f, errno, "open %s", str_visible(from));
	return copy_entry(&c, in, path_base(from), out, base ? base + 1 : as, 0);
}

int copy_open_file(int top, const char *path)
{
	int fd = fd_open2(top, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	struct stat st;

	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}
