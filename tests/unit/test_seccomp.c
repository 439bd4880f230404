/*
 * tests/unit/test_seccomp.c - the generated filters against the table, and for real
 *
 * Three views of the same thing. The table, evaluated directly, against the program in
 * an interpreter, for every number and many arguments: the generator is right. A list of
 * calls written down here by hand: the table says what we mean. And the installed filter
 * against the kernel, in children, each refusal with its control: what we mean holds.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "box/native/seccomp-policy.h"
#include "box/native/seccomp.h"
#include "seccomp-filter.h"

#if defined(__x86_64__)
#define ARCH_NAME    "x86_64"
#define ARCH_AUDIT   AUDIT_ARCH_X86_64
#define ARCH_FOREIGN AUDIT_ARCH_I386
#else
#define ARCH_NAME    "aarch64"
#define ARCH_AUDIT   AUDIT_ARCH_AARCH64
#define ARCH_FOREIGN AUDIT_ARCH_ARM
#endif

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

enum {
	NUMBERS = 601,
	TRIED = 471,         /* by the kernel, when it installs a program */
	MAX_PROGRAM = 140,   /* instructions; what one pays for at every start */
	MAX_TREE_STEPS = 13, /* until the verdict, or the first look at an argument */
	MAX_USUAL_STEPS = 10,
	MAX_TOTAL_STEPS = 32,
};

static const struct {
	const char *name;
	const struct sock_filter *filter;
	size_t count;
} programs[] = {
	[SECCOMP_STRICT] = { "strict", filter_strict, LENGTH(filter_strict) },
	[SECCOMP_NEST] = { "nest", filter_nest, LENGTH(filter_nest) },
};

/*
 * The interpreter: just what the kernel would do, and how many steps it took.
 */

struct steps {
	unsigned int total, tree;
};

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;

	assert_true(offset % 4 == 0 && offset + 4 <= sizeof(*data));
	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

static uint32_t interpret(const struct sock_filter *f, size_t count,
	const struct seccomp_data *data, struct steps *s)
{
	bool in_tree = true;
	uint32_t a = 0;

	*s = (struct steps){ 0, 0 };
	for (size_t pc = 0; pc < count; pc++) {
		const struct sock_filter *i = &f[pc];

		if (i->code == (BPF_LD | BPF_W | BPF_ABS) &&
			i->k >= offsetof(struct seccomp_data, args))
			in_tree = false;
		s->total++;
		s->tree += in_tree;

		if (i->code == (BPF_RET | BPF_K))
			return i->k;
		if (i->code == (BPF_LD | BPF_W | BPF_ABS))
			a = load(data, i->k);
		else if (i->code == (BPF_ALU | BPF_AND | BPF_K))
			a &= i->k;
		else if (i->code == (BPF_JMP | BPF_JEQ | BPF_K))
			pc += a == i->k ? i->jt : i->jf;
		else if (i->code == (BPF_JMP | BPF_JGE | BPF_K))
			pc += a >= i->k ? i->jt : i->jf;
		else if (i->code == (BPF_JMP | BPF_JSET | BPF_K))
			pc += a & i->k ? i->jt : i->jf;
		else
			fail_msg("instruction %zu: unknown code 0x%x", pc, i->code);
	}
	fail_msg("ran off the end");
	return 0;
}

static uint32_t run(enum seccomp_program which, uint32_t arch, uint32_t nr,
	const uint64_t *args)
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch };
	struct steps steps;
	uint32_t verdict;

	memcpy(data.args, args, sizeof(data.args));
	verdict = interpret(programs[which].filter, programs[which].count, &data, &steps);
	assert_true(steps.tree <= MAX_TREE_STEPS);
	assert_true(steps.total <= MAX_TOTAL_STEPS);
	return verdict;
}

/*
 * The table, read directly.
 */

static uint32_t table[2][NUMBERS];

static int number_of(const char *name)
{
	for (size_t i = 0; i < LENGTH(policy_numbers); i++) {
		const struct policy_number *own = &policy_numbers[i];

		if (strcmp(own->name, name) == 0)
			return !own->arch || strcmp(own->arch, ARCH_NAME) == 0 ? own->nr : -1;
	}
	return seccomp_syscall_resolve_name(name);
}

