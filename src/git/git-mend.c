#include "git/git-mend.h"
#include "git/git-files.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_MOST = 4096 };

/* Temporary names: HEAD on its way back, and a wrong HEAD on its way out. */
static const char fresh[] = "HEAD.put-back", aside[] = "HEAD.put-aside";

int git_head_read(int dir, struct git_head *ret, struct fault *f)
{
	char *text = NULL;
	struct stat st;
	int rc = look_at(dir, "HEAD", &st, f);

	ret->text = NULL;
	ret->valid = false;
	if (rc <= 0)
		return rc;
	ret->link = S_ISLNK(st.st_mode);
	if (ret->link)
		rc = look_link(dir, "HEAD", &ret->text, f);
	else if (S_ISREG(st.st_mode) && st.st_size <= HEAD_MOST) {
		rc = look_text(dir, "HEAD", HEAD_MOST, &text, f);
		ret->text = text;
	}
	ret->valid = rc > 0 && ret->text && git_is_head(ret->text, ret->link);
	return rc;
}

static int write_head(int dir, const struct git_head *head)
{
	auto_close int fd = -1;
	int rc;

	unlinkat(dir, fresh, 0);
	if (head->link)
		return symlinkat(head->text, dir, fresh) < 0 ? -errno : 0;
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	rc = fd < 0 ? -errno : fd_write_all(fd, head->text, strlen(head->text));
	return rc;
}

/* rename(2) replaces everything but a directory. */
static int put_back(int dir, const struct git_head *head)
{
	int rc = write_head(dir, head);

	if (rc < 0 || renameat(dir, fresh, dir, "HEAD") == 0)
		return rc;
	if (errno != EISDIR && errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	if (renameat(dir, "HEAD", dir, mem_printf("%s-%d", aside, getpid())) < 0 ||
		renameat(dir, fresh, dir, "HEAD") < 0)
		return -errno;
	return 0;
}

int git_head_mend(const struct git_head *head, struct fault *f)
{
	auto_close int dir = fd_open2(AT_FDCWD, head->dir,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, RESOLVE_NO_SYMLINKS);
	struct git_head now = { 0 };
	int rc;

	if (dir < 0)
		return look_is_no_dir(AT_FDCWD, head->dir)
			? 0
			: fault_set(f, errno, "look at '%s'", str_visible(head->dir));
	/* If we cannot read it, git cannot either. */
	rc = git_head_read(dir, &now, f);
	if (rc > 0 && now.valid)
		return 0;
	rc = put_back(dir, head);
	return rc < 0 ? fault_set(f, -rc, "put back '%s/HEAD'", str_visible(head->dir)) : 1;
}

bool git_mend_mode(int dir, const char *name)
{
	auto_close int fd = fd_open2(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		RESOLVE_NO_SYMLINKS);
	char self[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != getuid() ||
		(st.st_mode & S_IRWXU) == S_IRWXU)
		return false;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, (st.st_mode & 07777) | S_IRWXU) == 0;
}
