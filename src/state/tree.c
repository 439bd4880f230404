#include "state/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, MOST_DEPTH = 512 };

static bool is_dir(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* A box can make directories that not even their owner may read. */
static int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, DIR_FLAGS);

	if (fd < 0 && errno == EACCES && is_dir(dir, name) && fchmodat(dir, name, 0700, 0) == 0)
		fd = openat(dir, name, DIR_FLAGS);
	return fd;
}

/* The names in a directory, read at once: what is done with them changes it. */
typedef VEC(const char *) entries;

static int list(int dir, entries *ret)
{
	int fd = openat(dir, ".", DIR_FLAGS);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			vec_push(ret, mem_strdup(e->d_name));
	closedir(d);
	return 0;
}

static int remove_all(int dir, const char *name, int depth)
{
	auto_close int fd = -1;
	entries names = { 0 };
	int rc;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && !is_dir(dir, name))
		return -errno;
	fd = open_dir(dir, name);
	if (fd < 0)
		return -errno;
	if (depth > MOST_DEPTH)
		return -ELOOP;
	(void)fchmod(fd, 0700);
	rc = list(fd, &names);
	for (size_t i = 0; rc == 0 && i < names.n; i++)
		rc = remove_all(fd, names.v[i], depth + 1);
	if (rc == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		rc = -errno;
	return rc;
}

int tree_remove(int dir, const char *name, struct fault *f)
{
	int rc = remove_all(dir, name, 0);

	return rc < 0 ? fault_set(f, -rc, "remove %s", str_visible(name)) : 0;
}

bool tree_is_whiteout(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
		st.st_rdev == makedev(0, 0);
}

bool tree_is_opaque(int dir)
{
	char value[4];

	return fgetxattr(dir, "user.overlay.opaque", value, sizeof(value)) == 1 &&
		value[0] == 'y';
}

static int merge(int newer, int base, int depth);

/* Two directories become one, unless the newer one hides the older. */
static int merge_dirs(int newer, int base, const char *name, int depth)
{
	auto_close int from = open_dir(newer, name), to = open_dir(base, name);
	struct stat st;
	int rc;

	if (from < 0 || to < 0)
		return -errno;
	if (depth > MOST_DEPTH)
		return -ELOOP;
	rc = merge(from, to, depth + 1);
	if (rc == 0 && fstat(from, &st) == 0)
		(void)fchmod(to, st.st_mode & 0777);
	if (rc == 0 && unlinkat(newer, name, AT_REMOVEDIR) < 0)
		rc = -errno;
	return rc;
}

static bool hides(int newer, const char *name)
{
	auto_close int fd = open_dir(newer, name);

	return fd < 0 || tree_is_opaque(fd);
}

static int merge_entry(int newer, int base, const char *name, int depth)
{
	int rc;

	if (is_dir(newer, name) && is_dir(base, name) && !hides(newer, name))
		return merge_dirs(newer, base, name, depth);
	/* A plain file replaces another in one step. */
	if (is_dir(newer, name) || is_dir(base, name)) {
		rc = remove_all(base, name, depth);
		if (rc < 0)
			return rc;
	}
	return renameat(newer, name, base, name) < 0 ? -errno : 0;
}

static int merge(int newer, int base, int depth)
{
	entries names = { 0 };
	int rc = list(newer, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++)
		rc = merge_entry(newer, base, names.v[i], depth);
	return rc;
}

int tree_merge(int newer, int base, struct fault *f)
{
	int rc = merge(newer, base, 0);

	return rc < 0 ? fault_set(f, -rc, "merge what a box has written") : 0;
}

static void add_size(int dir, const char *name, int depth, unsigned long long *bytes,
	unsigned long long *files)
{
	auto_close int fd = -1;
	entries names = { 0 };
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	*bytes += (unsigned long long)st.st_blocks * 512;
	if (!S_ISDIR(st.st_mode)) {
		*files += 1;
		return;
	}
	fd = openat(dir, name, DIR_FLAGS);
	if (fd < 0 || depth > MOST_DEPTH || list(fd, &names) < 0)
		return;
	vec_each(entry, &names)
		add_size(fd, *entry, depth + 1, bytes, files);
}

void tree_size(int dir, const char *name, unsigned long long *bytes, unsigned long long *files)
{
	add_size(dir, name, 0, bytes, files);
}

static int hide_journals(int dir, int depth)
{
	static const char *const tails[] = { "-wal", "-shm", "-journal" };
	entries names = { 0 };
	int rc = list(dir, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		auto_close int fd = -1;

		if (is_dir(dir, names.v[i])) {
			fd = open_dir(dir, names.v[i]);
			if (fd >= 0 && depth < MOST_DEPTH)
				rc = hide_journals(fd, depth + 1);
			continue;
		}
		if (!strstr(names.v[i], ".sqlite") && !str_ends(names.v[i], ".db"))
			continue;
		for (size_t t = 0; t < ARRAY_SIZE(tails) && !str_ends(names.v[i], tails[t]);
			t++)
			if (mknodat(dir, mem_printf("%s%s", names.v[i], tails[t]), S_IFCHR,
				    makedev(0, 0)) < 0 &&
				errno != EEXIST)
				rc = -errno;
	}
	return rc;
}

int tree_hide_journals(int layer, struct fault *f)
{
	int rc = hide_journals(layer, 0);

	return rc < 0 ? fault_set(f, -rc, "put aside the journals of older databases") : 0;
}
