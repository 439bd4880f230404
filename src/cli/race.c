/*
 * cli/race.c - several boxes on one task: start, wait, check, compare
 *
 * Each box is a `carrel run --overlay` in its own process group, which ends when this process
 * ends. The check of a box runs in another box on top of the first one's changes, without a
 * network, and its own changes are dropped. The output of both goes to output.log and check.log
 * in the record of the box.
 */
#include "cli/race.h"
#include "overlay/changeset.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "state/workspace.h"
#include "base/diff.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 1000, PATIENCE_MS = 10000, MOST_TEXT = 4 << 20 };

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

long long race_spent(const struct race_box *b)
{
	return now_ms() - b->began_ms;
}

static const char *check_name(const struct race_box *b)
{
	return mem_printf("%s-check", b->name);
}

int race_name(struct race *r, const char *prefix, size_t n, struct fault *f)
{
	for (size_t i = 1; i <= n; i++) {
		struct race_box b = {
			.name = mem_printf("%s-%zu", prefix, i), .code = -1, .check = -1
		};

		if (!boxes_is_name(b.name))
			return fault_set(f, 0, "'%s' cannot be the name of a box",
				str_visible(b.name));
		if (registry_is_held(b.name))
			return fault_set(f, 0, "a box named '%s' runs", b.name);
		if (workspace_holds(b.name)) {
			fault_set(f, 0, "the box '%s' holds changes of an earlier run", b.name);
			return fault_fix(f,
				"`carrel apply` it, or `carrel discard` it and the others; or "
				"choose another --name.");
		}
		vec_push(&r->boxes, b);
	}
	return 0;
}

/* ---- processes ---- */

static int open_log(const struct race_box *b, const char *file, struct fault *f)
{
	auto_close int dir = boxes_directory(b->name, true, f);
	int fd = dir < 0 ? -1
			 : openat(dir, file,
				   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && dir >= 0)
		return fault_set(f, errno, "make %s/%s", boxes_shown(b->name), file);
	return fd < 0 ? dir : fd;
}

/* This program again; it ends with us. */
static void become_carrel(const char *const *argv, int log, pid_t parent)
{
	sigset_t none;
	int nothing = openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (getppid() == parent && setpgid(0, 0) == 0 && dup2(nothing, 0) == 0 &&
		dup2(log, 1) == 1 && dup2(log, 2) == 2)
		execv("/proc/self/exe", (char *const *)argv);
	_exit(127);
}

static int start_process(struct race_box *b, const char *const *words, const char *file,
	struct fault *f)
{
	auto_close int log = open_log(b, file, f);
	VEC(const char *) argv = { 0 };
	pid_t self = getpid(), pid;

	if (log < 0)
		return log;
	vec_push(&argv, "carrel");
	while (*words)
		vec_push(&argv, *words++);
	vec_push(&argv, NULL);
	pid = fork();
	if (pid == 0)
		become_carrel(argv.v, log, self);
	if (pid < 0)
		return fault_set(f, errno, "start the box '%s'", b->name);
	b->pid = pid;
	b->began_ms = now_ms();
	return 0;
}

static int start_box(const struct race *r, struct race_box *b, struct fault *f)
{
	VEC(const char *) words = { 0 };
	int rc;

	vec_push(&words, "run");
	vec_push(&words, "-y");
	vec_push(&words, "--overlay");
	vec_push(&words, "--name");
	vec_push(&words, b->name);
	for (const char *const *word = r->run; *word; word++)
		vec_push(&words, *word);
	vec_push(&words, NULL);
	rc = start_process(b, words.v, "output.log", f);
	if (rc == 0)
		b->phase = RACE_RUNS;
	return rc;
}

static int start_check(const struct race *r, struct race_box *b, struct fault *f)
{
	const char *const words[] = { "run", "-y", "--overlay", "--over", b->name, "--name",
		check_name(b), "--network", "none", "--", "sh", "-c", r->check, NULL };
	int rc = start_process(b, words, "check.log", f);

	if (rc == 0)
		b->phase = RACE_CHECKS;
	return rc;
}

/* ---- what was changed ---- */

static const char *read_side(int fd, size_t *ret_n)
{
	return fd < 0 ? NULL : fd_read_bytes(fd, MOST_TEXT, ret_n);
}

