#include "state/root.h"
#include "git/git-config.h"
#include "git/git-files.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/look.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_DIGITS = 16, SHOWN_BYTES = 300, SAME_MOMENT_MS = 1000 };

/* What was found, and what led there. All paths are canonical. */
struct search {
	const char *dir;    /* where the search began */
	const char *holder; /* has the .git, or is the git directory itself */
	const char *git;    /* the git directory */
	const char *common;
	const char *by;    /* what leads to git: ".git file", ".git link"; NULL: a directory */
	const char *names; /* the path in it, as written */
	const char *file;  /* the file that names it */
	const char *note;
};

/* A name for a note: safe to show, and not too long to read. */
static const char *shown_name(const char *text)
{
	if (!*text)
		return "nothing";
	if (strlen(text) <= SHOWN_BYTES)
		return str_visible(text);
	return mem_printf("%s...", str_visible(mem_strndup(text, SHOWN_BYTES)));
}

static void note_alone(struct search *c, const char *what, const char *claim)
{
	bool here = !strcmp(c->holder, c->dir);

	c->note = mem_printf("the %s%s%s %s: %s directory has an instance of its own", what,
		here ? "" : " in ", here ? "" : shown_name(c->holder), claim,
		here ? "this" : "that");
}

/* ---- looking for it, as git does ---- */

static enum git_kind look_git(struct search *c, const char *dir)
{
	return git_look(c->dir, dir, &c->git, &c->common);
}

/*
 * A .git file ends the search, even if it cannot be followed. A file that does not begin like
 * one is not shown: it may be a link to a secret.
 */
static enum git_kind follow_file(struct search *c, const char *dir, const char *name)
{
	char *text = git_read_text(dir, name);

	c->by = ".git file";
	c->file = path_join(dir, name);
	if (!text || !str_starts(text, "gitdir: ") || !text[8]) {
		note_alone(c, c->by, "is none that git can read");
		return GIT_BROKEN;
	}
	c->names = text + 8;
	if (look_git(c, path_join(dir, c->names)) == GIT_FOUND)
		return GIT_FOUND;
	note_alone(c, c->by,
		mem_printf("names %s, which is no git repository, or not any more",
			shown_name(c->names)));
	return GIT_BROKEN;
}

/* git would refuse a repository that another user may have planted above us. */
static bool is_strangers(struct search *c, const struct stat *entry)
{
	struct stat own;

	if (!entry->st_uid || entry->st_uid == geteuid() || stat(c->dir, &own) < 0 ||
		entry->st_uid == own.st_uid)
		return false;
	c->note = mem_printf("the git repository in %s is another user's: this directory has "
			     "an instance of its own",
		shown_name(c->holder));
	c->holder = c->dir;
	return true;
}

/* Does it contain anything that git makes, so that it was a repository once? */
static bool was_repository(const char *git)
{
	static const char *const parts[] = { "HEAD", "objects", "refs", "config", "hooks" };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (git_exists(git, parts[i]))
			return true;
	return false;
}

/*
 * git would skip this .git and go on to a repository further up. carrel stops here: a box could
 * have broken it in order to be taken for a part of the project around it. A directory that
 * never was a repository says nothing about the directories below it.
 */
static enum git_kind end_at_broken(struct search *c, const char *entry)
{
	if (!was_repository(entry))
		c->holder = c->dir;
	c->note = mem_printf("the .git in %s is no repository that git accepts: %s directory "
			     "has an instance of its own",
		shown_name(path_parent(entry)), strcmp(c->holder, c->dir) ? "that" : "this");
	return GIT_BROKEN;
}

/* What .git is; GIT_NONE: it does not exist. */
static enum git_kind look_at_entry(struct search *c, const char *dir, struct stat *st)
{
	const char *entry = path_join(dir, ".git");
	enum git_kind kind = GIT_NONE;
	struct stat to;

	if (lstat(entry, st) < 0)
		return look_is_absent(errno) ? GIT_NONE : end_at_broken(c, entry);
	if (is_strangers(c, st))
		return GIT_BROKEN;
	to = *st;
	if (S_ISLNK(st->st_mode) && stat(entry, &to) < 0)
		to.st_mode = 0;
	if (S_ISREG(to.st_mode))
		return follow_file(c, dir, ".git");
	if (S_ISDIR(to.st_mode))
		kind = look_git(c, entry);
	return kind == GIT_NONE ? end_at_broken(c, entry) : kind;
}

/*
 * A .git file, else a .git directory, else a bare repository; the caller says what the
 * directory itself is.
 */
static enum git_kind look_in(struct search *c, const char *dir, const struct stat *itself)
{
	struct stat st = { 0 };
	enum git_kind kind;

