/*
 * box/native/engine.c - the native engine: the step table, and the supervisor's side
 *
 * Theory of operation. clone3(2) makes init, which goes down the table; the order is the
 * design. Meanwhile the supervisor makes the plan, if it has none yet, and the stubs, and tells
 * when each is there; then it waits for one of two words on the control socket: a fault, or
 * that the command runs. Both ends close their copy of the other's end, so either sees at once
 * when the other is gone; init also asks the kernel to be killed with the supervisor.
 */
#include "box/engine.h"
#include "box/steps.h"
#include "box/native/native.h"
#include "box/native/seccomp.h"
#include "box/native/stub.h"
#include "box/native/sys.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int native_await(const struct native *n, enum wire_type type, struct wire *ret, int *ret_fd,
	struct fault *f)
{
	if (wire_receive(n->control, ret, NULL, ret_fd, 0) != sizeof(*ret) || ret->type != type)
		return fault_set(f, EPIPE, "hear from the supervisor");
	return 0;
}

int step_await_plan(struct native *n, struct fault *f)
{
	struct wire w;
	int rc = native_await(n, WIRE_PLAN, &w, NULL, f);

	if (rc < 0)
		return rc;
	n->plan = (const struct plan *)(uintptr_t)w.address;
	return 0;
}

int native_await_stubs(const struct native *n, struct fault *f)
{
	struct wire w;

	return native_await(n, WIRE_STUBS, &w, NULL, f);
}

int step_await_go(struct native *n, struct fault *f)
{
	struct wire w;

	return native_await(n, WIRE_GO, &w, NULL, f);
}

int step_seccomp(struct native *n, struct fault *f)
{
	return seccomp_apply(n->plan->seccomp, f);
}

/* --- namespaces ------------------------------------------------------------------ */

/*
 * The supervisor makes the two that decide who and where init is; all others init makes for
 * itself, while the supervisor goes on. The network's is made by neither (see net.c).
 */
enum { FIRST = CLONE_NEWUSER | CLONE_NEWPID, LATER = ~(FIRST | CLONE_NEWNET) };

static int no_namespaces(int err, struct fault *f)
{
	fault_set(f, err, "make the box's namespaces");
	if (err == ENOSYS)
		return fault_fix(f,
			"clone3(2) and unshare(2) are needed: Linux 5.13 or later, and a "
			"container profile that lets them through.");
	if (err == EPERM || err == ENOSPC || err == EUSERS)
		return fault_fix(f,
			"Unprivileged user namespaces are off or used up here; "
			"`carrel check` says what to change.");
	return -err;
}

int step_namespaces(struct native *n, struct fault *f)
{
	return unshare((int)n->frame->namespaces & LATER) < 0 ? no_namespaces(errno, f) : 0;
}

struct step {
	const char *name;
	int (*run)(struct native *n, struct fault *f);
};

static const struct step steps[] = {
	{ "fds", step_fds }, /* first: CVE-2024-21626 */
	{ "namespaces", step_namespaces },
	{ "userns", step_userns },
	{ "bounds", step_bounds }, /* long, and nothing hangs on it: before the wait */
	{ "root", step_root },
	{ "own", step_own },         /* what needs no plan */
	{ "plan", step_await_plan }, /* made by the supervisor meanwhile */
	{ "places", step_places },   /* waits in between for the stubs, that are made too */
	{ "pivot", step_pivot },
	{ "hostname", step_hostname },
	{ "limits", step_limits },
	{ "terminal", step_terminal }, /* needs the box's /dev/pts */
	{ "rules", step_rules },       /* Landlock's, by the paths of the box */
	{ "net", step_net },           /* as late as possible: it is made beside the mounts */
	{ "caps", step_caps },         /* after all that needs them */
	{ "landlock", step_landlock }, /* after mounting, which it forbids */
	{ "seccomp", step_seccomp },   /* last: everything before would be refused */
	{ "go", step_await_go },       /* the supervisor is ready for what the command does */
	{ "exec", step_exec },
};

const char *native_step_name(size_t i)
{
	return i < ARRAY_SIZE(steps) ? steps[i].name : NULL;
}

