/*
 * tests/escape/attack.c - one program, many attacks
 *
 * `attack STEP , STEP , ...` runs the steps in order in one process, so that what one
 * step got hold of (a kept descriptor, a working directory, a namespace) serves the
 * next. Each step attempts one thing, as raw as it can, and prints one line: "ok",
 * "ok TEXT", or the name of the errno. The lines are for the reader and for checks of
 * the filter's errno; whether an attack succeeded is judged on the host.
 *
 * Linked statically: it must run in a box, outside of it, and in a directory without
 * a library, with nothing between it and the kernel.
 *
 * A new attack is one function and one row of the table at the end.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/ip_icmp.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <mqueue.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

extern char **environ;

static int kept = -1; /* the descriptor of `hold` */

static unsigned long number(const char *text)
{
	return strtoul(text, NULL, 0);
}

static void say(const char *text, size_t len)
{
	fputs("ok ", stdout);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= ' ' && c < 127 && c != '\\')
			putchar(c);
		else
			printf("\\x%02x", c);
	}
	putchar('\n');
}

static void say_error(int err)
{
	const char *name = strerrorname_np(err);

	printf("%s\n", name ? name : "E?");
}

static void result(long r)
{
	if (r < 0)
		say_error(errno);
	else if (r == 0)
		puts("ok");
	else
		printf("ok %ld\n", r);
}

/* The outcome of something that gives a descriptor, which is left open. */
static void got(int fd)
{
	if (fd < 0)
		say_error(errno);
	else
		puts("ok");
}

/* ---- files ---------------------------------------------------------------- */

static void say_contents(int fd)
{
	char buf[16384];
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

	if (n < 0)
		say_error(errno);
	else
		say(buf, (size_t)n);
	if (fd >= 0)
		close(fd);
}

static void a_read(char **v)
{
	say_contents(open(v[0], O_RDONLY | O_NONBLOCK));
}

static void a_readat(char **v)
{
	say_contents(openat(kept, v[0], O_RDONLY | O_NONBLOCK));
}

/* O_PATH needs no permission on the file itself; the reopen through proc does. */
static void a_opathread(char **v)
{
	char link[64];
	int fd = open(v[0], O_PATH);

	if (fd < 0) {
		say_error(errno);
		return;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	say_contents(open(link, O_RDONLY));
}

static void a_mmapread(char **v)
{
	int fd = open(v[0], O_RDONLY);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0) {
		say_error(errno);
		return;
	}
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		say_error(errno);
	else if (st.st_size == 0)
		puts("ok");
	else
		say(p, (size_t)(st.st_size < 512 ? st.st_size : 512));
}

static void put_at(int dir, const char *path, int flags, const char *text)
{
	/* Not waiting: a fifo has no reader here. */
	int fd = openat(dir, path, flags | O_NONBLOCK, 0755);

	if (fd < 0)
		say_error(errno);
	else
		result(write(fd, text, strlen(text)) < 0 ? -1 : 0);
	if (fd >= 0)
		close(fd);
}

static void a_write(char **v)
{
	put_at(AT_FDCWD, v[0], O_WRONLY, v[1]);
}

static void a_create(char **v)
{
	put_at(AT_FDCWD, v[0], O_WRONLY | O_CREAT | O_EXCL, v[1]);
}

static void a_put(char **v)
{
	put_at(AT_FDCWD, v[0], O_WRONLY | O_CREAT | O_TRUNC, v[1]);
}

static void a_putat(char **v)
{
	put_at(kept, v[0], O_WRONLY | O_CREAT | O_TRUNC, v[1]);
}

static void a_truncate(char **v)
{
	result(truncate(v[0], 0));
}

static void a_mkdir(char **v)
{
	result(mkdir(v[0], 0755));
}

static void a_rmdir(char **v)
{
	result(rmdir(v[0]));
}

static void a_unlink(char **v)
{
	result(unlink(v[0]));
}

static void a_symlink(char **v)
{
	result(symlink(v[0], v[1]));
}

static void a_link(char **v)
{
	result(link(v[0], v[1]));
}

