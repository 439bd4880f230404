/*
 * box/native/landlock.c - a second wall behind the mounts
 *
 * The mounts already decide what of the host can be written. Landlock enforces it again in
 * another part of the kernel: read and execute below /, everything below the writable places,
 * and nothing on files outside this tree (a descriptor that slipped in). The box's own root, a
 * tmpfs that is not mounted read-only, is protected by Landlock alone. Landlock also keeps
 * signals and abstract sockets inside, which matters with the host's network, and forbids
 * mounting from here on.
 */
#include "box/native/native.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than this libc's headers. */
#define ACCESS_REFER     (1ULL << 13) /* ABI 2 */
#define ACCESS_TRUNCATE  (1ULL << 14) /* ABI 3 */
#define ACCESS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define SCOPE_ABSTRACT   (1ULL << 0)  /* ABI 6 */
#define SCOPE_SIGNAL     (1ULL << 1)  /* ABI 6 */

#define ACCESS_READ                                                  \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
		LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_FILE                                                  \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
		LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct ruleset {
	int fd;
	struct fd_bag later; /* descriptors that rules were made from */
};

/* All file-system rights that this ABI knows: those not granted are denied. */
static uint64_t rights_of(int abi)
{
	uint64_t rights = (1ULL << 13) - 1;

	if (abi >= 2)
		rights |= ACCESS_REFER;
	if (abi >= 3)
		rights |= ACCESS_TRUNCATE;
	if (abi >= 5)
		rights |= ACCESS_IOCTL_DEV;
	return rights;
}

static int make_ruleset(int abi, uint64_t rights, struct fault *f)
{
	const struct ruleset_attr attr = {
		.fs = rights,
		.scoped = abi >= 6 ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0,
	};
	size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);

	return fd < 0 ? fault_set(f, errno, "make a Landlock ruleset") : fd;
}

static int add_rule(int ruleset, int fd, uint64_t rights)
{
	const struct landlock_path_beneath_attr rule = {
		.allowed_access = rights,
		.parent_fd = fd,
	};

	return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule,
		0);
}

static int allow(struct ruleset *r, const char *path, uint64_t rights, struct fault *f)
{
	int fd = fd_later(&r->later, openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
	int rc;

	if (fd < 0)
		return fault_set(f, errno, "open '%s' for Landlock", str_visible(path));
	rc = add_rule(r->fd, fd, rights);
	/* EINVAL: a right that only directories can have, so this is a file. */
	if (rc < 0 && errno == EINVAL)
		rc = add_rule(r->fd, fd, rights & ACCESS_FILE);
	return rc < 0 ? fault_set(f, errno, "allow '%s' in Landlock", str_visible(path)) : 0;
}

static bool writable(const struct place *place)
{
	return place->rw && place->kind != PLACE_PIN;
}

/*
 * Make the rules before the network is ready, since init has to wait for that anyway. Enforcing
 * them is a step of its own, because nothing can be mounted afterwards.
 */
int step_rules(struct native *n, struct fault *f)
{
	uint64_t rights = rights_of(n->plan->landlock_abi);
	struct ruleset r = { .fd = -1 };
	int rc;

	if (!n->plan->landlock_abi)
		return 0; /* the plan says so, and the user has seen it */
	r.fd = make_ruleset(n->plan->landlock_abi, rights, f);
	if (r.fd < 0)
		return r.fd;
	rc = allow(&r, "/", rights & ACCESS_READ, f);
	if (rc == 0)
		rc = allow(&r, "/dev", rights & (ACCESS_FILE | ACCESS_READ), f);
	vec_each(place, &n->plan->places)
		if (rc == 0 && writable(place))
			rc = allow(&r, place->target, rights, f);
	fd_bag_empty(&r.later);
	n->ruleset = r.fd;
	return rc;
}

int step_landlock(struct native *n, struct fault *f)
{
	if (!n->plan->landlock_abi)
		return 0;
	if (syscall(SYS_landlock_restrict_self, n->ruleset, 0) < 0)
		return fault_set(f, errno, "enforce Landlock");
	close(take_fd(&n->ruleset));
	return 0;
}
