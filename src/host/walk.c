/*
 * host/walk.c - look at every directory of a tree, fast and safely
 *
 * Each directory becomes a record in a table: what matters in it, copied from the table of the
 * last walk if its times are those of then, else read. The visitor is shown the record, so a
 * walk with a cache and one without differ in nothing but where the record came from.
 */
#include "host/walk.h"
#include "host/walk-cache.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
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
	WINDOW = 32,      /* how far to look for a name that was there before */
};

/* A directory that was found and not looked into yet. */
struct todo {
	const char *rel;
	uint32_t old;  /* where the last walk has it, or WALK_NONE */
	uint32_t item; /* where this walk has it */
};

struct walk {
	const struct walk_how *how;
	struct walk_cache cache;
	struct walk_table found;
	int root;
	bool readable; /* so that its entries can be read from root itself */
	size_t seen;
	VEC(struct todo) todo;
	char *entries;

	/* The directory that is looked at. */
	int dir;   /* a descriptor of it, or -1: not needed yet */
	char *rel; /* its path, and after it that of the entry that is visited */
	dev_t dev;
	size_t prefix; /* how much of that is the directory's, with the slash */
	uint32_t index;
};

static struct walk_known_dir *current(struct walk *w)
{
	return &w->found.dirs.v[w->index];
}

/* The path of the directory, for a moment. */
static const char *dir_rel(struct walk *w)
{
	w->rel[w->prefix ? w->prefix - 1 : 0] = '\0';
	return w->rel;
}

/* ---- for visitors ---- */