#ifdef CARREL_TEST_HOOKS
/* Test builds only: fail at the step that the environment names, or wait before it. */
static int test_hook(const char *step, struct fault *f)
{
	const char *fail = getenv("CARREL_TEST_FAIL"), *stop = getenv("CARREL_TEST_STOP");

	if (fail && !strcmp(fail, step))
		return fault_set(f, EIO, "fail on purpose");
	for (int i = 0; i < 300 && stop && !strcmp(stop, step); i++)
		poll(NULL, 0, 1000);
	return 0;
}
#else
static int test_hook(const char *step, struct fault *f)
{
	(void)step, (void)f;
	return 0;
}
#endif

/* --- on two processors ----------------------------------------------------------- */

/*
 * Where the supervisor is, and where else init may be. Looked up before there are two who
 * change it.
 */
struct seats {
	unsigned int here;
	cpu_set_t all, others; /* others: none where there is one processor */
};

static void find_seats(struct seats *ret)
{
	CPU_ZERO(&ret->others);
	/* No sched_getcpu(), which looks for itself in the vDSO first. */
	if (syscall(SYS_getcpu, &ret->here, NULL, NULL) < 0 || ret->here >= CPU_SETSIZE ||
		sched_getaffinity(0, sizeof(ret->all), &ret->all) < 0)
		return;
	ret->others = ret->all;
	CPU_CLR(ret->here, &ret->others);
}

/*
 * Beside the supervisor, not behind it: the scheduler of a virtual machine may fill one
 * processor before it wakes another, and init would begin when the plan is made, or the plan
 * when init waits for it, and not both at once. It may go where it likes from then on.
 */
static void set_apart(pid_t pid, const struct seats *seats)
{
	if (CPU_COUNT(&seats->others) == 0)
		return;
	sched_setaffinity(pid, sizeof(seats->others), &seats->others);
	sched_setaffinity(pid, sizeof(seats->all), &seats->all);
}

/* To move init before it has run is cheap, so the supervisor does; unless init came first. */
static void set_self_apart(const struct seats *seats)
{
	unsigned int here;

	if (syscall(SYS_getcpu, &here, NULL, NULL) == 0 && here == seats->here)
		set_apart(0, seats);
}

/* --- in the box ------------------------------------------------------------------ */

static void init_main(struct native *n, const struct seats *seats)
{
	struct fault f = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	set_self_apart(seats);
	n->umask = umask(0);
	n->shared = mem_arena();
	mem_own(); /* both of us go on allocating */
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (test_hook(steps[i].name, &f) < 0 || steps[i].run(n, &f) < 0) {
			if (!f.step[0])
				snprintf(f.step, sizeof(f.step), "%s", steps[i].name);
			if (f.err == ENOSYS && !f.fix[0])
				fault_fix(&f,
					"This kernel is older than Linux 5.13, or a container "
					"profile keeps the call from it.");
			wire_send_fault(n->control, &f);
			_exit(125);
		}
	}
	wire_send(n->control, &(struct wire){ .type = WIRE_STARTED });
	init_loop(n);
}

/* --- outside --------------------------------------------------------------------- */

