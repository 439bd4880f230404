/*
 * tests/degrade/deny.c - run a program on a kernel that lacks something
 *
 *	deny NAME[:[INDEX.]ARG]=ERRNO ... -- PROGRAM ARG...
 *
 * Installs a seccomp filter under which the named system calls fail with the given errno
 * (with :ARG only when the low half of the first argument, or of that with this index, is
 * that number), then becomes the program. To the program this is a kernel without the call, or one that forbids it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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
};

static struct sock_filter filter[256];
static unsigned short used;

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

/* One rule: NAME[:[INDEX.]ARG]=ERRNO. */
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
	if (nr < 0 || !err) {
		errno = EINVAL;
		die(rule);
	}
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr, 0, arg ? 3 : 1);
	if (arg) {
		add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[index]), 0, 0);
		add(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)strtoul(arg, NULL, 0), 0, 1);
	}
	add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err, 0, 0);
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
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		die("filter");
	execvp(argv[i + 1], argv + i + 1);
	die(argv[i + 1]);
}
