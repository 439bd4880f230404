/*
 * box/native/seccomp-policy.h - which system calls a box may make
 *
 * This is the table that people read and review. seccomp-gen.c turns it into the
 * two programs the kernel runs, at build time; tests/unit/test_seccomp.c holds the
 * programs against it. Nothing else includes it.
 *
 * An allow-list: a call that is not named here fails with ENOSYS, as on a kernel that never had
 * it. So programs use the fallback that they have for old kernels, and a call that is invented
 * tomorrow is refused today. Two kinds of caller are killed instead, because the numbers in
 * this table mean something else to them: a foreign architecture (int 0x80 on x86_64) and x32.
 *
 * Two programs. "strict" is the box as it should be. "nest" adds what is needed to build
 * another box inside: namespaces, mounts, chroot. It weakens this layer, but keeps the argument
 * checks for sockets and terminals.
 *
 * Left out on purpose, and why: - io_uring_*: operations in the ring are not seen by seccomp,
 * and its bugs have
 *    led out of containers for years. Runtimes fall back to epoll on ENOSYS.
 *  - mount, umount2, pivot_root, chroot, open_tree, move_mount, fsopen, fsconfig,
 *    fsmount, fspick, mount_setattr, open_tree_attr: the box's file tree is fixed.
 *    statmount, listmount, listns: /proc/self/mountinfo tells enough.
 *  - add_key, request_key, keyctl: keyrings follow the uid, not the box.
 *  - bpf, perf_event_open, userfaultfd, lookup_dcookie: large or exploit-friendly.
 *  - name_to_handle_at, open_by_handle_at: files by inode number, around all paths.
 *    fanotify_*: watches a whole file system, on the host too.
 *  - mbind, set_mempolicy, get_mempolicy, migrate_pages, move_pages, and
 *    set_mempolicy_home_node: tuning for large machines with a history of bugs
 *    (CVE-2018-10675). All or none: libnuma asks with get_mempolicy and on ENOSYS
 *    turns itself off, as on a kernel without NUMA.
 *  - memfd_secret, process_madvise, process_mrelease, remap_file_pages: nothing
 *    ordinary needs them, and allocators that try have a way back.
 *  - modify_ldt, iopl, ioperm, vhangup, syslog, sethostname, settimeofday,
 *    clock_settime, adjtimex, clock_adjtime, acct, quotactl, swapon, reboot, kexec and
 *    module calls: for whoever owns the machine. get_robust_list, uselib, ustat, sysfs,
 *    _sysctl, nfsservctl: history.
 *  - lsm_*_self_attr, file_getattr, file_setattr: too new for anything to depend on.
 */
#ifndef BOX_NATIVE_SECCOMP_POLICY_H
#define BOX_NATIVE_SECCOMP_POLICY_H

#include <errno.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* A verdict is what the program returns, or VERDICT_RULE(r): look at the arguments. */
#define VERDICT_ALLOW      ((uint32_t)SECCOMP_RET_ALLOW)
#define VERDICT_KILL       ((uint32_t)SECCOMP_RET_KILL_PROCESS)
#define VERDICT_ERRNO(e)   ((uint32_t)SECCOMP_RET_ERRNO | (uint32_t)(e))
#define VERDICT_RULE(r)    (0x01000000u | (uint32_t)(r))
#define VERDICT_IS_RULE(v) (((v)&0xff000000u) == 0x01000000u)
#define VERDICT_TO_RULE(v) ((v)&0xffu)
#define VERDICT_DEFAULT    VERDICT_ERRNO(ENOSYS)

/* A rule may lead only to a later one: a program cannot jump back. */
enum policy_rule {
	RULE_CLONE,
	RULE_UNSHARE,
	RULE_IOCTL,
	RULE_PERSONALITY,
	RULE_SOCKET,
	RULE_NETLINK,
	RULE_INET,
	RULE_INET_PROTOCOL,
	RULE_SETRLIMIT,
	RULE_PRLIMIT,
	RULE_PRLIMIT_CORE,
	RULE_CHMOD,
	RULE_CHMODAT,
	RULE_FCNTL,
	RULE_COUNT,
};