static int read_table(void **state)
{
	(void)state;
	for (size_t nr = 0; nr < NUMBERS; nr++)
		table[SECCOMP_STRICT][nr] = table[SECCOMP_NEST][nr] = VERDICT_ERRNO(ENOSYS);
	for (size_t i = 0; i < LENGTH(policy_groups); i++) {
		const char *rest = policy_groups[i].names;
		char name[64];

		while (policy_next_name(&rest, name, sizeof(name))) {
			int nr = number_of(name);

			if (nr < 0)
				continue;
			assert_true(nr < NUMBERS);
			table[SECCOMP_STRICT][nr] = policy_groups[i].strict;
			table[SECCOMP_NEST][nr] = policy_groups[i].nest;
		}
		assert_string_equal(rest, "");
	}
	return 0;
}

static bool test_holds(const struct policy_test *t, const uint64_t *args)
{
	uint64_t arg = args[t->arg];

	switch (t->kind) {
	case TEST_EQUAL:
		return ((uint32_t)arg & t->mask) == t->value;
	case TEST_ANY_BIT:
		return ((uint32_t)arg & t->mask) != 0;
	case TEST_HIGH:
		return arg > UINT32_MAX;
	case TEST_OTHERWISE:
		return true;
	}
	return false;
}

static uint32_t expected(enum seccomp_program which, uint32_t nr, const uint64_t *args)
{
	uint32_t verdict = table[which][nr];

	while (VERDICT_IS_RULE(verdict)) {
		const struct policy_test *t = policy_rules[VERDICT_TO_RULE(verdict)].tests;

		while (!test_holds(t, args))
			t++;
		verdict = t->verdict;
	}
	return verdict;
}

static void compare(enum seccomp_program which, uint32_t nr, const uint64_t *args)
{
	uint32_t want = expected(which, nr, args), got = run(which, ARCH_AUDIT, nr, args);

	if (want != got)
		fail_msg("%s: %u(0x%llx, 0x%llx, 0x%llx) is 0x%x, should be 0x%x",
			programs[which].name, nr, (unsigned long long)args[0],
			(unsigned long long)args[1], (unsigned long long)args[2], got, want);
}

/* clang-format off */
static const uint64_t samples[] = {
	0, 1, 2, 3, 4, 5, 6, 8, 10, 16, 17, 40, 58, 0x80, 0x102, 0x106, 132, 255,
	0x400, 0x402, 0x40f, 0x410,
	TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, TIOCGWINSZ, 0x100000000 + TIOCSTI,
	SOCK_STREAM | SOCK_CLOEXEC, SOCK_RAW | SOCK_NONBLOCK,
	0x100000000 + AF_VSOCK, 0x100000000 + AF_UNIX,
	CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWUSER | SIGCHLD, 0x100000000 + CLONE_NEWNET,
	CLONE_VM | CLONE_VFORK | SIGCHLD, CLONE_FILES, 0x100000000 + CLONE_FILES,
	0x20000, 0x20008, 0x40000, 0x400000, 0x80000000,
	UINT32_MAX, UINT64_MAX, UINT64_MAX << 32,
};
/* clang-format on */

static void every_number_as_in_the_table(void **state)
{
	(void)state;
	for (uint32_t nr = 0; nr < NUMBERS; nr++) {
		for (size_t i = 0; i < LENGTH(samples); i++) {
			uint64_t v = samples[i], args[6] = { v, v, v, v, v, v };

			compare(SECCOMP_STRICT, nr, args);
			compare(SECCOMP_NEST, nr, args);
		}
	}
}

static void every_rule_as_in_the_table(void **state)
{
	const size_t n = LENGTH(samples);

	(void)state;
	for (uint32_t nr = 0; nr < NUMBERS; nr++) {
		if (!VERDICT_IS_RULE(table[SECCOMP_STRICT][nr]))
			continue;
		for (size_t i = 0; i < n * n * n; i++) {
			uint64_t args[6] = { samples[i % n], samples[i / n % n],
				samples[i / n / n] };

			compare(SECCOMP_STRICT, nr, args);
			compare(SECCOMP_NEST, nr, args);
		}
	}
}

static void programs_stay_small(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(programs); i++) {
		unsigned int all = 0;

		assert_in_range(programs[i].count, 50, MAX_PROGRAM);
		for (int nr = 0; nr < TRIED; nr++) {
			struct seccomp_data data = { .nr = nr, .arch = ARCH_AUDIT };
			struct steps steps;

			interpret(programs[i].filter, programs[i].count, &data, &steps);
			all += steps.tree;
		}
		assert_in_range(all, TRIED, TRIED * MAX_USUAL_STEPS);
	}
}

