/*
 * overlay/apply-stage.c - stage the contents, and keep the journal
 *
 * The journal is text: one line for the stage, and one for each operation. The path comes last
 * and its length before it, because a path may contain any byte. The journal is synced and then
 * replaced by rename(2), so it is complete or absent.
 */
#include "overlay/apply-steps.h"
#include "overlay/changeset.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { MOST_JOURNAL = 1 << 30, MOST_ATTRIBUTES = 64 * 1024 };

static const char stage_name[] = "apply-stage", tree_stage[] = ".carrel-apply-stage";
static const char journal_name[] = "apply-journal", journal_new[] = "apply-journal.new";
static const char journal_head[] = "carrel apply 1";

/* ---- the stage ---- */

/* On one mount: the kernel refuses a rename between two mounts even of one file system. */
bool apply_stage_in_tree(int tree, int state)
{
	return !fd_same_mount(tree, state);
}

int apply_stage_open(int tree, int state, bool in_tree, bool make, struct apply_stage *ret,
	struct fault *f)
{
	int dir = in_tree ? tree : state;
	const char *name = in_tree ? tree_stage : stage_name;

	if (make && mkdirat(dir, name, 0700) < 0)
		return fault_set(f, errno, "make the directory '%s' for what is applied", name);
	ret->in_tree = in_tree;
	ret->fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return ret->fd < 0 ? fault_set(f, errno, "open '%s'", name) : 0;
}

int apply_stage_remove(int tree, int state, bool in_tree, struct fault *f)
{
	return in_tree ? tree_remove(tree, tree_stage, f) : tree_remove(state, stage_name, f);
}

/* ---- contents ---- */

static int copy_user_attributes(int from, int to)
{
	static char names[MOST_ATTRIBUTES], value[MOST_ATTRIBUTES];
	ssize_t n = flistxattr(from, names, MOST_ATTRIBUTES), size;

	for (const char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
		if (!str_starts(name, "user.") || str_starts(name, "user.overlay."))
			continue;
		size = fgetxattr(from, name, value, MOST_ATTRIBUTES);
		if (size < 0 || fsetxattr(to, name, value, (size_t)size, 0) < 0)
			return -errno;
	}
	return 0;
}

static int copy_bytes(int from, int to)
{
	struct stat st;
	off_t at = 0;

	if (fstat(from, &st) < 0 || ftruncate(to, st.st_size) < 0)
		return -errno;
	while ((at = tree_next_data(from, at, st.st_size)) < st.st_size) {
		char block[65536];
		ssize_t n = pread(from, block, sizeof(block), at);

		if (n <= 0)
			/* it became shorter: perhaps the box still runs */
			return n < 0 ? -errno : -EIO;
		if (pwrite(to, block, (size_t)n, at) != n)
			return errno ? -errno : -ENOSPC;
		at += n;
	}
	return 0;
}

/* A staged file with several names. */
struct staged {
	dev_t dev;
	ino_t ino;
	const char *name;
};

static int compare_staged(const void *a, const void *b)
{
	const struct staged *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->dev < y->dev ? -1 : x->dev > y->dev;
}

/*
 * Another name of a file that is staged already; 1. By a search tree: a box can make a million
 * names of one file.
 */
static int put_link(struct apply *a, int stage, const struct apply_op *op, const char *name)
{
	const struct changed_side *box = &op->item->change->box;
	struct staged *new, **found;

	if (box->links < 2 || op->item->text)
		return 0;
	new = mem_alloc(sizeof(*new));
	*new = (struct staged){ box->dev, box->ino, name };
	found = tsearch(new, &a->names, compare_staged);
	/* A file has a limited number of names; the next is a file of its own then. */
	if (!found || *found == new || linkat(stage, (*found)->name, stage, name, 0) == 0)
		return found && *found != new;
	(*found)->name = name;
	return 0;
}

