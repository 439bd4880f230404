/*
 * net/broker/machine.c - what the broker must know of the machine
 *
 * Theory of operation. The broker reads this itself, because the box's init waits for the
 * supervisor but nobody waits for a broker that starts. It lists addresses over netlink:
 * getifaddrs(3) would also list the interfaces, and allocate. A short file, as most are, is
 * read into static memory. A long /etc/hosts is usually a list of hosts to block. It is indexed
 * here, once, because reading it later would stall all streams of the box. If it is too long to
 * read, the broker does not start: it must not ask for blocked names outside.
 *
 * Must run: before the jail, which allows neither files nor netlink.
 */
#include "net/broker/machine.h"
#include "net/proto/lookup.h"
#include "net/policy/policy.h"
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
	DUMP = 8192, /* at least the largest part that the kernel sends */
	LISTS = 20,  /* attempts, if addresses change while they are listed */
};

/* ---- addresses ---- */

/*
 * The address of this end, and the prefix length of its network. On a point-to-point link
 * IFA_ADDRESS and the network belong to the other end.
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

/* An error that replaces the list or ends it early; 0: none. */
static int error_of(const struct nlmsghdr *h)
{
	const int *error = NLMSG_DATA(h);

	return NLMSG_PAYLOAD(h, 0) >= sizeof(*error) && *error < 0 ? *error : 0;
}

/* Read one part of the list; 1: it was the last. A change meanwhile may be in no part. */
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
	size_t mapped; /* 0: the text is in the caller's buffer */
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

/* Read to the end or until the buffer is full; the file may grow meanwhile. */
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

/* stat(2) first: opening some devices has effects. */
static int open_file(const char *path, size_t *ret_size)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	*ret_size = (size_t)st.st_size;
	return openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/*
 * Read into the caller's buffer if it fits, else into a mapping. Files in /proc report 0 bytes.
 * An unreadable file counts as absent, as it does for the C library.
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
