/*
 * tests/unit/test_jail.c - what a broker that was taken over could still do
 *
 * The same attempts in two children, one of which has shut itself in as the broker does. In
 * the other each must have the result that makes its refusal here mean something.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "helper/jail.h"
#include "net/broker/broker.h"

/* Made before the jail, as the broker's are. */
static int listener = -1, file = -1;
static struct sockaddr_in at;

static int ok(long rc)
{
	return rc < 0 ? errno : 0;
}

/* ---- what must not work ---- */

static int try_open(void)
{
	return ok(open("/etc/passwd", O_RDONLY));
}

static int try_openat2(void)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = { 0 };

	return ok(syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof(how)));
}

static int try_stat(void)
{
	struct stat st;

	return ok(stat("/etc/passwd", &st));
}

static int try_unlink(void)
{
	return ok(unlink("/nonexistent/file"));
}

static int try_file(void)
{
	return ok(fchmod(file, 0600));
}

static int try_map(void)
{
	return ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED ? -1 : 0);
}

static int try_exec(void)
{
	static char *const none[] = { NULL };

	return ok(execve("/nonexistent", none, none));
}

static int try_execveat(void)
{
	static char *const none[] = { NULL };

	return ok(syscall(SYS_execveat, listener, "", none, none, AT_EMPTY_PATH));
}

static int try_fork(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return ok(pid);
}

static int try_clone3(void)
{
	return ok(syscall(SYS_clone3, NULL, 0));
}

static int try_unshare(void)
{
	return ok(unshare(CLONE_FILES));
}

static int try_setns(void)
{
	return ok(setns(listener, 0));
}

static int try_executable(void)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS;
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, how, -1, 0);

	return ok(p == MAP_FAILED ? -1 : 0);
}

