#include "host/git-dirs.h"
#include "host/contents.h"
#include "git/git-mend.h"
#include "git/git-walk.h"
#include "host/walk.h"
#include "box/stub.h"
#include "plan/plan.h"
#include "git/git-files.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHERS = S_IWGRP | S_IWOTH };

/* An entry, or a whole git directory, that was there before the run. */
struct seen {
	const char *path;
	unsigned long inode;
	mode_t mode; /* of a directory */
};
typedef VEC(struct seen) seen_vec;

/* A link that git would write through. */
struct odd_link {
	const char *dir, *name, *text;
	unsigned long inode;
	bool from_box; /* made while a box ran there */
};

struct git_seen {
	seen_vec roots; /* the git directories that were walked */
	size_t own;     /* this many, from the first on, belong to the workspace itself */
	seen_vec entries;
	seen_vec open; /* directories in them that others than the user could write */
	VEC(struct git_head) heads;
	VEC(struct odd_link) links;
	struct contents contents;
};

/* ---- before the run ---- */

/*
 * git makes none of these, except HEAD as a link in old repositories and the socket of its file
 * system monitor.
 */
static bool is_gits(const struct git_entry *e, const char *text)
{
	if (e->type == DT_SOCK)
		return !strcmp(e->name, "fsmonitor--daemon.ipc");
	return text && !strcmp(e->name, "HEAD") && str_starts(text, "refs/") &&
		!strstr(text, "..");
}

/*
 * Does the link lead to anything else than the same name in another git directory? Some tools
 * share the refs and logs of several working trees in one repository through such links.
 */
static bool leads_out(const char *link, const char *text)
{
	const char *path = path_join(path_parent(link), text), *dir, *git, *common, *rel;
	const char *real = fd_real_path(path);

	if (!real && (real = fd_real_path(path_parent(path))))
		real = path_join(real, path_base(path)); /* git would make it */
	for (dir = real ? path_parent(real) : "/"; dir[1]; dir = path_parent(dir))
		if (git_look(dir, dir, &git, &common) != GIT_NONE) {
			rel = mem_printf("/%s", path_below(real, dir));
			return !str_ends(link, rel);
		}
	return true;
}

/*
 * Was this made while a box ran there? Yes if its stubs, which only carrel makes, are still
 * there: box and carrel were killed together, or the box still runs.
 */
static bool is_from_box(const char *root, const struct stat *st)
{
	static const char *const stubs[] = { "commondir", "config.worktree" };
	struct stat stub;

	for (size_t i = 0; i < ARRAY_SIZE(stubs); i++) {
		const char *path = path_join(root, stubs[i]);

		if (lstat(path, &stub) < 0 || !S_ISREG(stub.st_mode) ||
			!stub_seen(&stub, AT_FDCWD, path))
			continue;
		return st->st_ctim.tv_sec > stub.st_ctim.tv_sec ||
			(st->st_ctim.tv_sec == stub.st_ctim.tv_sec &&
				st->st_ctim.tv_nsec >= stub.st_ctim.tv_nsec);
	}
	return false;
}

static int add_link(struct git_seen *seen, const struct git_entry *e, struct fault *f)
{
	struct odd_link link = {
		.dir = e->dir_path, .name = mem_strdup(e->name), .inode = e->inode
	};
	struct stat st;
	int rc = look_link(e->dir, e->name, &link.text, f);

	if (rc <= 0 || is_gits(e, link.text) ||
		!leads_out(path_join(e->dir_path, e->name), link.text))
		return rc < 0 ? rc : 0;
	rc = look_at(e->dir, e->name, &st, f);
	if (rc > 0) {
		link.from_box = is_from_box(seen->roots.v[seen->roots.n - 1].path, &st);
		vec_push(&seen->links, link);
	}
	return rc < 0 ? rc : 0;
}

static int remember_entry(void *ctx, const struct git_entry *e, struct fault *f)
{
	struct git_seen *seen = ctx;
	struct git_head head = { .dir = e->dir_path };

	if (!strcmp(e->name, "HEAD") && (e->what == GIT_HEAD || e->type == DT_LNK)) {
		int rc = git_head_read(e->dir, &head, f);

		if (rc < 0)
			return rc;
		if (rc && head.valid)
			vec_push(&seen->heads, head);
	}
	vec_push(&seen->entries,
		((struct seen){ path_join(e->dir_path, e->name), e->inode, 0 }));
	if (e->what != GIT_ODD && e->what != GIT_HEAD)
		contents_remember(&seen->contents, e->dir, e->name);
	return e->type == DT_LNK && e->written ? add_link(seen, e, f) : 0;
}