/*
 * By hand: what must hold whatever the table looks like.
 */

#define ALLOW     VERDICT_ALLOW
#define REFUSE(e) VERDICT_ERRNO(e)

/* Numbers that libc's header here does not have yet. */
enum {
	CACHESTAT = 451,
	FCHMODAT2 = 452,
	FUTEX_WAKE_NR = 454,
	STATMOUNT = 457,
	LISTMOUNT = 458,
	MSEAL = 462,
	OPEN_TREE_ATTR = 467,
	LISTNS = 470,
	NOT_INVENTED_YET = 600,
};

/* clang-format off */
static const long open_calls[] = {
	SYS_read, SYS_openat, SYS_openat2, SYS_execve, SYS_execveat, SYS_exit_group, SYS_mmap,
	SYS_futex, SYS_futex_waitv, SYS_wait4, SYS_waitid, SYS_ptrace, SYS_process_vm_readv,
	SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal,
	SYS_seccomp, SYS_prctl, SYS_landlock_create_ruleset, SYS_landlock_restrict_self,
	SYS_rseq, SYS_statx, SYS_memfd_create, SYS_copy_file_range, SYS_getrandom,
	SYS_inotify_init1, SYS_shmget, SYS_mq_open, SYS_setxattr, SYS_mknodat, SYS_fchownat,
	SYS_setresuid, SYS_prlimit64, SYS_restart_syscall, SYS_rt_sigreturn,
	SYS_set_robust_list, SYS_membarrier, SYS_close_range, SYS_faccessat2, SYS_epoll_pwait2,
	SYS_sched_setscheduler, SYS_connect, SYS_sendmsg, CACHESTAT, FCHMODAT2, FUTEX_WAKE_NR,
	MSEAL,
#if defined(__x86_64__)
	SYS_open, SYS_fork, SYS_vfork, SYS_arch_prctl
#endif
};

static const long shut_calls[] = {
	SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_add_key,
	SYS_request_key, SYS_keyctl, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd,
	SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module,
	SYS_delete_module, SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_quotactl,
	SYS_quotactl_fd, SYS_acct, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_syslog,
	SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
	SYS_fanotify_init, SYS_fanotify_mark, SYS_vhangup, SYS_lookup_dcookie, SYS_nfsservctl,
	SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_move_pages, SYS_migrate_pages,
	SYS_process_madvise, SYS_memfd_secret, SYS_process_mrelease, SYS_remap_file_pages,
	STATMOUNT, LISTMOUNT, LISTNS, NOT_INVENTED_YET,
#if defined(__x86_64__)
	SYS_modify_ldt, SYS_iopl, SYS_ioperm, SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl
#endif
};

static const long nest_calls[] = {
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount,
	SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_sethostname,
	SYS_clone3, OPEN_TREE_ATTR
};
/* clang-format on */

struct call {
	long nr;
	uint64_t args[6];
	uint32_t strict, nest;
};

#define NO_ARGS                  \
	{                        \
		0, 0, 0, 0, 0, 0 \
	}
#define SOCKET(family, type, protocol, verdict)                              \
	{ SYS_socket, { family, type, protocol }, verdict, verdict },        \
	{                                                                    \
		SYS_socketpair, { family, type, protocol }, verdict, verdict \
	}
#define IOCTL(request, verdict)                             \
	{                                                   \
		SYS_ioctl, { 0, request }, verdict, verdict \
	}
#define PERSONALITY(persona, verdict)                          \
	{                                                      \
		SYS_personality, { persona }, verdict, verdict \
	}

#define FCNTL(command, verdict)                             \
	{                                                   \
		SYS_fcntl, { 0, command }, verdict, verdict \
	}

