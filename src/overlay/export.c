#include "overlay/export.h"
#include "overlay/changeset.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_link(const struct changed *c, int dir, const char *name)
{
	return symlinkat(c->box.link, dir, name) < 0 ? -errno : 1;
}

/* Its contents come later, so its owner keeps write permission. */
static int copy_dir(const struct changed *c, int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return fchmodat(dir, name, (c->box.mode & 0777) | 0700, AT_SYMLINK_NOFOLLOW) < 0 &&
			errno != EOPNOTSUPP
		? -errno
		: 1;
}

static int copy_file(const struct changeset *s, const struct changed *c, int dir,
	const char *name)
{
	auto_close int from = changeset_open_box(s, c);
	int rc = from < 0 ? from : tree_copy_open(from, dir, name);

	return rc < 0 ? rc : 1;
}

int export_one(const struct changeset *s, const struct changed *c, int to, struct fault *f)
{
	auto_close int dir = -1;
	const char *name = path_base(c->path);
	int rc;

	if (c->kind == CHANGED_DELETED || c->box.type == TYPE_OTHER || !*name ||
		(c->path[0] == '.' && !c->path[1]))
		return 0;
	dir = tree_make_parent(to, c->path);
	if (dir < 0)
		rc = -errno;
	else if (c->box.type == TYPE_LINK)
		rc = copy_link(c, dir, name);
	else
		rc = c->box.type == TYPE_DIR ? copy_dir(c, dir, name)
					     : copy_file(s, c, dir, name);
	return rc < 0 ? fault_set(f, -rc, "copy '%s'", str_visible(c->path)) : rc;
}