static void remember_others(void *ctx, int dir, const char *path)
{
	struct git_seen *seen = ctx;
	struct stat st;

	if (fstat(dir, &st) == 0 && (st.st_mode & OTHERS))
		vec_push(&seen->open, ((struct seen){ path, st.st_ino, st.st_mode }));
}

/* Another user's directory that we may not read: the box may not either. */
static int refuse_unseen(void *ctx, int dir, const char *name, const char *path, int err,
	struct fault *f)
{
	struct stat st;

	(void)ctx;
	if (err == EACCES && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		st.st_uid != getuid())
		return 0;
	fault_set(f, err, "look into the git directory '%s'", str_visible(path));
	if (err == EACCES)
		fault_fix(f, "A box may have left it so. Look at it, then: chmod u+rwx '%s'",
			str_visible(path));
	if (err == ENAMETOOLONG)
		fault_fix(f, "git makes nothing that deep: a box did. Remove it.");
	return -err;
}

static int remember_dir(struct git_seen *seen, const char *dir, const struct stat *st,
	struct fault *f)
{
	const struct git_visitor v = { seen, remember_others, remember_entry, refuse_unseen };

	vec_push(&seen->roots, ((struct seen){ dir, st->st_ino, st->st_mode }));
	return git_walk(dir, &v, f);
}

static bool is_own(const struct git_seen *seen, const char *dir)
{
	for (size_t i = 0; i < seen->own; i++)
		if (!strcmp(seen->roots.v[i].path, dir))
			return true;
	return false;
}

int git_dirs_remember(struct git_seen **seen, const char *dir, struct fault *f)
{
	struct stat st;
	int rc = look_at(AT_FDCWD, dir, &st, f);

	if (rc <= 0 || !S_ISDIR(st.st_mode))
		return rc < 0 ? rc : 0;
	if (!*seen)
		*seen = mem_alloc(sizeof(**seen));
	if (is_own(*seen, dir))
		return 0;
	(*seen)->own++;
	return remember_dir(*seen, dir, &st, f);
}

void git_dirs_gather(const struct walk_entry *e, name_vec *repos)
{
	bool head = e->name[0] == 'H' && !strcmp(e->name, "HEAD");
	size_t len = strlen(e->rel);

	if (head)
		vec_push(repos, mem_strndup(e->rel, len - (len > 4 ? 5 : 4)));
	else if (e->is_dir && e->name[0] == '.' && !strcmp(e->name, ".git"))
		vec_push(repos, mem_strdup(e->rel));
}

/* Decided by git's own test. A .git counts whatever it looks like. */
static bool is_repository(const char *path)
{
	const char *git, *common;

	return !strcmp(path_base(path), ".git") ||
		git_look(path, path, &git, &common) != GIT_NONE;
}

static bool is_valid(const char *path)
{
	const char *git, *common;

	return git_look(path, path, &git, &common) == GIT_FOUND;
}

int git_dirs_remember_all(struct git_seen **seen, const char *workspace, const name_vec *repos,
	struct fault *f)
{
	if (!*seen)
		*seen = mem_alloc(sizeof(**seen));
	vec_each(rel, repos) {
		const char *path = **rel ? path_join(workspace, *rel) : workspace;
		struct stat st;
		int rc;

		if (is_own(*seen, path) || !is_repository(path))
			continue;
		rc = look_at(AT_FDCWD, path, &st, f);
		if (rc > 0 && S_ISDIR(st.st_mode))
			rc = remember_dir(*seen, path, &st, f);
		if (rc < 0)
			return rc;
	}
	return 0;
}

const char *git_dirs_other(const struct git_seen *seen, size_t number)
{
	number += seen->own;
	return number < seen->roots.n ? seen->roots.v[number].path : NULL;
}