/* A hard link of the descriptor itself: the path's mount plays no part. */
static void a_linkfd(char **v)
{
	char path[64];
	int fd = open(v[0], O_PATH | O_NOFOLLOW);

	if (fd < 0) {
		say_error(errno);
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	result(linkat(AT_FDCWD, path, AT_FDCWD, v[1], AT_SYMLINK_FOLLOW));
}

static void a_rename(char **v)
{
	result(rename(v[0], v[1]));
}

static void a_exchange(char **v)
{
	result(renameat2(AT_FDCWD, v[0], AT_FDCWD, v[1], RENAME_EXCHANGE));
}

static void a_whiteout(char **v)
{
	result(renameat2(AT_FDCWD, v[0], AT_FDCWD, v[1], RENAME_WHITEOUT));
}

static void a_noreplace(char **v)
{
	result(renameat2(AT_FDCWD, v[0], AT_FDCWD, v[1], RENAME_NOREPLACE));
}

static void a_chmod(char **v)
{
	result(chmod(v[0], (mode_t)strtoul(v[1], NULL, 8)));
}

static void a_setxattr(char **v)
{
	result(setxattr(v[0], v[1], v[2], strlen(v[2]), 0));
}

static void a_mknod(char **v)
{
	mode_t type = *v[1] == 'b' ? S_IFBLK : *v[1] == 'c' ? S_IFCHR : S_IFIFO;

	result(mknod(v[0], type | 0666,
		makedev((unsigned)number(v[2]), (unsigned)number(v[3]))));
}

static void a_list(char **v)
{
	DIR *d = opendir(v[0]);
	static char all[1 << 18]; /* /proc of a machine with many processes */
	struct dirent *e;

	if (!d) {
		say_error(errno);
		return;
	}
	*all = '\0';
	while ((e = readdir(d)) && strlen(all) + strlen(e->d_name) + 2 < sizeof(all))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			strcat(strcat(all, e->d_name), " ");
	say(all, strlen(all));
	closedir(d);
}

static void a_readlink(char **v)
{
	char buf[4096];
	ssize_t n = readlink(v[0], buf, sizeof(buf));

	if (n < 0)
		say_error(errno);
	else
		say(buf, (size_t)n);
}

static void a_open(char **v)
{
	static const struct {
		const char *name;
		int flags;
	} modes[] = {
		{ "r", O_RDONLY },
		{ "w", O_WRONLY },
		{ "rw", O_RDWR },
		{ "dir", O_RDONLY | O_DIRECTORY },
		{ "path", O_PATH },
		{ "tmp", O_TMPFILE | O_RDWR },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, v[1]))
			got(open(v[0], modes[i].flags | O_NONBLOCK, 0600));
}

static void a_hold(char **v)
{
	kept = open(v[0], O_PATH);
	got(kept);
}

/* Keep an inherited descriptor, to try it as a directory. */
static void a_holdfd(char **v)
{
	kept = (int)number(v[0]);
	result(fcntl(kept, F_GETFD) < 0 ? -1 : 0);
}

static void a_chdir(char **v)
{
	result(chdir(v[0]));
}

static void a_cwd(char **v)
{
	char buf[4096];

	(void)v;
	if (getcwd(buf, sizeof(buf)))
		say(buf, strlen(buf));
	else
		say_error(errno);
}

/* Wait for the host: a bounded number of looks for a path. */
static void a_await(char **v)
{
	for (int i = 0; i < 3000; i++) {
		if (!access(v[0], F_OK)) {
			puts("ok");
			return;
		}
		usleep(10000);
	}
	say_error(ETIMEDOUT);
}

static void a_sleep(char **v)
{
	result((long)sleep((unsigned)number(v[0])));
}

/* ---- mounts --------------------------------------------------------------- */

static void a_bind(char **v)
{
	result(mount(v[0], v[1], NULL, MS_BIND | MS_REC, NULL));
}

static void a_tmpfs(char **v)
{
	result(mount("none", v[0], "tmpfs", 0, NULL));
}

static void a_remount(char **v)
{
	result(mount(NULL, v[0], NULL, MS_REMOUNT | MS_BIND, NULL));
}

static void a_setattr(char **v)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	result(syscall(SYS_mount_setattr, AT_FDCWD, v[0], 0, &attr, sizeof(attr)));
}

static void a_umount(char **v)
{
	result(umount2(v[0], MNT_DETACH));
}

/* Clone what is mounted at a path without the mounts on top of it, and look in. */
static void a_peel(char **v)
{
	kept = (int)syscall(SYS_open_tree, AT_FDCWD, v[0], OPEN_TREE_CLONE);
	got(kept);
}

