/*
 * host/contents.c - what is in files whose times do not tell of every write
 *
 * A file is known by its inode number and not by its name: a directory that it is in may get
 * another name, and the file keeps its ctime. Links and special files have no contents to
 * compare, and another one in their place has another ctime.
 */
#include "host/contents.h"
#include "host/walk.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/look.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * What to read at most. A box can make files as large as it likes: a larger one is taken for a
 * changed one after each run.
 */
enum { LARGEST = 1 << 20, MOST = 64 << 20 };

static bool times_tell(struct contents *c, int dir, dev_t dev)
{
	struct statfs fs;

	if (c->asked && c->dev == dev)
		return c->tells;
	c->tells = fstatfs(dir, &fs) == 0 && look_ctime_tells((unsigned long)fs.f_type);
	c->dev = dev;
	c->asked = true;
	return c->tells;
}

bool contents_are_needed(struct contents *c, const struct walk_entry *e)
{
	const dev_t dev = walk_dev(e);

	return !(c->asked && c->dev == dev ? c->tells : times_tell(c, walk_dir(e), dev));
}

/* NULL: it cannot be read, or is too large. */
static const char *read_hash(struct contents *c, int dir, const char *name)
{
	auto_close int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > LARGEST ||
		c->read + st.st_size > MOST)
		return NULL;
	c->read += st.st_size;
	return hash_fd(fd);
}

void contents_remember(struct contents *c, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		times_tell(c, dir, st.st_dev))
		return;
	vec_push(&c->all, ((struct content){ st.st_dev, st.st_ino, read_hash(c, dir, name) }));
	c->is_sorted = false;
}

static int by_inode(const void *a_, const void *b_)
{
	const struct content *a = a_, *b = b_;

	if (a->dev != b->dev)
		return a->dev > b->dev ? 1 : -1;
	return (a->inode > b->inode) - (a->inode < b->inode);
}

static const struct content *find_content(struct contents *c, const struct stat *st)
{
	const struct content key = { .dev = st->st_dev, .inode = st->st_ino };

	if (!c->is_sorted) {
		if (c->all.n)
			qsort(c->all.v, c->all.n, sizeof(*c->all.v), by_inode);
		c->is_sorted = true;
		c->read = 0; /* from here on it is the second look */
	}
	return c->all.n ? bsearch(&key, c->all.v, c->all.n, sizeof(key), by_inode) : NULL;
}

/* One that neither look could read, in an unchanged mode, no box could read or map either. */
static bool is_closed(int dir, const char *name)
{
	return faccessat(dir, name, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0;
}

bool contents_differ(struct contents *c, int dir, const char *name, const struct stat *st)
{
	const struct content *before;
	const char *now;

	if (!S_ISREG(st->st_mode) || times_tell(c, dir, st->st_dev))
		return false;
	before = find_content(c, st);
	if (!before)
		return true;
	now = before->hash ? read_hash(c, dir, name) : NULL;
	if (!before->hash)
		return !is_closed(dir, name);
	return !now || strcmp(before->hash, now) != 0;
}
