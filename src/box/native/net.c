/*
 * box/native/net.c - make the network namespace in a helper process
 *
 * Making a network namespace takes as long as all mounts together. So a helper of the
 * supervisor makes it while init makes the mounts. The helper enters the box's user namespace,
 * which will own the network, unshares a network namespace, brings loopback up, and sends the
 * namespace to init. init joins it when everything else is made.
 *
 * The helper is a process, not a thread, because a thread could not change namespaces alone. It
 * shares memory and descriptors with the supervisor, which waits for its end. So the sockets
 * that it makes for the broker are there at once, and no process of the box ever has them.
 */
#include "box/native/native.h"
#include "box/engine.h"
#include "box/native/redirect.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894C
#endif

static char stack[64 * 1024] __attribute__((aligned(4096)));

static const char *loopback_up(int *ret_socket)
{
	struct ifreq r = { .ifr_flags = IFF_UP | IFF_RUNNING };

	*ret_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (*ret_socket < 0)
		return "open a socket in the network namespace";
	strcpy(r.ifr_name, "lo");
	return ioctl(*ret_socket, SIOCSIFFLAGS, &r) < 0 ? "bring the loopback interface up"
							: NULL;
}

/* The namespace as a descriptor, taken from a socket in it. */
static const char *make_net(struct box *box, int *ret)
{
	const bool brokered = network_is_brokered(box->frame->network);
	const bool proxy = brokered && box->frame->proxy;
	const char *what = NULL;
	auto_close int s = -1;

	if (setns(box->pidfd, CLONE_NEWUSER) < 0)
		return "enter the box's user namespace";
	if (unshare(CLONE_NEWNET) < 0)
		return "make a network namespace";
	if (brokered && !proxy)
		what = egress_make(box->net); /* includes loopback */
	else
		what = loopback_up(&s);
	if (!what && proxy)
		what = egress_make_proxy(PROXY_PORT, &box->net[END_LISTENER]);
	for (unsigned int i = 0; !what && i < box->frame->n_services; i++)
		what = egress_service(box->frame->services[i]);
	if (!what && box->frame->low_ports)
		what = egress_low_ports();
	if (!what) {
		*ret = ioctl(brokered ? box->net[END_LISTENER] : s, SIOCGSKNS);
		what = *ret < 0 ? "get hold of the network namespace" : NULL;
	}
	return what;
}

static int helper_main(void *arg)
{
	struct box *box = arg;
	int net = -1;
	const char *what = make_net(box, &net);
	struct wire w = {
		.type = WIRE_NET, .value = what ? errno : 0, .address = (uintptr_t)what
	};

	if (wire_send_fd(box->control, &w, net) < 0) {
		w.value = errno;
		w.address = (uintptr_t) "pass the network namespace to the box";
		wire_send(box->control, &w);
	}
	fd_close(&net);
	syscall(SYS_exit, 0); /* no exit handlers: they would act on the supervisor's memory */
	return 0;
}

int net_make(struct box *box, struct fault *f)
{
	pid_t pid;

	if (box->frame->network == NETWORK_HOST)
		return 0;
	pid = clone(helper_main, stack + sizeof(stack), CLONE_VM | CLONE_FILES | CLONE_VFORK,
		box);
	if (pid < 0) {
		strcpy(f->step, "net");
		return fault_set(f, errno, "start the helper that makes the network namespace");
	}
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	mem_drop(stack, sizeof(stack));
	return 0;
}

static int net_failed(int err, const char *what, struct fault *f)
{
	int rc = fault_set(f, err, "%s", what);

	if (strstr(what, "nf_tables") && err == EAFNOSUPPORT)
		fault_fix(f,
			"In another box there is no such network: it can have none, or with "
			"--network host that of the box around it.");
	else if (strstr(what, "nf_tables"))
		fault_fix(f,
			"Network modes allow and open need a kernel with nf_tables and its "
			"tproxy (CONFIG_NF_TABLES, NFT_TPROXY), loaded or loadable; `modprobe "
			"nft_tproxy` as root may be all. Without it --proxy gives the box a "
			"proxy that its programs must ask.");
	return rc;
}

int step_net(struct native *n, struct fault *f)
{
	auto_close int net = -1;
	struct wire w;
	int rc;

	if (n->frame->network == NETWORK_HOST)
		return 0;
	rc = native_await(n, WIRE_NET, &w, &net, f);
	if (rc < 0)
		return rc;
	if (net < 0 && !w.address)
		return fault_set(f, EMFILE, "receive the network namespace");
	if (net < 0) /* init runs the same program at the same addresses */
		return net_failed(w.value, (const char *)(uintptr_t)w.address, f);
	if (setns(net, CLONE_NEWNET) < 0)
		return fault_set(f, errno, "join the network namespace");
	return 0;
}