static void a_chroot(char **v)
{
	result(chroot(v[0]));
}

static void a_pivot(char **v)
{
	result(syscall(SYS_pivot_root, v[0], v[1]));
}

static void write_map(const char *path, unsigned inside, unsigned outside)
{
	char text[64];
	int fd = open(path, O_WRONLY);

	if (fd < 0)
		return;
	snprintf(text, sizeof(text), "%u %u 1", inside, outside);
	if (write(fd, text, strlen(text)) < 0)
		perror(path);
	close(fd);
}

/* Leave for a user and mount namespace of one's own, root inside it. */
static void a_usermount(char **v)
{
	unsigned uid = getuid(), gid = getgid();
	int fd;

	(void)v;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		say_error(errno);
		return;
	}
	fd = open("/proc/self/setgroups", O_WRONLY);
	if (fd >= 0 && write(fd, "deny", 4) < 0)
		perror("setgroups");
	write_map("/proc/self/uid_map", 0, uid);
	write_map("/proc/self/gid_map", 0, gid);
	puts("ok");
}

/* ---- processes ------------------------------------------------------------ */

/* Before anything of ours opens a file: which descriptors are there? */
static void a_fds(char **v)
{
	char all[4096] = "";

	(void)v;
	for (int fd = 0; fd < 65536 && strlen(all) < sizeof(all) - 16; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			sprintf(all + strlen(all), "%d ", fd);
	say(all, strlen(all));
}

static void a_reopen(char **v)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%s", v[0]);
	got(open(link, (*v[1] == 'w' ? O_WRONLY : O_RDONLY) | O_NONBLOCK));
}

static void a_input(char **v)
{
	unsigned long high = number(v[0]) << 32;

	for (const char *c = v[1]; *c; c++)
		if (syscall(SYS_ioctl, 0, TIOCSTI | high, c) < 0) {
			say_error(errno);
			return;
		}
	puts("ok");
}

/* fcntl(2) on a file or directory, which is left open: what it gives lasts as long. */
static void a_fcntl(char **v)
{
	int fd = open(v[0], O_RDONLY | O_NONBLOCK);

	result(fd < 0 ? -1 : syscall(SYS_fcntl, fd, number(v[1]), number(v[2])));
}

static void a_ioctl(char **v)
{
	static char buf[4096];

	result(syscall(SYS_ioctl, (int)number(v[0]), number(v[1]), buf));
}

static void a_kill(char **v)
{
	result(kill((pid_t)strtol(v[0], NULL, 0), (int)number(v[1])));
}

static void a_pidfd(char **v)
{
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)number(v[0]), 0);

	if (fd < 0)
		say_error(errno);
	else
		result(syscall(SYS_pidfd_send_signal, fd, (int)number(v[1]), NULL, 0));
}

static void a_ptrace(char **v)
{
	pid_t pid = (pid_t)number(v[0]);
	long r = ptrace(PTRACE_SEIZE, pid, NULL, NULL);

	result(r);
	if (!r)
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

/* Read another process's memory at an address (hex) that the host knows. */
static void a_vmread(char **v)
{
	char buf[64];
	struct iovec to = { buf, number(v[2]) }, from = { (void *)number(v[1]), number(v[2]) };
	ssize_t n = process_vm_readv((pid_t)number(v[0]), &to, 1, &from, 1, 0);

	if (n < 0)
		say_error(errno);
	else
		say(buf, (size_t)n);
}

static void a_status(char **v)
{
	char line[512], all[1024] = "";
	FILE *f = fopen("/proc/self/status", "r");

	(void)v;
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Cap", 3) || !strncmp(line, "NoNew", 5) ||
			!strncmp(line, "Seccomp:", 8) || !strncmp(line, "Uid", 3))
			for (char *w = strtok(line, " \t\n"); w; w = strtok(NULL, " \t\n"))
				strcat(strcat(all, w), " ");
	say(all, strlen(all));
}

static void a_env(char **v)
{
	char all[8192] = "";

	(void)v;
	for (char **e = environ; *e && strlen(all) + strlen(*e) + 2 < sizeof(all); e++)
		strcat(strcat(all, *e), " ");
	say(all, strlen(all));
}

static void a_args(char **v)
{
	for (; *v; v++)
		printf("<%s>", *v);
	putchar('\n');
}

