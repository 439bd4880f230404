/*
 * net/jail.c - the broker shuts itself in
 *
 * The list of system calls below is all that net/ uses after the start; keep it next to
 * that. It is checked one by one: the kernel remembers the verdict for calls that
 * depend on nothing but their number, and the two that depend on more (socket, fcntl) are
 * the first in the list. Of fcntl(2) only the size of a pipe may be set: another of its
 * commands sends signals to any process of the user. Anything else answers EPERM.
 *
 * Landlock says once more that there are no files, and that nothing may be bound. It could also
 * name the ports that may be dialled, but never one more: `carrel allow` and an answer to a
 * question add ports while the box runs, and so does `carrel port`, for which the broker dials
 * into the box. What may be dialled is the policy's matter.
 */
#include "net/jail.h"
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
		return fault_set(f, errno, "put the broker under Landlock");
	return 0;
}

/*
 * Started by root it is nobody's root: there is nothing it may do that others may not. Ambient
 * ones go with those that are permitted.
 */
static int no_capabilities(struct fault *f)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (syscall(SYS_capset, &head, none) < 0)
		return fault_set(f, errno, "drop the broker's capabilities");
	return 0;
}

static const uint16_t calls[] = {
	SYS_close,
	SYS_accept4,
	SYS_connect,
	SYS_shutdown,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_sendto,
	SYS_sendmsg,
	SYS_getpeername,
	SYS_getsockname,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_splice,
	SYS_pipe2,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
	SYS_epoll_pwait,
	SYS_epoll_ctl,
	SYS_sched_yield,
	SYS_clock_gettime,
	SYS_getrandom,
	SYS_madvise,
	SYS_rt_sigreturn,
	SYS_restart_syscall,
	SYS_exit_group,
#ifdef __SANITIZE_ADDRESS__
	SYS_read,
	SYS_write,
	SYS_mmap,
	SYS_munmap,
	SYS_futex,
	SYS_getpid,
	SYS_gettid,
	SYS_sigaltstack,
	SYS_rt_sigprocmask,
	SYS_rt_sigaction,
	SYS_prctl,
	SYS_ioctl,
	SYS_writev,
#endif
};

enum { HEAD = 15, CALLS = ARRAY_SIZE(calls), LENGTH = HEAD + CALLS + 2 };

#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(value)      BPF_STMT(BPF_RET | BPF_K, value)

static int few_calls(struct fault *f)
{
	struct sock_filter program[LENGTH] = {
		LOAD(arch),
		IS(ARCH, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		IS(SYS_socket, 0, 5),
		LOAD(args[0]), /* its low half: the kernel takes an int */
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
	const struct sock_fprog all = { LENGTH, program };

	/* All jump to the last instruction but one, or go on. */
	for (size_t i = 0; i < CALLS; i++)
		program[HEAD + i] = (struct sock_filter)IS(calls[i], (uint8_t)(CALLS - i), 0);
	program[LENGTH - 2] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);
	program[LENGTH - 1] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) < 0)
		return fault_set(f, errno, "put the broker under its system call filter");
	return 0;
}

int jail_enter(struct fault *f)
{
	const struct rlimit no_core = { 1, 1 }; /* at 0 a core handler would be started */
	int rc;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0)
		return fault_set(f, errno, "shut the broker in");
	rc = no_capabilities(f);
	if (rc == 0)
		rc = no_files(f);
	return rc == 0 ? few_calls(f) : rc;
}