static const struct call calls[] = {
	{ SYS_setns, NO_ARGS, REFUSE(EPERM), ALLOW },

	{ SYS_clone, { SIGCHLD }, ALLOW, ALLOW },
	{ SYS_clone, { CLONE_VM | CLONE_VFORK | SIGCHLD }, ALLOW, ALLOW },
	{ SYS_clone, { 0x3d0f00 }, ALLOW, ALLOW }, /* a thread of libc's */
	{ SYS_clone, { 0xff }, ALLOW, ALLOW },     /* no time namespace but a signal */
	{ SYS_clone, { CLONE_NEWUSER | SIGCHLD }, REFUSE(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWNS }, REFUSE(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWCGROUP }, REFUSE(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWUTS }, REFUSE(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWIPC }, REFUSE(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWPID }, REFUSE(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWNET }, REFUSE(EPERM), ALLOW },
	{ SYS_clone, { 0xff00000000 | CLONE_NEWUSER }, REFUSE(EPERM), ALLOW },

	{ SYS_unshare, { 0 }, ALLOW, ALLOW },
	{ SYS_unshare, { CLONE_FS | CLONE_FILES | CLONE_SYSVSEM }, ALLOW, ALLOW },
	{ SYS_unshare, { CLONE_NEWUSER }, REFUSE(EPERM), ALLOW },
	{ SYS_unshare, { CLONE_NEWNS | CLONE_FS }, REFUSE(EPERM), ALLOW },
	{ SYS_unshare, { 0x80 }, REFUSE(EPERM), ALLOW },     /* CLONE_NEWTIME */
	{ SYS_unshare, { 0x100000 }, REFUSE(EPERM), ALLOW }, /* UNSHARE_EMPTY_MNTNS */
	{ SYS_unshare, { 0x100000000 }, REFUSE(EPERM), ALLOW },

	IOCTL(TIOCGWINSZ, ALLOW),
	IOCTL(FIONREAD, ALLOW),
	IOCTL(TIOCSCTTY, ALLOW),
	IOCTL(TIOCSTI, REFUSE(EPERM)),
	IOCTL(TIOCLINUX, REFUSE(EPERM)),
	IOCTL(TIOCSETD, REFUSE(EPERM)),
	IOCTL(TIOCCONS, REFUSE(EPERM)),
	IOCTL(0x100000000 + TIOCSTI, REFUSE(EPERM)),
	IOCTL(0xffffffff00000000 + TIOCSTI, REFUSE(EPERM)),
	IOCTL(0x8000000000000000 + TIOCLINUX, REFUSE(EPERM)),

	/*
	 * What follows is written down by number, as the kernel has it: a header may not know
	 * all of them, and a table that is wrong must not be what says what is right.
	 */
	IOCTL(0x5412, REFUSE(EPERM)),       /* TIOCSTI */
	IOCTL(0x541c, REFUSE(EPERM)),       /* TIOCLINUX */
	IOCTL(0x541d, REFUSE(EPERM)),       /* TIOCCONS */
	IOCTL(0x5423, REFUSE(EPERM)),       /* TIOCSETD */
	IOCTL(0x50009401, REFUSE(EPERM)),   /* btrfs: SNAP_CREATE */
	IOCTL(0x50009417, REFUSE(EPERM)),   /* SNAP_CREATE_V2 */
	IOCTL(0x5000940e, REFUSE(EPERM)),   /* SUBVOL_CREATE */
	IOCTL(0x50009418, REFUSE(EPERM)),   /* SUBVOL_CREATE_V2 */
	IOCTL(0xc028660f, REFUSE(EPERM)),   /* EXT4_IOC_MOVE_EXT */
	IOCTL(0xc0c0586d, REFUSE(EPERM)),   /* XFS_IOC_SWAPEXT */
	IOCTL(0xc020f509, REFUSE(EPERM)),   /* F2FS_IOC_MOVE_RANGE */
	IOCTL(0x7750009417, REFUSE(EPERM)), /* the same, with bits that the kernel drops */
	IOCTL(0xffffffff50009418, REFUSE(EPERM)), /* as a signed int is passed */
	IOCTL(0x40049409, ALLOW),                 /* FICLONE, which cp(1) uses */
	IOCTL(0x80086601, ALLOW),                 /* FS_IOC_GETFLAGS */

#if defined(__x86_64__)
	{ 90, { 0, 0755 }, ALLOW, ALLOW }, /* chmod */
	{ 90, { 0, 02755 }, ALLOW, ALLOW },
	{ 90, { 0, 04755 }, REFUSE(EPERM), REFUSE(EPERM) },
	{ 90, { 04755, 0755, 04755 }, ALLOW, ALLOW },
#endif
	{ SYS_fchmod, { 0, 02755 }, ALLOW, ALLOW },
	{ SYS_fchmod, { 0, 04000 }, REFUSE(EPERM), REFUSE(EPERM) },
	{ SYS_fchmod, { 0, 0x100000000 + 06711 }, REFUSE(EPERM), REFUSE(EPERM) },
	{ SYS_fchmodat, { 0, 04755, 02755 }, ALLOW, ALLOW },
	{ SYS_fchmodat, { 0, 0, 04755 }, REFUSE(EPERM), REFUSE(EPERM) },
	{ 452, { 0, 04755, 02755 }, ALLOW, ALLOW }, /* fchmodat2 */
	{ 452, { 0, 0, 04755, 0x1000 }, REFUSE(EPERM), REFUSE(EPERM) },
	{ 452, { 0, 0, 0xffffffff00000000 + 04000 }, REFUSE(EPERM), REFUSE(EPERM) },

	/* 4 is the limit on core files, 7 that on open files. Refused with success. */
	{ SYS_setrlimit, { 4, 0x1000 }, REFUSE(0), REFUSE(0) },
	{ SYS_setrlimit, { 0x500000004, 0x1000 }, REFUSE(0), REFUSE(0) },
	{ SYS_setrlimit, { 7, 0x1000 }, ALLOW, ALLOW },
	{ SYS_prlimit64, { 0, 4, 0, 0x1000 }, ALLOW, ALLOW },
	{ SYS_prlimit64, { 0, 4, 0x1000, 0 }, REFUSE(0), REFUSE(0) },
	{ SYS_prlimit64, { 0, 4, 0x7f0000000000, 0 }, REFUSE(0), REFUSE(0) },
	{ SYS_prlimit64, { 4, 7, 0x1000, 0 }, ALLOW, ALLOW },

	{ SYS_clone, { 0x00020000 }, REFUSE(EPERM), ALLOW }, /* CLONE_NEWNS */
	{ SYS_clone, { 0x02000000 }, REFUSE(EPERM), ALLOW }, /* NEWCGROUP */
	{ SYS_clone, { 0x04000000 }, REFUSE(EPERM), ALLOW }, /* NEWUTS */
	{ SYS_clone, { 0x08000000 }, REFUSE(EPERM), ALLOW }, /* NEWIPC */
	{ SYS_clone, { 0x10000000 }, REFUSE(EPERM), ALLOW }, /* NEWUSER */
	{ SYS_clone, { 0x20000000 }, REFUSE(EPERM), ALLOW }, /* NEWPID */
	{ SYS_clone, { 0x40000000 }, REFUSE(EPERM), ALLOW }, /* NEWNET */
	{ SYS_clone, { 0x80000000 }, ALLOW, ALLOW },         /* IO */
	{ SYS_unshare, { 0x02000000 }, REFUSE(EPERM), ALLOW },
	{ SYS_unshare, { 0x04000000 }, REFUSE(EPERM), ALLOW },
	{ SYS_unshare, { 0x08000000 }, REFUSE(EPERM), ALLOW },
	{ SYS_unshare, { 0x20000000 }, REFUSE(EPERM), ALLOW },
	{ SYS_unshare, { 0x40000000 }, REFUSE(EPERM), ALLOW },

	FCNTL(0, ALLOW),             /* F_DUPFD */
	FCNTL(4, ALLOW),             /* F_SETFL */
	FCNTL(6, ALLOW),             /* F_SETLK */
	FCNTL(8, ALLOW),             /* F_SETOWN */
	FCNTL(10, ALLOW),            /* F_SETSIG */
	FCNTL(16, ALLOW),            /* F_GETOWN_EX */
	FCNTL(38, ALLOW),            /* F_OFD_SETLKW */
	FCNTL(1024, REFUSE(EINVAL)), /* F_SETLEASE */
	FCNTL(0x100000000 + 1024, REFUSE(EINVAL)),
	FCNTL(1025, ALLOW),          /* F_GETLEASE */
	FCNTL(1026, REFUSE(EINVAL)), /* F_NOTIFY */
	FCNTL(0xffffffff00000000 + 1026, REFUSE(EINVAL)),
	FCNTL(1030, ALLOW),          /* F_DUPFD_CLOEXEC */
	FCNTL(1031, ALLOW),          /* F_SETPIPE_SZ */
	FCNTL(1033, ALLOW),          /* F_ADD_SEALS */
	FCNTL(1038, ALLOW),          /* F_SET_FILE_RW_HINT */
	FCNTL(1039, REFUSE(EINVAL)), /* F_GETDELEG */
	FCNTL(1040, REFUSE(EINVAL)), /* F_SETDELEG */
	FCNTL(64, REFUSE(EINVAL)),
	FCNTL(2048, REFUSE(EINVAL)),
	FCNTL(UINT32_MAX, REFUSE(EINVAL)),

	PERSONALITY(0, ALLOW),
	PERSONALITY(8, ALLOW),
	PERSONALITY(0x20000, ALLOW),
	PERSONALITY(0x20008, ALLOW),
	PERSONALITY(0x40000, ALLOW),
	PERSONALITY(0xffffffff, ALLOW),
	PERSONALITY(0x400000, REFUSE(EPERM)),
	PERSONALITY(0x100000, REFUSE(EPERM)),
	PERSONALITY(6, REFUSE(EPERM)),
	PERSONALITY(0x100400000, REFUSE(EPERM)),

	SOCKET(AF_UNIX, SOCK_STREAM, 0, ALLOW),
	SOCKET(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ALLOW),
	SOCKET(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0, ALLOW),
	SOCKET(AF_INET, SOCK_DGRAM, IPPROTO_UDP, ALLOW),
	SOCKET(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP, ALLOW),
	SOCKET(AF_INET, SOCK_DGRAM, IPPROTO_ICMP, ALLOW),
	SOCKET(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6, ALLOW),
	SOCKET(AF_INET, SOCK_RAW, IPPROTO_ICMP, REFUSE(EPERM)),
	SOCKET(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW, REFUSE(EPERM)),
	SOCKET(AF_INET, SOCK_PACKET, 0x300, REFUSE(EPERM)),
	SOCKET(AF_INET, SOCK_SEQPACKET, 132, REFUSE(EPERM)),          /* SCTP */
	SOCKET(AF_INET, SOCK_STREAM, 132, REFUSE(EPROTONOSUPPORT)),   /* SCTP */
	SOCKET(AF_INET, SOCK_STREAM, 0x106, REFUSE(EPROTONOSUPPORT)), /* MPTCP */
	SOCKET(AF_INET, SOCK_STREAM, 256, REFUSE(EPROTONOSUPPORT)),   /* SMC */
	SOCKET(2, 2, 136, REFUSE(EPROTONOSUPPORT)),                   /* UDP-Lite */
	SOCKET(10, 2, 136, REFUSE(EPROTONOSUPPORT)),                  /* over IPv6 */
	SOCKET(2, 2, 0x500000088, REFUSE(EPROTONOSUPPORT)), /* with bits that are dropped */
	SOCKET(2, 6, 33, REFUSE(EPERM)),                    /* DCCP, by its own type */
	SOCKET(2, 1, 33, REFUSE(EPROTONOSUPPORT)),          /* DCCP */
	SOCKET(2, 2, 115, REFUSE(EPROTONOSUPPORT)),         /* L2TP */
	SOCKET(2, 2, 2, REFUSE(EPROTONOSUPPORT)),           /* IGMP */
	SOCKET(2, 3, 0, REFUSE(EPERM)),                     /* raw */
	SOCKET(2, 10, 0, REFUSE(EPERM)),                    /* SOCK_PACKET */
	SOCKET(10, 0x80003, 58, REFUSE(EPERM)),             /* raw ICMPv6, close-on-exec */
	SOCKET(40, 1, 0, REFUSE(EAFNOSUPPORT)),             /* vsock */
	SOCKET(38, 5, 0, REFUSE(EAFNOSUPPORT)),             /* the kernel's ciphers */
	SOCKET(44, 3, 0, REFUSE(EAFNOSUPPORT)),             /* XDP */
	SOCKET(16, 3, 15, REFUSE(EAFNOSUPPORT)),            /* netlink: uevents */
	SOCKET(16, 3, 16, REFUSE(EAFNOSUPPORT)),            /* netlink: generic */
	SOCKET(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0, ALLOW),
	SOCKET(AF_NETLINK, SOCK_RAW, 9, REFUSE(EAFNOSUPPORT)),  /* audit */
	SOCKET(AF_NETLINK, SOCK_RAW, 12, REFUSE(EAFNOSUPPORT)), /* netfilter */
	SOCKET(AF_PACKET, SOCK_RAW, 0, REFUSE(EAFNOSUPPORT)),
	SOCKET(AF_ALG, SOCK_SEQPACKET, 0, REFUSE(EAFNOSUPPORT)),
	SOCKET(AF_VSOCK, SOCK_STREAM, 0, REFUSE(EAFNOSUPPORT)),
	SOCKET(AF_UNSPEC, SOCK_STREAM, 0, REFUSE(EAFNOSUPPORT)),
	SOCKET(AF_BLUETOOTH, SOCK_RAW, 1, REFUSE(EAFNOSUPPORT)),
	SOCKET(UINT32_MAX, SOCK_STREAM, 0, REFUSE(EAFNOSUPPORT)),
	SOCKET(0x100000000 + AF_VSOCK, SOCK_STREAM, 0, REFUSE(EAFNOSUPPORT)),
};