/* Children that want to outlive everything: own session, deaf, no death signal. */
static void a_linger(char **v)
{
	for (unsigned long i = number(v[0]); i > 0; i--) {
		pid_t pid = fork();

		if (pid)
			continue;
		setsid();
		prctl(PR_SET_PDEATHSIG, 0);
		for (int sig = 1; sig < 32; sig++)
			signal(sig, SIG_IGN);
		if (fork())
			_exit(0);
		setsid();
		close(0);
		close(1);
		close(2);
		for (int s = 0; s < 60; s++)
			sleep(1);
		_exit(0);
	}
	puts("ok");
}

static void a_setid(char **v)
{
	(void)v;
	result(setresuid(0, 0, 0));
}

static void a_uids(char **v)
{
	char all[64];

	(void)v;
	snprintf(all, sizeof(all), "%u %u", getuid(), geteuid());
	say(all, strlen(all));
}

/* Run another program and say what it said, or why it did not run. */
static void a_run(char **v)
{
	pid_t pid;
	int st;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		execv(v[0], v);
		say_error(errno);
		fflush(stdout);
		_exit(0);
	}
	if (waitpid(pid, &st, 0) < 0)
		say_error(errno);
}

/* ---- the kernel's surface ------------------------------------------------- */

#define CALL(name)                \
	{                         \
#name, SYS_##name \
	}

static const struct {
	const char *name;
	long nr;
} calls[] = {
	CALL(acct),
	CALL(add_key),
	CALL(adjtimex),
	CALL(bpf),
	CALL(chroot),
	CALL(clock_adjtime),
	CALL(clock_settime),
	CALL(clone),
	CALL(clone3),
	CALL(delete_module),
	CALL(fanotify_init),
	CALL(finit_module),
	CALL(fsconfig),
	CALL(fsmount),
	CALL(fsopen),
	CALL(fspick),
	CALL(getpid),
	CALL(init_module),
	CALL(io_setup),
	CALL(io_uring_enter),
	CALL(io_uring_register),
	CALL(io_uring_setup),
	CALL(ioperm),
	CALL(iopl),
	CALL(kcmp),
	CALL(kexec_file_load),
	CALL(kexec_load),
	CALL(keyctl),
	CALL(lookup_dcookie),
	CALL(migrate_pages),
	CALL(modify_ldt),
	CALL(mount),
	CALL(mount_setattr),
	CALL(move_mount),
	CALL(move_pages),
	CALL(name_to_handle_at),
	CALL(open_by_handle_at),
	CALL(open_tree),
	CALL(open_tree_attr),
	CALL(perf_event_open),
	CALL(personality),
	CALL(pidfd_getfd),
	CALL(pivot_root),
	CALL(prctl),
	CALL(process_madvise),
	CALL(ptrace),
	CALL(quotactl),
	CALL(quotactl_fd),
	CALL(reboot),
	CALL(request_key),
	CALL(seccomp),
	CALL(sethostname),
	CALL(setdomainname),
	CALL(setns),
	CALL(settimeofday),
	CALL(socket),
	CALL(swapoff),
	CALL(swapon),
	CALL(sysfs),
	CALL(syslog),
	CALL(umount2),
	CALL(unshare),
	CALL(userfaultfd),
	CALL(ustat),
	CALL(vhangup),
	CALL(vmsplice),
	CALL(get_robust_list),
	CALL(mbind),
	CALL(process_mrelease),
	CALL(remap_file_pages),
	CALL(set_mempolicy),
	CALL(uselib),
	CALL(mq_open),
	{ "statmount", 457 },
	{ "listmount", 458 },
	CALL(memfd_secret),
};

/* "@" as an argument is the address of some writable memory, zeroed. */
static long argument(const char *text)
{
	static char memory[8192];

	if (!text)
		return 0;
	return *text == '@' ? (long)memory : (long)number(text);
}

static long call_number(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(calls[i].name, name))
			return calls[i].nr;
	return *name >= '0' && *name <= '9' ? (long)number(name) : -1;
}

