/*
 * bench/egress-setup.c - what it costs to make the inside of a brokered network
 *
 *	egress-setup ROUNDS
 *
 * Each round is two processes with a user and a network namespace of their own: one brings
 * loopback up and has no way out, the other calls egress_make() from carrel's own source, as
 * the helper of a box does. Prints JSON: microseconds of either (median, p10, p90, n).
 */
#include "box/native/redirect.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 10000 };

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what)
{
	fprintf(stderr, "egress-setup: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void loopback_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &r) < 0)
		die("bring loopback up");
	close(s);
}

static void make(bool egress, double *ret_us)
{
	int ends[NET_ENDS] = { -1, -1, -1, -1 };
	const char *failed;
	double began;

	if (unshare(CLONE_NEWUSER) < 0)
		die("make a user namespace");
	began = now_us();
	if (unshare(CLONE_NEWNET) < 0)
		die("make a network namespace");
	if (egress) {
		failed = egress_make(ends);
		if (failed)
			die(failed);
	} else {
		loopback_up();
	}
	*ret_us = now_us() - began;
}

/* In a process of its own. False: it failed. */
static bool measure(bool egress, double *shared, double *ret_us)
{
	int status;

	if (fork() == 0) {
		make(egress, shared);
		_exit(0);
	}
	if (wait(&status) < 0 || status != 0)
		return false;
	*ret_us = *shared;
	usleep(2000); /* the kernel takes namespaces down behind our back */
	return true;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, double *v, size_t n, const char *end)
{
	qsort(v, n, sizeof(*v), by_value);
	printf("\"%s\": {\"median\": %.2f, \"p10\": %.2f, \"p90\": %.2f, \"n\": %zu}%s", name,
		v[n / 2], v[n / 10], v[n * 9 / 10], n, end);
}

int main(int argc, char **argv)
{
	static double namespace[MOST], egress[MOST];
	size_t rounds = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	double *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (!rounds || rounds > MOST || shared == MAP_FAILED)
		return 2;
	for (size_t i = 0; i < rounds; i++)
		if (!measure(false, shared, &namespace[i]) ||
			!measure(true, shared, &egress[i]))
			return 1;
	printf("{");
	print("namespace", namespace, rounds, ", ");
	print("egress", egress, rounds, "}\n");
	return 0;
}