/* The kernel lets init go only after everything else in its pid namespace. */
static int await_end(const struct box *box)
{
	int status = 0;

	while (waitpid(box->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Wait until the command runs; a fault, or silence, means there is no box. */
static int await_start(struct box *box, struct fault *f)
{
	struct wire w = { .type = WIRE_GO };
	struct fault told;
	int status, fd;
	ssize_t n;

	wire_send(box->control, &w);
	while ((n = wire_receive(box->control, &w, &told, &fd, 0)) > 0) {
		if (w.type != WIRE_TERMINAL)
			break;
		box->terminal = fd;
	}
	if (n > 0 && w.type == WIRE_STARTED)
		return 0;
	status = await_end(box);
	if (n == (ssize_t)(sizeof(w) + sizeof(told)) && w.type == WIRE_FAULT) {
		*f = told;
		return f->err ? -f->err : -EINVAL;
	}
	fault_set(f, 0, "the box ended while it was being built (%s %d)",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return -EINVAL;
}

static void native_release(struct box *box)
{
	box->replaced = stubs_remove(box->stubs);
	box->stubs = NULL;
	fd_close(&box->pidfd);
	fd_close(&box->control);
	fd_close(&box->terminal);
	for (int i = 0; i < NET_ENDS; i++)
		fd_close(&box->net[i]);
}

static void native_kill(struct box *box)
{
	syscall(SYS_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0);
	await_end(box);
}

static int native_begin(const struct frame *frame, const struct box_io *io, struct box *ret,
	struct fault *f)
{
	struct box box = { .pidfd = -1, .terminal = -1, .net = { -1, -1, -1, -1 } };
	struct clone_args args = {
		.flags = (frame->namespaces & FIRST) | CLONE_PIDFD,
		.pidfd = (uintptr_t)&box.pidfd,
		.exit_signal = SIGCHLD,
	};
	struct seats seats;
	int ends[2];

	mem_arena(); /* there before the clone, so that it is shared */
	find_seats(&seats);
	/*
	 * Groups of root would reach through. EPERM: root of a user namespace that has given
	 * that right away; like any user's, the groups are then of no use inside.
	 */
	if (frame->host_uid == 0 && setgroups(0, NULL) < 0 && errno != EPERM)
		return fault_set(f, errno, "drop root's groups");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fault_set(f, errno, "make the box's control socket");
	box.pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (box.pid == 0) {
		struct native n = { .frame = frame,
			.io = io,
			.control = ends[1],
			.terminal = -1,
			.ruleset = -1 };

		init_main(&n, &seats);
	}
	if (box.pid > 0)
		set_apart(box.pid, &seats);
	close(ends[1]);
	box.control = ends[0];
	if (box.pid < 0) {
		close(ends[0]);
		snprintf(f->step, sizeof(f->step), "clone");
		return no_namespaces(errno, f);
	}
	*ret = box;
	ret->frame = frame;
	return 0;
}

static int native_start(struct box *box, const struct plan *p, box_meanwhile_fn *meanwhile,
	void *ctx, struct fault *f)
{
	int rc;

	wire_send(box->control, &(struct wire){ .type = WIRE_PLAN, .address = (uintptr_t)p });
	rc = stubs_make(p, box->pidfd, &box->stubs, f);
	if (rc == 0)
		wire_send(box->control, &(struct wire){ .type = WIRE_STUBS });
	if (rc == 0)
		rc = net_make(box, f);
	if (rc == 0 && meanwhile)
		rc = meanwhile(ctx, f);
	if (rc < 0)
		native_kill(box);
	else
		rc = await_start(box, f);
	if (rc < 0)
		native_release(box);
	return rc;
}

static int native_signal(struct box *box, int sig, bool group)
{
	return wire_send(box->control,
		&(struct wire){ .type = WIRE_SIGNAL, .value = sig, .group = group });
}

static int native_socket(struct box *box)
{
	return wire_send(box->control, &(struct wire){ .type = WIRE_SOCKET });
}

static void native_event(struct box *box, struct box_event *ret)
{
	struct wire w = { 0 };
	struct fault unused;
	auto_close int fd = -1;
	ssize_t n = wire_receive(box->control, &w, &unused, &fd, MSG_DONTWAIT);

	*ret = (struct box_event){ .type = BOX_NONE, .fd = -1 };
	if (n > 0 && w.type == WIRE_SOCKET)
		*ret = (struct box_event){ .type = BOX_SOCKET, .fd = take_fd(&fd) };
	if (n == 0 || (n < 0 && errno != EAGAIN))
		ret->type = BOX_LOST;
	else if (n > 0 && w.type == WIRE_EXITED)
		*ret = (struct box_event){ .type = BOX_EXITED, .status = w.value };
	else if (n > 0 && w.type == WIRE_STOPPED)
		*ret = (struct box_event){ .type = BOX_STOPPED, .status = w.value };
}

const struct engine engine_native = {
	.name = "native",
	.begin = native_begin,
	.start = native_start,
	.signal = native_signal,
	.socket = native_socket,
	.event = native_event,
	.kill = native_kill,
	.release = native_release,
};