static void assert_verdicts(uint32_t nr, const uint64_t *args, uint32_t strict, uint32_t nest)
{
	uint32_t got_strict = run(SECCOMP_STRICT, ARCH_AUDIT, nr, args);
	uint32_t got_nest = run(SECCOMP_NEST, ARCH_AUDIT, nr, args);

	if (got_strict != strict || got_nest != nest)
		fail_msg("%u(0x%llx, 0x%llx, 0x%llx): strict 0x%x, nest 0x%x", nr,
			(unsigned long long)args[0], (unsigned long long)args[1],
			(unsigned long long)args[2], got_strict, got_nest);
}

static void calls_as_we_mean_them(void **state)
{
	const uint64_t none[6] = NO_ARGS;

	(void)state;
	for (size_t i = 0; i < LENGTH(open_calls); i++)
		assert_verdicts((uint32_t)open_calls[i], none, ALLOW, ALLOW);
	for (size_t i = 0; i < LENGTH(shut_calls); i++)
		assert_verdicts((uint32_t)shut_calls[i], none, REFUSE(ENOSYS), REFUSE(ENOSYS));
	for (size_t i = 0; i < LENGTH(nest_calls); i++)
		assert_verdicts((uint32_t)nest_calls[i], none, REFUSE(ENOSYS), ALLOW);
	for (size_t i = 0; i < LENGTH(calls); i++)
		assert_verdicts((uint32_t)calls[i].nr, calls[i].args, calls[i].strict,
			calls[i].nest);
}