/*
 * A rule is a list of tests, tried in order, that ends with OTHERWISE. All but
 * TEST_HIGH look at the low 32 bits of an argument, because that is what the kernel
 * looks at where it declares an int: a filter that compares 64 bits lets the same
 * request through with a bit set that the kernel drops (CVE-2019-10063).
 */
enum policy_test_kind { TEST_EQUAL, TEST_ANY_BIT, TEST_HIGH, TEST_OTHERWISE };

struct policy_test {
	enum policy_test_kind kind;
	unsigned int arg; /* 0..5 */
	uint32_t mask;    /* EQUAL: applied first; ANY_BIT: the bits */
	uint32_t value;   /* EQUAL */
	uint32_t verdict;
};

#define IF_EQUAL(arg, value, verdict)                       \
	{                                                   \
		TEST_EQUAL, arg, UINT32_MAX, value, verdict \
	}
#define IF_MASKED(arg, mask, value, verdict)          \
	{                                             \
		TEST_EQUAL, arg, mask, value, verdict \
	}
#define IF_ANY_BIT(arg, mask, verdict)              \
	{                                           \
		TEST_ANY_BIT, arg, mask, 0, verdict \
	}
#define IF_HIGH_WORD(arg, verdict)            \
	{                                     \
		TEST_HIGH, arg, 0, 0, verdict \
	}
#define OTHERWISE(verdict)                       \
	{                                        \
		TEST_OTHERWISE, 0, 0, 0, verdict \
	}

/*
 * clone(2) drops the high word, and all 32 low bits have a meaning already, so the list of
 * namespace bits is complete. CLONE_NEWTIME is not one of them: here that bit is part of the
 * exit signal.
 */
#define CLONE_NAMESPACES                                                          \
	((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | \
		CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET))

static const struct policy_test rule_clone[] = {
	IF_ANY_BIT(0, CLONE_NAMESPACES, VERDICT_ERRNO(EPERM)),
	OTHERWISE(VERDICT_ALLOW),
};

/*
 * unshare(2) looks at all 64 bits and gains new ones: UNSHARE_EMPTY_MNTNS of the newest
 * kernels makes a mount namespace with a bit that is harmless for clone(2). So here the
 * harmless ones are named, and the rest, CLONE_NEWTIME included, is refused.
 */
#define UNSHARE_HARMLESS                                                               \
	((uint32_t)(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
		CLONE_SYSVSEM))

static const struct policy_test rule_unshare[] = {
	IF_ANY_BIT(0, ~UNSHARE_HARMLESS, VERDICT_ERRNO(EPERM)),
	IF_HIGH_WORD(0, VERDICT_ERRNO(EPERM)),
	OTHERWISE(VERDICT_ALLOW),
};

/*
 * Terminal requests that act on others. TIOCSTI types into the terminal's input
 * (CVE-2017-5226), TIOCLINUX pastes into a console, TIOCCONS takes over its output,
 * TIOCSETD loads line disciplines, old modules that few have read. A btrfs snapshot of the
 * workspace would show what is hidden in it. The calls of defragmenters move blocks from file
 * to file and leave the times alone (ext4 and xfs; f2fs in older kernels), so the report after
 * a run would not find a file that was changed in this way.
 */
#define SNAP_CREATE      0x50009401u
#define SNAP_CREATE_V2   0x50009417u
#define SUBVOL_CREATE    0x5000940eu
#define SUBVOL_CREATE_V2 0x50009418u
#define EXT4_MOVE_EXT    0xc028660fu
#define XFS_SWAPEXT      0xc0c0586du
#define F2FS_MOVE_RANGE  0xc020f509u

static const struct policy_test rule_ioctl[] = {
	IF_EQUAL(1, TIOCSTI, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, TIOCLINUX, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, TIOCSETD, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, TIOCCONS, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, SNAP_CREATE, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, SNAP_CREATE_V2, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, SUBVOL_CREATE, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, SUBVOL_CREATE_V2, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, EXT4_MOVE_EXT, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, XFS_SWAPEXT, VERDICT_ERRNO(EPERM)),
	IF_EQUAL(1, F2FS_MOVE_RANGE, VERDICT_ERRNO(EPERM)),
	OTHERWISE(VERDICT_ALLOW),
};