static int put_file(struct apply *a, int stage, const struct apply_op *op, const char *name)
{
	auto_close int from = -1, to = -1;
	int rc;

	if (put_link(a, stage, op, name))
		return 0;
	from = changeset_open_box(a->set, op->item->change);
	if (from < 0)
		return from;
	to = openat(stage, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	rc = op->item->text ? fd_write_all(to, op->item->text, op->item->n)
			    : copy_bytes(from, to);
	if (rc == 0)
		rc = copy_user_attributes(from, to);
	if (rc == 0 && fchmod(to, op->mode) < 0)
		rc = -errno;
	return rc;
}

int apply_stage_put(struct apply *a, int stage, size_t i, struct apply_op *op, struct fault *f)
{
	const struct changed_side *box = &op->item->change->box;
	const char *name = mem_printf("%zu", i);
	struct stat st;
	int rc;

	if (box->type == TYPE_LINK)
		rc = symlinkat(box->link, stage, name) < 0 ? -errno : 0;
	else
		rc = put_file(a, stage, op, name);
	if (rc == 0 && fstatat(stage, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		rc = -errno;
	if (rc < 0)
		return fault_set(f, -rc, "copy '%s'", str_visible(op->path));
	op->staged = st.st_ino;
	return 0;
}

/* ---- the journal ---- */

static const char *const phases[] = {
	[APPLY_BEGUN] = "begun",
	[APPLY_STAGED] = "staged",
	[APPLY_DONE] = "done",
};

static const char *first_line(bool in_tree, size_t phase)
{
	return mem_printf("%s %s %s\n", journal_head, in_tree ? "tree" : "state",
		phases[phase]);
}

int apply_journal_write(int state, bool in_tree, enum apply_phase phase,
	const struct apply *ops, struct fault *f)
{
	auto_close int fd = -1;
	struct str text = { 0 };
	int rc;

	str_add(&text, first_line(in_tree, phase));
	for (size_t i = 0; ops && i < ops->ops.n; i++) {
		const struct apply_op *o = &ops->ops.v[i];

		str_addf(&text, "%c %o %o %llu %llu %zu:%s\n", (char)o->kind,
			(unsigned int)o->mode, (unsigned int)o->old_mode,
			(unsigned long long)o->staged, (unsigned long long)o->before,
			strlen(o->path), o->path);
	}
	fd = openat(state, journal_new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		0600);
	rc = fd < 0 ? -errno : fd_write_all(fd, text.p, text.len);
	if (rc == 0 && (fsync(fd) < 0 || renameat(state, journal_new, state, journal_name) < 0))
		rc = -errno;
	return rc < 0 ? fault_set(f, -rc, "write the journal of what is applied") : 0;
}

static const char *read_op(const char *p, const char *end, struct apply_op *ret)
{
	unsigned long long staged, before;
	unsigned int mode, old_mode;
	size_t len;
	char kind;
	int n = 0;

	if (sscanf(p, "%c %o %o %llu %llu %zu:%n", &kind, &mode, &old_mode, &staged, &before,
		    &len, &n) < 6 ||
		n <= 0 || (size_t)(end - p - n) <= len || p[(size_t)n + len] != '\n' ||
		!strchr("drmpc", kind))
		return NULL;
	*ret = (struct apply_op){ .kind = (enum apply_kind)kind,
		.path = mem_strndup(p + n, len),
		.mode = mode,
		.old_mode = old_mode,
		.staged = (ino_t)staged,
		.before = (ino_t)before };
	return p + n + len + 1;
}

/* The start of the operations; NULL: the text is not a journal. */
static const char *read_head(const char *p, bool *ret_in_tree, enum apply_phase *ret_phase)
{
	for (size_t i = 0; i < 2 * ARRAY_SIZE(phases); i++) {
		const char *line = first_line(i % 2, i / 2);

		if (!str_starts(p, line))
			continue;
		*ret_in_tree = i % 2;
		*ret_phase = (enum apply_phase)(i / 2);
		return p + strlen(line);
	}
	return NULL;
}

int apply_journal_read(int state, bool *ret_in_tree, enum apply_phase *ret_phase,
	struct apply *ret, struct fault *f)
{
	int fd = openat(state, journal_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	const char *p, *end;
	size_t n;

	if (fd < 0)
		return errno == ENOENT ? 0 : fault_set(f, errno, "open the journal of apply");
	p = fd_read_bytes(fd, MOST_JOURNAL, &n);
	if (!p)
		return fault_set(f, errno, "read the journal of apply");
	end = p + n;
	p = read_head(p, ret_in_tree, ret_phase);
	while (p && p < end) {
		struct apply_op op;

		p = read_op(p, end, &op);
		if (p)
			vec_push(&ret->ops, op);
	}
	return p ? 1 : fault_set(f, EBADMSG, "read the journal of apply");
}

int apply_journal_remove(int state, struct fault *f)
{
	if (unlinkat(state, journal_name, 0) < 0 && errno != ENOENT)
		return fault_set(f, errno, "remove the journal of apply");
	return 0;
}

/* ---- tests ---- */

#ifdef CARREL_TEST_HOOKS
/*
 * CARREL_TEST_FAIL=apply:N makes the Nth step of apply fail, CARREL_TEST_STOP=apply:N ends the
 * process there as a kill would. Each step of the journal, the stage and the tree counts.
 */
int apply_test_step(struct fault *f)
{
	static unsigned int number;
	const char *fail = getenv("CARREL_TEST_FAIL"), *stop = getenv("CARREL_TEST_STOP");
	const char *here = mem_printf("apply:%u", ++number);

	if (stop && !strcmp(stop, here))
		raise(SIGKILL);
	return fail && !strcmp(fail, here) ? fault_set(f, EIO, "fail on purpose") : 0;
}
#else
int apply_test_step(struct fault *f)
{
	(void)f;
	return 0;
}
#endif
