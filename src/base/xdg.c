#include "base/xdg.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* $NAME/carrel, or ~/STANDARD/carrel. */
static const char *own_dir(const char *name, const char *standard)
{
	const char *dir = getenv(name), *home = getenv("HOME");

	if (dir && dir[0] == '/')
		return path_clean(path_join(dir, "carrel"));
	if (!standard || !home || home[0] != '/')
		return NULL;
	return path_clean(path_join(path_join(home, standard), "carrel"));
}

const char *xdg_config(void)
{
	return own_dir("XDG_CONFIG_HOME", ".config");
}

const char *xdg_state(void)
{
	return own_dir("XDG_STATE_HOME", ".local/state");
}

const char *xdg_runtime(void)
{
	return own_dir("XDG_RUNTIME_DIR", NULL);
}

const char *xdg_runtime_problem(void)
{
	const char *dir = xdg_runtime();
	struct stat st;

	if (!dir)
		return "XDG_RUNTIME_DIR is not set";
	dir = path_parent(dir);
	if (stat(dir, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return mem_printf("XDG_RUNTIME_DIR is %s, which is not there",
			str_visible(dir));
	return NULL;
}

static int make_all(const char *dir, struct fault *f)
{
	int rc;

	if (mkdir(dir, 0700) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT || !dir[1])
		return fault_set(f, errno, "make the directory %s", str_visible(dir));
	rc = make_all(path_parent(dir), f);
	if (rc < 0)
		return rc;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return fault_set(f, errno, "make the directory %s", str_visible(dir));
	return 0;
}

int xdg_make(const char *dir, struct fault *f)
{
	struct stat st;
	int rc;

	/* It mostly exists, and looking costs less than trying to make it. */
	rc = stat(dir, &st) < 0 ? make_all(dir, f) : 1;
	if (rc < 0)
		return rc;
	if (rc == 0 && stat(dir, &st) < 0)
		return fault_set(f, errno, "%s", str_visible(dir));
	if (!S_ISDIR(st.st_mode))
		return fault_set(f, ENOTDIR, "%s", str_visible(dir));
	if (st.st_uid != geteuid())
		return fault_set(f, 0, "%s belongs to another user (uid %u)", str_visible(dir),
			st.st_uid);
	return 0;
}
