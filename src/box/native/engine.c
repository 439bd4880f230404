/*
 * box/native/engine.c - the native engine: the step table, and the supervisor's side
 *
 * Theory of operation. clone3(2) makes init, which goes down the table; the order is the
 * design. Meanwhile the supervisor makes the plan, if it has none yet, and the stubs, and
 * reports each to init. Then it waits for one of two messages on the control socket: a fault,
 * or that the command runs. Each side closes its copy of the other's end, so it sees at once
 * when the other is gone. init also asks the kernel to be killed with the supervisor.
 */
#include "box/engine.h"
#include "box/steps.h"
#include "box/native/native.h"
#include "box/native/seccomp.h"
#include "box/stubs.h"
#include "box/native/sys.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
 * The supervisor makes the two namespaces that init is cloned into. init makes the others
 * itself while the supervisor goes on. Neither makes the network's (see net.c).
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
	{ "bounds", step_bounds }, /* slow, and needs no plan: before the wait */
	{ "root", step_root },
	{ "own", step_own },         /* places that need no plan */
	{ "plan", step_await_plan }, /* the supervisor makes it meanwhile */
	{ "places",
		step_places }, /* waits in between for the stubs, which are made meanwhile */
	{ "pivot", step_pivot },
	{ "hostname", step_hostname },
	{ "limits", step_limits },
	{ "terminal", step_terminal }, /* needs the box's /dev/pts */
	{ "rules", step_rules },       /* Landlock rules, by paths of the box */
	{ "net", step_net },           /* as late as possible: it is made during the mounts */
	{ "caps", step_caps },         /* after every step that needs them */
	{ "landlock", step_landlock }, /* after mounting, which it forbids */
	{ "seccomp", step_seccomp },   /* the last wall: it would refuse the steps before it */
	/* it reports calls and refuses none: on top of the other filter */
	{ "renames", step_renames },
	{ "go", step_await_go }, /* the supervisor is ready for the command */
	{ "exec", step_exec },
};

const char *native_step_name(size_t i)
{
	return i < ARRAY_SIZE(steps) ? steps[i].name : NULL;
}

#ifdef CARREL_TEST_HOOKS
/*
 * Test builds only: fail at the step that the environment names, or wait before it, for ever or
 * until a file exists. Another file beside that one shows that init has reached the step.
 */
static int test_hook(const char *step, struct fault *f)
{
	const char *fail = getenv("CARREL_TEST_FAIL"), *stop = getenv("CARREL_TEST_STOP");
	const char *until = getenv("CARREL_TEST_UNTIL");

	if (fail && !strcmp(fail, step))
		return fault_set(f, EIO, "fail on purpose");
	if (!stop || strcmp(stop, step) != 0)
		return 0;
	if (until)
		mknodat(AT_FDCWD, mem_printf("%s.here", until), S_IFREG | 0600, 0);
	for (int i = 0; i < 30000 && (!until || access(until, F_OK) < 0); i++)
		poll(NULL, 0, 10);
	return 0;
}
#else
static int test_hook(const char *step, struct fault *f)
{
	(void)step, (void)f;
	return 0;
}
#endif

/* --- in the box ------------------------------------------------------------------ */