/*
 * Allowed: to ask (0xffffffff), to look like a 32-bit or a 2.6 machine to build scripts, and to
 * switch address randomisation off, as gdb and the thread sanitizer do. Not READ_IMPLIES_EXEC,
 * MMAP_PAGE_ZERO and other personalities, which weaken memory protection or reach code that
 * nobody uses.
 */
static const struct policy_test rule_personality[] = {
	IF_EQUAL(0, PER_LINUX, VERDICT_ALLOW),
	IF_EQUAL(0, PER_LINUX32, VERDICT_ALLOW),
	IF_EQUAL(0, UNAME26, VERDICT_ALLOW),
	IF_EQUAL(0, UNAME26 | PER_LINUX32, VERDICT_ALLOW),
	IF_EQUAL(0, ADDR_NO_RANDOMIZE, VERDICT_ALLOW),
	IF_EQUAL(0, 0xffffffffu, VERDICT_ALLOW),
	OTHERWISE(VERDICT_ERRNO(EPERM)),
};

/*
 * socket(2) and socketpair(2). Other families are loaded on demand, see little use,
 * and not all of them are held by a network namespace: AF_VSOCK reaches the hypervisor.
 */
static const struct policy_test rule_socket[] = {
	IF_EQUAL(0, AF_UNIX, VERDICT_ALLOW),
	IF_EQUAL(0, AF_INET, VERDICT_RULE(RULE_INET)),
	IF_EQUAL(0, AF_INET6, VERDICT_RULE(RULE_INET)),
	IF_EQUAL(0, AF_NETLINK, VERDICT_RULE(RULE_NETLINK)),
	OTHERWISE(VERDICT_ERRNO(EAFNOSUPPORT)),
};

/*
 * libc and every runtime list the interfaces through NETLINK_ROUTE. The others (audit,
 * netfilter, xfrm, generic, ...) are for administrators; programs that try for the
 * audit log, like sshd, take EAFNOSUPPORT for a kernel without it.
 */
static const struct policy_test rule_netlink[] = {
	IF_EQUAL(2, NETLINK_ROUTE, VERDICT_ALLOW),
	OTHERWISE(VERDICT_ERRNO(EAFNOSUPPORT)),
};

/*
 * The low four bits are the type, the rest are flags. No SOCK_RAW; and no SOCK_PACKET:
 * the kernel turns AF_INET with SOCK_PACKET into AF_PACKET after this filter has seen
 * it. Both also need a capability, which a nested user namespace would have.
 */
#define SOCK_TYPE_BITS 0xfu

static const struct policy_test rule_inet[] = {
	IF_MASKED(1, SOCK_TYPE_BITS, SOCK_STREAM, VERDICT_RULE(RULE_INET_PROTOCOL)),
	IF_MASKED(1, SOCK_TYPE_BITS, SOCK_DGRAM, VERDICT_RULE(RULE_INET_PROTOCOL)),
	OTHERWISE(VERDICT_ERRNO(EPERM)),
};

/*
 * TCP, UDP, and echo requests for an unprivileged ping. SCTP, DCCP, L2TP, SMC and MPTCP
 * would be loaded on demand like a family. Go tries MPTCP first and takes
 * EPROTONOSUPPORT for a kernel without it.
 */
static const struct policy_test rule_inet_protocol[] = {
	IF_EQUAL(2, 0, VERDICT_ALLOW),
	IF_EQUAL(2, IPPROTO_TCP, VERDICT_ALLOW),
	IF_EQUAL(2, IPPROTO_UDP, VERDICT_ALLOW),
	IF_EQUAL(2, IPPROTO_ICMP, VERDICT_ALLOW),
	IF_EQUAL(2, IPPROTO_ICMPV6, VERDICT_ALLOW),
	OTHERWISE(VERDICT_ERRNO(EPROTONOSUPPORT)),
};

/*
 * The limit on core files is 1 byte, the only value at which a crash does not start the
 * host's core handler (limits.c). It could be lowered to 0, where it would, so setting it does
 * nothing and says that it did: scripts with `ulimit -c 0` go on.
 */
