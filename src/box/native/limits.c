/*
 * box/native/limits.c - resource limits of the command
 */
#include "box/native/native.h"
#include "plan/plan.h"
#include "base/fault.h"

#include <errno.h>
#include <sys/resource.h>

static int limit(int what, rlim_t value, const char *name, struct fault *f)
{
	const struct rlimit r = { value, value };

	if (setrlimit(what, &r) < 0) {
		fault_set(f, errno, "limit %s to %llu", name, (unsigned long long)value);
		return fault_fix(f,
			"A limit cannot be above the one in force outside (ulimit -H).");
	}
	return 0;
}

int step_limits(struct native *n, struct fault *f)
{
	const struct request_limits *l = &n->plan->limits;
	int rc;

	/*
	 * One byte, not zero: where core_pattern pipes into a program, that program runs on
	 * the host for a crash in the box, limit or not; one byte is the value at which the
	 * kernel does not start it (Linux 2.6.32, fs/coredump.c).
	 */
	rc = limit(RLIMIT_CORE, 1, "core files", f);
	/* Counted per user namespace since Linux 5.14. */
	if (rc == 0 && l->pids)
		rc = limit(RLIMIT_NPROC, l->pids, "processes", f);
	if (rc == 0 && l->files)
		rc = limit(RLIMIT_NOFILE, l->files, "open files", f);
	return rc;
}
