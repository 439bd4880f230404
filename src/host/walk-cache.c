/*
 * host/walk-cache.c - what a walk found, so that the next one need not read it again
 *
 * The file is a head and the three arrays of the table, mapped as they are. It is carrel's
 * own and for this machine only, so it has no byte order; another version's is ignored.
 */
#include "host/walk-cache.h"
#include "state/instance.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	SLACK = 2,      /* seconds: the coarsest file system counts in those */
	LEAST = 200,    /* entries of a tree that is worth a file */
	CHANGE = 100,   /* entries that had to be read: then it is worth writing it again */
	MOST = 1 << 30, /* bytes */
	DAY = 24 * 60 * 60,
};

#define MAGIC "carrel walk 3\n"

struct head {
	char magic[16];
	int64_t begun;
	uint64_t dirs, items, names; /* how many; of names: bytes */
	uint64_t key;                /* bytes of what identifies the root and the filter */
	uint64_t root;               /* bytes of the root's path, which is the last */
	uint64_t sum;                /* of all after the head */
};

/* What is to be written when the box has ended: one for each kind of walk. */
static struct pending {
	const char *kind, *root, *name, *key;
	struct timespec begun;
	const struct walk_table *table;
} pending[2];

static bool is_trusted_fs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && look_is_plain_fs((unsigned long)fs.f_type);
}

/* A change of any bit changes it; it is no defence against somebody who writes the file. */
static uint64_t sum_of(const void *bytes, size_t n, uint64_t sum)
{
	const char *at = bytes;
	uint64_t word;

	for (; n >= sizeof(word); n -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15;
		sum ^= sum >> 32;
	}
	word = n;
	memcpy(&word, at, n);
	sum = (sum ^ word ^ ((uint64_t)n << 56)) * 0x9e3779b97f4a7c15;
	return sum ^ sum >> 32;
}

/* ---- reading ---- */

static size_t size_of(const struct head *h)
{
	return sizeof(*h) + h->dirs * sizeof(struct walk_known_dir) +
		h->items * sizeof(struct walk_item) + h->names + h->key + h->root;
}

/* Do all numbers lead to something that is there? */
static bool is_sound(const struct walk_table *t)
{
	if (!t->dirs.n || !t->names.len || t->names.p[t->names.len - 1])
		return false;
	vec_each(d, &t->dirs) {
		if (d->first > t->items.n || d->n > t->items.n - d->first ||
			d->names > t->names.len || d->names_size > t->names.len - d->names)
			return false;
		for (uint32_t i = d->first; i < d->first + d->n; i++) {
			const struct walk_item *item = &t->items.v[i];

			if (item->name < d->names || item->name >= d->names + d->names_size ||
				(item->dir != WALK_NONE && item->dir >= t->dirs.n))
				return false;
		}
	}
	return true;
}

static bool map_table(struct walk_cache *c, const struct head *h)
{
	struct walk_table t = { 0 };

	t.dirs.v = (void *)(h + 1);
	t.dirs.n = h->dirs;
	t.items.v = (void *)(t.dirs.v + h->dirs);
	t.items.n = h->items;
	t.names.p = (void *)(t.items.v + h->items);
	t.names.len = h->names;
	if (!is_sound(&t))
		return false;
	c->old = t;
	return true;
}

/* Of this version, and of the size that it says. */
static bool is_whole(const struct head *h, size_t size)
{
	return size >= sizeof(*h) && !memcmp(h->magic, MAGIC, sizeof(MAGIC)) &&
		h->dirs < WALK_NONE && h->items < WALK_NONE && h->names < WALK_NONE &&
		h->key < WALK_NONE && h->root < PATH_MAX && size_of(h) == size;
}

/* The key and the root are compared whole: a hash of them would cost more. */
static bool is_ours(const struct head *h, size_t size, const struct walk_cache *c)
{
	const char *end = (const char *)h + size;

	return is_whole(h, size) && h->key == strlen(c->key) && h->root == strlen(c->root) &&
		!memcmp(end - h->root, c->root, h->root) &&
		!memcmp(end - h->root - h->key, c->key, h->key) &&
		h->begun <= c->begun.tv_sec && sum_of(h + 1, size - sizeof(*h), 0) == h->sum;
}

/* One for each root, which a filter that differs replaces: a box cannot make many. */
static const char *name_of(const struct walk_cache *c, const char *root)
{
	return mem_printf("%016llx-%s", (unsigned long long)sum_of(root, strlen(root), 0),
		c->kind);
}

static const char *all_dir(void)
{
	const char *state = xdg_state();

	return state ? path_join(state, "walks") : NULL;
}

static void load_cache(struct walk_cache *c, const char *path)
{
	auto_close int fd = openat(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		(st.st_mode & 022) || st.st_size > MOST ||
		st.st_size < (off_t)sizeof(struct head))
		return;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED)
		return;
	if (!is_ours(p, (size_t)st.st_size, c) || !map_table(c, p))
		munmap(p, (size_t)st.st_size);
}

static const char *test_mode(void)
{
#ifdef CARREL_TEST_HOOKS
	const char *mode = getenv("CARREL_TEST_WALK");

	return mode ? mode : "";
#else
	return "";
#endif
}