static void init_main(struct native *n)
{
	struct fault f = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	n->umask = umask(0);
	n->shared = mem_arena();
	mem_own();                    /* init and the supervisor both go on allocating */
	(void)limits_raise_files(&f); /* if it fails, sending a descriptor will report it */
	f = (struct fault){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (test_hook(steps[i].name, &f) < 0 || steps[i].run(n, &f) < 0) {
			if (!f.step[0])
				snprintf(f.step, sizeof(f.step), "%s", steps[i].name);
			fault_in_flight(&f);
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

/* The kernel reaps init only after everything else in its pid namespace. */
static int await_end(const struct box *box)
{
	int status = 0;

	while (waitpid(box->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Wait until the command runs. A fault, or the end of the socket, means there is no box. */
static int await_start(struct box *box, struct fault *f)
{
	struct wire w = { .type = WIRE_GO };
	struct fault told;
	int status, fd;
	ssize_t n;

	wire_send(box->control, &w);
	while ((n = wire_receive(box->control, &w, &told, &fd, 0)) > 0) {
		if (w.type == WIRE_TERMINAL)
			box->terminal = fd;
		else if (w.type == WIRE_ROOT)
			box->root = fd;
		else
			break;
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
	fd_close(&box->root);
	cgroup_remove(&box->cgroup);
	for (int i = 0; i < NET_ENDS; i++)
		fd_close(&box->net[i]);
}

static void native_kill(struct box *box)
{
	syscall(SYS_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0);
	await_end(box);
}

/*
 * Root's groups would still apply inside. EPERM: we are root of a user namespace without that
 * right; then the groups give no access inside, as with any user.
 */
static int drop_groups(const struct frame *frame, struct fault *f)
{
	if (frame->host_uid == 0 && setgroups(0, NULL) < 0 && errno != EPERM)
		return fault_set(f, errno, "drop root's groups");
	return 0;
}

static int native_begin(const struct frame *frame, const struct box_io *io, struct box *ret,
	struct fault *f)
{
	struct box box = { .pidfd = -1,
		.terminal = -1,
		.root = -1,
		.net = { -1, -1, -1, -1 },
		.cgroup = CGROUP_ABSENT };
	struct clone_args args = {
		.flags = (frame->namespaces & FIRST) | CLONE_PIDFD,
		.pidfd = (uintptr_t)&box.pidfd,
		.exit_signal = SIGCHLD,
	};
	int ends[2], rc;

	mem_arena(); /* before the clone, so that it is shared */
	rc = drop_groups(frame, f);
	if (rc < 0)
		return rc;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fault_set(f, errno, "make the box's control socket");
	rc = cgroup_make(&frame->cgroup, &box.cgroup, f);
	if (rc < 0) {
		close(ends[0]);
		close(ends[1]);
		return rc;
	}
	if (box.cgroup.leaf >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (unsigned int)box.cgroup.leaf;
	}
	box.pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (box.pid == 0)
		init_main(&(struct native){ .frame = frame,
			.io = io,
			.control = ends[1],
			.terminal = -1,
			.ruleset = -1 });
	close(ends[1]);
	box.control = ends[0];
	if (box.pid < 0) {
		rc = errno;
		close(ends[0]);
		cgroup_remove(&box.cgroup);
		snprintf(f->step, sizeof(f->step), "clone");
		return no_namespaces(rc, f);
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
	rc = limits_raise_files(f);
	if (rc == 0)
		rc = stubs_make(p, box->pidfd, &box->stubs, f);
	if (rc == 0)
		wire_send(box->control, &(struct wire){ .type = WIRE_STUBS });
	if (rc == 0)
		rc = net_make(box, f);
	if (rc == 0)
		rc = cgroup_limit(&box->cgroup, p, box->pid, f);
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

static int write_words(const struct box_exec *e, int fd)
{
	struct box_exec_head head = { .rows = e->io.rows, .cols = e->io.cols };
	struct str words = { 0 };

	while (e->argv[head.argc])
		head.argc++;
	while (e->envp[head.envc])
		head.envc++;
	str_addn(&words, (const char *)&head, sizeof(head));
	str_addn(&words, e->workdir, strlen(e->workdir) + 1);
	for (size_t i = 0; e->argv[i]; i++)
		str_addn(&words, e->argv[i], strlen(e->argv[i]) + 1);
	for (size_t i = 0; e->envp[i]; i++)
		str_addn(&words, e->envp[i], strlen(e->envp[i]) + 1);
	return fd_write_all(fd, words.p, words.len);
}

static int native_exec(struct box *box, const struct box_exec *e, struct fault *f)
{
	const int ends[3] = { e->io.in, e->io.out, e->io.err };
	auto_close int words = memfd_create("words", MFD_CLOEXEC);
	int rc = words < 0 ? -errno : write_words(e, words);

	for (int i = 0; rc == 0 && i < 3; i++)
		if (ends[i] >= 0)
			rc = wire_send_fd(box->control,
				&(struct wire){ .type = WIRE_EXEC_STREAM, .value = i },
				ends[i]);
	if (rc == 0)
		rc = wire_send_fd(box->control,
			&(struct wire){ .type = WIRE_EXEC,
				.value = e->io.terminal,
				.group = e->number },
			words);
	return rc < 0 ? fault_set(f, -rc, "start a command in the box") : 0;
}

static void exec_event(const struct wire *w, int *fd, struct box_event *ret)
{
	enum box_event_type type;

	if (w->type == WIRE_EXEC_STARTED)
		type = BOX_EXEC_STARTED;
	else if (w->type == WIRE_EXEC_FAILED)
		type = BOX_EXEC_FAILED;
	else if (w->type == WIRE_EXEC_ENDED)
		type = BOX_EXEC_ENDED;
	else
		return;
	*ret = (struct box_event){
		.type = type, .status = w->value, .number = w->group, .fd = take_fd(fd)
	};
}

static int native_exec_signal(struct box *box, int number, int sig)
{
	return wire_send(box->control,
		&(struct wire){ .type = WIRE_EXEC_SIGNAL, .value = sig, .group = number });
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
	else if (n > 0)
		exec_event(&w, &fd, ret);
}

const struct engine engine_native = {
	.name = "native",
	.begin = native_begin,
	.start = native_start,
	.signal = native_signal,
	.socket = native_socket,
	.exec = native_exec,
	.exec_signal = native_exec_signal,
	.event = native_event,
	.kill = native_kill,
	.release = native_release,
};