static long raw(char **v)
{
	long a[6] = { 0 }, nr = call_number(v[0]);

	for (int i = 0; i < 6 && v[i + 1]; i++)
		a[i] = argument(v[i + 1]);
	if (nr < 0) {
		errno = EDOTDOT; /* a slip in the test, and no errno of these calls */
		return -1;
	}
	return syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void a_sys(char **v)
{
	result(raw(v));
}

/* The 32-bit table's getpid, by the 32-bit entry. */
static void a_int80(char **v)
{
	long r = -ENOSYS;

	(void)v;
#ifdef __x86_64__
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
#endif
	errno = (int)-r;
	result(r < 0 ? -1 : r);
}

static void a_x32(char **v)
{
	(void)v;
	result(syscall(0x40000000L | SYS_getpid));
}

/* What the child of a clone must do: nothing. */
static void settle_child(long pid)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, __WALL);
}

static void a_clone(char **v)
{
	long r = syscall(SYS_clone, number(v[0]) | SIGCHLD, 0, 0, 0, 0);

	settle_child(r);
	result(r > 0 ? 0 : r);
}

static void a_clone3(char **v)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, size, tls;
	} args = { .flags = number(v[0]), .exit_signal = SIGCHLD };
	long r = syscall(SYS_clone3, &args, sizeof(args));

	settle_child(r);
	result(r > 0 ? 0 : r);
}

static void a_socket(char **v)
{
	got((int)syscall(SYS_socket, number(v[0]), number(v[1]), number(v[2])));
}

static void a_socketpair(char **v)
{
	int sv[2];

	result(syscall(SYS_socketpair, number(v[0]), number(v[1]), number(v[2]), sv));
}

#ifdef __x86_64__
/* A tracer changes a permitted call into another one after it was entered. */
static void swap_call(pid_t pid, long nr, const long *a)
{
	struct user_regs_struct regs;
	int st;

	waitpid(pid, &st, 0); /* its SIGSTOP */
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
	while (waitpid(pid, &st, 0) == pid && WIFSTOPPED(st)) {
		if (WSTOPSIG(st) == (SIGTRAP | 0x80) &&
			!ptrace(PTRACE_GETREGS, pid, NULL, &regs) &&
			regs.orig_rax == SYS_getppid) {
			regs.orig_rax = (unsigned long long)nr;
			regs.rdi = (unsigned long long)a[0];
			regs.rsi = (unsigned long long)a[1];
			regs.rdx = (unsigned long long)a[2];
			ptrace(PTRACE_SETREGS, pid, NULL, &regs);
			nr = SYS_getppid;
		}
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
	}
}
#endif

static void a_swapcall(char **v)
{
#ifdef __x86_64__
	long a[3] = { 0 };
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		result(syscall(SYS_getppid));
		fflush(stdout);
		_exit(0);
	}
	for (int i = 0; i < 3 && v[i + 1]; i++)
		a[i] = argument(v[i + 1]);
	swap_call(pid, call_number(v[0]), a);
#else
	a_sys(v);
#endif
}

static int steps(int n, char **v);

struct later {
	pthread_barrier_t gate;
	char **v;
	int n;
};

static void *thread_main(void *arg)
{
	struct later *l = arg;

	pthread_barrier_wait(&l->gate);
	steps(l->n, l->v);
	return NULL;
}

/* The rest of the line as another thread does it. */
static void a_thread(char **v)
{
	struct later l = { .v = v };
	pthread_t t;

	while (v[l.n])
		l.n++;
	pthread_barrier_init(&l.gate, NULL, 2);
	if (pthread_create(&t, NULL, thread_main, &l)) {
		say_error(errno);
		return;
	}
	pthread_barrier_wait(&l.gate);
	pthread_join(t, NULL);
}

/* The rest of the line in this program started anew, from its file or from memory. */
static void again(int fd, char **v)
{
	char *argv[64] = { "attack" };

	for (int i = 0; i < 62 && v[i]; i++)
		argv[i + 1] = v[i];
	fflush(stdout);
	syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	say_error(errno);
}

static void a_exec(char **v)
{
	again(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), v);
}

static void a_memexec(char **v)
{
	char buf[65536];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = memfd_create("attack", MFD_CLOEXEC);
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			break;
	again(to, v);
}

/* ---- IPC ------------------------------------------------------------------ */

static void a_shmread(char **v)
{
	int id = shmget((key_t)number(v[0]), 0, 0);
	char *p = id < 0 ? NULL : shmat(id, NULL, SHM_RDONLY);

	if (id < 0 || p == (void *)-1)
		say_error(errno);
	else
		say(p, strnlen(p, 64));
}