	c->holder = dir;
	kind = look_at_entry(c, dir, &st);
	if (c->note || c->by)
		return kind;
	if (kind == GIT_NONE) {
		st = *itself;
		kind = look_git(c, dir);
	}
	if (kind == GIT_NONE)
		return kind;
	if (is_strangers(c, &st))
		return GIT_BROKEN;
	if (kind == GIT_BROKEN) {
		note_alone(c, "commondir file", "names no git repository");
	} else if (S_ISLNK(st.st_mode)) {
		c->by = ".git link";
		c->names = c->git;
	}
	return kind;
}

/*
 * The length of the longest ceiling above dir, which is not searched itself; -1: none. Like
 * git, entries after an empty one are not resolved, because that may be slow.
 */
static long find_ceiling(const char *dir)
{
	const char *list = getenv("GIT_CEILING_DIRECTORIES");
	bool resolve = true;
	long longest = -1;

	for (size_t n; list && *list; list += n + (list[n] == ':')) {
		const char *entry;
		size_t len;

		n = strcspn(list, ":");
		if (!n)
			resolve = false;
		if (*list != '/')
			continue;
		entry = mem_strndup(list, n);
		if (resolve)
			entry = git_canonical("/", entry);
		if (!entry || !path_within(dir, entry) || !strcmp(dir, entry))
			continue;
		len = strcmp(entry, "/") ? strlen(entry) : 0;
		longest = (long)len > longest ? (long)len : longest;
	}
	return longest;
}

static bool across_filesystems(void)
{
	static const char *const yes[] = { "true", "yes", "on" };
	const char *env = getenv("GIT_DISCOVERY_ACROSS_FILESYSTEM");

	for (size_t i = 0; env && i < ARRAY_SIZE(yes); i++)
		if (!strcasecmp(env, yes[i]))
			return true;
	return env && strtol(env, NULL, 0) != 0;
}

static enum git_kind walk_up(struct search *c, const struct stat *itself)
{
	long ceiling = find_ceiling(c->dir);
	bool across = across_filesystems();
	const char *dir = c->dir;
	struct stat st = *itself;

	for (;;) {
		enum git_kind kind = look_in(c, dir, &st);

		if (kind != GIT_NONE || !strcmp(dir, "/"))
			return kind;
		dir = path_parent(dir);
		if ((dir[1] ? (long)strlen(dir) : 0) <= ceiling || stat(dir, &st) < 0 ||
			(!across && st.st_dev != itself->st_dev))
			return GIT_NONE;
	}
}

/* What the user named needs no further proof; what a file there says does. */
static enum git_kind take_named(struct search *c, const char *env)
{
	const char *path = path_join(c->dir, env), *parent;
	struct stat st;

	c->holder = c->dir;
	if (*env && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
		parent = path_parent(path);
		if (!strcmp(path_base(path), ".git") && git_canonical("/", parent))
			c->holder = git_canonical("/", parent);
		return follow_file(c, parent, path_base(path));
	}
	if (*env && look_git(c, path) == GIT_FOUND) {
		c->holder = c->git;
		return GIT_FOUND;
	}
	c->note = mem_printf("GIT_DIR names %s, which is no git repository: this directory has "
			     "an instance of its own",
		shown_name(env));
	return GIT_BROKEN;
}

/* ---- believing it ---- */

struct settings {
	const char *worktree;
	bool bare;
	bool broken;       /* git would stop at it, so nothing in it is believed */
	bool per_worktree; /* core.worktree has moved to config.worktree then */
};

static void keep_setting(void *ctx, const struct git_setting *set)
{
	struct settings *s = ctx;

	if (!strcmp(set->name, "core.worktree"))
		s->worktree = set->value;
	if (!strcmp(set->name, "core.bare"))
		s->bare = git_config_is_true(set->value);
	if (!strcmp(set->name, "extensions.worktreeconfig"))
		s->per_worktree = git_config_is_true(set->value);
}

static struct settings read_settings(const char *git)
{
	struct settings s = { 0 };
	struct fault f;
	int rc = git_config_read(path_join(git, "config"), keep_setting, &s, &f);

	if (rc >= 0 && s.per_worktree)
		rc = git_config_read(path_join(git, "config.worktree"), keep_setting, &s, &f);
	if (rc < 0 && rc != -EBADMSG && rc != -EINVAL)
		git_not_seen(&f);
	s.broken = rc < 0;
	return s;
}

static bool works_in(const char *git, const char *workspace)
{
	struct settings s = read_settings(git);
	const char *dir;

	dir = s.worktree && !s.broken ? git_canonical(git, s.worktree) : NULL;
	return dir && !strcmp(dir, workspace);
}

static long long changed_ms(const struct stat *st)
{
	return (long long)st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000;
}

/* The admin directory names a path that is gone, and our .git is the file that was there. */
static bool was_moved(const struct search *c)
{
	const char *old = git_read_text(c->git, "gitdir");
	struct stat there, back, mine;

	if (!old || !*old || lstat(path_join(c->git, old), &there) == 0 ||
		(errno != ENOENT && errno != ENOTDIR))
		return false;
	if (lstat(path_join(c->git, "gitdir"), &back) < 0 ||
		lstat(path_join(c->holder, ".git"), &mine) < 0 || !S_ISREG(mine.st_mode))
		return false;
	return llabs(changed_ms(&mine) - changed_ms(&back)) < SAME_MOMENT_MS;
}