static const struct policy_test rule_setrlimit[] = {
	IF_EQUAL(0, RLIMIT_CORE, VERDICT_ERRNO(0)),
	OTHERWISE(VERDICT_ALLOW),
};

static const struct policy_test rule_prlimit[] = {
	IF_EQUAL(1, RLIMIT_CORE, VERDICT_RULE(RULE_PRLIMIT_CORE)),
	OTHERWISE(VERDICT_ALLOW),
};

/* Reading the limit, without a new one, is allowed. */
static const struct policy_test rule_prlimit_core[] = {
	IF_ANY_BIT(2, UINT32_MAX, VERDICT_ERRNO(0)),
	IF_HIGH_WORD(2, VERDICT_ERRNO(0)),
	OTHERWISE(VERDICT_ALLOW),
};

/*
 * A set-user-id program made in the workspace would, outside, give others the user's
 * identity, and root's if root started the box. chmod is the only way to one that is not empty:
 * whatever writes to a file takes the bit away.
 */
static const struct policy_test rule_chmod[] = {
	IF_ANY_BIT(1, 04000, VERDICT_ERRNO(EPERM)),
	OTHERWISE(VERDICT_ALLOW),
};

static const struct policy_test rule_chmodat[] = {
	IF_ANY_BIT(2, 04000, VERDICT_ERRNO(EPERM)),
	OTHERWISE(VERDICT_ALLOW),
};

/*
 * A lease makes whoever opens the file wait for its holder, or fail (EWOULDBLOCK): a box could
 * keep the user's programs, and the next start of carrel, from a file of the project. So a box
 * may not take one (F_SETLEASE), nor its kin on a directory (F_SETDELEG of Linux 6.19), nor
 * have a signal for each change in a directory (F_NOTIFY, which inotify has replaced). EINVAL
 * is what a file system without leases and a kernel without F_NOTIFY answer, so Samba and its
 * like go on without. Commands that are newer than F_SET_FILE_RW_HINT (Linux 4.13; numbers
 * between were given later to F_DUPFD_QUERY and F_CREATED_QUERY, which only ask) are refused.
 */
#define FCNTL_LINUX  1024u /* the first that only Linux has: F_SETLEASE */
#define FCNTL_NOTIFY (FCNTL_LINUX + 2)
#define FCNTL_NEWER  (FCNTL_LINUX + 15)

static const struct policy_test rule_fcntl[] = {
	IF_MASKED(1, ~0x3fu, 0, VERDICT_ALLOW), /* POSIX's, owners, locks of open files */
	IF_EQUAL(1, FCNTL_LINUX, VERDICT_ERRNO(EINVAL)),
	IF_EQUAL(1, FCNTL_NOTIFY, VERDICT_ERRNO(EINVAL)),
	IF_EQUAL(1, FCNTL_NEWER, VERDICT_ERRNO(EINVAL)),
	IF_MASKED(1, ~0xfu, FCNTL_LINUX, VERDICT_ALLOW),
	OTHERWISE(VERDICT_ERRNO(EINVAL)),
};

static const struct {
	const char *name;
	const struct policy_test *tests;
} policy_rules[RULE_COUNT] = {
	[RULE_CLONE] = { "clone", rule_clone },
	[RULE_UNSHARE] = { "unshare", rule_unshare },
	[RULE_IOCTL] = { "ioctl", rule_ioctl },
	[RULE_PERSONALITY] = { "personality", rule_personality },
	[RULE_SOCKET] = { "socket", rule_socket },
	[RULE_NETLINK] = { "netlink", rule_netlink },
	[RULE_INET] = { "inet", rule_inet },
	[RULE_INET_PROTOCOL] = { "inet protocol", rule_inet_protocol },
	[RULE_SETRLIMIT] = { "setrlimit", rule_setrlimit },
	[RULE_PRLIMIT] = { "prlimit", rule_prlimit },
	[RULE_PRLIMIT_CORE] = { "prlimit core", rule_prlimit_core },
	[RULE_CHMOD] = { "chmod", rule_chmod },
	[RULE_CHMODAT] = { "chmodat", rule_chmodat },
	[RULE_FCNTL] = { "fcntl", rule_fcntl },
};

