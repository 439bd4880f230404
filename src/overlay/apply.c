/*
 * overlay/apply.c - make the changes, undo them, resume after a kill
 *
 * The tree and the stage alone show whether an operation was made:
 *
 *	REMOVE	what was there lies on the stage by the operation's number
 *	RMDIR	there is no directory of that name
 *	MKDIR	there is one (there was none before, or the list would not say so)
 *	PUT	what lies on the stage by its number is not what was staged: it was exchanged
 *		for what stood there, or it is gone, as nothing did
 *	CHMOD	the mode is the new one
 *
 * So from any point the operations can be finished or undone.
 */
#include "overlay/apply.h"
#include "overlay/apply-steps.h"
#include "overlay/changeset.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct run {
	int tree, stage;
	const struct apply_op *ops;
	size_t n;
};

struct spot {
	int dir; /* where the operation takes place */
	const char *name;
	char staged[24];
};

static int rename_with(int from, const char *name, int to, const char *as, unsigned int flags)
{
	return syscall(SYS_renameat2, from, name, to, as, flags) < 0 ? -errno : 0;
}

/* dir is -1 if the directory is gone, because a later operation has removed it. */
static int open_spot(const struct run *r, size_t i, struct spot *ret)
{
	snprintf(ret->staged, sizeof(ret->staged), "%zu", i);
	ret->dir = apply_parent(r->tree, r->ops[i].path, &ret->name);
	return ret->dir < 0 && errno != ENOENT && errno != ENOTDIR ? -errno : 0;
}

/* 0: nothing is there. */
static ino_t inode_at(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_ino;
}

static bool is_dir(const struct spot *s)
{
	struct stat st;

	return s->dir >= 0 && fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISDIR(st.st_mode);
}

/* ---- one operation ---- */

