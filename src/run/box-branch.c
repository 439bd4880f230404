/*
 * run/box-branch.c - bring a box's commits to the repository as a branch
 *
 * Theory of operation. The git directory that the box saw is its layer on top of the host's.
 * Nothing in that layer is trusted: config, hooks, alternates, index and worktree files are
 * ignored. Three things are read from it:
 *
 *	- HEAD, and the ref that it names: a hash, found in the layer or else on the host;
 *	- files of objects that the host does not have, by the names that git gives them;
 *	- the changed files of the working tree, from the change set.
 *
 * carrel makes a repository in the box's state, with links to those object files and with the
 * host's repository as its alternate. There `git fast-import` commits the uncommitted changes.
 * The user's repository then fetches the branch and checks every object (fsckObjects).
 */
#include "run/box-branch.h"
#include "run/git-program.h"
#include "git/git-files.h"
#include "git/git-head.h"
#include "host/host-program.h"
#include "overlay/changeset.h"
#include "overlay/tree.h"
#include "state/boxes.h"
#include "state/workspace.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_REFS = 64 << 20 };

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static const char scratch_name[] = "branch.git";

struct branch {
	const struct workspace *w;
	const char *name;
	const char *git;               /* the program */
	const struct changeset *layer; /* of the git directory */
	const char *common;            /* of the git directory, below the layer's root; or "" */
	const char *own;               /* of this working tree: where HEAD is */
	const char *objects;           /* the host's, absolute */
	int state;                     /* the box's directory */
	const char *scratch;           /* our repository, absolute */
	const char *tip;               /* the box's HEAD, a hash */
};

/* ---- running git ---- */

#define RUN_GIT(b, dir, in, ret, ...)                                                       \
	git_program_run((b)->git, dir, (const char *const[]){ __VA_ARGS__, NULL }, in, ret, \
		NULL)

static int git_failed(const char *what, const char *said, int code, struct fault *f)
{
	size_t n = strcspn(said, "\n");

	if (code < 0)
		return fault_set(f, -code, "%s", what);
	return fault_set(f, 0, "%s: git says: %s", what, str_visible(mem_strndup(said, n)));
}

/* ---- what the box saw ---- */