/* The table. Names in one string, with blanks between; a name stands in one group only. */
struct policy_group {
	const char *names;
	uint32_t strict, nest;
};

#define GROUP(names)                                \
	{                                           \
		names, VERDICT_ALLOW, VERDICT_ALLOW \
	}
#define GROUP_RULE(names, rule)                               \
	{                                                     \
		names, VERDICT_RULE(rule), VERDICT_RULE(rule) \
	}

static const struct policy_group policy_groups[] = {
	/* Files by descriptor. vmsplice and friends move pages, but only the caller's own. */
	GROUP("read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 "
	      "lseek sendfile splice tee vmsplice copy_file_range readahead fadvise64 "
	      "fallocate sync_file_range fsync fdatasync sync syncfs truncate ftruncate "
	      "flock dup dup2 dup3 close close_range pipe pipe2 cachestat"),

	/* Files by name: what may be reached is the mounts' and Landlock's business. */
	GROUP("open openat openat2 creat stat fstat lstat newfstatat statx statfs fstatfs "
	      "access faccessat faccessat2 getdents getdents64 getcwd chdir fchdir umask "
	      "rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat "
	      "symlink symlinkat readlink readlinkat"),
	/* mknod makes fifos and sockets; a device needs a capability, and nodev on top. */
	GROUP("mknod mknodat chown fchown lchown fchownat utime utimes utimensat futimesat"),
	GROUP_RULE("fcntl", RULE_FCNTL),
	GROUP_RULE("chmod fchmod", RULE_CHMOD),
	GROUP_RULE("fchmodat fchmodat2", RULE_CHMODAT),
	GROUP("setxattr lsetxattr fsetxattr setxattrat getxattr lgetxattr fgetxattr "
	      "getxattrat listxattr llistxattr flistxattr listxattrat removexattr "
	      "lremovexattr fremovexattr removexattrat"),

	/* Memory. map_shadow_stack: libc makes thread stacks with it where CET or GCS is on. */
	GROUP("mmap mprotect munmap mremap brk madvise mincore msync mlock mlock2 munlock "
	      "mlockall munlockall memfd_create pkey_mprotect pkey_alloc pkey_free mseal "
	      "map_shadow_stack membarrier"),

	/* Processes. restart_syscall is made by the kernel in the program's name. */
	GROUP("fork vfork execve execveat exit exit_group wait4 waitid getpid gettid "
	      "getppid getpgid getpgrp setpgid getsid setsid set_tid_address rseq "
	      "set_robust_list futex futex_waitv futex_wake futex_wait futex_requeue "
	      "restart_syscall kill tkill tgkill pidfd_open pidfd_send_signal"),
	GROUP("rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait "
	      "rt_sigqueueinfo rt_tgsigqueueinfo rt_sigsuspend sigaltstack signalfd "
	      "signalfd4 pause"),
	/* What prctl could break (PR_SET_MM, securebits) asks for a capability itself. */
	GROUP("prctl arch_prctl uname sysinfo getrandom getcpu"),
	/* A program may lock itself up further: a box in the box without our help. */
	GROUP("seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"),

	/*
	 * Debuggers. The pid namespace has only the box's own processes, and its init is not
	 * dumpable, so a debugger reaches nobody else. It cannot evade this filter: since Linux
	 * 4.8 the filter sees the call as the tracer has left it.
	 */
	GROUP("ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd"),
	/*
	 * The kernel's own trampoline makes this call when somebody on the host probes a
	 * program that also runs in the box (x86_64). From anywhere else it is a SIGILL or an
	 * error. Linux showed it to filters from 6.11 until 6.14, and a refusal broke the
	 * program.
	 */
	GROUP("uretprobe uprobe"),

	/* Identity: without capabilities a process can only switch between the ids it has. */
	GROUP("getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid "
	      "setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capget "
	      "capset"),
	GROUP_RULE("setrlimit", RULE_SETRLIMIT),
	GROUP_RULE("prlimit64", RULE_PRLIMIT),
	GROUP("getrlimit getrusage times getpriority setpriority "
	      "ioprio_get ioprio_set sched_yield sched_setparam sched_getparam "
	      "sched_setscheduler sched_getscheduler sched_get_priority_max "
	      "sched_get_priority_min sched_rr_get_interval sched_setaffinity "
	      "sched_getaffinity sched_setattr sched_getattr"),

	/* Time: to read and to wait, never to set. */
	GROUP("gettimeofday time clock_gettime clock_getres clock_nanosleep nanosleep alarm "
	      "getitimer setitimer timer_create timer_settime timer_gettime "
	      "timer_getoverrun timer_delete timerfd_create timerfd_settime "
	      "timerfd_gettime"),

	GROUP("poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait "
	      "epoll_pwait epoll_pwait2 eventfd eventfd2 inotify_init inotify_init1 "
	      "inotify_add_watch inotify_rm_watch"),
	/*
	 * The old asynchronous I/O (io_setup) is refused too: its slots are counted for the
	 * whole machine, and a box could take them all. Databases work without it.
	 */

	/* The box has an ipc namespace of its own. */
	GROUP("shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd "
	      "msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify "
	      "mq_getsetattr"),

	GROUP("bind connect listen accept accept4 getsockname getpeername sendto recvfrom "
	      "sendmsg recvmsg sendmmsg recvmmsg shutdown setsockopt getsockopt"),
	GROUP_RULE("socket socketpair", RULE_SOCKET),
	GROUP_RULE("ioctl", RULE_IOCTL),
	GROUP_RULE("personality", RULE_PERSONALITY),

	/*
	 * The calls that "nest" adds. clone3 has its flags in memory, which a filter cannot
	 * read; libc and the runtimes use clone instead only if clone3 fails with ENOSYS.
	 */
	{ "clone", VERDICT_RULE(RULE_CLONE), VERDICT_ALLOW },
	{ "clone3", VERDICT_ERRNO(ENOSYS), VERDICT_ALLOW },
	{ "unshare", VERDICT_RULE(RULE_UNSHARE), VERDICT_ALLOW },
	{ "setns", VERDICT_ERRNO(EPERM), VERDICT_ALLOW },
	{ "mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig "
	  "fsmount fspick mount_setattr sethostname",
		VERDICT_DEFAULT, VERDICT_ALLOW },
};

