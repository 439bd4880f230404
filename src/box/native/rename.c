/*
 * box/native/rename.c - rename directories of an overlay
 *
 * Theory of operation. On an overlay that was mounted without root, rename(2) of a directory
 * from a lower layer fails with EXDEV: the overlay may not write the attribute (redirect_dir)
 * by which the moved directory would find its old contents. `git mv DIR` does not expect that
 * within one file system, and fails. So in a box with an overlay workspace a second seccomp
 * filter, on top of the list of allowed calls, reports rename, renameat and renameat2 to
 * threads of init. A thread examines what the call names. If that is a directory of a lower
 * layer, the thread moves it to the upper layer: it moves the contents to a new directory
 * beside the old one, file by file, and then puts the new one in its place. In any case the
 * thread then lets the caller continue, and the kernel itself executes the call.
 *
 * So the thread decides nothing. The kernel judges the call afterwards, for the caller:
 * permissions, flags, the target, and each filter or Landlock rule that the caller has put on
 * itself. If the caller changes its arguments meanwhile, the kernel judges the new ones. The
 * filter only adds a report, and a call that the list refuses stays refused: of two filters
 * the kernel obeys the stricter. The threads are confined like every process of the box
 * (Landlock, seccomp, no capabilities), so a box that deceives them gains nothing.
 *
 * They are threads of init because Yama lets a process read only the memory of its
 * descendants, and every process of the box descends from init. If a thread cannot examine a
 * caller (it is not dumpable, or in a user namespace of its own), the kernel answers EXDEV as
 * before.
 *
 * Files are renamed, not copied: the kernel copies them up with all their properties, and an
 * open file stays the same file. What other processes put into the directory meanwhile is
 * moved in the next round. If something cannot be moved (a mount, another user's file),
 * everything is moved back.
 *
 * Must not: allocate from the arena, which belongs to init; keep a caller waiting for ever.
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
	/* A thread that moves a large directory must not keep all other callers waiting. */
	THREADS = 2,
	STACK = 4 * 1024 * 1024, /* enough for MOVE_DEPTH; unused pages cost nothing */
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
static int listener_ioctl(int listener, unsigned long request, const void *arg)
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

/* Read a string of the caller page by page, because the page after it may not be mapped. */
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

/* The path for this thread, by way of the caller's directories in /proc. */
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

/* The directory of the path, with its last part in *ret_last. */
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

/* Would the kernel do it, if the directory were in the upper layer? */
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

/* If the path names a directory, move it to the upper layer. */
static void free_dir(int listener, const struct call *c, struct name *name)
{
	auto_close int parent = -1;
	const char *last;

	parent = open_parent(name, &last);
	if (parent < 0 || !on_overlay(parent) || !strcmp(last, ".") || !strcmp(last, ".."))
		return;
	/* The process id may belong to another process by now. */
	if (listener_ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->id) == 0)
		(void)move_to_upper(parent, last);
}

static void prepare_call(int listener, struct call *c)
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

		if (listener_ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &told) < 0)
			continue; /* the caller is gone, or a signal came */
		decode(&told, &call);
		prepare_call(listener, &call);
		answer.id = told.id;
		listener_ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
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
	/*
	 * The threads block all signals: if one took SIGCHLD, init's signalfd would not see it.
	 */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (int i = 0; i < THREADS && !err; i++)
		err = pthread_create(&thread, &attr, serve, (void *)listener);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

/* Another program has such a listener already: each line of processes may have one. */
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
	static int listener; /* the threads use it as long as the box lives */
	int err;

	if (!has_overlay_workspace(n->plan))
		return 0;
	/* A caller must not get EINTR while its call is being prepared. */
	listener = install(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	if (listener < 0 && errno == EINVAL)
		listener = install(0);
	if (listener < 0)
		return no_listener(f);
	/* Run the thread on the caller's processor, if the kernel can: that halves the time. */
	(void)listener_ioctl(listener, NOTIF_SET_FLAGS, (void *)NOTIF_SYNC_WAKE);
	err = start_threads(&listener);
	return err ? fault_set(f, err, "start the threads that prepare renames") : 0;
}