/* The identifier of a segment, not its key: nothing to look up. */
static void a_shmid(char **v)
{
	char *p = shmat((int)number(v[0]), NULL, SHM_RDONLY);

	if (p == (void *)-1)
		say_error(errno);
	else
		say(p, strnlen(p, 64));
}

static void a_mqread(char **v)
{
	mqd_t q = mq_open(v[0], O_RDONLY | O_NONBLOCK);
	char buf[8192];
	ssize_t n = q < 0 ? -1 : mq_receive(q, buf, sizeof(buf), NULL);

	if (n < 0)
		say_error(errno);
	else
		say(buf, (size_t)n);
}

static void a_keyread(char **v)
{
	long key =
		syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", v[0], 0);
	char buf[64];
	long n = key < 0 ? -1 : syscall(SYS_keyctl, KEYCTL_READ, key, buf, sizeof(buf));

	if (n < 0)
		say_error(errno);
	else
		say(buf, (size_t)n < sizeof(buf) ? (size_t)n : sizeof(buf));
}

/* ---- network -------------------------------------------------------------- */

static socklen_t address(const char *host, const char *port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)number(port));
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((uint16_t)number(port));
	inet_pton(AF_INET6, host, &in6->sin6_addr);
	return sizeof(*in6);
}

/* Connect and say hello, in a second at most. */
static void hello(int fd, const void *to, socklen_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(errno);
	int r = fd < 0 ? -1 : connect(fd, to, len);

	if (r < 0 && fd >= 0 && errno == EINPROGRESS) {
		r = poll(&p, 1, 1000);
		errno = ETIMEDOUT;
		if (r == 1)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &errno, &size);
		r = r == 1 && errno == 0 ? 0 : -1;
	}
	if (r == 0)
		r = send(fd, "attack", 6, MSG_NOSIGNAL) == 6 ? 0 : -1;
	result(r);
	if (fd >= 0)
		close(fd);
}

static void a_tcp(char **v)
{
	struct sockaddr_storage a;
	socklen_t len = address(v[0], v[1], &a);

	hello(socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0), &a, len);
}

static void a_udp(char **v)
{
	struct sockaddr_storage a;
	socklen_t len = address(v[0], v[1], &a);

	hello(socket(a.ss_family, SOCK_DGRAM, 0), &a, len);
}

/* A raw IP packet by hand, as a last resort of the routeless. */
static void a_rawip(char **v)
{
	struct sockaddr_storage a;
	socklen_t len = address(v[0], "0", &a);

	hello(socket(a.ss_family, SOCK_RAW, IPPROTO_UDP), &a, len);
}

static void a_ping(char **v)
{
	struct sockaddr_storage a;
	socklen_t len = address(v[0], "0", &a);
	struct icmphdr h = { .type = ICMP_ECHO };
	int fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);

	if (fd < 0)
		fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	if (fd < 0)
		say_error(errno);
	else
		result(sendto(fd, &h, sizeof(h), 0, (void *)&a, len) < 0 ? -1 : 0);
}

/* A UNIX socket; a leading @ means the abstract name space. */
static void unix_hello(const char *name, int type)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t len = strlen(name);

	memcpy(a.sun_path, name, len < sizeof(a.sun_path) ? len : sizeof(a.sun_path));
	if (*name == '@')
		a.sun_path[0] = 0;
	hello(socket(AF_UNIX, type | SOCK_NONBLOCK, 0), &a,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

static void a_unix(char **v)
{
	unix_hello(v[0], SOCK_STREAM);
}

static void a_unixdgram(char **v)
{
	unix_hello(v[0], SOCK_DGRAM);
}

static void a_vsock(char **v)
{
	struct sockaddr_vm a = {
		.svm_family = AF_VSOCK,
		.svm_cid = (unsigned)number(v[0]),
		.svm_port = (unsigned)number(v[1]),
	};

	hello(socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK, 0), &a, sizeof(a));
}

static void a_links(char **v)
{
	struct if_nameindex *all = if_nameindex();
	char text[1024] = "";

	(void)v;
	if (!all) {
		say_error(errno);
		return;
	}
	for (struct if_nameindex *i = all; i->if_index && strlen(text) < 900; i++)
		strcat(strcat(text, i->if_name), " ");
	say(text, strlen(text));
}

/* ---- the table ------------------------------------------------------------ */