int walk_dir(const struct walk_entry *e)
{
	struct walk *w = e->walk;
	char rel[REL_MAX + 1];

	if (w->dir >= 0)
		return w->dir;
	if (!w->prefix)
		return w->root;
	memcpy(rel, w->rel, w->prefix - 1);
	rel[w->prefix - 1] = '\0';
	w->dir = fd_open2(w->root, rel, O_PATH | O_DIRECTORY | O_CLOEXEC,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	return w->dir;
}

dev_t walk_dev(const struct walk_entry *e)
{
	return e->walk->dev;
}

bool walk_has(const struct walk_entry *e, const char *name)
{
	const struct walk_known_dir *d = current(e->walk);

	for (uint32_t i = d->first; i < d->first + d->n; i++)
		if (!strcmp(e->walk->found.names.p + e->walk->found.items.v[i].name, name))
			return true;
	return false;
}

/* ---- one directory, read ---- */

/* Where the last walk has a directory of this name; names mostly come in the same order. */
static uint32_t find_old(const struct walk_table *old, const struct walk_known_dir *in,
	uint32_t *from, const char *name)
{
	for (uint32_t i = 0; in && i < in->n && i < WINDOW; i++) {
		uint32_t at = (*from + i) % in->n;
		const struct walk_item *item = &old->items.v[in->first + at];

		if (item->dir == WALK_NONE || strcmp(old->names.p + item->name, name) != 0)
			continue;
		*from = at + 1;
		return item->dir;
	}
	return WALK_NONE;
}

/* The type of an entry, also where getdents(2) does not say it; -1: it is gone. */
static int type_of(struct walk *w, const struct dirent *d, struct fault *f)
{
	struct stat st;
	int rc = 1;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type;
	rc = look_at(w->dir >= 0 ? w->dir : w->root, d->d_name, &st, f);
	return rc > 0 ? (int)IFTODT(st.st_mode) : rc == 0 ? -1 : rc - 1;
}

static bool matters(struct walk *w, bool whole, const char *name)
{
	const struct walk_filter *filter = w->how->filter;

	return whole || filter->wants(w->how->ctx, name);
}

/* One entry of the directory: keep it in its record, if it matters. */
static int add_entry(struct walk *w, const struct dirent *d, bool whole,
	const struct walk_known_dir *before, uint32_t *from, struct fault *f)
{
	const char *name = d->d_name;
	uint32_t dir = WALK_NONE;
	int type;

	if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
		return 0;
	current(w)->entries++;
	if (d->d_type != DT_DIR && d->d_type != DT_UNKNOWN && !matters(w, whole, name))
		return 0;
	if (strlen(name) > NAME_LONGEST)
		return fault_set(f, ENAMETOOLONG, "look at '%.80s...' in '%s'",
			str_visible(name), str_visible(w->how->root));
	type = type_of(w, d, f);
	if (type < 0)
		return type == -1 ? 0 : type + 1;
	if (type == DT_DIR)
		dir = find_old(&w->cache.old, before, from, name);
	else if (!matters(w, whole, name))
		return 0;
	vec_push(&w->found.items,
		((struct walk_item){ .inode = d->d_ino,
			.name = (uint32_t)w->found.names.len,
			.dir = dir,
			.type = (uint32_t)type }));
	str_addn(&w->found.names, name, strlen(name) + 1);
	return 0;
}

/* All of the directory, which is open as fd. */
static int read_entries(struct walk *w, int fd, const struct walk_known_dir *before,
	struct fault *f)
{
	const struct walk_filter *filter = w->how->filter;
	bool whole = !filter || filter->whole(w->how->ctx, dir_rel(w));
	uint32_t from = 0;
	int failed = 0;

	for (;;) {
		ssize_t n = syscall(SYS_getdents64, fd, w->entries, ROOM);

		if (n == 0 || (n < 0 && errno == ENOENT)) /* removed while open */
			return failed;
		if (n < 0)
			return fault_set(f, errno, "read the directory '%s/%s'",
				str_visible(w->how->root), str_visible(dir_rel(w)));
		for (ssize_t at = 0; at < n;) {
			const struct dirent *d = (const void *)(w->entries + at);
			int rc = add_entry(w, d, whole, before, &from, f);

			failed = failed < 0 ? failed : rc;
			at += d->d_reclen;
		}
	}
}

static void end_record(struct walk *w)
{
	struct walk_known_dir *d = current(w);

	d->n = (uint32_t)w->found.items.n - d->first;
	d->names_size = (uint32_t)w->found.names.len - d->names;
}

/* Somebody else's directory that we may not read: the box may not either. */
static bool belongs_to_another(struct walk *w, const char *rel)
{
	struct stat st;

	return fstatat(w->root, rel, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid != getuid();
}

/* A descriptor of the directory, in w->dir unless it is the root. 0: nothing to see. */
static int open_dir(struct walk *w, const char *rel, int *ret_fd, struct fault *f)
{
	int err;

	if (!*rel && w->readable) {
		*ret_fd = w->root;
		return lseek(w->root, 0, SEEK_SET) == 0 ? 1 : fault_set(f, errno, "rewind");
	}
	w->dir = fd_open2(w->root, *rel ? rel : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	*ret_fd = w->dir;
	if (w->dir >= 0)
		return 1;
	/* Gone since it was listed. A link in its place is not that: it may be elsewhere. */
	err = errno;
	if (look_is_absent(err) || (err == EACCES && *rel && belongs_to_another(w, rel)))
		return 0;
	if (!*rel)
		return fault_set(f, err, "look into '%s'", str_visible(w->how->root));
	fault_set(f, err, "look into '%s/%s'", str_visible(w->how->root), str_visible(rel));
	return fault_fix(f, "Make it readable, or keep it out of the box: --hide '%s'.",
		str_visible(rel));
}

/* The record of the directory, as it is now. */
static int read_record(struct walk *w, const struct todo *t, struct fault *f)
{
	const struct walk_table *old = &w->cache.old;
	struct walk_known_dir *d;
	struct stat st;
	int fd, rc = open_dir(w, t->rel, &fd, f);

	if (rc <= 0)
		return rc;
	w->dev = st.st_dev;
	/* First its times: what changes while it is read has later ones. */
	if (fstat(fd, &st) < 0)
		return fault_set(f, errno, "look at '%s/%s'", str_visible(w->how->root),
			str_visible(t->rel));
	rc = read_entries(w, fd, t->old == WALK_NONE ? NULL : &old->dirs.v[t->old], f);
	end_record(w);
	d = current(w);
	d->inode = st.st_ino;
	d->ctime = st.st_ctim.tv_sec;
	d->ctime_ns = (uint32_t)st.st_ctim.tv_nsec;
	d->mtime = st.st_mtim.tv_sec;
	d->mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
	d->trusted = rc == 0 && walk_cache_trusts(&w->cache, &st);
	/* That stubs come and go at the top is no reason to write a cache again. */
	w->cache.read += *t->rel ? d->entries + 1 : 0;
	return rc;
}

/* ---- one directory, remembered ---- */

/* The record of the last walk, if it still holds. */
static bool copy_record(struct walk *w, const struct todo *t)
{
	const struct walk_table *old = &w->cache.old;
	struct walk_table *found = &w->found;
	const struct walk_known_dir *d;
	struct walk_known_dir copy;
	struct stat st;

	if (t->old == WALK_NONE)
		return false;
	d = &old->dirs.v[t->old];
	if (!d->trusted)
		return false;
	if ((*t->rel ? fstatat(w->root, t->rel, &st, AT_SYMLINK_NOFOLLOW)
		     : fstat(w->root, &st)) < 0 ||
		!walk_cache_holds(&w->cache, d, &st))
		return false;
	w->dev = st.st_dev;
	copy = *d;
	copy.first = (uint32_t)found->items.n;
	copy.names = (uint32_t)found->names.len;
	str_addn(&found->names, old->names.p + d->names, d->names_size);
	for (uint32_t i = 0; i < d->n; i++) {
		struct walk_item item = old->items.v[d->first + i];

		item.name += copy.names - d->names;
		vec_push(&found->items, item);
	}
	*current(w) = copy;
	return true;
}

/* ---- all of them ---- */

static void visit_items(struct walk *w)
{
	const struct walk_known_dir d = *current(w);

	for (uint32_t i = d.first; i < d.first + d.n; i++) {
		struct walk_item *item = &w->found.items.v[i];
		struct walk_entry e = { .walk = w,
			.name = w->found.names.p + item->name,
			.rel = w->rel,
			.inode = item->inode,
			.type = (unsigned char)item->type,
			.is_dir = item->type == DT_DIR };
		uint32_t old = item->dir;

		item->dir = WALK_NONE;
		if (w->prefix)
			w->rel[w->prefix - 1] = '/';
		strcpy(w->rel + w->prefix, e.name);
		if (w->how->visit(w->how->ctx, &e) == WALK_ON && e.is_dir)
			vec_push(&w->todo, ((struct todo){ mem_strdup(w->rel), old, i }));
	}
}

static int walk_directory(struct walk *w, const struct todo *t, struct fault *f)
{
	const size_t n = strlen(t->rel);
	int rc = 0;

	if (n > REL_MAX)
		return fault_set(f, ENAMETOOLONG, "look into '%s/%.60s...'",
			str_visible(w->how->root), str_visible(t->rel));
	memcpy(w->rel, t->rel, n + 1);
	w->prefix = n ? n + 1 : 0;
	w->index = (uint32_t)w->found.dirs.n;
	vec_push(&w->found.dirs,
		((struct walk_known_dir){ .first = (uint32_t)w->found.items.n,
			.names = (uint32_t)w->found.names.len }));
	if (t->item != WALK_NONE)
		w->found.items.v[t->item].dir = w->index;
	if (!copy_record(w, t))
		rc = read_record(w, t, f);
	w->seen += current(w)->entries;
	visit_items(w);
	fd_close(&w->dir);
	w->dir = -1;
	return rc;
}

/* The first fault is the caller's, unless somebody hears of all of them. */
static int walk_all(struct walk *w, struct fault *f)
{
	int rc = 0;

	while (w->todo.n) {
		struct todo t = w->todo.v[--w->todo.n];
		struct fault one = { 0 };
		int failed = walk_directory(w, &t, &one);

		if (failed == 0 && w->seen > MOST_ENTRIES) {
			failed = fault_set(&one, E2BIG,
				"look at all of '%s': more than %d files",
				str_visible(w->how->root), MOST_ENTRIES);
			w->todo.n = 0;
		}
		if (failed < 0 && w->how->unseen)
			w->how->unseen(w->how->ctx, t.rel, &one);
		else if (failed < 0 && rc == 0)
			*f = one;
		rc = rc < 0 ? rc : failed;
	}
	return rc;
}

int walk_tree(const struct walk_how *how, struct fault *f)
{
	auto_close int fd = openat(AT_FDCWD, how->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char entries[ROOM] __attribute__((aligned(8))), rel[REL_MAX + NAME_LONGEST + 2];
	struct walk w = { .how = how, .readable = fd >= 0, .rel = rel, .dir = -1 };
	int rc;

	if (fd < 0)
		fd = openat(AT_FDCWD, how->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fault_set(f, errno, "open '%s'", str_visible(how->root));
	w.root = fd;
	w.entries = entries;
	str_add(&w.found.names, "");
	if (how->cache)
		walk_cache_open(&w.cache, how->cache, how->root, fd,
			how->filter ? how->filter->id : "");
	vec_push(&w.todo, ((struct todo){ "", w.cache.old.dirs.n ? 0 : WALK_NONE, WALK_NONE }));
	rc = walk_all(&w, f);
	if (how->cache)
		walk_cache_keep(&w.cache, &w.found);
	return how->unseen ? 0 : rc;
}
