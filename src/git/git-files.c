#include "git/git-files.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_FILE = 1 << 20, HEAD_READ = 255, SHA1_DIGITS = 40 };

static struct fault unseen; /* the first failed look; without text: none failed */

void git_not_seen(const struct fault *why)
{
	if (!unseen.text[0])
		unseen = *why;
}

int git_unseen(struct fault *f)
{
	if (!unseen.text[0])
		return 0;
	*f = unseen;
	unseen = (struct fault){ 0 };
	return f->err ? -f->err : -EINVAL;
}

/*
 * The result of a look as yes or no. An entry that is not a file, or is too large for git, is a
 * no. So is a path that is too long, because it is too long for git as well.
 */
static bool is_there(int rc, const struct fault *f)
{
	if (rc < 0 && rc != -EINVAL && rc != -EFBIG && rc != -ENAMETOOLONG)
		git_not_seen(f);
	return rc > 0;
}

const char *git_canonical(const char *base, const char *path)
{
	struct fault f;
	const char *real;

	return is_there(look_real(path_join(base, path), &real, &f), &f) ? real : NULL;
}

bool git_exists(const char *dir, const char *name)
{
	struct fault f;
	struct stat st;

	return is_there(look_at(AT_FDCWD, path_join(dir, name), &st, &f), &f);
}

char *git_read_text(const char *dir, const char *name)
{
	struct fault f;
	char *text = NULL;
	int rc = look_text(AT_FDCWD, path_join(dir, name), LINE_FILE, &text, &f);
	size_t n = is_there(rc, &f) ? strlen(text) : 0;

	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		text[--n] = '\0';
	return text;
}

/* ---- git directories ---- */

bool git_points_back(const char *admin, const char *workspace)
{
	char *text = git_read_text(admin, "gitdir");
	const char *dir;

	if (!text || strcmp(path_base(text), ".git"))
		return false;
	dir = git_canonical(admin, path_parent(text));
	return dir && !strcmp(dir, workspace);
}

static bool names_a_branch(const char *ref)
{
	return str_starts(ref + strspn(ref, " \t\r\n"), "refs/");
}

static bool is_commit(const char *text)
{
	size_t n = 0;

	while (isxdigit((unsigned char)text[n]))
		n++;
	return n >= SHA1_DIGITS;
}

bool git_is_head(const char *text, bool link)
{
	if (link)
		return str_starts(text, "refs/");
	return is_commit(text) || (str_starts(text, "ref:") && names_a_branch(text + 4));
}

/* Read only the beginning, and only of a regular file: git would wait for a FIFO. */
static bool head_is_valid(const char *path)
{
	char text[HEAD_READ + 1] = "";
	auto_close int fd = -1;
	const char *link;
	struct fault f;
	struct stat st;
	ssize_t n;

	if (!is_there(look_at(AT_FDCWD, path, &st, &f), &f))
		return false;
	if (S_ISLNK(st.st_mode))
		return is_there(look_link(AT_FDCWD, path, &link, &f), &f) &&
			git_is_head(link, true);
	if (!S_ISREG(st.st_mode) ||
		!is_there(look_open(AT_FDCWD, path, O_NOFOLLOW, &fd, &f), &f))
		return false;
	n = read(fd, text, HEAD_READ);
	if (n < 0)
		return is_there(fault_set(&f, errno, "read '%s'", str_visible(path)), &f);
	text[n] = '\0';
	return git_is_head(text, false);
}

/*
 * The same test that git makes. If the user may not enter the directory, git cannot either, so
 * that is a no.
 */
static bool may_enter(const char *dir)
{
	struct fault f;

	if (access(dir, X_OK) == 0)
		return true;
	if (!look_is_absent(errno) && errno != EACCES)
		(void)is_there(fault_set(&f, errno, "look at '%s'", str_visible(dir)), &f);
	return false;
}

/* git is the canonical path of dir, or NULL. */
static enum git_kind find_common(const char *cwd, const char *dir, const char *git,
	const char **ret)
{
	const char *env = getenv("GIT_COMMON_DIR"), *text, *common;

	if (env)
		common = *env ? git_canonical(cwd, env) : NULL;
	else if (!git_exists(dir, "commondir"))
		common = git;
	else if ((text = git_read_text(dir, "commondir")) && *text)
		common = git_canonical(dir, text);
	else
		return GIT_BROKEN;
	if (!common)
		return env ? GIT_NONE : GIT_BROKEN;
	*ret = common;
	return GIT_FOUND;
}

enum git_kind git_look(const char *cwd, const char *dir, const char **ret_git,
	const char **ret_common)
{
	const char *objects = getenv("GIT_OBJECT_DIRECTORY"), *common, *git;
	enum git_kind kind;

	if (!head_is_valid(path_join(dir, "HEAD")))
		return GIT_NONE;
	git = git_canonical(dir, "");
	kind = find_common(cwd, dir, git, &common);
	if (kind != GIT_FOUND)
		return kind;
	objects = objects ? path_join(cwd, objects) : path_join(common, "objects");
	if (!git || !may_enter(objects) || !may_enter(path_join(common, "refs")))
		return GIT_NONE;
	*ret_git = git;
	*ret_common = common;
	return GIT_FOUND;
}
