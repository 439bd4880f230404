#include "run/beside.h"
#include "plan/plan.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	MOST_ENTRIES = 1000,
	MOST_NAMED = 5,
	INSIDE = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
};

struct search {
	const struct plan *plan;
	const char *dir;  /* the current directory, */
	const char *up;   /* its path from the workspace: "../" */
	bool ordinary;    /* everything in it counts, not only what has a .git */
	size_t looked, n; /* entries that were read; entries that were found */
	bool worktree;    /* one of them is a repository */
	struct str list;
};

/* The scratch directory itself, or a directory made in it on the way to the workspace. */
static const struct place *scratch_around(const struct plan *p, const char *dir)
{
	const struct place *found = NULL;

	vec_each(place, &p->places)
		if (place->kind == PLACE_SCRATCH && path_within(dir, place->target))
			found = place; /* the last is the deepest */
	return found;
}

/* Is it a place of the plan, or a parent of one? */
static bool is_planned(const struct plan *p, const char *path)
{
	vec_each(place, &p->places)
		if (path_within(place->target, path))
			return true;
	return false;
}

/* NULL: nothing of git's. */
static const char *git_name(int dir, const char *name)
{
	auto_close int fd = fd_open2(dir, mem_printf("%s/.git", name),
		O_PATH | O_NOFOLLOW | O_CLOEXEC, INSIDE);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	return S_ISREG(st.st_mode)    ? "a git worktree"
		: S_ISDIR(st.st_mode) ? "a git repository"
				      : NULL;
}

static void visit_name(struct search *s, int dir, const char *name)
{
	const char *git;

	if (name[0] == '.' || ++s->looked > MOST_ENTRIES ||
		is_planned(s->plan, path_join(s->dir, name)))
		return;
	git = git_name(dir, name);
	/* The default directory of go's modules. */
	if (!git && (!s->ordinary || (!strcmp(name, "go") && !strcmp(s->dir, s->plan->home))))
		return;
	s->worktree |= git && strstr(git, "worktree");
	if (s->n++ >= MOST_NAMED)
		return;
	str_addf(&s->list, "%s%s%s", s->n > 1 ? ", " : "", s->up, str_visible(name));
	if (git)
		str_addf(&s->list, " (%s)", git);
}

static void look_in(struct search *s, int root)
{
	char entries[4096] __attribute__((aligned(8)));
	auto_close int fd =
		fd_open2(root, s->dir + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC, INSIDE);
	long n;

	while (fd >= 0 && (n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n && s->looked <= MOST_ENTRIES;) {
			const struct dirent *e = (const void *)(entries + at);

			visit_name(s, fd, mem_strdup(e->d_name));
			at += e->d_reclen;
		}
}

void beside_note(const struct plan *p, int root, note_vec *notes)
{
	struct search s = { .plan = p, .dir = path_parent(p->workspace), .up = "../" };

	for (; root >= 0 && s.dir[1]; s.dir = path_parent(s.dir)) {
		const struct place *scratch = scratch_around(p, s.dir);
		bool last = scratch && !strcmp(scratch->target, s.dir);

		if (!scratch)
			break;
		/* In a home and in /tmp, programs leave many files that nobody needs. */
		s.ordinary = !last || (!strcmp(s.up, "../") && !strcmp(s.dir, p->home));
		look_in(&s, root);
		if (last)
			break;
		s.up = mem_printf("../%s", s.up);
	}
	if (!s.n)
		return;
	if (s.n > MOST_NAMED)
		str_addf(&s.list, " and %zu more", s.n - MOST_NAMED);
	vec_push(notes,
		mem_printf("made beside the workspace, and gone with the box: %s", s.list.p));
	vec_push(notes,
		"  what should last goes into the workspace, or where --mount DIR::rw leads");
	if (s.worktree)
		vec_push(notes, "  `git worktree prune` removes what git still knows of it");
}
