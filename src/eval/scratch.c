/*
 * eval/scratch.c - where workspaces are while attempts run
 *
 *	$XDG_STATE_HOME/carrel/work/<16 hex digits>/{lock,0/,1/,...}
 *
 * The path is what an agent sees as its working directory, so it says nothing of evals. The
 * run that made it holds a lock; one whose lock is free was left by a run that was killed, and
 * the next one removes it.
 */
#include "eval/eval-run.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static void remove_stale(int work)
{
	tree_names names = { 0 };
	struct fault f;

	if (tree_list(work, &names) < 0)
		return;
	vec_each(name, &names) {
		auto_close int lock = -1;

		if (strlen(*name) != 16 || (*name)[strspn(*name, "0123456789abcdef")])
			continue;
		lock = copy_open_file(work, mem_printf("%s/lock", *name));
		if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
			(void)tree_remove(work, *name, &f);
	}
}

int scratch_make(const char **ret, int *ret_lock, struct fault *f)
{
	const char *top = xdg_state() ? path_join(xdg_state(), "work") : NULL, *name, *real;
	auto_close int work = -1, dir = -1, lock = -1;
	unsigned long long random;
	int rc;

	if (!top)
		return fault_set(f, 0, "there is no state directory: set HOME");
	rc = xdg_make(top, f);
	if (rc < 0)
		return rc;
	work = openat(AT_FDCWD, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (work < 0 || getrandom(&random, sizeof(random), 0) != sizeof(random))
		return fault_set(f, errno, "open %s", str_visible(top));
	remove_stale(work);
	name = mem_printf("%016llx", random);
	if (mkdirat(work, name, 0700) < 0)
		return fault_set(f, errno, "make %s/%s", str_visible(top), name);
	dir = openat(work, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	lock = dir < 0 ? -1 : openat(dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
		return fault_set(f, errno, "lock %s/%s", str_visible(top), name);
	real = fd_real_path(path_join(top, name));
	if (!real)
		return fault_set(f, errno, "find %s/%s", str_visible(top), name);
	*ret = real;
	*ret_lock = take_fd(&lock);
	return 0;
}

void scratch_remove(const char *path, int lock)
{
	struct fault f;

	(void)tree_remove(AT_FDCWD, path, &f);
	fd_close(&lock);
}
