/*
 * The probe is a real box from the real step table, with a terminal so that this is tried too.
 * So it fails where a run would fail. System settings are read only afterwards, to advise,
 * never to decide: on Ubuntu 24.04 a user namespace can be made, and is useless, whatever
 * sysctl says.
 */
#include "run/probe.h"
#include "supervise/broker-link.h"
#include "run/run.h"
#include "box/engine.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each layer and the steps of the engine that make it, in order. */
static const struct {
	const char *layer, *detail;
	const char *steps[4];
} layers[] = {
	{ "namespaces", "user, mount, pid, ipc, uts and cgroup namespaces, without root",
		{ "clone", "fds", "namespaces", "plan" } },
	{ "identity", "one user id mapped; no namespaces inside the box",
		{ "userns", "bounds" } },
	{ "network", "a network namespace with its own loopback", { "net" } },
	{ "mounts", "a root of its own: cloned mounts, private /proc and /dev",
		{ "root", "own", "places", "pivot" } },
	{ "limits", "host name, resource limits", { "hostname", "limits" } },
	{ "terminal", "a pseudo-terminal of its own", { "terminal" } },
	{ "capabilities", "none in any set, and none to be gained", { "caps" } },
	{ "landlock", "writes only where the plan says, again", { "rules", "landlock" } },
	{ "seccomp", "a list of allowed system calls", { "seccomp", "renames" } },
	{ "command", "a program runs in the box", { "go", "exec" } },
	{ "broker",
		"network modes allow, open: nf_tables with tproxy in the box, a broker outside",
		{ "broker" } },
};

static int layer_of(const char *step)
{
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		for (size_t k = 0; k < ARRAY_SIZE(layers[i].steps) && layers[i].steps[k]; k++)
			if (!strcmp(layers[i].steps[k], step))
				return (int)i;
	return -1;
}

static bool setting_is(const char *path, const char *value)
{
	char *text = fd_read_file(AT_FDCWD, path, 4096);

	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text && !strcmp(text, value);
}

static bool in_container(void)
{
	return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
}

static const struct {
	const char *path, *value, *advice;
} settings[] = {
	{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		"AppArmor restricts user namespaces here: install the profile that comes with "
		"carrel (packaging/apparmor/carrel) and load it with apparmor_parser -r." },
	{ "/proc/sys/kernel/unprivileged_userns_clone", "0",
		"Allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 (and a "
		"file in /etc/sysctl.d to keep it)." },
	{ "/proc/sys/user/max_user_namespaces", "0",
		"Allow user namespaces: sysctl -w user.max_user_namespaces=10000 (and a file "
		"in /etc/sysctl.d to keep it). Inside a carrel box: start that one with "
		"--nest." },
};

/* The message if a box cannot be built, to match with the advice below. */
static bool sends_here(const struct fault *f)
{
	return strstr(f->fix, "carrel check");
}

/* No setting forbids it, and yet it fails. */
static void advise_without_setting(struct fault *f)
{
	if (sends_here(f) && (f->err == ENOSPC || f->err == EUSERS))
		fault_fix(f,
			"User namespaces are used up: end programs that hold some, raise "
			"user.max_user_namespaces, or nest fewer (32 at most).");
	else if (in_container())
		fault_fix(f,
			"This is a container: start it so that user namespaces and mounts are "
			"allowed inside (podman: --security-opt unmask=ALL, docker: "
			"--security-opt seccomp=unconfined and an unmasked /proc).");
	else if (sends_here(f))
		fault_fix(f,
			"No sysctl forbids it, so what started carrel does: a seccomp filter, "
			"a chroot, a security module or a sandbox (systemd: "
			"RestrictNamespaces=no). Start carrel without it.");
}

static void advise(struct fault *f)
{
	if (layer_of(f->step) > layer_of("pivot"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		if (setting_is(settings[i].path, settings[i].value)) {
			fault_fix(f, "%s", settings[i].advice);
			return;
		}
	}
	if (!f->fix[0] || sends_here(f))
		advise_without_setting(f);
}

static void await_end(const struct engine *e, struct box *box)
{
	struct pollfd fd = { .fd = box->control, .events = POLLIN };
	struct box_event event = { .type = BOX_NONE };

	while (event.type != BOX_EXITED && event.type != BOX_LOST) {
		poll(&fd, 1, 1000);
		e->event(box, &event);
	}
	e->release(box);
}

struct trial {
	struct broker_link link;
	const struct plan *plan;
};

static int try_broker(void *ctx, struct fault *f)
{
	struct trial *t = ctx;

	return broker_try(&t->link, t->plan, f);
}

/* Build a box around an empty directory and run true in it. */
static int try_box(const char *dir, enum network network, struct fault *f)
{
	static const char *const argv[] = { "true", NULL };
	const struct box_io io = {
		.terminal = true, .in = -1, .out = -1, .err = -1, .rows = 24, .cols = 80
	};
	struct request request = { .argv = argv, .workspace = dir, .network = network };
	struct trial trial = { 0 };
	const struct engine *engine;
	struct box box;
	int rc = run_plan(run_new(&request), RUN_TO_SHOW, &trial.plan, f);

	if (rc < 0) {
		snprintf(f->step, sizeof(f->step), "%s",
			strstr(f->text, "Landlock") ? "landlock" : "clone");
		return rc;
	}
	engine = engine_find(trial.plan->frame.engine, f);
	if (!engine)
		return -1;
	rc = engine->begin(&trial.plan->frame, &io, &box, f);
	if (rc == 0)
		rc = engine->start(&box, trial.plan, trial.plan->policy ? try_broker : NULL,
			&trial, f);
	if (rc == 0)
		await_end(engine, &box);
	broker_kill(&trial.link);
	return rc;
}

/*
 * Try it again with a broker, in a process of its own, because the janitor of the first box may
 * still run.
 */
static int try_brokered(const char *dir, struct fault *f)
{
	int ends[2], status = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, errno, "make a pipe");
	pid = fork();
	if (pid == 0) {
		mem_own();
		status = try_box(dir, NETWORK_OPEN, f) < 0;
		if (status && write(ends[1], f, sizeof(*f)) != sizeof(*f))
			_exit(2);
		_exit(status);
	}
	close(ends[1]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		fault_set(f, errno, "try a second box");
	else if (status && read(ends[0], f, sizeof(*f)) != sizeof(*f))
		fault_set(f, 0, "the second box ended without a word");
	close(ends[0]);
	return pid < 0 || status ? -1 : 0;
}

void probe_all(probe_vec *ret)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = path_join(tmp && tmp[0] == '/' ? tmp : "/tmp", "carrel-check-XXXXXX");
	struct fault f = { 0 };
	int failed = (int)ARRAY_SIZE(layers);

	if (!mkdtemp(dir)) {
		fault_set(&f, errno, "make a directory in %s", str_visible(path_parent(dir)));
		failed = 0;
	} else {
		if (try_box(dir, NETWORK_NONE, &f) < 0) {
			failed = layer_of(f.step) < 0 ? 0 : layer_of(f.step);
			advise(&f);
		} else if (try_brokered(dir, &f) < 0) {
			failed = layer_of("broker");
		}
		rmdir(dir);
	}
	for (int i = 0; i < (int)ARRAY_SIZE(layers); i++) {
		struct probe probe = { .layer = layers[i].layer,
			.detail = layers[i].detail,
			.state = i < failed   ? PROBE_OK
				: i == failed ? PROBE_FAILED
					      : PROBE_NOT_REACHED };

		if (i == failed)
			probe.fault = f;
		vec_push(ret, probe);
	}
}
