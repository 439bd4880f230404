/*
 * box/native/rename.c - directories of an overlay can be renamed
 *
 * Theory of operation. An overlay that no root has mounted answers EXDEV to rename(2) of a
 * directory that a lower layer has: it may not write the mark (redirect_dir) by which the
 * moved directory would find its old contents. So `git mv DIR`, which does not expect that on
 * one file system, fails. In a box with an overlay workspace a second seccomp filter, on top
 * of the list of allowed calls, reports rename, renameat and renameat2 to threads of init.
 * A thread looks at what the call names. If that is a directory of a lower layer, the thread
 * makes it one of the upper layer alone: it moves all that is in it to a new directory beside
 * it, file by file, and then puts that one in its place. Whatever it found, it then lets the
 * caller go on: the kernel itself executes the call.
 *
 * So nothing is decided here. Permissions, flags, the target, and every filter or Landlock
 * rule that the caller has put on itself are judged by the kernel, for the caller, after the
 * thread has looked; a caller that changes its arguments meanwhile gets the kernel's answer to
 * the new ones. The filter only adds a report, and a call that the list refuses stays refused:
 * of two filters the kernel obeys the stricter. The threads hold what every process of the box
 * holds (Landlock, seccomp, no capabilities), so a box can deceive them and gain nothing.
 *
 * They are threads of init because Yama lets a process read the memory of its descendants
 * only, and every process of the box is one of init's. Where a caller cannot be looked into
 * (it is not dumpable, or in a user namespace of its own), the kernel answers EXDEV as before.
 *
 * Files are renamed rather than copied: the kernel copies them up with all that belongs to
 * them, and an open file stays the same file. What others put into the directory meanwhile
 * is moved in the next round. If something cannot be moved (a mount, another user's file), all
 * is moved back.
 *
 * Must not: allocate from the arena, which is init's; keep a caller waiting for ever.
 */
#include "box/native/move.h"
#include "box/native/native.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Newer than this libc's headers. */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* Linux 5.19 */
#endif
#define NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t) /* Linux 6.6 */
#define NOTIF_SYNC_WAKE 1UL

enum {
	OVERLAY_MAGIC = 0x794c7630,
	/* One that moves a large directory must not keep all others waiting. */
	THREADS = 2,
	STACK = 4 * 1024 * 1024, /* for MOVE_DEPTH; pages that are not used cost nothing */
};

/* --- the filter ------------------------------------------------------------------ */

#define LOAD(field)    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(field))
#define IS(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), yes, no)

/* Both architectures are little-endian: the high word of an argument comes second. */
static const struct sock_filter reports[] = {
	LOAD(offsetof(struct seccomp_data, nr)),
#ifdef SYS_rename
	IS(SYS_rename, 4, 0),
#endif
	IS(SYS_renameat, 3, 0),
	IS(SYS_renameat2, 0, 3),
	LOAD(offsetof(struct seccomp_data, args[4]) + sizeof(uint32_t)),
	IS(0, 0, 1), /* not MOVE_MARK */
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static int install(unsigned long flags)
{
	const struct sock_fprog program = {
		.len = ARRAY_SIZE(reports),
		.filter = (struct sock_filter *)reports,
	};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, &program);
}

/* No ioctl(2): libcs do not agree on the type of a request. */
static int ask(int listener, unsigned long request, const void *arg)
{
	return (int)syscall(SYS_ioctl, listener, request, arg);
}

/* --- the call -------------------------------------------------------------------- */

struct name {
	int dir;
	uint64_t address;
	char path[2 * PATH_MAX]; /* as this process may write it */
};

struct call {
	uint64_t id;
	pid_t pid;
	unsigned int flags;
	struct name from, to;
};

static void decode(const struct seccomp_notif *n, struct call *ret)
{
	const __u64 *args = n->data.args;

	*ret = (struct call){ .id = n->id, .pid = (pid_t)n->pid };
	ret->from.dir = ret->to.dir = AT_FDCWD;
	if (n->data.nr == SYS_renameat || n->data.nr == SYS_renameat2) {
		ret->from.dir = (int)args[0];
		ret->from.address = args[1];
		ret->to.dir = (int)args[2];
		ret->to.address = args[3];
	} else {
		ret->from.address = args[0];
		ret->to.address = args[1];
	}
	if (n->data.nr == SYS_renameat2)
		ret->flags = (unsigned int)args[4];
}

/* A string of the caller's: page by page, since the one after it may not be there. */
static int read_string(pid_t pid, uint64_t address, char *text, size_t size)
{
	size_t have = 0;

	while (have < size) {
		size_t page = 4096 - (address + have) % 4096;
		size_t want = page < size - have ? page : size - have;
		struct iovec here = { text + have, want };
		struct iovec there = { (void *)(uintptr_t)(address + have), want };
		ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

		if (n <= 0)
			return -1;
		if (memchr(text + have, '\0', (size_t)n))
			return 0;
		have += (size_t)n;
	}
	return -1;
}

