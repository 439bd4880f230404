#include "git/git-walk.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	MOST_DEPTH = 100, /* one descriptor each; the name of a ref has far fewer parts */
	ROOM = 32 * 1024,
};

/* What a directory is for. */
enum place {
	IN_GIT,       /* a git directory, or the admin directory of a worktree */
	IN_MODULES,   /* contains git directories, at any depth */
	IN_WORKTREES, /* admin directories in it */
	IN_OBJECTS,
	IN_OBJECTS_INFO,
	IN_LIST, /* its names are looked at, its directories are not entered */
	IN_HOOKS,
	IN_TODO,
	IN_REMOTES,
	IN_STORE, /* of another tool, which has its own objects */
	IN_PLAIN,
};

static const struct {
	enum place in;
	const char *name;
	enum place is;
} dirs[] = {
	{ IN_GIT, "objects", IN_OBJECTS },
	{ IN_GIT, "hooks", IN_HOOKS },
	{ IN_GIT, "modules", IN_MODULES },
	{ IN_GIT, "worktrees", IN_WORKTREES },
	{ IN_GIT, "rebase-merge", IN_TODO },
	{ IN_GIT, "rebase-apply", IN_TODO },
	{ IN_GIT, "sequencer", IN_TODO },
	{ IN_GIT, "remotes", IN_REMOTES },
	{ IN_GIT, "branches", IN_REMOTES },
	{ IN_GIT, "lfs", IN_STORE },
	{ IN_GIT, "annex", IN_STORE },
	{ IN_STORE, "objects", IN_LIST },
	{ IN_OBJECTS, "info", IN_OBJECTS_INFO },
	{ IN_OBJECTS, "pack", IN_LIST },
};

/* NULL stands for every name without an earlier row. */
static const struct {
	enum place in;
	const char *name;
	enum git_what is;
} files[] = {
	{ IN_GIT, "HEAD", GIT_HEAD },
	{ IN_GIT, "config", GIT_CONFIG },
	{ IN_GIT, "config.worktree", GIT_CONFIG },
	{ IN_GIT, "commondir", GIT_LEADS },
	{ IN_GIT, "gitdir", GIT_LEADS },
	/* `git bisect` before 2.35 had a shell evaluate it. */
	{ IN_GIT, "BISECT_NAMES", GIT_TODO },
	{ IN_OBJECTS_INFO, "alternates", GIT_ALTERNATE },
	{ IN_OBJECTS_INFO, "http-alternates", GIT_ALTERNATE },
	{ IN_HOOKS, NULL, GIT_HOOK },
	{ IN_TODO, NULL, GIT_TODO },
	{ IN_REMOTES, NULL, GIT_REMOTE },
};

/*
 * A bare repository may contain other files beside git's own: working trees, or a whole
 * project. These names are git's, and so is every name in capitals, such as COMMIT_EDITMSG.
 */
static const char *const bare[] = { "objects", "refs", "logs", "info", "hooks", "modules",
	"worktrees", "rebase-merge", "rebase-apply", "rebased-patches", "sequencer", "remotes",
	"branches", "rr-cache", "reftable", "lfs", "annex", "svn", "config", "config.worktree",
	"commondir", "gitdir", "packed-refs", "index", "shallow", "description", "lost-found",
	"addp-hunk-edit.diff", "fsmonitor--daemon", "fsmonitor--daemon.ipc" };

/* Files that git writes in place, or through a link to a name beside the target. */
static const char *const written[] = { "index", "logs", "refs", "packed-refs", "shallow",
	"reftable", "rebase-merge", "rebase-apply", "rebased-patches", "sequencer",
	"lost-found", "addp-hunk-edit.diff", "fsmonitor--daemon" };

/* Beginnings of more such names: gc.pid, sharedindex.HASH, index.stash.PID, .... */
static const char *const begins[] = { "gc.", "index.", "sharedindex.", "packed-refs.",
	"fast_import_crash_" };

/* One directory of the walk. */
struct level {
	int fd;
	const char *path;
	enum place place;
	int depth;
	bool bare;               /* only git's own names count in it */
	bool written;            /* git writes everything in it */
	VEC(const char *) below; /* directories to enter */
};

static int walk_level(const struct git_visitor *v, struct level *l, struct fault *f);

/*
 * Is a directory in modules/ a git directory? Any part shows it, because others may have been
 * removed.
 */