/*
 * Numbers of calls that the libseccomp of the build machine may not know. From 424 on
 * they are the same on all 64-bit architectures; a row can be for one of them only.
 */
struct policy_number {
	const char *name;
	int nr;
	const char *arch; /* NULL: all */
};

static const struct policy_number policy_numbers[] = {
	{ "uretprobe", 335, "x86_64" },
	{ "uprobe", 336, "x86_64" },
	{ "cachestat", 451, NULL },
	{ "fchmodat2", 452, NULL },
	{ "map_shadow_stack", 453, NULL },
	{ "futex_wake", 454, NULL },
	{ "futex_wait", 455, NULL },
	{ "futex_requeue", 456, NULL },
	{ "mseal", 462, NULL },
	{ "setxattrat", 463, NULL },
	{ "getxattrat", 464, NULL },
	{ "listxattrat", 465, NULL },
	{ "removexattrat", 466, NULL },
	{ "open_tree_attr", 467, NULL },
};

/* On x86_64 a number with this bit is an x32 call. */
#define X32_BIT 0x40000000u

/*
 * The number -1 is not a call: a debugger sets it to skip a call (strace --inject). It has set
 * the result too, and a refusal would overwrite that.
 */
#define NR_SKIPPED UINT32_MAX

/* Copy the next name of a group to word, and move *rest past it. Returns 0 at the end. */
static inline int policy_next_name(const char **rest, char *word, size_t size)
{
	size_t len;

	*rest += strspn(*rest, " ");
	len = strcspn(*rest, " ");
	if (len == 0 || len >= size)
		return 0;
	memcpy(word, *rest, len);
	word[len] = '\0';
	*rest += len;
	return 1;
}

#endif
