/*
 * box/native/seccomp.c - put a process under the system call filter
 *
 * Theory of operation. seccomp-policy.h lists what a box may ask of the kernel. When carrel is
 * built, seccomp-gen.c turns the list into two constant programs, seccomp-filter.h. This file
 * installs one of them. Nothing is decided or computed at run time, and the program does not
 * depend on the plan except for the choice between the two.
 *
 * The filter is the last layer: it refuses calls that other layers still need while they build
 * the box (mounts, namespaces), and they have to contain what it allows.
 *
 * Must run: after no_new_privs, after every other layer, as the last step before exec.
 * Must not: fail softly. A kernel without filters cannot hold a box.
 */
#include "box/native/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "seccomp-filter.h"

#define PROGRAM(array)                                                            \
	{                                                                         \
		sizeof(array) / sizeof((array)[0]), (struct sock_filter *)(array) \
	}

/* The kernel reads the instructions only; its header has no const. */
static const struct sock_fprog programs[] = {
	[SECCOMP_STRICT] = PROGRAM(filter_strict),
	[SECCOMP_NEST] = PROGRAM(filter_nest),
};

int seccomp_apply(enum seccomp_program which, struct fault *f)
{
	long rc;

	/*
	 * TSYNC: a thread that somehow exists already must not stay unfiltered. If one cannot
	 * follow, the result is its id, and nothing is set.
	 */
	rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
		&programs[which]);
	if (rc > 0)
		return fault_set(f, ESRCH, "put thread %ld under the system call filter", rc);
	if (rc == 0)
		return 0;
	fault_set(f, errno, "install the system call filter");
	if (f->err == ENOSYS || f->err == EINVAL)
		fault_fix(f, "This needs a kernel with CONFIG_SECCOMP_FILTER.");
	return -f->err;
}