static bool has_parts(int fd)
{
	static const char *const parts[] = { "HEAD", "config", "objects", "refs", "hooks" };
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (fstatat(fd, parts[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	return false;
}

static enum place place_below(const struct level *l, const char *name, int fd)
{
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (dirs[i].in == l->place && !strcmp(dirs[i].name, name))
			return dirs[i].is;
	if (l->place == IN_WORKTREES)
		return IN_GIT;
	if (l->place == IN_MODULES)
		return has_parts(fd) ? IN_GIT : IN_MODULES;
	return l->place == IN_GIT || l->place == IN_OBJECTS_INFO ? IN_PLAIN : l->place;
}

/* objects/xx, and entries of a directory that is only listed. */
static bool is_left_out(const struct level *l, const char *name)
{
	return l->place == IN_LIST ||
		(l->place == IN_OBJECTS && strcmp(name, "info") && strcmp(name, "pack"));
}

static bool is_in_capitals(const char *name)
{
	return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(name);
}

static bool is_one_of(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (str_starts(name, begins[i]))
			return true;
	return is_in_capitals(name);
}

static bool is_written(const struct level *l, const char *name)
{
	if (l->written || l->place != IN_GIT)
		return l->written;
	return is_one_of(written, ARRAY_SIZE(written), name);
}

static bool matters(const struct level *l, const char *name, enum git_what *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i].in == l->place &&
			(!files[i].name || !strcmp(files[i].name, name))) {
			*ret = files[i].is;
			return true;
		}
	return false;
}

static int visit_entry(const struct git_visitor *v, struct level *l, const struct dirent *d,
	struct fault *f)
{
	struct git_entry e = { .what = GIT_ODD,
		.dir = l->fd,
		.dir_path = l->path,
		.name = d->d_name,
		.inode = d->d_ino,
		.type = d->d_type };
	struct stat st;

	if (d->d_name[0] == '.' && (!d->d_name[1] || (d->d_name[1] == '.' && !d->d_name[2])))
		return 0;
	if (l->bare && !is_one_of(bare, ARRAY_SIZE(bare), d->d_name))
		return 0;
	if (e.type == DT_UNKNOWN) {
		int rc = look_at(l->fd, d->d_name, &st, f);

		if (rc <= 0)
			return rc;
		e.type = (unsigned char)IFTODT(st.st_mode);
	}
	if (e.type == DT_DIR) {
		if (!is_left_out(l, d->d_name))
			vec_push(&l->below, mem_strdup(d->d_name));
		return 0;
	}
	if (e.type == DT_REG && !matters(l, d->d_name, &e.what))
		return 0;
	e.written = is_written(l, d->d_name);
	return v->visit(v->ctx, &e, f);
}

/* All entries of one directory; -errno, with the fault untouched, if they cannot be read. */
static int read_entries(const struct git_visitor *v, struct level *l, int *ret_err,
	struct fault *f)
{
	static char room[ROOM] __attribute__((aligned(8)));

	for (;;) {
		ssize_t n = syscall(SYS_getdents64, l->fd, room, sizeof(room));

		*ret_err =
			n < 0 && errno != ENOENT ? errno : 0; /* ENOENT: removed while open */
		if (n <= 0)
			return 0;
		for (ssize_t at = 0; at < n;) {
			const struct dirent *d = (const void *)(room + at);
			int rc = visit_entry(v, l, d, f);

			if (rc < 0)
				return rc;
			at += d->d_reclen;
		}
	}
}

/*
 * Open a directory for the walk without following any link. A directory that may be read but
 * not entered shows only names, which is not enough; so open "." in it.
 */
static int open_dir(int dir, const char *name)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/.", name) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return fd_open2(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_SYMLINKS);
}

/* A descriptor; -1: leave it out; less: the fault is set. */
static int enter_dir(const struct git_visitor *v, int dir, const char *name, const char *path,
	struct fault *f)
{
	for (int tries = 0;; tries++) {
		int fd = open_dir(dir, name), rc;

		if (fd >= 0)
			return fd;
		/* It is gone, or not a directory any more. */
		if (look_is_no_dir(dir, name))
			return -1;
		rc = v->unseen(v->ctx, dir, name, path, errno, f);
		if (rc < 0)
			return rc == -1 ? -EIO : rc;
		if (rc == 0 || tries)
			return -1;
	}
}

static int walk_below(const struct git_visitor *v, struct level *l, const char *name,
	struct fault *f)
{
	struct level below = { .path = path_join(l->path, name), .depth = l->depth + 1 };
	int rc;

	if (below.depth > MOST_DEPTH)
		return v->unseen(v->ctx, l->fd, name, below.path, ENAMETOOLONG, f);
	below.fd = enter_dir(v, l->fd, name, below.path, f);
	if (below.fd < 0)
		return below.fd == -1 ? 0 : below.fd;
	below.place = place_below(l, name, below.fd);
	below.written = is_written(l, name);
	rc = walk_level(v, &below, f);
	close(below.fd);
	return rc;
}

static int walk_level(const struct git_visitor *v, struct level *l, struct fault *f)
{
	int err, rc;

	if (v->entered)
		v->entered(v->ctx, l->fd, l->path);
	rc = read_entries(v, l, &err, f);
	if (rc == 0 && err)
		rc = v->unseen(v->ctx, l->fd, ".", l->path, err, f);
	if (rc < 0)
		return rc;
	vec_each(name, &l->below) {
		rc = walk_below(v, l, *name, f);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int git_walk(const char *path, const struct git_visitor *v, struct fault *f)
{
	struct level top = { .path = path, .place = IN_GIT };
	int rc;

	top.bare = strcmp(path_base(path), ".git") != 0;
	top.fd = enter_dir(v, AT_FDCWD, path, path, f);
	if (top.fd < 0)
		return top.fd == -1 ? 0 : top.fd;
	rc = walk_level(v, &top, f);
	close(top.fd);
	return rc;
}