void walk_cache_open(struct walk_cache *c, const char *kind, const char *root, int fd,
	const char *filter)
{
	const char *all = all_dir();
	struct stat st;

	*c = (struct walk_cache){ .kind = kind, .root = root };
	if (!all || fstat(fd, &st) < 0 || !is_trusted_fs(fd) ||
		!strcmp(test_mode(), "uncached"))
		return;
	/* The kernel stamps files with the coarse clock. */
	if (clock_gettime(CLOCK_REALTIME_COARSE, &c->begun) < 0)
		return;
	c->usable = true;
	c->eager = !strcmp(test_mode(), "eager");
	c->dev = st.st_dev;
	c->key = mem_printf("%llx:%llx\n%s", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino, filter);
	c->name = name_of(c, root);
	load_cache(c, path_join(all, c->name));
}

/* ---- asking ---- */

bool walk_cache_holds(const struct walk_cache *c, const struct walk_known_dir *d,
	const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_dev == c->dev && st->st_ino == d->inode &&
		st->st_ctim.tv_sec == d->ctime &&
		(uint32_t)st->st_ctim.tv_nsec == d->ctime_ns &&
		st->st_mtim.tv_sec == d->mtime && (uint32_t)st->st_mtim.tv_nsec == d->mtime_ns;
}

bool walk_cache_trusts(const struct walk_cache *c, const struct stat *st)
{
	if (!c->usable || st->st_dev != c->dev)
		return false;
	if (c->eager)
		return st->st_ctim.tv_sec < c->begun.tv_sec ||
			(st->st_ctim.tv_sec == c->begun.tv_sec &&
				st->st_ctim.tv_nsec < c->begun.tv_nsec);
	return st->st_ctim.tv_sec < c->begun.tv_sec - SLACK;
}

/* ---- writing ---- */

void walk_cache_keep(const struct walk_cache *c, const struct walk_table *found)
{
	struct walk_table *kept;
	size_t entries = 0;

	vec_each(d, &found->dirs)
		entries += d->entries;
	if (!c->usable || (!c->eager && (entries < LEAST || c->read < CHANGE)))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(pending); i++) {
		if (pending[i].kind && strcmp(pending[i].kind, c->kind) != 0)
			continue;
		kept = mem_alloc(sizeof(*kept));
		*kept = *found;
		pending[i] =
			(struct pending){ c->kind, c->root, c->name, c->key, c->begun, kept };
		return;
	}
}

static int write_table(int fd, const struct pending *p)
{
	const struct walk_table *t = p->table;
	const size_t dirs = t->dirs.n * sizeof(*t->dirs.v);
	const size_t items = t->items.n * sizeof(*t->items.v);
	struct head h = { .magic = MAGIC,
		.begun = p->begun.tv_sec,
		.dirs = t->dirs.n,
		.items = t->items.n,
		.names = t->names.len,
		.key = strlen(p->key),
		.root = strlen(p->root) };
	char *all = mem_alloc(size_of(&h)), *at = all + sizeof(h);

	at = mempcpy(at, t->dirs.v, dirs);
	if (items)
		at = mempcpy(at, t->items.v, items);
	at = mempcpy(at, t->names.p, t->names.len);
	at = mempcpy(at, p->key, h.key);
	memcpy(at, p->root, h.root);
	h.sum = sum_of(all + sizeof(h), size_of(&h) - sizeof(h), 0);
	memcpy(all, &h, sizeof(h));
	return fd_write_all(fd, all, size_of(&h));
}

static void write_one(int dir, const struct pending *p)
{
	const char *temporary = mem_printf("%s.%d", p->name, (int)getpid());
	auto_close int fd = openat(dir, temporary,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	if (write_table(fd, p) < 0 || renameat(dir, temporary, dir, p->name) < 0)
		unlinkat(dir, temporary, 0);
}

void walk_cache_write(void)
{
	const char *all = all_dir();
	auto_close int dir = -1;
	struct fault f = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(pending) && pending[i].table; i++) {
		if (dir < 0 && xdg_make(all, &f) == 0)
			dir = openat(AT_FDCWD, all,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir < 0)
			return;
		write_one(dir, &pending[i]);
		pending[i] = (struct pending){ 0 };
	}
}

/* ---- removing ---- */

/* The root of a cache; "": this version does not read it. NULL: that cannot be told. */
static const char *root_of(int fd, const struct stat *st)
{
	char root[PATH_MAX];
	struct head h;
	ssize_t n = pread(fd, &h, sizeof(h), 0);

	if (n < 0)
		return NULL;
	if (n != sizeof(h) || !is_whole(&h, (size_t)st->st_size))
		return "";
	n = pread(fd, root, h.root, st->st_size - (off_t)h.root);
	return n == (ssize_t)h.root ? mem_strndup(root, h.root) : NULL;
}

static bool is_useless(int dir, const char *name)
{
	auto_close int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char *root;
	struct stat st;

	/* What is no file of ours is left alone. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return false;
	if (strchr(name, '.')) /* it is being written, or whoever did was killed */
		return st.st_mtime < time(NULL) - DAY;
	root = root_of(fd, &st);
	return root && (root[0] != '/' || instance_root(root) == ROOT_GONE);
}

int walk_cache_sweep(bool only_look, unsigned int *ret, struct fault *f)
{
	const char *all = all_dir();
	auto_close int dir =
		all ? open(all, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	tree_names names = { 0 };
	int rc = dir < 0 ? -errno : tree_list(dir, &names);

	*ret = 0;
	if (!all || rc == -ENOENT)
		return 0;
	if (rc < 0)
		return fault_set(f, -rc, "read %s", str_visible(all));
	vec_each(name, &names) {
		if (!is_useless(dir, *name))
			continue;
		if (!only_look && unlinkat(dir, *name, 0) < 0 && errno != ENOENT)
			return fault_set(f, errno, "remove %s/%s", str_visible(all),
				str_visible(*name));
		++*ret;
	}
	return 0;
}
