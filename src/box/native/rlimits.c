/*
 * box/native/rlimits.c - resource limits of the command
 *
 * The kernel counts some resources for all processes of a user together, inside and outside of
 * boxes, and compares the count with the limit of the process that asks for more. So a box gets
 * lower limits than the user's programs: no box can take the difference.
 *
 * The control group (box/cgroup.c) holds what an rlimit cannot hold for a whole box.
 */
#include "box/native/native.h"
#include "plan/plan.h"
#include "base/fault.h"

#include <errno.h>
#include <sys/resource.h>

static int rlimit_failed(const char *name, rlim_t value, struct fault *f)
{
	fault_set(f, errno, "limit %s to %llu", name, (unsigned long long)value);
	return fault_fix(f, "A limit cannot be above the one in force outside (ulimit -H).");
}

static int limit(int what, rlim_t value, const char *name, struct fault *f)
{
	const struct rlimit r = { value, value };

	return setrlimit(what, &r) < 0 ? rlimit_failed(name, value, f) : 0;
}

/* Half of what the user may have now. Without a limit there is enough for everybody. */
static int halve(int what, const char *name, struct fault *f)
{
	struct rlimit now;

	if (getrlimit(what, &now) < 0)
		return fault_set(f, errno, "look at the limit of %s", name);
	return now.rlim_cur == RLIM_INFINITY ? 0 : limit(what, now.rlim_cur / 2, name, f);
}

int limits_raise_files(struct fault *f)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return fault_set(f, errno, "look at the limit of open files");
	if (r.rlim_cur == r.rlim_max)
		return 0;
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &r) < 0 ? rlimit_failed("open files", r.rlim_max, f)
						: 0;
}

int limits_of_files(unsigned long long files)
{
	const struct rlimit r = { files, files };

	return setrlimit(RLIMIT_NOFILE, &r);
}

/*
 * The command sets its own limit (exec.c), because init still has to send descriptors. Find out
 * now whether that will work.
 */
static int prepare_files(rlim_t files, struct fault *f)
{
	struct rlimit r;
	int rc = limits_raise_files(f);

	if (rc < 0)
		return rc;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && files <= r.rlim_max)
		return 0;
	errno = EPERM;
	return rlimit_failed("open files", files, f);
}

/*
 * Counted per user namespace since Linux 5.14. A control group that holds the same limit counts
 * what it refuses, and this does not: so this one is a little higher there.
 */
static int limit_processes(const struct plan *p, struct fault *f)
{
	enum { ABOVE = 2 };
	rlim_t pids = p->limits.pids;
	struct rlimit now;

	if (!pids)
		return 0;
	if (p->frame.cgroup.holds & CGROUP_PIDS) {
		if (getrlimit(RLIMIT_NPROC, &now) < 0)
			return fault_set(f, errno, "look at the limit of processes");
		pids = pids + ABOVE < now.rlim_max ? pids + ABOVE : now.rlim_max;
	}
	return limit(RLIMIT_NPROC, pids, "processes", f);
}

/*
 * The supervisor looks at the whole of what the box writes to its copy of the workspace, every
 * now and then. This holds a single file at once. init and its places must still fit in.
 */
static int limit_file_size(unsigned long long disk, struct fault *f)
{
	enum { LEAST = 1 << 20 };
	rlim_t size = disk > LEAST ? disk : LEAST;
	struct rlimit now;

	if (!disk)
		return 0;
	if (getrlimit(RLIMIT_FSIZE, &now) < 0)
		return fault_set(f, errno, "look at the limit of a file's size");
	return limit(RLIMIT_FSIZE, size < now.rlim_max ? size : now.rlim_max, "a file's size",
		f);
}

int step_limits(struct native *n, struct fault *f)
{
	const struct limits *l = &n->plan->limits;
	int rc;

	/*
	 * One byte, not zero: if core_pattern pipes into a program, that program runs on the
	 * host for a crash in the box, whatever the limit is. Only at one byte does the kernel
	 * not start it (Linux 2.6.32, fs/coredump.c).
	 */
	rc = limit(RLIMIT_CORE, 1, "core files", f);
	if (rc == 0)
		rc = limit_processes(n->plan, f);
	if (rc == 0)
		rc = prepare_files(l->files, f);
	if (rc == 0)
		rc = limit_file_size(l->disk, f);
	if (rc == 0)
		rc = halve(RLIMIT_SIGPENDING, "signals on their way", f);
	if (rc == 0)
		rc = halve(RLIMIT_MSGQUEUE, "bytes in message queues", f);
	if (rc == 0)
		rc = halve(RLIMIT_MEMLOCK, "locked memory", f);
	return rc;
}
