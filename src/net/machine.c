/*
 * net/machine.c - what the broker must know of the machine
 *
 * Theory of operation. Here and not in the supervisor, because the box's init waits for that
 * one, and nobody for the broker while it starts. Its addresses are asked for as the kernel
 * lists them: getifaddrs(3) would ask for the interfaces too, and allocate. Files are read
 * into what is there as long as they are as short as they mostly are. A long /etc/hosts is a
 * list of what must not be reached, as a rule: where its names are is found out here, once,
 * since all streams of the box would wait while it is read; and one that is too long for us
 * is no reason to ask for its names outside.
 *
 * Must run: before the jail, which has neither files nor netlink.
 */
#include "net/machine.h"
#include "net/lookup.h"
#include "net/policy.h"
#include "base/fault.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HOSTS_MOST = 32 << 20,
	RESOLV_MOST = 1 << 20,
	DUMP = 8192, /* at least as much as the kernel gives at once */
	LISTS = 20,  /* of addresses that change while they are listed */
};

/* ---- addresses ---- */

/*
 * The address at this end, and the bits of the network that it is in: of a link between two,
 * IFA_ADDRESS is that at the other, and so is the network.
 */
static bool address_of(const struct nlmsghdr *h, struct address *ret, unsigned int *ret_bits)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	const size_t size = m->ifa_family == AF_INET ? 4 : 16;
	const struct rtattr *a = IFA_RTA(m);
	const void *local = NULL, *other = NULL, *found;

	if (m->ifa_family != AF_INET && m->ifa_family != AF_INET6)
		return false;
	for (unsigned int left = (unsigned int)IFA_PAYLOAD(h); RTA_OK(a, left);
		a = RTA_NEXT(a, left))
		if (RTA_PAYLOAD(a) >= size && a->rta_type == IFA_LOCAL)
			local = RTA_DATA(a);
		else if (RTA_PAYLOAD(a) >= size && a->rta_type == IFA_ADDRESS)
			other = RTA_DATA(a);
	found = local ? local : other;
	if (found)
		*ret = size == 4 ? address_v4(found) : address_v6(found);
	*ret_bits = local && other && memcmp(local, other, size) != 0 ? 0 : m->ifa_prefixlen;
	return found;
}

static int too_many(struct fault *f)
{
	fault_set(f, 0,
		"this machine has more than %d addresses, which is more than carrel can "
		"keep a box from",
		POLICY_OWN);
	return fault_fix(f, "Use --network none or --network host.");
}

/* What went wrong, in the place of a list or after half of it; 0: nothing, or not said. */
static int error_of(const struct nlmsghdr *h)
{
	const int *error = NLMSG_DATA(h);

	return NLMSG_PAYLOAD(h, 0) >= sizeof(*error) && *error < 0 ? *error : 0;
}

/* One part of the list; 1 when it was the last. What changed meanwhile may be in none. */
static int read_part(int s, struct policy *p, bool *whole, struct fault *f)
{
	_Alignas(struct nlmsghdr) char part[DUMP];
	ssize_t n = recv(s, part, sizeof(part), MSG_TRUNC);
	const struct nlmsghdr *h = (const void *)part;
	struct address a;
	unsigned int bits;

	if (n < 0 || n > (ssize_t)sizeof(part))
		return -(n < 0 ? errno : EMSGSIZE);
	for (unsigned int left = (unsigned int)n; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_flags & NLM_F_DUMP_INTR)
			*whole = false;
		if (h->nlmsg_type == NLMSG_DONE)
			return error_of(h) ? error_of(h) : 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return error_of(h) ? error_of(h) : -EIO;
		if (h->nlmsg_type == RTM_NEWADDR && address_of(h, &a, &bits) &&
			!policy_own(p, &a, bits))
			return too_many(f);
	}
	return 0;
}

static int read_list(int s, struct policy *p, bool *ret_whole, struct fault *f)
{
	const struct {
		struct nlmsghdr head;
		struct ifaddrmsg body;
	} all = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(all.body)),
			  .nlmsg_type = RTM_GETADDR,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	int rc = send(s, &all, all.head.nlmsg_len, 0) < 0 ? -errno : 0;
	bool whole = true;

	while (rc == 0)
		rc = read_part(s, p, &whole, f);
	if (rc < 0)
		return rc;
	*ret_whole = whole;
	return 0;
}

int machine_own(struct policy *p, struct fault *f)
{
	auto_close int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int rc = s < 0 ? -errno : 0;
	bool whole = false;

	for (int i = 0; rc == 0 && !whole; i++)
		rc = i < LISTS ? read_list(s, p, &whole, f) : -EAGAIN;
	if (rc < 0 && !f->text[0])
		return fault_set(f, -rc, "list the addresses of this machine");
	return rc;
}

/* ---- files ---- */

struct text {
	char *p;
	size_t n;
	size_t mapped; /* 0: it is in the room that was given */
};

static int too_long(const char *path, size_t most, struct fault *f)
{
	fault_set(f, 0, "'%s' has more than %zu MiB, which is more than carrel reads", path,
		most >> 20);
	return fault_fix(f, "Shorten it, or use --network none or --network host.");
}

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Until there is no more, or no room; anything may grow while it is read. */
static int read_all(int fd, size_t expected, size_t size, struct text *t)
{
	while (t->n < size && (t->n == 0 || t->n != expected)) {
		ssize_t n = read(fd, t->p + t->n, size - t->n);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		t->n += n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

/* It is looked at first: to open some devices is to use them. */
static int open_file(const char *path, size_t *ret_size)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	*ret_size = (size_t)st.st_size;
	return openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/*
 * Into the room if it fits there, else into memory of its own. Files in /proc say that they
 * have 0 bytes. One that may not be read is as good as none, as for the C library.
 */
static int read_file(const char *path, char room[MACHINE_SHORT], size_t most, struct text *ret,
	struct fault *f)
{
	struct text t = { .p = room };
	size_t expected = 0, size;
	auto_close int fd = open_file(path, &expected);
	int rc = 0;

	size = expected > 0 && expected < most ? expected + 1 : most + 1;
	if (fd >= 0 && size > MACHINE_SHORT) {
		t.p = map(size);
		t.mapped = size;
	}
	if (fd >= 0)
		rc = t.p ? read_all(fd, expected, size, &t) : -ENOMEM;
	if (rc < 0)
		return fault_set(f, -rc, "read '%s'", path);
	if (t.n > most)
		return too_long(path, most, f);
	t.n = strnlen(t.p, t.n);
	*ret = t;
	return 0;
}

int machine_dns(struct lookup_config *ret, struct fault *f)
{
	char room[MACHINE_SHORT];
	struct text t;
	int rc = read_file("/etc/resolv.conf", room, RESOLV_MOST, &t, f);

	if (rc < 0)
		return rc;
	lookup_config(t.p, t.n, if_nametoindex, ret);
	if (t.mapped)
		munmap(t.p, t.mapped);
	return 0;
}

int machine_hosts(char room[MACHINE_SHORT], struct lookup_index *ret, struct fault *f)
{
	struct lookup_index x = { 0 };
	struct text t;
	int rc = read_file("/etc/hosts", room, HOSTS_MOST, &t, f);

	if (rc < 0)
		return rc;
	x.text = t.p;
	x.n = t.n;
	if (t.n > MACHINE_SHORT) {
		x.room = lookup_count(t.p, t.n);
		x.names = map(x.room * sizeof(*x.names));
		if (!x.names)
			return fault_set(f, ENOMEM, "list the names in '/etc/hosts'");
		lookup_index(&x);
	}
	*ret = x;
	return 0;
}