static void foreign_callers_are_killed(void **state)
{
	static const uint32_t foreign[] = { ARCH_FOREIGN, AUDIT_ARCH_PPC64LE, 0, UINT32_MAX };
	const uint64_t args[6] = NO_ARGS;

	(void)state;
	for (enum seccomp_program which = SECCOMP_STRICT; which <= SECCOMP_NEST; which++) {
		for (uint32_t nr = 0; nr < NUMBERS; nr++) {
			for (size_t i = 0; i < LENGTH(foreign); i++)
				assert_int_equal(run(which, foreign[i], nr, args),
					VERDICT_KILL);
#if defined(__x86_64__)
			assert_int_equal(run(which, ARCH_AUDIT, X32_BIT + nr, args),
				VERDICT_KILL);
			assert_int_equal(run(which, ARCH_AUDIT, nr | 1u << 31, args),
				VERDICT_KILL);
#endif
		}
		assert_int_equal(run(which, ARCH_AUDIT, NR_SKIPPED, args), VERDICT_ALLOW);
		assert_int_equal(run(which, ARCH_AUDIT, X32_BIT - 1, args), VERDICT_DEFAULT);
	}
}

/*
 * For real. A child does one thing, under a filter or not, and exits with the errno.
 */

enum { UNFILTERED = -1 };