/* By a descriptor of the file itself, so that no link can take its place. */
static int set_mode(const struct spot *s, mode_t mode)
{
	auto_close int fd = openat(s->dir, s->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return -ESTALE;
	return chmod(mem_printf("/proc/self/fd/%d", fd), mode) < 0 ? -errno : 0;
}

/* Move it to the stage. If that was not the file that apply_plan() saw, move it back. */
static int do_remove(const struct run *r, const struct apply_op *op, const struct spot *s)
{
	int rc = rename_with(s->dir, s->name, r->stage, s->staged, RENAME_NOREPLACE);

	if (rc < 0 || inode_at(r->stage, s->staged) == op->before)
		return rc;
	rc = rename_with(r->stage, s->staged, s->dir, s->name, RENAME_NOREPLACE);
	return rc < 0 ? rc : -ESTALE;
}

static int do_put(const struct run *r, const struct apply_op *op, const struct spot *s)
{
	unsigned int how = op->before ? RENAME_EXCHANGE : RENAME_NOREPLACE;
	int rc = rename_with(r->stage, s->staged, s->dir, s->name, how);

	/* It was removed or created meanwhile: not what apply_plan() saw. */
	if (rc == -ENOENT || rc == -EEXIST)
		return -ESTALE;
	if (rc < 0 || !op->before || inode_at(r->stage, s->staged) == op->before)
		return rc;
	rc = rename_with(r->stage, s->staged, s->dir, s->name, RENAME_EXCHANGE);
	return rc < 0 ? rc : -ESTALE;
}

static int do_op(const struct run *r, const struct apply_op *op, const struct spot *s)
{
	switch (op->kind) {
	case APPLY_REMOVE:
		return do_remove(r, op, s);
	case APPLY_RMDIR:
		/* Files that the user has put there since stay, and so does the directory. */
		return unlinkat(s->dir, s->name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY
			? -errno
			: 0;
	case APPLY_MKDIR:
		return mkdirat(s->dir, s->name, 0700) < 0 ? -errno : 0;
	case APPLY_PUT:
		return do_put(r, op, s);
	case APPLY_CHMOD:
		return set_mode(s, op->mode);
	}
	return -EINVAL;
}

static bool has_mode(const struct spot *s, mode_t mode)
{
	struct stat st;

	return s->dir >= 0 && fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		(st.st_mode & 07777) == mode;
}

static bool was_done(const struct run *r, const struct apply_op *op, const struct spot *s)
{
	switch (op->kind) {
	case APPLY_REMOVE:
		return inode_at(r->stage, s->staged) != 0;
	case APPLY_RMDIR:
		return !is_dir(s);
	case APPLY_MKDIR:
		return is_dir(s);
	case APPLY_PUT:
		return inode_at(r->stage, s->staged) != op->staged;
	case APPLY_CHMOD:
		return has_mode(s, op->mode);
	}
	return false;
}

static int undo_op(const struct run *r, const struct apply_op *op, const struct spot *s)
{
	int rc;

	switch (op->kind) {
	case APPLY_REMOVE:
		return rename_with(r->stage, s->staged, s->dir, s->name, RENAME_NOREPLACE);
	case APPLY_RMDIR:
		rc = mkdirat(s->dir, s->name, 0700) < 0 ? -errno : 0;
		return rc < 0 ? rc : set_mode(s, op->old_mode);
	case APPLY_MKDIR:
		return unlinkat(s->dir, s->name, AT_REMOVEDIR) < 0 ? -errno : 0;
	case APPLY_PUT:
		return op->before
			? rename_with(r->stage, s->staged, s->dir, s->name, RENAME_EXCHANGE)
			: rename_with(s->dir, s->name, r->stage, s->staged, RENAME_NOREPLACE);
	case APPLY_CHMOD:
		return set_mode(s, op->old_mode);
	}
	return -EINVAL;
}

/* ---- all of them ---- */

static int no_change(const struct apply_op *op, int err, struct fault *f)
{
	fault_set(f, err == ESTALE ? 0 : err, "change '%s'%s", str_visible(op->path),
		err == ESTALE ? ", which somebody else has just changed" : "");
	return fault_fix(f, "Nothing was applied. Try again.");
}

/* Do the operations that were not made yet, in order. */
static int go_on(const struct run *r, struct fault *f)
{
	for (size_t i = 0; i < r->n; i++) {
		struct spot s = { .dir = -1 };
		int rc = apply_test_step(f);

		if (rc < 0)
			return rc;
		rc = open_spot(r, i, &s);
		if (rc == 0 && !was_done(r, &r->ops[i], &s))
			rc = do_op(r, &r->ops[i], &s);
		fd_close(&s.dir);
		if (rc < 0)
			return no_change(&r->ops[i], -rc, f);
	}
	return 0;
}

/* Undo the operations that were made, the last first. */
static int go_back(const struct run *r, struct fault *f)
{
	for (size_t i = r->n; i-- > 0;) {
		struct spot s = { .dir = -1 };
		int rc = open_spot(r, i, &s);

		if (rc == 0 && was_done(r, &r->ops[i], &s))
			rc = undo_op(r, &r->ops[i], &s);
		fd_close(&s.dir);
		if (rc < 0)
			return fault_set(f, -rc, "undo the change of '%s'",
				str_visible(r->ops[i].path));
	}
	return 0;
}

/*
 * The journal says that everything is staged: finish, or undo everything. *ret_stuck: neither
 * was possible; the next call needs the stage and the journal.
 */
static int finish_journal(const struct run *r, bool *ret_stuck, struct fault *f)
{
	struct fault undo = { 0 };
	int rc = go_on(r, f);

	*ret_stuck = false;
	if (rc == 0 || go_back(r, &undo) == 0)
		return rc;
	*ret_stuck = true;
	*f = undo;
	return fault_fix(f,
		"The changes were applied in part. What they replaced is kept; make that path "
		"writable, and the next `carrel apply` of this box goes on.");
}

/* From here on only the stage has to be removed. */
static int clean_up(int tree, int state, bool in_tree, struct fault *f)
{
	int rc = apply_test_step(f);

	if (rc == 0)
		rc = apply_journal_write(state, in_tree, APPLY_DONE, NULL, f);
	if (rc == 0)
		rc = apply_test_step(f);
	if (rc == 0)
		rc = apply_stage_remove(tree, state, in_tree, f);
	if (rc == 0)
		rc = apply_test_step(f);
	return rc < 0 ? rc : apply_journal_remove(state, f);
}

static int stage_all(struct apply *a, int stage, struct fault *f)
{
	for (size_t i = 0; i < a->ops.n; i++) {
		int rc = apply_test_step(f);

		if (rc == 0 && a->ops.v[i].kind == APPLY_PUT)
			rc = apply_stage_put(a, stage, i, &a->ops.v[i], f);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int run_staged(struct apply *a, const struct apply_stage *stage, bool *ret_stuck,
	struct fault *f)
{
	const struct run r = { a->set->lower, stage->fd, a->ops.v, a->ops.n };
	int rc = stage_all(a, stage->fd, f);

	if (rc == 0)
		rc = apply_test_step(f);
	if (rc == 0)
		rc = apply_journal_write(a->state, stage->in_tree, APPLY_STAGED, a, f);
	return rc < 0 ? rc : finish_journal(&r, ret_stuck, f);
}

int apply_run(struct apply *a, struct fault *f)
{
	int tree = a->set->lower, rc;
	struct apply_stage stage = { .fd = -1 };
	bool in_tree = apply_stage_in_tree(tree, a->state), stuck = false;
	struct fault cleaning = { 0 };

	if (a->count[APPLY_CONFLICT])
		BUG("apply_run with %zu conflicts", a->count[APPLY_CONFLICT]);
	if (a->ops.n == 0)
		return 0;
	rc = apply_journal_write(a->state, in_tree, APPLY_BEGUN, NULL, f);
	if (rc == 0)
		rc = apply_test_step(f);
	if (rc == 0)
		rc = apply_stage_open(tree, a->state, in_tree, true, &stage, f);
	if (rc == 0)
		rc = run_staged(a, &stage, &stuck, f);
	fd_close(&stage.fd);
	if (stuck)
		return rc;
	if (rc == 0)
		return clean_up(tree, a->state, in_tree, f);
	(void)clean_up(tree, a->state, in_tree, &cleaning);
	return rc;
}

/* The stage is complete, because nothing was removed from it yet. */
static int recover_staged(const struct apply *left, int tree, int state, bool in_tree,
	enum apply_found *ret, struct fault *f)
{
	struct apply_stage stage = { .fd = -1 };
	bool stuck = false;
	int rc = apply_stage_open(tree, state, in_tree, false, &stage, f);
	struct run r = { tree, stage.fd, left->ops.v, left->ops.n };

	if (rc < 0)
		return rc;
	rc = finish_journal(&r, &stuck, f);
	close(stage.fd);
	*ret = rc < 0 ? APPLY_UNDONE : APPLY_FINISHED;
	return stuck ? rc : 0;
}

int apply_recover(int tree, int state, enum apply_found *ret, struct fault *f)
{
	enum apply_phase phase;
	struct apply left = { 0 };
	bool in_tree;
	int rc = apply_journal_read(state, &in_tree, &phase, &left, f);

	*ret = APPLY_NOTHING;
	if (rc <= 0)
		return rc;
	if (phase == APPLY_BEGUN)
		*ret = APPLY_UNDONE;
	else if (phase == APPLY_DONE)
		*ret = APPLY_FINISHED;
	else
		rc = recover_staged(&left, tree, state, in_tree, ret, f);
	return rc < 0 ? rc : clean_up(tree, state, in_tree, f);
}
