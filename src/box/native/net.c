/*
 * box/native/net.c - a network namespace, made on the side
 *
 * Making one costs the kernel as much as all mounts together, and init has those to do
 * meanwhile. So a helper that shares init's memory makes it, brings loopback up, and waits
 * until init has joined it. The helper is a process, not a thread, because unshare(2) would
 * otherwise not be able to move it alone.
 *
 * The helper shares errno with init: it calls only what leaves errno alone on
 * success, and after a failure the box does not start anyway.
 */
#include "box/native/native.h"
#include "box/native/egress.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <linux/futex.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKING, READY, FAILED, JOINED, SPIN = 200 };

static struct {
	_Atomic uint32_t state;
	int err; /* of a failed helper */
	const char *what;
	pid_t pid;
	int pidfd;
	bool v6; /* asked before the helper is there: the answer may be an errno */
} helper;

static char stack[64 * 1024] __attribute__((aligned(4096)));

static void state_set(uint32_t state)
{
	atomic_store(&helper.state, state);
	syscall(SYS_futex, &helper.state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A short spin first: usually the other side is just about done. */
static void state_wait_while(uint32_t state)
{
	for (int i = 0; i < SPIN && atomic_load(&helper.state) == state; i++)
		;
	while (atomic_load(&helper.state) == state)
		syscall(SYS_futex, &helper.state, FUTEX_WAIT, state, NULL, NULL, 0);
}

static const char *loopback_up(void)
{
	struct ifreq r = { .ifr_flags = IFF_UP | IFF_RUNNING };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (s < 0)
		return "open a socket in the network namespace";
	strcpy(r.ifr_name, "lo");
	rc = ioctl(s, SIOCSIFFLAGS, &r);
	close(s);
	return rc < 0 ? "bring the loopback interface up" : NULL;
}

/* The broker's ends go to the supervisor at once: no process of the box ever has them. */
static const char *hand_out(const struct native *n)
{
	int ends[2] = { -1, -1 };
	const char *what = n->frame->proxy ? egress_make_proxy(PROXY_PORT, &ends[0])
					   : egress_make(helper.v6, &ends[0], &ends[1]);

	if (!what &&
		wire_send_fds(n->control, &(struct wire){ .type = WIRE_NET }, ends,
			n->frame->proxy ? 1 : 2) < 0)
		what = "hand the box's network to the supervisor";
	return what;
}

static int helper_main(void *arg)
{
	const struct native *n = arg;
	const bool brokered = network_is_brokered(n->frame->network);
	const char *what = "make a network namespace";

	/* egress_make() does that among the rest. */
	if (unshare(CLONE_NEWNET) == 0)
		what = brokered && !n->frame->proxy ? NULL : loopback_up();
	if (!what && brokered)
		what = hand_out(n);
	helper.what = what;
	helper.err = what ? errno : 0;
	state_set(what ? FAILED : READY);
	if (!what)
		state_wait_while(READY);
	syscall(SYS_exit, 0); /* no exit handlers: the memory is init's */
	return 0;
}

int step_net(struct native *n, struct fault *f)
{
	if (n->frame->network == NETWORK_HOST)
		return 0;
	helper.v6 = network_is_brokered(n->frame->network) && egress_has_v6();
	helper.pid = clone(helper_main, stack + sizeof(stack), CLONE_VM | CLONE_PIDFD | SIGCHLD,
		n, &helper.pidfd);
	if (helper.pid < 0)
		return fault_set(f, errno, "start the helper that makes the network namespace");
	return 0;
}

static int failed(struct fault *f)
{
	int rc = fault_set(f, helper.err, "%s", helper.what);

	if (strstr(helper.what, "nf_tables"))
		fault_fix(f,
			"Network modes allow and open need a kernel with nf_tables and its NAT "
			"(CONFIG_NF_TABLES, NFT_NAT, NFT_REDIR), loaded or loadable; `modprobe "
			"nft_redir nft_chain_nat` as root may be all. Without it --proxy "
			"gives the box a proxy that its programs must ask.");
	return rc;
}

int step_net_join(struct native *n, struct fault *f)
{
	if (n->frame->network == NETWORK_HOST)
		return 0;
	state_wait_while(WORKING);
	if (atomic_load(&helper.state) == FAILED)
		return failed(f);
	if (setns(helper.pidfd, CLONE_NEWNET) < 0)
		return fault_set(f, errno, "join the network namespace");
	state_set(JOINED);
	close(helper.pidfd);
	return 0;
}

/* Off the list of processes before there is anybody to see it. */
int step_net_end(struct native *n, struct fault *f)
{
	if (n->frame->network != NETWORK_HOST && waitpid(helper.pid, NULL, 0) != helper.pid)
		return fault_set(f, errno, "wait for the network namespace's helper");
	mem_drop(stack, sizeof(stack));
	return 0;
}
