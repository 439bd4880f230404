/* box/native/caps.c - drop all capabilities, for good */
#include "box/native/native.h"
#include "base/fault.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The bounding set needs one call per capability, so it is dropped while init would only wait
 * for the plan. It limits what a program can gain by execve(2), not what init itself has, and
 * dropping needs a capability. EINVAL: past the last.
 */
int step_bounds(struct native *n, struct fault *f)
{
	(void)n;
	for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	return errno == EINVAL ? 0 : fault_set(f, errno, "drop the bounding capabilities");
}

int step_caps(struct native *n, struct fault *f)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { 0 };

	(void)n;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
		syscall(SYS_capset, &header, none) < 0)
		return fault_set(f, errno, "drop all capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fault_set(f, errno, "set no_new_privs");
	/*
	 * init holds a copy of the supervisor's memory with the host's environment. The box
	 * must not reach it by ptrace, /proc/1/mem or /proc/1/exe (CVE-2019-5736).
	 */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fault_set(f, errno, "make init unreadable");
	return 0;
}