/* 0: it is gone or was replaced meanwhile, so it is no worse than a new one. */
static int remove_link(const struct odd_link *link)
{
	auto_close int dir = fd_open2(AT_FDCWD, link->dir,
		O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (dir < 0 || fstatat(dir, link->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return look_is_absent(errno) ? 0 : -errno;
	if (!S_ISLNK(st.st_mode) || st.st_ino != link->inode)
		return 0;
	return unlinkat(dir, link->name, 0) < 0 ? -errno : 0;
}

/* The user may have made it, if no box ran there since. */
static const char *words_of(const struct odd_link *link, bool start)
{
	int rc;

	if (!link->from_box)
		return "if you did not make it, a box that was killed may have; then remove it";
	if (!start)
		return "it was made while a box ran here, and the next start removes it";
	rc = remove_link(link);
	return rc < 0
		? mem_printf("it was made while a box ran here, and could not be removed: %s",
			  strerror(-rc))
		: "it was made while a box ran here, and is removed";
}

void git_dirs_mend(const struct git_seen *seen, bool start, name_vec *notices)
{
	vec_each(link, &seen->links)
		vec_push(notices,
			mem_printf("git writes through the link %s to %s: %s",
				str_visible(path_join(link->dir, link->name)),
				str_visible(link->text), words_of(link, start)));
}

/* ---- after the run ---- */

struct check {
	const struct plan *plan;
	struct git_seen *seen; /* sorted */
	const struct timespec *since;
	planted_vec *found;
	mode_t others;     /* who may write new directories in this one: some of OTHERS */
	bool is_new;       /* a git directory that is new: its .git is reported as a whole */
	bool by_time;      /* it was not seen before the run: the ages of its entries decide */
	bool written_only; /* the project may keep links beside the files that git writes */
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct seen *)a)->path, ((const struct seen *)b)->path);
}

static const struct seen *find_seen(const seen_vec *in, const char *path)
{
	const struct seen key = { .path = path };

	return in->n ? bsearch(&key, in->v, in->n, sizeof(key), by_path) : NULL;
}

static bool is_recent(const struct check *c, const struct stat *st)
{
	const struct timespec *t = &st->st_ctim, *since = c->since;

	return t->tv_sec > since->tv_sec ||
		(t->tv_sec == since->tv_sec && t->tv_nsec >= since->tv_nsec);
}

static void report(struct check *c, const char *path, const char *why, enum planted_rank rank)
{
	const char *workspace = c->plan->workspace;
	const char *rel = path_within(path, workspace) ? path_below(path, workspace) : path;

	vec_push(c->found, ((struct planted){ *rel ? rel : ".", why, rank }));
}

/* Is it new or changed, and not a stub? *ret is the entry. */
static bool changed(struct check *c, const struct git_entry *e, const char *path,
	struct stat *ret)
{
	const struct seen *before;
	struct fault f;
	int rc;

	if (stub_is_known(e->type, e->inode))
		return false;
	rc = look_at(e->dir, e->name, ret, &f);
	if (rc < 0)
		report(c, path, mem_printf("it could not be looked at: %s", strerror(-rc)),
			PLANTED_UNSEEN);
	if (rc <= 0 || stub_seen(ret, e->dir, e->name))
		return false;
	if (is_recent(c, ret))
		return true;
	if (c->by_time)
		return false;
	before = find_seen(&c->seen->entries, path);
	return !before || before->inode != ret->st_ino ||
		(e->what != GIT_ODD && e->what != GIT_HEAD &&
			contents_differ(&c->seen->contents, e->dir, e->name, ret));
}

static const char *odd_name(mode_t mode)
{
	return S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static void put_away(struct check *c, const struct git_entry *e)
{
	const char *path = path_join(e->dir_path, e->name), *text = NULL, *what;
	struct fault f = { 0 };
	struct stat st;

	if (!changed(c, e, path, &st) || S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))
		return;
	if (S_ISLNK(st.st_mode) && look_link(e->dir, e->name, &text, &f) < 0)
		text = "a place that could not be read";
	if (is_gits(e, text))
		return;
	what = text ? mem_printf("a link to %s", str_visible(text)) : odd_name(st.st_mode);
	if (unlinkat(e->dir, e->name, 0) == 0)
		what = mem_printf("%s, which git never makes there: removed", what);
	else
		what = mem_printf("%s, which git never makes there; it could not be removed: "
				  "%s",
			what, strerror(errno));
	report(c, path, what, PLANTED_GIT_DIR);
}