/*
 * Does it look like the result of --separate-git-dir? An ordinary repository, a bare one or one
 * that works elsewhere does not: there the file lies, and carrel does not say how to make it
 * true.
 */
static bool may_be_separate(const struct search *c)
{
	struct settings s;

	if (!c->by || strcmp(c->git, c->common) || !strcmp(path_base(c->git), ".git") ||
		git_exists(c->git, ".git"))
		return false;
	s = read_settings(c->git);
	return !s.worktree && !s.bare && !s.broken;
}

/* "$PWD" is right for a path with any bytes in it. */
static const char *remedy(const struct search *c)
{
	return mem_printf("`git config core.worktree \"$PWD\"` in %s directory",
		strcmp(c->holder, c->dir) ? "that" : "this");
}

/*
 * git made the two at the same moment, and records nothing that points back. Renaming or
 * rewriting a file changes its ctime. Times of another file system may come from an image that
 * somebody sent.
 */
static bool was_separated(struct search *c)
{
	struct stat file, git;
	long long born;

	if (!may_be_separate(c) || !c->file || lstat(c->file, &file) < 0 ||
		!S_ISREG(file.st_mode) || file.st_nlink != 1 || stat(c->git, &git) < 0 ||
		file.st_dev != git.st_dev)
		return false;
	born = fd_born_ms(c->git);
	if (born < 0 || llabs(changed_ms(&file) - born) >= SAME_MOMENT_MS)
		return false;
	c->note = mem_printf("%s is taken for the working tree of %s, as the two were made in "
			     "one moment; if it is, %s makes it point back, if not, remove "
			     "its .git",
		strcmp(c->holder, c->dir) ? shown_name(c->holder) : "this directory",
		shown_name(c->git), remedy(c));
	return true;
}

static bool is_inside(const struct search *c)
{
	const char *own = path_join(c->holder, ".git");

	return path_within(c->common, c->holder) &&
		(strcmp(path_base(c->common), ".git") || !strcmp(c->common, own));
}

static bool is_believed(struct search *c)
{
	bool same = !strcmp(c->git, c->common);

	if (getenv("GIT_COMMON_DIR") || (!c->by && same))
		return true;
	if (git_exists(c->common, ".git"))
		return false;
	if (is_inside(c))
		return true;
	if (same)
		return works_in(c->git, c->holder) || was_separated(c);
	if (strcmp(path_parent(c->git), path_join(c->common, "worktrees")))
		return false;
	if (!c->by || git_points_back(c->git, c->holder))
		return true;
	if (!was_moved(c))
		return false;
	c->note = mem_printf("this worktree of %s was moved without git; `git worktree repair` "
			     "in it lets git know",
		shown_name(c->common));
	return true;
}

static void note_unbelieved(struct search *c)
{
	note_alone(c, c->by ? c->by : "commondir file",
		mem_printf("names %s, which does not point back",
			shown_name(c->by ? c->names : c->common)));
	if (!path_within(c->common, c->holder))
		c->note = mem_printf("%s, and boxes there do not see that repository", c->note);
	if (may_be_separate(c))
		c->note = mem_printf("%s; if it is %s directory's own, %s makes it point back",
			c->note, strcmp(c->holder, c->dir) ? "that" : "this", remedy(c));
}

/* The root that belongs to a git directory. */
static const char *root_of(const char *git)
{
	return strcmp(path_base(git), ".git") ? git : path_parent(git);
}

int project_find(const char *dir, struct project *ret, struct fault *f)
{
	const char *env = getenv("GIT_DIR"), *root;
	struct search c = { 0 };
	enum git_kind kind;
	struct stat st;
	bool reached;

	c.dir = fd_real_path(dir);
	reached = c.dir && stat(c.dir, &st) == 0;
	/* The current directory may be one that we could not enter any more. */
	if (!reached && (!c.dir || stat(dir, &st) < 0))
		return fault_set(f, errno, "find the directory %s", shown_name(dir));
	if (!S_ISDIR(st.st_mode))
		return fault_set(f, ENOTDIR, "find the directory %s", shown_name(dir));
	kind = env ? take_named(&c, env) : reached ? walk_up(&c, &st) : GIT_NONE;
	if (kind == GIT_FOUND && !is_believed(&c)) {
		note_unbelieved(&c);
		kind = GIT_BROKEN;
	}
	root = kind == GIT_FOUND     ? root_of(c.common)
		: kind == GIT_BROKEN ? root_of(c.holder)
				     : c.dir;
	*ret = (struct project){
		.root = root,
		.tree = kind == GIT_NONE ? c.dir : c.holder,
		.id = mem_strndup(hash_hex(root, strlen(root)), ID_DIGITS),
		.common = kind == GIT_FOUND ? c.common : NULL,
		.note = c.note,
	};
	return 0;
}