static const struct attack {
	const char *name;
	int args; /* at least so many */
	void (*run)(char **v);
} attacks[] = {
	{ "read", 1, a_read },
	{ "readat", 1, a_readat },
	{ "opathread", 1, a_opathread },
	{ "mmapread", 1, a_mmapread },
	{ "write", 2, a_write },
	{ "create", 2, a_create },
	{ "put", 2, a_put },
	{ "putat", 2, a_putat },
	{ "truncate", 1, a_truncate },
	{ "mkdir", 1, a_mkdir },
	{ "rmdir", 1, a_rmdir },
	{ "unlink", 1, a_unlink },
	{ "symlink", 2, a_symlink },
	{ "link", 2, a_link },
	{ "linkfd", 2, a_linkfd },
	{ "rename", 2, a_rename },
	{ "exchange", 2, a_exchange },
	{ "whiteout", 2, a_whiteout },
	{ "noreplace", 2, a_noreplace },
	{ "chmod", 2, a_chmod },
	{ "setxattr", 3, a_setxattr },
	{ "mknod", 4, a_mknod },
	{ "list", 1, a_list },
	{ "readlink", 1, a_readlink },
	{ "open", 2, a_open },
	{ "hold", 1, a_hold },
	{ "holdfd", 1, a_holdfd },
	{ "chdir", 1, a_chdir },
	{ "cwd", 0, a_cwd },
	{ "await", 1, a_await },
	{ "sleep", 1, a_sleep },

	{ "bind", 2, a_bind },
	{ "tmpfs", 1, a_tmpfs },
	{ "remount", 1, a_remount },
	{ "setattr", 1, a_setattr },
	{ "umount", 1, a_umount },
	{ "peel", 1, a_peel },
	{ "chroot", 1, a_chroot },
	{ "pivot", 2, a_pivot },
	{ "usermount", 0, a_usermount },

	{ "fds", 0, a_fds },
	{ "reopen", 2, a_reopen },
	{ "input", 2, a_input },
	{ "fcntl", 3, a_fcntl },
	{ "ioctl", 2, a_ioctl },
	{ "kill", 2, a_kill },
	{ "pidfd", 2, a_pidfd },
	{ "ptrace", 1, a_ptrace },
	{ "vmread", 3, a_vmread },
	{ "status", 0, a_status },
	{ "env", 0, a_env },
	{ "args", 0, a_args },
	{ "linger", 1, a_linger },
	{ "setid", 0, a_setid },
	{ "uids", 0, a_uids },
	{ "run", 1, a_run },

	{ "sys", 1, a_sys },
	{ "int80", 0, a_int80 },
	{ "x32", 0, a_x32 },
	{ "clone", 1, a_clone },
	{ "clone3", 1, a_clone3 },
	{ "socket", 3, a_socket },
	{ "socketpair", 3, a_socketpair },
	{ "swapcall", 1, a_swapcall },
	{ "thread", 1, a_thread },
	{ "exec", 1, a_exec },
	{ "memexec", 1, a_memexec },

	{ "shmread", 1, a_shmread },
	{ "shmid", 1, a_shmid },
	{ "mqread", 1, a_mqread },
	{ "keyread", 1, a_keyread },

	{ "tcp", 2, a_tcp },
	{ "udp", 2, a_udp },
	{ "rawip", 1, a_rawip },
	{ "ping", 1, a_ping },
	{ "unix", 1, a_unix },
	{ "unixdgram", 1, a_unixdgram },
	{ "vsock", 2, a_vsock },
	{ "links", 0, a_links },
};

/* One step: its name and arguments, NULL-terminated. */
static int step(int n, char **v)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
		if (!strcmp(attacks[i].name, v[0]) && n > attacks[i].args) {
			attacks[i].run(v + 1);
			fflush(stdout);
			return 0;
		}
	fprintf(stderr, "attack: no such step, or too few arguments: %s\n", v[0]);
	return 2;
}

static int steps(int n, char **v)
{
	int rc = 0;

	for (int i = 0, start = 0; i <= n && rc == 0; i++)
		if (i == n || !strcmp(v[i], ",")) {
			v[i] = NULL;
			if (i > start)
				rc = step(i - start, v + start);
			start = i + 1;
		}
	return rc;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: attack STEP [ARG...] [, STEP...]\n");
		return 2;
	}
	return steps(argc - 1, argv + 1);
}