/* What `git worktree add` writes, for a working tree that the box could make. */
static bool is_ordinary_lead(const struct check *c, const struct git_entry *e)
{
	const char *holder = path_parent(e->dir_path), *text, *to;

	if (strcmp(path_base(holder), "worktrees"))
		return false;
	text = git_read_text(e->dir_path, e->name);
	if (!text)
		return false;
	if (!strcmp(e->name, "commondir"))
		return !strcmp(text, "../..");
	to = path_clean(path_join(e->dir_path, text));
	return path_within(to, c->plan->workspace) && !strcmp(path_base(to), ".git");
}

static const char *const whys[] = {
	[GIT_CONFIG] = "git obeys it, and runs what it names",
	[GIT_LEADS] = "git takes its configuration, or a working tree, from there",
	[GIT_HOOK] = "git runs it",
	[GIT_TODO] = "git goes on with it, and runs what it names",
	[GIT_REMOTE] = "git takes the address of a remote from it",
	[GIT_ALTERNATE] = "git reads objects where it says",
};

/*
 * It was under a mount all the time, so no box changed it. The user did, or carrel did for
 * another box that has ended.
 */
static bool is_kept(const struct check *c, const char *path, const struct stat *st)
{
	vec_each(place, &c->plan->places)
		if ((place->kind == PLACE_CONFIG || place->kind == PLACE_PROTECT) &&
			place->inode == st->st_ino && !strcmp(place->source, path))
			return true;
	return false;
}

static int check_entry(void *ctx, const struct git_entry *e, struct fault *f)
{
	struct check *c = ctx;
	const char *path;
	struct stat st;

	(void)f;
	if (e->what == GIT_ODD && (e->written || !c->written_only))
		put_away(c, e);
	if (e->what == GIT_ODD || e->what == GIT_HEAD || c->is_new)
		return 0;
	if (e->what == GIT_HOOK && str_ends(e->name, ".sample"))
		return 0;
	path = path_join(e->dir_path, e->name);
	if (!changed(c, e, path, &st) || is_kept(c, path, &st))
		return 0;
	if (e->what != GIT_LEADS || !is_ordinary_lead(c, e))
		report(c, path, whys[e->what], PLANTED_GIT);
	return 0;
}

/*
 * Whoever may write a directory can exchange what is protected in it, or put a link there. git
 * makes directories by the umask, or like the whole repository.
 */
static void check_others(void *ctx, int dir, const char *path)
{
	struct check *c = ctx;
	const struct seen *before = find_seen(&c->seen->open, path);
	struct stat st;
	mode_t more;

	if (fstat(dir, &st) < 0) {
		report(c, path, mem_printf("it could not be looked at: %s", strerror(errno)),
			PLANTED_UNSEEN);
		return;
	}
	more = st.st_mode & OTHERS & ~c->others;
	if (before && before->inode == st.st_ino)
		more &= ~before->mode;
	if (more && fchmod(dir, st.st_mode & 07777 & ~more) == 0)
		report(c, path, "other users could write there: they cannot any more",
			PLANTED_GIT_DIR);
}

static const char closed[] = "you could not use it any more: it is open to you again";

static int mend_unseen(void *ctx, int dir, const char *name, const char *path, int err,
	struct fault *f)
{
	struct check *c = ctx;

	(void)f;
	if (err == EACCES && git_mend_mode(dir, name)) {
		report(c, path, closed, PLANTED_GIT_DIR);
		return 1;
	}
	report(c, path, mem_printf("it could not be looked into: %s", strerror(err)),
		PLANTED_UNSEEN);
	return 0;
}

static void check_dir(struct check *c, const char *path)
{
	const struct git_visitor v = { c, c->is_new || c->by_time ? NULL : check_others,
		check_entry, mend_unseen };
	struct fault f = { 0 };

	if (git_walk(path, &v, &f) < 0)
		report(c, path, mem_printf("it could not be looked at: %s", fault_line(&f)),
			PLANTED_UNSEEN);
}

/* Without this its HEAD cannot be restored, and stubs cannot be removed from it. */
static void check_mode(struct check *c, const struct seen *root)
{
	struct stat st;

	if (lstat(root->path, &st) == 0 && S_ISDIR(st.st_mode) &&
		(root->mode & ~st.st_mode & S_IRWXU) && git_mend_mode(AT_FDCWD, root->path))
		report(c, root->path, closed, PLANTED_GIT_DIR);
}

