/*
 * tests/unit/test_machine.c - what the broker finds out about the machine
 *
 * The C library's word on the same things is the measure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fault.h"
#include "net/proto/lookup.h"
#include "net/broker/machine.h"
#include "net/policy/policy.h"

/* What is changed of the kernel's words on their way to machine_own(). */
static struct {
	int error;       /* that it says instead of a list */
	int last_error;  /* and at the end of one */
	int interrupted; /* so many lists lack all addresses, and say that they may */
} change;

static void change_message(struct nlmsghdr *h)
{
	struct nlmsgerr *e = NLMSG_DATA(h);

	if (change.error) {
		h->nlmsg_type = NLMSG_ERROR;
		e->error = -change.error;
	}
	if (change.last_error && h->nlmsg_type == NLMSG_DONE)
		*(int *)NLMSG_DATA(h) = -change.last_error;
	if (!change.interrupted)
		return;
	h->nlmsg_flags |= NLM_F_DUMP_INTR;
	if (h->nlmsg_type == NLMSG_DONE)
		change.interrupted--;
	else
		h->nlmsg_type = NLMSG_NOOP;
}

/* In the place of the C library's. */
ssize_t recv(int s, void *buf, size_t size, int flags)
{
	ssize_t n = recvfrom(s, buf, size, flags, NULL, NULL);
	unsigned int left = n > 0 && (size_t)n <= size ? (unsigned int)n : 0;

	for (struct nlmsghdr *h = buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
		change_message(h);
	return n;
}

static bool has(const struct policy *p, const struct address *a)
{
	for (unsigned int i = 0; i < p->n_own; i++)
		if (address_equal(&p->own[i], a))
			return true;
	return false;
}

static void test_own(void **state)
{
	static struct policy p, listed;
	struct fault f = { 0 };
	struct ifaddrs *all;

	(void)state;
	policy_init(&p, true);
	policy_init(&listed, true);
	assert_int_equal(machine_own(&p, &f), 0);
	assert_int_equal(getifaddrs(&all), 0);
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct address a;

		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
			a = address_v4((void *)&((struct sockaddr_in *)(void *)i->ifa_addr)
					       ->sin_addr);
		else if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6)
			a = address_v6(((struct sockaddr_in6 *)(void *)i->ifa_addr)
					       ->sin6_addr.s6_addr);
		else
			continue;
		assert_true(has(&p, &a));
		assert_true(policy_own(&listed, &a, 0));
	}
	freeifaddrs(all);
	assert_int_not_equal(p.n_own, 0);
	assert_int_equal(p.n_own, listed.n_own);
}

/* None of them is let go when there is no room for it. */
static void test_too_many(void **state)
{
	static struct policy p;
	struct fault f = { 0 };

	(void)state;
	policy_init(&p, true);
	p.n_own = POLICY_OWN;
	assert_true(machine_own(&p, &f) < 0);
	assert_non_null(strstr(f.text, "more than 256 addresses"));
	assert_non_null(strstr(f.fix, "--network none"));
}

/* The kernel's own word for it. */
static void test_own_refused(void **state)
{
	static struct policy p;
	struct fault f = { 0 };

	(void)state;
	policy_init(&p, true);
	change.error = EPERM;
	assert_int_equal(machine_own(&p, &f), -EPERM);
	assert_int_equal(f.err, EPERM);
	change.error = 0;
	change.last_error = ENOBUFS;
	assert_int_equal(machine_own(&p, &f), -ENOBUFS);
	change.last_error = 0;
}

/* A list in which something may be missing is not the last word, nor asked for forever. */
static void test_own_interrupted(void **state)
{
	static struct policy p, whole;
	struct fault f = { 0 };

	(void)state;
	policy_init(&whole, true);
	assert_int_equal(machine_own(&whole, &f), 0);
	policy_init(&p, true);
	change.interrupted = 3;
	assert_int_equal(machine_own(&p, &f), 0);
	assert_int_equal(change.interrupted, 0);
	assert_int_equal(p.n_own, whole.n_own);
	change.interrupted = 1000;
	assert_int_equal(machine_own(&p, &f), -EAGAIN);
	assert_in_range(change.interrupted, 900, 999);
	assert_non_null(strstr(f.text, "list the addresses"));
	change.interrupted = 0;
}

static void test_hosts(void **state)
{
	static char expected[1 << 20];
	char room[MACHINE_SHORT];
	FILE *file = fopen("/etc/hosts", "re");
	struct lookup_index x;
	struct fault f = { 0 };
	size_t want = 0;

	(void)state;
	assert_int_equal(machine_hosts(room, &x, &f), 0);
	if (file) {
		want = fread(expected, 1, sizeof(expected), file);
		fclose(file);
	}
	assert_int_equal(x.n, want);
	assert_memory_equal(x.text, expected, want);
	assert_int_equal(x.names != NULL, want > MACHINE_SHORT);
}

static void test_dns(void **state)
{
	struct lookup_config c;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(machine_dns(&c, &f), 0);
	assert_in_range(c.n, 1, LOOKUP_SERVERS);
	assert_in_range(c.timeout, 1, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_own_refused),
		cmocka_unit_test(test_own_interrupted),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_dns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
