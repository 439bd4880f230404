/*
 * tests/degrade/deny.c - run a program on a kernel that lacks something
 *
 *	deny NAME[:[INDEX.]ARG]=ERRNO ... -- PROGRAM ARG...
 *
 * Installs a seccomp filter under which the named system calls fail with the given errno
 * (with :ARG only when the low half of the first argument, or of that with this index, is
 * that number), then becomes the program. To the program this is a kernel without the call, or
 * one that forbids it. With a number in place of the errno the call succeeds and answers that:
 * a process beside it does so, for as long as the program is there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define CALL(name)                \
	{                         \
#name, SYS_##name \
	}

static const struct {
	const char *name;
	long nr;
} calls[] = {
	CALL(capset),
	CALL(clone),
	CALL(clone3),
	CALL(close_range),
	CALL(flock),
	CALL(fsconfig),
	CALL(fsetxattr),
	CALL(fsmount),
	CALL(fsopen),
	CALL(landlock_add_rule),
	CALL(landlock_create_ruleset),
	CALL(landlock_restrict_self),
	CALL(memfd_create),
	CALL(mknod),
	CALL(mknodat),
	CALL(mount),
	CALL(mount_setattr),
	CALL(move_mount),
	CALL(open_tree),
	CALL(open_tree_attr),
	CALL(openat2),
	CALL(pidfd_open),
	CALL(pidfd_send_signal),
	CALL(pivot_root),
	CALL(prctl),
	CALL(prlimit64),
	CALL(getrandom),
	CALL(seccomp),
	CALL(sethostname),
	CALL(setns),
	CALL(socket),
	CALL(umount2),
	CALL(unshare),
};

static const struct {
	const char *name;
	unsigned int err;
} errors[] = {
	{ "ENOSYS", ENOSYS },
	{ "EPERM", EPERM },
	{ "EINVAL", EINVAL },
	{ "EOPNOTSUPP", EOPNOTSUPP },
	{ "ENOSPC", ENOSPC },
	{ "EACCES", EACCES },
	{ "ENOLCK", ENOLCK },
	{ "EPROTONOSUPPORT", EPROTONOSUPPORT },
	{ "EAFNOSUPPORT", EAFNOSUPPORT },
	{ "E2BIG", E2BIG },
};

static struct sock_filter filter[256];
static unsigned short used;
static long answer; /* to all calls that are to succeed, or 0: none are */

static void die(const char *what)
{
	fprintf(stderr, "deny: %s: %s\n", what, strerror(errno));
	exit(99);
}

static void add(unsigned int code, unsigned int k, unsigned char yes, unsigned char no)
{
	if (used == LENGTH(filter)) {
		errno = E2BIG;
		die("filter");
	}
	filter[used++] = (struct sock_filter){ (unsigned short)code, yes, no, k };
}

/* One rule: NAME[:[INDEX.]ARG]=ERRNO, or =NUMBER. */
static void add_rule(char *rule)
{
	char *error = strchr(rule, '='), *arg, *dot;
	unsigned int index = 0;
	long nr = -1;
	unsigned int err = 0;

	if (error)
		*error++ = '\0';
	arg = strchr(rule, ':');
	if (arg)
		*arg++ = '\0';
	dot = arg ? strchr(arg, '.') : NULL;
	if (dot) {
		index = (unsigned int)strtoul(arg, NULL, 0) % 6;
		arg = dot + 1;
	}
	for (size_t i = 0; i < LENGTH(calls); i++)
		if (!strcmp(calls[i].name, rule))
			nr = calls[i].nr;
	for (size_t i = 0; error && i < LENGTH(errors); i++)
		if (!strcmp(errors[i].name, error))
			err = errors[i].err;
	if (error && !err)
		answer = strtol(error, NULL, 10);
	if (nr < 0 || (!err && answer <= 0)) {
		errno = EINVAL;
		die(rule);
	}
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr, 0, arg ? 3 : 1);
	if (arg) {
		add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[index]), 0, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)strtoul(arg, NULL, 0), 0, 1);
	}
	add(BPF_RET | BPF_K, err ? SECCOMP_RET_ERRNO | err : SECCOMP_RET_USER_NOTIF, 0, 0);
}

static void reply(int listener)
{
	struct seccomp_notif asked = { 0 };
	struct seccomp_notif_resp said = { .val = answer };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
		return;
	said.id = asked.id;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &said);
}

/* Nobody's child, so that the program finds none that it does not know. */
static void answer_beside(int listener)
{
	struct pollfd fds[] = {
		{ .fd = (int)syscall(SYS_pidfd_open, getpid(), 0), .events = POLLIN },
		{ .fd = listener, .events = POLLIN },
	};
	pid_t between = fork();

	if (fds[0].fd < 0 || between < 0)
		die("answer");
	if (between > 0) {
		waitpid(between, NULL, 0);
		close(fds[0].fd);
		close(listener);
		return;
	}
	if (fork() != 0)
		_exit(0);
	close(0), close(1), close(2);
	while (poll(fds, LENGTH(fds), -1) > 0 && !fds[0].revents)
		reply(listener);
	_exit(0);
}

static void install(const struct sock_fprog *program)
{
	int flags = answer ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	int rc = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);

	if (rc < 0)
		die("filter");
	if (answer)
		answer_beside(rc);
}

int main(int argc, char **argv)
{
	struct sock_fprog program = { .filter = filter };
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		add_rule(argv[i]);
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: deny NAME[:[INDEX.]ARG]=ERRNO... -- PROGRAM ARG...\n");
		return 99;
	}
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	program.len = used;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("no_new_privs");
	install(&program);
	execvp(argv[i + 1], argv + i + 1);
	die(argv[i + 1]);
}