static void check_head(struct check *c, const struct git_head *head)
{
	struct fault f = { 0 };
	int rc = git_head_mend(head, &f);
	const char *path = path_join(head->dir, "HEAD");

	if (rc > 0)
		report(c, path, "git did not accept it any more: put back as it was before",
			PLANTED_GIT_DIR);
	if (rc < 0)
		report(c, path,
			mem_printf("git does not accept it any more: %s", fault_line(&f)),
			PLANTED_GIT_DIR);
}

/* The repository of the workspace itself, as git finds it. */
static void check_valid(struct check *c, const struct seen *root)
{
	bool had_head = false;

	vec_each(head, &c->seen->heads)
		had_head |= !strcmp(head->dir, root->path);
	if (had_head && !is_valid(root->path))
		report(c, root->path, "git does not accept it as a repository any more",
			PLANTED_GIT_DIR);
}

static bool is_hidden(const struct plan *p, const char *path)
{
	vec_each(place, &p->places)
		if (place->kind == PLACE_HIDE && place->source &&
			path_within(path, place->source))
			return true;
	return false;
}

/*
 * A directory with HEAD, objects and refs that was not a git directory before. It may hold
 * files of the project as well, so only links are removed that the run made where git writes.
 */
static void check_new_bare(struct check *c, const char *path, const struct stat *st)
{
	struct stat head;

	if (c->by_time && !is_recent(c, st) &&
		(lstat(path_join(path, "HEAD"), &head) < 0 || !is_recent(c, &head)))
		return;
	report(c, path, "git takes it for a repository, and obeys its config and hooks",
		PLANTED_GIT_DIR);
	c->is_new = c->by_time = c->written_only = true;
	check_dir(c, path);
	c->is_new = c->by_time = c->written_only = false;
}

/* A git directory that is new, or was replaced. */
static void check_new(struct check *c, const char *path)
{
	const struct seen *before = find_seen(&c->seen->roots, path);
	struct fault f = { 0 };
	struct stat st;
	int rc;

	if (is_hidden(c->plan, path) || !is_repository(path))
		return;
	rc = look_at(AT_FDCWD, path, &st, &f);
	if (rc < 0)
		report(c, path, mem_printf("it could not be looked at: %s", fault_line(&f)),
			PLANTED_UNSEEN);
	if (rc <= 0 || (before && before->inode == st.st_ino))
		return;
	c->by_time = strstr(path, "/node_modules/") != NULL;
	if (strcmp(path_base(path), ".git")) {
		check_new_bare(c, path, &st);
	} else if (!before) {
		/* If the earlier entries are known, it is reported by its name. */
		c->is_new = !c->by_time;
		check_dir(c, path);
		c->is_new = false;
	}
	c->by_time = false;
}

void git_dirs_check(const struct plan *p, const name_vec *repos, const struct timespec *since,
	planted_vec *ret)
{
	static struct git_seen none;
	struct git_seen *seen = p->git ? p->git : &none;
	struct check c = { .plan = p, .seen = seen, .since = since, .found = ret };
	const mode_t mask = umask(S_IRWXG | S_IRWXO);
	seen_vec own = { 0 };

	umask(mask);

	for (size_t i = 0; i < seen->own; i++)
		vec_push(&own, seen->roots.v[i]);
	if (seen->entries.n)
		qsort(seen->entries.v, seen->entries.n, sizeof(*seen->entries.v), by_path);
	if (seen->open.n)
		qsort(seen->open.v, seen->open.n, sizeof(*seen->open.v), by_path);
	if (seen->roots.n)
		qsort(seen->roots.v, seen->roots.n, sizeof(*seen->roots.v), by_path);
	vec_each(root, &seen->roots) {
		c.others = (root->mode | ~mask) & OTHERS;
		check_mode(&c, root);
		check_dir(&c, root->path);
	}
	vec_each(head, &seen->heads)
		check_head(&c, head);
	vec_each(root, &own)
		check_valid(&c, root);
	vec_each(rel, repos)
		check_new(&c, **rel ? path_join(p->workspace, *rel) : p->workspace);
}