static void count_lines(const struct changeset *s, const struct changed *c, struct race_box *b)
{
	size_t old_n = 0, new_n = 0, added = 0, removed = 0;
	void *mark = mem_mark();
	const char *old =
		c->base.type == TYPE_FILE ? read_side(changeset_open_base(s, c), &old_n) : NULL;
	const char *new =
		c->box.type == TYPE_FILE ? read_side(changeset_open_box(s, c), &new_n) : NULL;

	if ((old || c->base.type != TYPE_FILE) && (new || c->box.type != TYPE_FILE))
		diff_count(old, old_n, new, new_n, &added, &removed);
	b->added += added;
	b->removed += removed;
	mem_reset(mark);
}

static void count_change(struct race_box *b)
{
	struct workspace w;
	struct fault ignored = { 0 };

	if (workspace_open(b->name, &w, &ignored) < 0)
		return; /* it changed nothing */
	if (changeset_find(&w.changes, &ignored) == 0) {
		b->files = w.changes.added + w.changes.changed + w.changes.deleted;
		vec_each(c, &w.changes.all)
			if (!c->git)
				count_lines(&w.changes, c, b);
	}
	workspace_close(&w);
}

/* ---- the loop ---- */

static int code_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* One of our processes ended. */
static int go_on(struct race *r, struct race_box *b, int status, bool ending, struct fault *f)
{
	int rc = 0;

	b->pid = 0;
	if (b->phase == RACE_CHECKS) {
		struct fault ignored = { 0 };

		b->check = code_of(status);
		(void)boxes_erase(check_name(b), &ignored);
		b->phase = RACE_ENDED;
	} else {
		b->ms = now_ms() - b->began_ms;
		b->code = code_of(status);
		count_change(b);
		b->phase = RACE_ENDED;
		/* A box that changed nothing has no copy to check. */
		if (r->check && !ending && workspace_holds(b->name))
			rc = start_check(r, b, f);
	}
	r->tell(r, b);
	return rc;
}

static size_t running(const struct race *r)
{
	size_t n = 0;

	vec_each(b, &r->boxes)
		n += b->pid != 0;
	return n;
}

static void end_all(const struct race *r, int sig)
{
	vec_each(b, &r->boxes)
		if (b->pid)
			kill(b->pid, sig);
}

static int reap(struct race *r, bool ending, struct fault *f)
{
	int status, rc = 0;
	pid_t pid;

	while (rc == 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0)
		vec_each(b, &r->boxes)
			if (b->pid == pid) {
				rc = go_on(r, b, status, ending, f);
				break;
			}
	return rc;
}

/* Loop until the last has ended. A second signal, or a long wait after the first, kills all. */
static int wait_all(struct race *r, int signals, struct fault *f)
{
	struct pollfd p = { .fd = signals, .events = POLLIN };
	struct signalfd_siginfo info;
	long long asked = 0;
	int rc = 0;

	while (running(r)) {
		int ready = poll(&p, 1, TICK_MS);

		while (ready > 0 && read(signals, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo == SIGCHLD)
				continue;
			end_all(r, asked ? SIGKILL : SIGTERM);
			asked = now_ms();
		}
		if (asked && now_ms() - asked > PATIENCE_MS)
			end_all(r, SIGKILL);
		if (reap(r, asked || rc < 0, f) < 0) {
			rc = -f->err;
			end_all(r, SIGTERM);
		}
		if (r->tick)
			r->tick(r);
	}
	return asked ? -EINTR : rc;
}

int race_run(struct race *r, struct fault *f)
{
	sigset_t set, before;
	auto_close int signals = -1;
	int rc = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &before);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return fault_set(f, errno, "wait for signals");
	vec_each(b, &r->boxes) {
		if (rc == 0)
			rc = start_box(r, b, f);
		if (rc == 0)
			r->tell(r, b);
	}
	if (rc < 0)
		end_all(r, SIGTERM);
	if (rc == 0)
		rc = wait_all(r, signals, f);
	else
		(void)wait_all(r, signals, &(struct fault){ 0 });
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* ---- the best ---- */

bool race_is_good(const struct race *r, const struct race_box *b)
{
	return b->code == 0 && b->files > 0 && (!r->check || b->check == 0);
}

static bool is_better(const struct race_box *a, const struct race_box *b)
{
	size_t x = a->added + a->removed, y = b->added + b->removed;

	if (x != y)
		return x < y;
	return a->files != b->files ? a->files < b->files : a->ms < b->ms;
}

int race_best(const struct race *r)
{
	int best = -1;

	for (size_t i = 0; i < r->boxes.n; i++)
		if (race_is_good(r, &r->boxes.v[i]) &&
			(best < 0 || is_better(&r->boxes.v[i], &r->boxes.v[best])))
			best = (int)i;
	return best;
}