static int try_protect(void)
{
	static char page[8192] __attribute__((aligned(4096)));

	return ok(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
}

static int try_memfd(void)
{
	return ok(memfd_create("jail", 0));
}

static int try_unix(void)
{
	return ok(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int try_unix_high(void)
{
	/* The kernel takes an int: what is above it must not hide the family. */
	return ok(syscall(SYS_socket, 0x200000000 | AF_UNIX, SOCK_STREAM, 0L));
}

static int try_netlink(void)
{
	return ok(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int try_pair(void)
{
	int ends[2];

	return ok(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

static int try_bind(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int s = socket(AF_INET, SOCK_STREAM, 0);

	return ok(bind(s, (struct sockaddr *)&any, sizeof(any)));
}

static int try_listen(void)
{
	return ok(listen(socket(AF_INET, SOCK_STREAM, 0), 1));
}

static int try_kill(void)
{
	return ok(kill(getppid(), 0));
}

/* Signals by the back door: a descriptor's owner, and the signal of one's choice. */
static int try_owner(void)
{
	return ok(fcntl(listener, F_SETOWN, getpid()));
}

static int try_signal_number(void)
{
	return ok(fcntl(listener, F_SETSIG, SIGKILL));
}

static int try_flags(void)
{
	return ok(fcntl(listener, F_SETFL, O_ASYNC | O_NONBLOCK));
}

static int try_ptrace(void)
{
	return ok(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int try_read_memory(void)
{
	char c = 0;
	struct iovec one = { &c, 1 };

	return ok(process_vm_readv(getpid(), &one, 1, &one, 1, 0));
}

static int try_prctl(void)
{
	return ok(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static int try_limit(void)
{
	struct rlimit limit;

	return ok(getrlimit(RLIMIT_CORE, &limit));
}

static int try_chdir(void)
{
	return ok(chdir("/"));
}

static int try_uring(void)
{
	return ok(syscall(SYS_io_uring_setup, 1, NULL));
}

static int try_ioctl(void)
{
	int n;

	return ok(syscall(SYS_ioctl, listener, 0x541b /* FIONREAD */, &n));
}

struct attempt {
	const char *name;
	int (*run)(void);
	int control; /* the errno without the jail; -1: that of its arguments, or of the kernel */
	bool sanitized; /* a sanitizer needs the call for itself */
};

static const struct attempt attempts[] = {
	{ "open", try_open, 0, false },
	{ "openat2", try_openat2, 0, false },
	{ "stat", try_stat, 0, false },
	{ "unlink", try_unlink, ENOENT, false },
	{ "change a file that is open", try_file, 0, false },
	{ "map a file that is open", try_map, 0, true },
	{ "execve", try_exec, ENOENT, false },
	{ "execveat", try_execveat, -1, false },
	{ "clone", try_fork, 0, false },
	{ "clone3", try_clone3, -1, false },
	{ "unshare", try_unshare, 0, false },
	{ "setns", try_setns, -1, false },
	{ "executable memory", try_executable, 0, true },
	{ "memory made executable", try_protect, 0, false },
	{ "memfd", try_memfd, 0, false },
	{ "a unix socket", try_unix, 0, false },
	{ "a unix socket, high bits set", try_unix_high, 0, false },
	{ "a netlink socket", try_netlink, 0, false },
	{ "socketpair", try_pair, 0, false },
	{ "bind", try_bind, 0, false },
	{ "listen", try_listen, 0, false },
	{ "kill", try_kill, 0, false },
	{ "owner of a descriptor", try_owner, 0, false },
	{ "signal of a descriptor", try_signal_number, 0, false },
	{ "flags of a descriptor", try_flags, 0, false },
	{ "ptrace", try_ptrace, 0, false },
	{ "process_vm_readv", try_read_memory, 0, false },
	{ "prctl", try_prctl, 0, true },
	{ "prlimit", try_limit, 0, false },
	{ "chdir", try_chdir, 0, false },
	{ "io_uring", try_uring, -1, false },
	{ "ioctl", try_ioctl, -1, true },
};

/* ---- what must ---- */

static int do_dial(void)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return ok(connect(s, (struct sockaddr *)&at, sizeof(at)));
}

static int do_accept(void)
{
	return ok(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

static int do_datagram(void)
{
	int s = socket(AF_INET6, SOCK_DGRAM, 0);

	return s < 0 && errno == EAFNOSUPPORT ? 0 : ok(s);
}

static int do_pipe(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return errno;
	return ok(fcntl(ends[1], F_SETPIPE_SZ, 8192));
}

static int do_random(void)
{
	char c;

	return ok(getrandom(&c, 1, 0));
}

static const struct attempt needs[] = {
	{ "dial", do_dial, 0, false },
	{ "accept", do_accept, 0, false },
	{ "a datagram socket", do_datagram, 0, false },
	{ "a pipe and its size", do_pipe, 0, false },
	{ "random bytes", do_random, 0, false },
};

/* ---- in a child ---- */

enum { ALL = ARRAY_SIZE(attempts) + ARRAY_SIZE(needs) };

static int run_all(int results[ALL])
{
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		results[n++] = needs[i].run();
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++)
		results[n++] = attempts[i].run();
	return n;
}

/* Whoever asks for a filter from now on is told that it is there, and has none. */
static bool lose_seccomp(void)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog all = { ARRAY_SIZE(program), program };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0;
}

enum how { FREE, JAILED, LANDLOCK_ALONE };

/* The errno of each, in the order of needs and then attempts. */
static void in_child(enum how how, int results[ALL])
{
	int ends[2], status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	if (pid == 0) {
		struct fault f = { 0 };

		if ((how == LANDLOCK_ALONE && !lose_seccomp()) ||
			(how != FREE && jail_enter(&broker_jail, &f) < 0))
			_exit(1);
		run_all(results);
		_exit(send(ends[1], results, ALL * sizeof(int), 0) == ALL * sizeof(int) ? 0
											: 1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], results, ALL * sizeof(int)), ALL * sizeof(int));
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int set_up(void **state)
{
	socklen_t size = sizeof(at);

	at = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x7f000001) };
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	file = memfd_create("jail", MFD_CLOEXEC);
	return listener < 0 || file < 0 || bind(listener, (struct sockaddr *)&at, size) < 0 ||
		listen(listener, 8) < 0 || ftruncate(file, 4096) < 0 ||
		getsockname(listener, (struct sockaddr *)&at, &size) < 0;
}

static void test_jail(void **state)
{
	int free[ALL], jailed[ALL], n = 0;

	in_child(FREE, free);
	in_child(JAILED, jailed);
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++, n++)
		if (free[n] || jailed[n])
			fail_msg("%s: %s, %s", needs[i].name, strerror(free[n]),
				strerror(jailed[n]));
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++, n++) {
		const struct attempt *a = &attempts[i];

#ifdef __SANITIZE_ADDRESS__
		if (a->sanitized)
			continue;
#endif
		if (a->control >= 0 && free[n] != a->control)
			fail_msg("%s means nothing: %s", a->name, strerror(free[n]));
		if (jailed[n] != EPERM)
			fail_msg("%s: %s", a->name, strerror(jailed[n]));
	}
}

static int result_of(const int results[ALL], int (*run)(void))
{
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++)
		if (attempts[i].run == run)
			return results[ARRAY_SIZE(needs) + i];
	fail();
	return -1;
}

/* What the other layer would refuse anyway is refused by this one, by its own errno. */
static void test_landlock_alone(void **state)
{
	const struct {
		int (*run)(void);
		int abi, error;
	} refused[] = { { try_open, 1, EACCES }, { try_openat2, 1, EACCES },
		{ try_bind, 4, EACCES }, { try_kill, 6, EPERM } };
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1), alone[ALL];

	in_child(LANDLOCK_ALONE, alone);
	assert_int_equal(result_of(alone, try_memfd), 0); /* there is no filter */
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (abi >= refused[i].abi)
			assert_int_equal(result_of(alone, refused[i].run), refused[i].error);
}

/* 0, or the line of what is not as it should be. */
static int look_at_self(bool jailed)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct has[2];
	struct rlimit core;

	if (syscall(SYS_capget, &head, has) < 0 || getrlimit(RLIMIT_CORE, &core) < 0)
		return __LINE__;
	if (!jailed) /* the control: root has them, and anybody can be looked into */
		return geteuid() == 0 && !has[0].permitted ? __LINE__
			: prctl(PR_GET_DUMPABLE) != 1      ? __LINE__
							   : 0;
	for (int i = 0; i < 2; i++)
		if (has[i].effective || has[i].permitted || has[i].inheritable)
			return __LINE__;
	if (prctl(PR_GET_DUMPABLE) != 0)
		return __LINE__;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return __LINE__;
	return core.rlim_cur == 1 && core.rlim_max == 1 ? 0 : __LINE__;
}

/* What the filter keeps from being asked, and what is left of root's powers without it. */
static void test_powers(void **state)
{
	for (int jailed = 0; jailed <= 1; jailed++) {
		struct fault f = { 0 };
		int ends[2], wrong = -1, status;
		pid_t pid;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		pid = fork();
		if (pid == 0) {
			if (jailed && (!lose_seccomp() || jail_enter(&broker_jail, &f) < 0))
				_exit(1);
			wrong = look_at_self(jailed);
			_exit(send(ends[1], &wrong, sizeof(wrong), 0) == sizeof(wrong) ? 0 : 1);
		}
		close(ends[1]);
		assert_int_equal(read(ends[0], &wrong, sizeof(wrong)), sizeof(wrong));
		close(ends[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(wrong, 0);
	}
}

#if defined(__x86_64__)
/* By the door of 32-bit programs, where other calls have the numbers of those on the list. */
static void test_other_entry(void **state)
{
	for (int jailed = 0; jailed <= 1; jailed++) {
		struct fault f = { 0 };
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			long rc = 20; /* getpid */

			if (jailed && jail_enter(&broker_jail, &f) < 0)
				_exit(1);
			__asm__ volatile("int $0x80"
					 : "+a"(rc)
					 :
					 : "memory", "r8", "r9", "r10", "r11");
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		/* A kernel without 32-bit emulation raises SIGSEGV before any filter runs. */
		if (!jailed && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
			return;
		if (jailed)
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
		else
			assert_int_equal(status, 0);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_jail, set_up),
		cmocka_unit_test_setup(test_landlock_alone, set_up),
		cmocka_unit_test(test_powers),
#if defined(__x86_64__)
		cmocka_unit_test(test_other_entry),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
