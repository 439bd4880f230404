/*
 * host/survey-cgroup.c - may this user have a control group for a box?
 *
 * Theory of operation. Three ways are tried, and the first that works is taken.
 *
 * Beside: the parent of our own group can be written, and is not one of systemd's slices. A
 * manager changes the controllers of its slices whenever it likes, so a limit below one would
 * not last.
 *
 * Below: our own group was delegated to us (systemd: Delegate=yes) or is the root of a
 * container. A group with controllers for its children may hold no process itself, so
 * box/cgroup.c has to move all of them; therefore all of them must be carrel's.
 *
 * systemd: the user's manager answers on its private socket. It runs in the part of the tree
 * that was delegated to it, which tells what its scopes can hold.
 *
 * A look that fails means that there is no group: the limits that need one are then refused.
 */
#include "host/survey-cgroup.h"
#include "plan/cgroup-facts.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"

enum { TEXT_SIZE = 64 * 1024 };

static const struct {
	const char *name;
	unsigned int bit;
} controllers[] = {
	{ "memory", CGROUP_MEMORY },
	{ "cpu", CGROUP_CPU },
	{ "pids", CGROUP_PIDS },
	{ "io", CGROUP_IO },
};

static const char *read_in(const char *dir, const char *name)
{
	return fd_read_file(AT_FDCWD, path_join(dir, name), TEXT_SIZE);
}

/* "cpu io memory\n" as bits. */
static unsigned int listed_in(const char *dir, const char *name)
{
	const char *text = read_in(dir, name);
	unsigned int bits = 0;

	while (text && *text) {
		size_t n = strcspn(text, " \n");

		for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
			if (strlen(controllers[i].name) == n &&
				!strncmp(controllers[i].name, text, n))
				bits |= controllers[i].bit;
		text += n;
		text += strspn(text, " \n");
	}
	return bits;
}

static bool can(const char *dir, const char *name, int how)
{
	return access(path_join(dir, name), how) == 0;
}

/* The directory of the v2 group that a process is in; NULL: it is not in our tree. */
static const char *group_of(const char *pid)
{
	const char *text =
		fd_read_file(AT_FDCWD, mem_printf("/proc/%s/cgroup", pid), TEXT_SIZE);
	const char *at = text ? strstr(text, "0::/") : NULL;
	const char *dir;

	if (!at || (at != text && at[-1] != '\n'))
		return NULL;
	at += strlen("0::");
	dir = path_clean(mem_printf(ROOT "%.*s", (int)strcspn(at, "\n"), at));
	return path_within(dir, ROOT) ? dir : NULL;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* What of these a box's group has files for; `like` is a group that has the same files. */
static unsigned int with_files(unsigned int bits, const char *like)
{
	if (bits & CGROUP_MEMORY && can(like, "memory.swap.max", F_OK))
		bits |= CGROUP_SWAP;
	/* Kernels without the io.cost model have the controller, and no weights. */
	if (can(like, "io.stat", F_OK) && !can(like, "io.weight", F_OK))
		bits &= ~(unsigned int)CGROUP_IO;
	return bits;
}

static bool is_writable(const char *dir)
{
	return access(dir, W_OK) == 0 && can(dir, "cgroup.procs", W_OK);
}

static bool beside(const char *own, struct cgroup_facts *ret)
{
	const char *dir = path_parent(own), *procs;
	unsigned int bits;

	if (!path_within(dir, ROOT) || !strcmp(own, ROOT) || !is_writable(dir) ||
		ends_with(dir, ".slice") || str_starts(path_base(dir), "user@"))
		return false;
	bits = listed_in(dir, "cgroup.subtree_control");
	procs = read_in(dir, "cgroup.procs");
	/* The others can be turned on if no process is in the way. */
	if (procs && !*procs && can(dir, "cgroup.subtree_control", W_OK))
		bits |= listed_in(dir, "cgroup.controllers");
	if (!bits)
		return false;
	*ret = (struct cgroup_facts){ .how = CGROUP_BESIDE, .dir = dir };
	ret->holds = with_files(bits, own);
	return true;
}

/* Did systemd hand this group over? Others do so by making it writable. */
static bool is_delegated(const char *dir)
{
	char value[2] = "";

	if (!ends_with(dir, ".scope") && !ends_with(dir, ".service"))
		return !ends_with(dir, ".slice");
	return getxattr(dir, "user.delegate", value, sizeof(value)) == 1 && value[0] == '1';
}

static bool holds_only_carrel(const char *dir)
{
	const char *at = read_in(dir, "cgroup.procs"), *self = fd_real_path("/proc/self/exe");

	while (at && self && *at) {
		size_t n = strcspn(at, "\n");
		const char *exe = fd_real_path(mem_printf("/proc/%.*s/exe", (int)n, at));

		if (!exe || strcmp(exe, self) != 0)
			return false;
		at += n + (at[n] == '\n');
	}
	return at && self;
}

static bool below(const char *own, struct cgroup_facts *ret)
{
	unsigned int bits;

	if (!is_writable(own) || !can(own, "cgroup.subtree_control", W_OK) ||
		!can(own, "cgroup.type", F_OK) /* the root of the whole tree has none */
		|| !is_delegated(own) || !holds_only_carrel(own))
		return false;
	bits = listed_in(own, "cgroup.controllers");
	if (!bits)
		return false;
	*ret = (struct cgroup_facts){ .how = CGROUP_BELOW, .dir = own };
	ret->holds = with_files(bits, own);
	return true;
}

/* The process behind a socket, if it is of our own user. */
static pid_t listener_of(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	auto_close int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred peer = { 0 };
	socklen_t n = sizeof(peer);

	if (s < 0 || strlen(path) >= sizeof(to.sun_path))
		return 0;
	memcpy(to.sun_path, path, strlen(path) + 1);
	if (connect(s, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
		getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return 0;
	return peer.uid == geteuid() ? peer.pid : 0;
}

static bool by_systemd(struct cgroup_facts *ret)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *socket, *own;
	unsigned int bits;
	pid_t manager;

	if (geteuid() != 0 && (!runtime || runtime[0] != '/'))
		return false;
	socket =
		geteuid() == 0 ? "/run/systemd/private" : path_join(runtime, "systemd/private");
	manager = listener_of(socket);
	own = manager > 0 ? group_of(mem_printf("%d", (int)manager)) : NULL;
	/* It has put itself into a group of its own below the one that it manages. */
	bits = own ? listed_in(path_parent(own), "cgroup.controllers") : 0;
	if (!bits)
		return false;
	*ret = (struct cgroup_facts){ .how = CGROUP_SYSTEMD, .socket = socket };
	ret->holds = with_files(bits, own);
	return true;
}

static bool is_version_2(void)
{
	struct statfs s;

	return statfs(ROOT, &s) == 0 && s.f_type == CGROUP2_SUPER_MAGIC;
}

static void find_cgroup(struct cgroup_facts *ret)
{
	const char *own = NULL;

	if (!is_version_2()) {
		ret->why = "control groups of version 2 are not at " ROOT;
		return;
	}
	own = group_of("self");
	if (own && (beside(own, ret) || below(own, ret)))
		return;
	if (!by_systemd(ret))
		ret->why = "no control group is delegated to you, and no systemd manager of "
			   "yours answers";
}

const struct cgroup_facts *survey_cgroup(void)
{
	static struct cgroup_facts facts;
	static bool known;

	if (!known)
		find_cgroup(&facts);
	known = true;
	return &facts;
}