/* The name as seen from here, by way of what /proc says about the caller. */
static int find_name(pid_t pid, struct name *name)
{
	char given[PATH_MAX];
	size_t len;
	int n;

	if (read_string(pid, name->address, given, sizeof(given)) < 0)
		return -1;
	len = strlen(given);
	while (len > 1 && given[len - 1] == '/')
		given[--len] = '\0';
	if (given[0] == '/')
		n = snprintf(name->path, sizeof(name->path), "/proc/%d/root%s", pid, given);
	else if (name->dir == AT_FDCWD)
		n = snprintf(name->path, sizeof(name->path), "/proc/%d/cwd/%s", pid, given);
	else
		n = snprintf(name->path, sizeof(name->path), "/proc/%d/fd/%d/%s", pid,
			name->dir, given);
	return len > 0 && n < PATH_MAX ? 0 : -1;
}

static bool is_dir(const struct name *name, struct stat *ret)
{
	return fstatat(AT_FDCWD, name->path, ret, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISDIR(ret->st_mode);
}

/* The directory that it is in, and its last part in *ret_last. */
static int open_parent(struct name *name, const char **ret_last)
{
	char *slash = strrchr(name->path, '/');

	*slash = '\0';
	*ret_last = slash + 1;
	return openat(AT_FDCWD, name->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool on_overlay(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 && (unsigned long)fs.f_type == OVERLAY_MAGIC;
}

/* Could the kernel do it, if only the directory were of the upper layer? */
static bool is_worth_it(const struct call *c, const struct stat *from)
{
	struct stat to;

	if (c->flags & RENAME_EXCHANGE)
		return true;
	if (fstatat(AT_FDCWD, c->to.path, &to, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return !(c->flags & RENAME_NOREPLACE) && S_ISDIR(to.st_mode) &&
		(to.st_dev != from->st_dev || to.st_ino != from->st_ino);
}

/* Make what it names, if it is a directory, one of the upper layer alone. */
static void free_dir(int listener, const struct call *c, struct name *name)
{
	auto_close int parent = -1;
	const char *last;

	parent = open_parent(name, &last);
	if (parent < 0 || !on_overlay(parent) || !strcmp(last, ".") || !strcmp(last, ".."))
		return;
	/* The number may be another process's by now. */
	if (ask(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->id) == 0)
		(void)move_to_upper(parent, last);
}

static void prepare(int listener, struct call *c)
{
	bool both = c->flags & RENAME_EXCHANGE;
	struct stat from, to;
	bool from_dir, to_dir;

	if (find_name(c->pid, &c->from) < 0)
		return;
	from_dir = is_dir(&c->from, &from);
	if ((!from_dir && !both) || find_name(c->pid, &c->to) < 0)
		return;
	to_dir = both && is_dir(&c->to, &to);
	if (!from_dir ? !to_dir : !is_worth_it(c, &from))
		return;
	if (from_dir)
		free_dir(listener, c, &c->from);
	if (to_dir)
		free_dir(listener, c, &c->to);
}

/* --- threads --------------------------------------------------------------------- */

static void *serve(void *arg)
{
	int listener = *(const int *)arg;

	for (;;) {
		struct seccomp_notif told = { 0 };
		struct seccomp_notif_resp answer = {
			.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
		};
		struct call call;

		if (ask(listener, SECCOMP_IOCTL_NOTIF_RECV, &told) < 0)
			continue; /* the caller is gone, or a signal came */
		decode(&told, &call);
		prepare(listener, &call);
		answer.id = told.id;
		ask(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	return NULL;
}

static bool has_overlay_workspace(const struct plan *p)
{
	vec_each(place, &p->places)
		if (place->kind == PLACE_OVERLAY && !strcmp(place->target, p->workspace))
			return true;
	return false;
}

static int start_threads(const int *listener)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int err = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* init's signals are init's: a thread that took SIGCHLD would hide it from signalfd. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (int i = 0; i < THREADS && !err; i++)
		err = pthread_create(&thread, &attr, serve, (void *)listener);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

/* Another program in the box that listens so: each line of processes may have one. */
static int no_listener(struct fault *f)
{
	fault_set(f, errno, "have renames reported");
	if (f->err == EBUSY)
		return fault_fix(f,
			"Only one program in a line of processes can, and one that this carrel "
			"was started by does: leave out --overlay in there.");
	return -f->err;
}

int step_renames(struct native *n, struct fault *f)
{
	static int listener; /* the threads' as long as the box lives */
	int err;

	if (!has_overlay_workspace(n->plan))
		return 0;
	/* A caller whose call is being prepared is not to come back with EINTR. */
	listener = install(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	if (listener < 0 && errno == EINVAL)
		listener = install(0);
	if (listener < 0)
		return no_listener(f);
	/* The thread runs where the caller slept: half the time, where the kernel has it. */
	(void)ask(listener, NOTIF_SET_FLAGS, (void *)NOTIF_SYNC_WAKE);
	err = start_threads(&listener);
	return err ? fault_set(f, err, "start the threads that prepare renames") : 0;
}
