#include "run/lookups.h"
#include "plan/plan.h"
#include "base/fd.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

static bool was_read(int root, const char *path)
{
	auto_close int fd = fd_open2(root, path + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && (st.st_atim.tv_sec || st.st_atim.tv_nsec);
}

const char *lookups_missed(const struct plan *p, int root)
{
	vec_each(place, &p->places)
		if (root >= 0 && place->watched && was_read(root, place->target))
			return "this box had no network, and a program seems to have looked up "
			       "a name; to let it reach a host: carrel run --allow HOST ...";
	return NULL;
}