/* The child's exit status as from waitpid. */
static int in_child(int which, int (*act)(void))
{
	struct fault fault;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
			_exit(255);
		if (which != UNFILTERED &&
			seccomp_apply((enum seccomp_program)which, &fault) != 0)
			_exit(254);
		_exit(act());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void assert_exit(int status, int code)
{
	if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
		fail_msg("status 0x%x instead of exit code %d", status, code);
}

static int result(long rc)
{
	return rc < 0 ? errno : 0;
}

static int act_io_uring(void)
{
	return result(syscall(SYS_io_uring_setup, 0, NULL));
}

static int act_mount(void)
{
	return result(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL));
}

static int act_setns(void)
{
	return result(syscall(SYS_setns, -1, 0));
}

/* An undefined combination, so that the kernel's own answer is EINVAL. */
static int act_clone_newuser(void)
{
	return result(syscall(SYS_clone, CLONE_NEWUSER | CLONE_FS, 0, 0, 0, 0));
}

static int act_clone3(void)
{
	return result(syscall(SYS_clone3, NULL, 0));
}

static int act_fork(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : errno;
}

static int act_tiocsti(void)
{
	return result(syscall(SYS_ioctl, -1, TIOCSTI, ""));
}

static int act_tiocsti_high(void)
{
	return result(syscall(SYS_ioctl, -1, 0xdead00000000 + TIOCSTI, ""));
}