/* A file of the git directory as the box saw it, or NULL. */
static const char *read_seen(const void *ctx, bool own, const char *name)
{
	const struct branch *b = ctx;
	const char *dir = own ? b->own : b->common, *path = *dir ? path_join(dir, name) : name;
	struct stat st;
	int fd;

	if (fstatat(b->layer->upper, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		!S_ISREG(st.st_mode))
		return NULL; /* deleted, or not a file that git has */
	fd = fd_open2(b->layer->upper, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, BENEATH);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		fd = fd_open2(b->layer->lower, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC,
			BENEATH);
	return fd < 0 ? NULL : fd_read_open(fd, MOST_REFS);
}

/* The hash that the box's HEAD leads to, or NULL. */
static const char *find_tip(const struct branch *b)
{
	return git_head(read_seen, b);
}

/* ---- our repository ---- */

static int put_text(int dir, const char *name, const char *text)
{
	auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int make_scratch(const struct branch *b, int *ret_dir, struct fault *f)
{
	static const char *const dirs[] = { "objects", "objects/info", "objects/pack", "refs",
		"refs/heads" };
	const char *config = strlen(b->tip) == 40
		? "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
		: "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
		  "[extensions]\n\tobjectformat = sha256\n";
	auto_close int dir = -1;
	int rc = tree_remove(b->state, scratch_name, f);

	if (rc < 0)
		return rc;
	if (mkdirat(b->state, scratch_name, 0700) == 0)
		dir = openat(b->state, scratch_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = dir < 0 ? -errno : 0;
	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(dirs); i++)
		rc = mkdirat(dir, dirs[i], 0700) < 0 ? -errno : 0;
	if (rc == 0)
		rc = put_text(dir, "HEAD", "ref: refs/heads/box\n");
	if (rc == 0)
		rc = put_text(dir, "config", config);
	if (rc == 0)
		rc = put_text(dir, "objects/info/alternates", mem_printf("%s\n", b->objects));
	if (rc == 0)
		rc = put_text(dir, "refs/heads/box", mem_printf("%s\n", b->tip));
	if (rc < 0)
		return fault_set(f, -rc, "make a repository in %s", boxes_shown(b->w->box));
	*ret_dir = take_fd(&dir);
	return 0;
}

static bool is_hex(const char *name, size_t n)
{
	return strspn(name, "0123456789abcdef") == n && strlen(name) == n;
}

static bool is_pack(const char *name)
{
	return str_starts(name, "pack-") && (str_ends(name, ".pack") || str_ends(name, ".idx"));
}

/* The object files of one directory of the layer, by name and only if they are files. */
static int link_objects(const struct branch *b, int scratch, const char *sub, size_t hash)
{
	const char *from = path_join(*b->common ? b->common : ".", path_join("objects", sub));
	const char *to = path_join("objects", sub);
	auto_close int dir =
		fd_open2(b->layer->upper, from, O_RDONLY | O_DIRECTORY | O_CLOEXEC, BENEATH);
	tree_names names = { 0 };
	int rc = dir < 0 ? 0 : tree_list(dir, &names);

	if (names.n && mkdirat(scratch, to, 0700) < 0 && errno != EEXIST)
		return -errno;
	vec_each(name, &names) {
		struct stat st;

		if (rc < 0)
			break;
		if (!(hash ? is_hex(*name, hash - 2) : is_pack(*name)) ||
			fstatat(dir, *name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		rc = linkat(dir, *name, scratch, path_join(to, *name), 0) < 0 ? -errno : 0;
	}
	return rc;
}

static int link_all_objects(const struct branch *b, int scratch, struct fault *f)
{
	int rc = link_objects(b, scratch, "pack", 0);

	for (unsigned int i = 0; rc == 0 && i < 256; i++)
		rc = link_objects(b, scratch, mem_printf("%02x", i), strlen(b->tip));
	return rc < 0 ? fault_set(f, -rc, "take over the objects of the box's repository") : 0;
}

/* ---- the uncommitted rest, for git fast-import ---- */

static void add_quoted(struct str *out, const char *path)
{
	str_addc(out, '"');
	for (; *path; path++)
		if (*path == '"' || *path == '\\')
			str_addf(out, "\\%c", *path);
		else if ((unsigned char)*path < ' ')
			str_addf(out, "\\%03o", (unsigned char)*path);
		else
			str_addc(out, *path);
	str_addc(out, '"');
}

static int write_str(int fd, const struct str *s)
{
	return fd_write_all(fd, s->p, s->len);
}

static int write_content(int out, const struct changeset *s, const struct changed *c)
{
	auto_close int in = changeset_open_box(s, c);
	unsigned long long left = c->box.size;
	char block[65536];

	if (in < 0)
		return in;
	while (left) {
		size_t want = left < sizeof(block) ? (size_t)left : sizeof(block);
		ssize_t n = read(in, block, want);
		int rc = n > 0 ? fd_write_all(out, block, (size_t)n) : n < 0 ? -errno : -EIO;

		if (rc < 0)
			return rc;
		left -= (size_t)n;
	}
	return fd_write_all(out, "\n", 1);
}

static int write_change(int out, const struct changeset *s, const struct changed *c)
{
	struct str line = { 0 };
	int rc;

	if (c->kind == CHANGED_DELETED || (c->what & WHAT_TYPE)) {
		str_add(&line, "D ");
		add_quoted(&line, c->path);
		str_addc(&line, '\n');
	}
	if (c->box.type == TYPE_FILE || c->box.type == TYPE_LINK) {
		str_addf(&line, "M %s inline ",
			c->box.type == TYPE_LINK     ? "120000"
				: c->box.mode & 0111 ? "100755"
						     : "100644");
		add_quoted(&line, c->path);
		str_addf(&line, "\ndata %llu\n",
			c->box.type == TYPE_LINK ? (unsigned long long)strlen(c->box.link)
						 : c->box.size);
	}
	if (c->box.type == TYPE_LINK)
		str_addf(&line, "%s\n", c->box.link);
	rc = line.len ? write_str(out, &line) : 0;
	return rc < 0 || c->box.type != TYPE_FILE ? rc : write_content(out, s, c);
}

/* The added paths that git would ignore: NUL-terminated names, one after the other. */
static int find_ignored(const struct branch *b, int scratch, const char **ret, size_t *ret_n)
{
	auto_close int in =
		openat(scratch, "paths", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const char *said;
	int rc = in < 0 ? -errno : 0;

	vec_each(c, &b->w->changes.all)
		if (rc == 0 && c->kind == CHANGED_ADDED && !c->git)
			rc = fd_write_all(in, c->path, strlen(c->path) + 1);
	if (rc < 0 || lseek(in, 0, SEEK_SET) < 0)
		return rc < 0 ? rc : -errno;
	rc = RUN_GIT(b, b->w->root, in, &said, "check-ignore", "-z", "--stdin");
	*ret = said;
	*ret_n = 0;
	while (rc == 0 && said[*ret_n])
		*ret_n += strlen(said + *ret_n) + 1;
	return rc < 0 ? rc : 0;
}

/* Both lists have the same order, so only the next one can match. */
static bool is_ignored(const char **next, const char *end, const struct changed *c)
{
	if (c->kind != CHANGED_ADDED || *next == end || strcmp(*next, c->path) != 0)
		return false;
	*next += strlen(*next) + 1;
	return true;
}

static int write_rest(const struct branch *b, int out, const char *ignored, size_t n)
{
	const char *next = ignored;
	struct str head = { 0 };
	const char *text = mem_printf("what the box %s had not committed\n", b->w->box);
	int rc;

	str_addf(&head, "commit refs/heads/box\ncommitter %s <%s@carrel> %lld +0000\n",
		b->w->box, b->w->box, b->w->ended ? b->w->ended : (long long)time(NULL));
	str_addf(&head, "data %zu\n%s\nfrom %s\n", strlen(text), text, b->tip);
	rc = write_str(out, &head);
	vec_each(c, &b->w->changes.all)
		if (rc == 0 && !c->git && !c->unreadable && !c->unlisted &&
			!is_ignored(&next, ignored + n, c))
			rc = write_change(out, &b->w->changes, c);
	return rc;
}

static const char *tree_of(const struct branch *b, const char *commit)
{
	const char *said;

	return RUN_GIT(b, b->scratch, -1, &said, "rev-parse", "--verify", "-q",
		       mem_printf("%s^{tree}", commit)) == 0
		? said
		: NULL;
}

/* Make one more commit, unless everything was committed. */
static int commit_rest(const struct branch *b, int scratch, bool *ret_rest, struct fault *f)
{
	auto_close int stream =
		openat(scratch, "stream", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const char *ignored = "", *said, *before, *after;
	size_t n = 0;
	int rc = stream < 0 ? -errno : find_ignored(b, scratch, &ignored, &n);

	if (rc == 0)
		rc = write_rest(b, stream, ignored, n);
	if (rc == 0 && lseek(stream, 0, SEEK_SET) < 0)
		rc = -errno;
	if (rc < 0)
		return fault_set(f, -rc, "write down what was not committed");
	rc = RUN_GIT(b, b->scratch, stream, &said, "fast-import", "--quiet", "--force");
	if (rc != 0)
		return git_failed("commit what the box had not committed", said, rc, f);
	before = tree_of(b, b->tip);
	after = tree_of(b, "refs/heads/box");
	if (!before || !after)
		return fault_set(f, 0, "the commit %s of the box cannot be read", b->tip);
	*ret_rest = strcmp(before, after) != 0;
	if (*ret_rest)
		return 0;
	rc = RUN_GIT(b, b->scratch, -1, &said, "update-ref", "refs/heads/box", b->tip);
	return rc != 0 ? git_failed("go back to the box's last commit", said, rc, f) : 0;
}

/* ---- into the user's repository ---- */

static int count_commits(const struct branch *b, size_t *ret, struct fault *f)
{
	const char *said;
	unsigned long n = 0;
	int rc = RUN_GIT(b, b->w->root, -1, &said, "rev-list", "--count",
		mem_printf("refs/heads/%s", b->name), "--not",
		mem_printf("--exclude=%s", b->name), "--branches", "--remotes", "--tags",
		"HEAD");

	if (rc != 0 || sscanf(said, "%lu", &n) != 1)
		return git_failed("count the commits of the box", said, rc, f);
	*ret = n;
	return 0;
}

static int check_name(const struct branch *b, struct fault *f)
{
	const char *said, *ref = mem_printf("refs/heads/%s", b->name);

	if (b->name[0] == '-' ||
		RUN_GIT(b, b->w->root, -1, &said, "check-ref-format", ref) != 0)
		return fault_set(f, 0, "'%s' cannot be the name of a branch",
			str_visible(b->name));
	if (RUN_GIT(b, b->w->root, -1, &said, "show-ref", "--verify", "--quiet", ref) == 0) {
		fault_set(f, EEXIST, "make the branch '%s'", b->name);
		return fault_fix(f, "Choose another name, or remove that branch first.");
	}
	return 0;
}

static int fetch(const struct branch *b, struct box_branch *ret, struct fault *f)
{
	const char *said;
	int rc = RUN_GIT(b, b->w->root, -1, &said, "-c", "fetch.fsckObjects=true", "-c",
		"protocol.file.allow=always", "fetch", "-q", "--no-tags",
		"--no-write-fetch-head", "--no-auto-maintenance", "--recurse-submodules=no",
		b->scratch, mem_printf("refs/heads/box:refs/heads/%s", b->name));

	if (rc != 0)
		return git_failed("fetch what the box did", said, rc, f);
	rc = RUN_GIT(b, b->w->root, -1, &said, "rev-parse", "--verify",
		mem_printf("refs/heads/%s", b->name));
	if (rc != 0)
		return git_failed("look at the new branch", said, rc, f);
	ret->commit = mem_strndup(said, strcspn(said, "\n"));
	return count_commits(b, &ret->commits, f);
}

/* Find the git directory and the box's layer that has it. */
static int find_repository(struct branch *b, struct fault *f)
{
	const struct workspace *w = b->w;
	const char *top = w->git ? w->git : w->root, *dir = git_dir_of(w->root), *git, *common;

	if (!dir || git_look(w->root, dir, &git, &common) != GIT_FOUND) {
		fault_set(f, 0, "%s is not the top of a git repository", str_visible(w->root));
		return fault_fix(f, "`carrel apply` without --as-branch takes the files.");
	}
	if (!path_within(git, top) || !path_within(common, top) || strchr(common, '\n'))
		return fault_set(f, 0,
			"the repository of %s is elsewhere: the box had no copy "
			"of it",
			str_visible(w->root));
	b->layer = w->git ? &w->repository : &w->changes;
	b->own = path_below(git, top);
	b->common = path_below(common, top);
	b->objects = path_join(common, "objects");
	return 0;
}

static int make_branch(struct branch *b, int *scratch, struct box_branch *ret, struct fault *f)
{
	int rc = find_repository(b, f);

	if (rc == 0)
		rc = check_name(b, f);
	if (rc < 0)
		return rc;
	b->tip = find_tip(b);
	if (!b->tip)
		return fault_set(f, 0, "the box's repository has no commit that HEAD leads to");
	rc = make_scratch(b, scratch, f);
	if (rc == 0)
		rc = link_all_objects(b, *scratch, f);
	if (rc == 0)
		rc = commit_rest(b, *scratch, &ret->rest, f);
	return rc < 0 ? rc : fetch(b, ret, f);
}

int box_branch_make(const struct workspace *w, const char *name, struct box_branch *ret,
	struct fault *f)
{
	auto_close int state = boxes_directory(w->box, false, f), scratch = -1;
	struct branch b = { .w = w, .name = name, .state = state };
	struct fault ignored = { 0 };
	int rc;

	if (state < 0)
		return state;
	b.scratch = path_join(boxes_path(w->box), scratch_name);
	b.git = program_find("git", w->root);
	if (!b.git)
		return fault_set(f, 0, "--as-branch needs git, and there is none on the PATH");
	rc = make_branch(&b, &scratch, ret, f);
	(void)tree_remove(state, scratch_name, &ignored);
	return rc;
}
