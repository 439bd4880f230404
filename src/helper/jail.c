/*
 * helper/jail.c - a helper process enters its jail before it reads hostile bytes
 *
 * The list of system calls is the helper's own and stands beside the code that makes them. The
 * filter compares a call with one after the other. The kernel caches the verdict for calls
 * that depend on nothing but their number; the two that depend on their arguments (socket,
 * fcntl) come first. fcntl(2) may only set the size of a pipe: another of its commands sends
 * signals to any process of the user. Any other call fails with EPERM.
 *
 * Landlock denies files once more, and forbids bind(2). It could also restrict the ports that
 * may be dialled, but could not add one later: `carrel allow` and the user's answers add ports
 * while the box runs, and so does `carrel port`, for which the broker dials into the box. So
 * the policy alone decides what may be dialled.
 */
#include "helper/jail.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* Newer than this libc's headers. */
#define NET_BIND_TCP   (1ULL << 0) /* ABI 4 */
#define SCOPE_ABSTRACT (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL   (1ULL << 1)

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

static int no_files(struct fault *f)
{
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
		LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset_attr attr = { .fs = (1ULL << 13) - 1 };
	size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
	auto_close int ruleset = -1;

	if (abi < 1 && (errno == ENOSYS || errno == EOPNOTSUPP))
		return 0;
	attr.fs |= abi >= 2 ? 1ULL << 13 : 0;
	attr.fs |= abi >= 3 ? 1ULL << 14 : 0;
	attr.fs |= abi >= 5 ? 1ULL << 15 : 0;
	attr.net = abi >= 4 ? NET_BIND_TCP : 0;
	attr.scoped = abi >= 6 ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (ruleset < 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return fault_set(f, errno, "put the helper under Landlock");
	return 0;
}

/*
 * Started by root, the broker keeps no privilege of root's. Ambient capabilities go with the
 * permitted ones.
 */
static int no_capabilities(struct fault *f)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (syscall(SYS_capset, &head, none) < 0)
		return fault_set(f, errno, "drop the helper's capabilities");
	return 0;
}

enum { HEAD = 15, LENGTH = HEAD + JAIL_CALLS + 2 };

#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(value)      BPF_STMT(BPF_RET | BPF_K, value)

static int few_calls(const struct jail *j, struct fault *f)
{
	struct sock_filter program[LENGTH] = {
		LOAD(arch),
		IS(ARCH, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		IS(SYS_socket, 0, 5),
		LOAD(args[0]), /* the low half: the kernel reads an int */
		IS(AF_INET, 1, 0),
		IS(AF_INET6, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
		IS(SYS_fcntl, 0, 4),
		LOAD(args[1]),
		IS(F_SETPIPE_SZ, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
	};
	const size_t length = HEAD + j->n + 2;
	const struct sock_fprog all = { (unsigned short)length, program };

	if (j->n > JAIL_CALLS)
		BUG("the list of system calls is too long");
	if (!j->sockets) {
		program[5] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);
		program[11] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);
	}
	/* All jump to the last instruction, or go on. */
	for (size_t i = 0; i < j->n; i++)
		program[HEAD + i] = (struct sock_filter)IS(j->calls[i], (uint8_t)(j->n - i), 0);
	program[length - 2] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);
	program[length - 1] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) < 0)
		return fault_set(f, errno, "put the helper under its system call filter");
	return 0;
}

int jail_enter(const struct jail *j, struct fault *f)
{
	const struct rlimit no_core = { 1, 1 }; /* a limit of 0 would start a core handler */
	int rc;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0)
		return fault_set(f, errno, "shut the helper in");
	rc = no_capabilities(f);
	if (rc == 0)
		rc = no_files(f);
	return rc == 0 ? few_calls(j, f) : rc;
}