static int act_tiocgwinsz(void)
{
	return result(syscall(SYS_ioctl, -1, TIOCGWINSZ, ""));
}

static int act_socket_unix(void)
{
	return result(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int act_socket_inet(void)
{
	return result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
}

/* Known to the kernel, but not with this type: ESOCKTNOSUPPORT where it has the family. */
static int act_socket_alg(void)
{
	return result(socket(AF_ALG, SOCK_STREAM, 0));
}

static const struct {
	int (*act)(void);
	int plain, strict, nest; /* plain -1: depends on the kernel */
} attempts[] = {
	{ act_io_uring, -1, ENOSYS, ENOSYS },
	{ act_mount, -1, ENOSYS, -1 },
	{ act_setns, EBADF, EPERM, EBADF },
	{ act_clone_newuser, EINVAL, EPERM, EINVAL },
	{ act_clone3, EINVAL, ENOSYS, EINVAL },
	{ act_fork, 0, 0, 0 },
	{ act_tiocsti, EBADF, EPERM, EPERM },
	{ act_tiocsti_high, EBADF, EPERM, EPERM },
	{ act_tiocgwinsz, EBADF, EBADF, EBADF },
	{ act_socket_unix, 0, 0, 0 },
	{ act_socket_inet, 0, 0, 0 },
	{ act_socket_alg, -1, EAFNOSUPPORT, EAFNOSUPPORT },
};

static void kernel_agrees(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(attempts); i++) {
		if (attempts[i].plain >= 0)
			assert_exit(in_child(UNFILTERED, attempts[i].act), attempts[i].plain);
		assert_exit(in_child(SECCOMP_STRICT, attempts[i].act), attempts[i].strict);
		if (attempts[i].nest >= 0)
			assert_exit(in_child(SECCOMP_NEST, attempts[i].act), attempts[i].nest);
	}
	/* Refused by the kernel, not by the filter: nest may mount where it has the right. */
	assert_true(WEXITSTATUS(in_child(SECCOMP_NEST, act_mount)) != ENOSYS);
}

#if defined(__x86_64__)
static int act_x32(void)
{
	return result(syscall((long)X32_BIT + SYS_getpid));
}

static int act_int80(void)
{
	long rc = 20; /* getpid, as i386 counts */

	__asm__ volatile("int $0x80" : "+a"(rc) : : "memory", "r8", "r9", "r10", "r11");
	return rc == getpid() ? 0 : 1;
}

static void assert_killed(int status)
{
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
		fail_msg("status 0x%x instead of SIGSYS", status);
}

static void other_entries_are_killed(void **state)
{
	int plain = in_child(UNFILTERED, act_int80);

	(void)state;
	assert_true(WIFEXITED(in_child(UNFILTERED, act_x32)));
	assert_killed(in_child(SECCOMP_STRICT, act_x32));
	assert_killed(in_child(SECCOMP_NEST, act_x32));

	/* A kernel without 32-bit emulation raises SIGSEGV before any filter runs. */
	if (WIFSIGNALED(plain)) {
		assert_int_equal(WTERMSIG(plain), SIGSEGV);
		return;
	}
	assert_exit(plain, 0);
	assert_killed(in_child(SECCOMP_STRICT, act_int80));
	assert_killed(in_child(SECCOMP_NEST, act_int80));
}
#endif

static int act_nothing(void)
{
	return 0;
}

/* Without no_new_privs and without privileges the kernel refuses, and we say so. */
static void failure_is_a_fault(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		struct fault fault = { 0 };

		if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
			_exit(0);
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
			_exit(2);
		if (seccomp_apply(SECCOMP_STRICT, &fault) != -EACCES)
			_exit(3);
		_exit(fault.err == EACCES && strstr(fault.text, "filter") ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_exit(status, 0);
	assert_exit(in_child(SECCOMP_STRICT, act_nothing), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_as_in_the_table),
		cmocka_unit_test(every_rule_as_in_the_table),
		cmocka_unit_test(programs_stay_small),
		cmocka_unit_test(calls_as_we_mean_them),
		cmocka_unit_test(foreign_callers_are_killed),
		cmocka_unit_test(kernel_agrees),
#if defined(__x86_64__)
		cmocka_unit_test(other_entries_are_killed),
#endif
		cmocka_unit_test(failure_is_a_fault),
	};

	return cmocka_run_group_tests(tests, read_table, NULL);
}
