/*
 * box/native/userns.c - who the box is
 *
 * One id is mapped: the user's own, or 1000 for root. No other id exists inside, so no file can
 * belong to, or be given to, another user of the host.
 */
#include "box/native/native.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int put_map(struct fd_bag *later, const char *path, const char *text, struct fault *f)
{
	int fd = fd_later(later, openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC));
	int rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

	if (rc < 0)
		return fault_set(f, -rc, "write %s", path);
	return 0;
}

int step_userns(struct native *n, struct fault *f)
{
	const struct frame *frame = n->frame;
	struct fd_bag later = { .n = 0 };
	char uid[64], gid[64];

	snprintf(uid, sizeof(uid), "%u %u 1", frame->uid, frame->host_uid);
	snprintf(gid, sizeof(gid), "%u %u 1", frame->gid, frame->host_gid);
	if (put_map(&later, "/proc/self/uid_map", uid, f) < 0 ||
		put_map(&later, "/proc/self/setgroups", "deny", f) < 0 ||
		put_map(&later, "/proc/self/gid_map", gid, f) < 0)
		return fault_fix(f,
			"The system restricts user namespaces; `carrel check` says how.");
	fd_bag_empty(&later);
	return 0;
}

int step_hostname(struct native *n, struct fault *f)
{
	/*
	 * Setting the host name is not a protection, so a refusal is no failure: podman's own
	 * filter refuses it and allows the rest.
	 */
	if (sethostname(n->plan->name, strlen(n->plan->name)) < 0 && errno != EPERM)
		return fault_set(f, errno, "set the host name");
	return 0;
}
