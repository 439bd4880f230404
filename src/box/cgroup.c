/*
 * box/cgroup.c - the control group of a box
 *
 * Theory of operation. A box has two groups, one below the other:
 *
 *	DIR/carrel-PID		the limits; PID is the supervisor
 *	DIR/carrel-PID/box	the processes
 *
 * init is cloned into the lower one. Its cgroup namespace begins there, so that not even a box
 * that may mount cgroup2 (--nest) sees the files with its limits. The lower group has no
 * controllers of its own: the upper one counts for it.
 *
 * The supervisor, the broker and the janitor stay outside: a box that is out of memory must
 * not take them with it.
 *
 * The supervisor removes both groups at the end. A supervisor that was killed leaves them
 * empty, since its box died with it, and the next box removes them by the PID in the name.
 *
 * Must not: be called by init, or between clone and exec.
 */
#include "box/cgroup.h"
#include "plan/plan.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "carrel-"
#define LEAF   "box"
#define OURS   "carrel" /* below a delegated group: where its processes are moved to */

enum {
	LEAVE_MS = 1000,  /* time to wait for the last process of a dead box */
	MOVE_TRIES = 8,   /* processes may be born while they are moved */
	MOST_SWEPT = 512, /* of old groups, at one start */
	CPU_PERIOD = 100000,
	CPU_LEAST = 1000, /* the kernel's own bounds, in microseconds */
};

static int write_text(const char *dir, const char *file, const char *text)
{
	auto_close int fd =
		openat(AT_FDCWD, path_join(dir, file), O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* --- making it ------------------------------------------------------------------- */

static void remove_both(const char *path)
{
	rmdir(path_join(path, LEAF));
	rmdir(path);
}

void cgroup_sweep(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int swept = 0;

	while (d && swept < MOST_SWEPT && (e = readdir(d))) {
		long pid = str_starts(e->d_name, PREFIX)
			? strtol(e->d_name + strlen(PREFIX), NULL, 10)
			: 0;

		if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
			continue;
		remove_both(path_join(dir, e->d_name));
		swept++;
	}
	if (d)
		closedir(d);
}

/* Move every process of dir into a group below it: only then can dir have controllers. */
static int move_down(const char *dir)
{
	const char *ours = path_join(dir, OURS);
	int rc = mkdir(ours, 0755) < 0 && errno != EEXIST ? -errno : 0;

	for (int i = 0; rc == 0 && i < MOVE_TRIES; i++) {
		const char *at = fd_read_file(AT_FDCWD, path_join(dir, "cgroup.procs"), 65536);

		if (!at || !*at)
			return at ? 0 : -errno;
		for (size_t n; *at; at += n + (at[n] == '\n')) {
			n = strcspn(at, "\n");
			rc = write_text(ours, "cgroup.procs", mem_strndup(at, n));
			if (rc == -ESRCH)
				rc = 0; /* it has ended */
			if (rc < 0)
				return rc;
		}
	}
	return rc;
}

static int enable(const struct cgroup_facts *facts)
{
	static const struct {
		unsigned int bit;
		const char *word;
	} words[] = {
		{ CGROUP_MEMORY, "+memory" },
		{ CGROUP_CPU, "+cpu" },
		{ CGROUP_PIDS, "+pids" },
		{ CGROUP_IO, "+io" },
	};
	const char *on =
		fd_read_file(AT_FDCWD, path_join(facts->dir, "cgroup.subtree_control"), 4096);
	int rc = on ? 0 : -errno;

	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(words); i++)
		if (facts->holds & words[i].bit && !strstr(on, words[i].word + 1))
			rc = write_text(facts->dir, "cgroup.subtree_control", words[i].word);
	return rc;
}

static int no_group(const struct cgroup_facts *facts, int rc, struct fault *f)
{
	snprintf(f->step, sizeof(f->step), "cgroup");
	fault_set(f, -rc, "make a control group for the box in %s", str_visible(facts->dir));
	return fault_fix(f, "`carrel check` says which limits can be held here.");
}

int cgroup_make(const struct cgroup_facts *facts, struct cgroup *ret, struct fault *f)
{
	struct cgroup c = CGROUP_ABSENT;
	int rc = 0;

	*ret = c;
	if (facts->how != CGROUP_BESIDE && facts->how != CGROUP_BELOW)
		return 0;
	if (facts->how == CGROUP_BELOW)
		rc = move_down(facts->dir);
	if (rc == 0)
		rc = enable(facts);
	if (rc < 0)
		return no_group(facts, rc, f);
	cgroup_sweep(facts->dir);
	c.path = path_join(facts->dir, mem_printf(PREFIX "%d", (int)getpid()));
	remove_both(c.path); /* left by an earlier box of this supervisor */
	if (mkdir(c.path, 0755) < 0 || mkdir(path_join(c.path, LEAF), 0755) < 0)
		rc = -errno;
	if (rc == 0)
		c.leaf = openat(AT_FDCWD, path_join(c.path, LEAF),
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rc < 0 || c.leaf < 0) {
		rc = rc < 0 ? rc : -errno;
		remove_both(c.path);
		return no_group(facts, rc, f);
	}
	*ret = c;
	return 0;
}

/* --- limits ---------------------------------------------------------------------- */

static const char *cpu_words(double cpus)
{
	double quota = cpus * CPU_PERIOD;

	return mem_printf("%.0f %d", quota < CPU_LEAST ? CPU_LEAST : quota, CPU_PERIOD);
}

static int set_limit(const struct cgroup *c, const char *limit, const char *file,
	const char *text, struct fault *f)
{
	int rc = write_text(c->path, file, text);

	if (rc == 0)
		return 0;
	snprintf(f->step, sizeof(f->step), "cgroup");
	fault_set(f, -rc, "limit %s: write '%s' to %s", limit, text,
		str_visible(path_join(c->path, file)));
	return fault_fix(f,
		"With a question mark (%s=VALUE?) the box can start without it, "
		"where the machine says beforehand that it cannot hold it.",
		limit);
}

static int set_whole(const struct cgroup *c, const char *limit, const char *file,
	unsigned long long value, struct fault *f)
{
	return value ? set_limit(c, limit, file, mem_printf("%llu", value), f) : 0;
}

static int set_all(const struct cgroup *c, const struct plan *p, struct fault *f)
{
	const struct limits *l = &p->limits;
	const unsigned int holds = p->frame.cgroup.holds;
	int rc = set_whole(c, "memory", "memory.max", l->memory, f);

	if (rc == 0)
		rc = set_whole(c, "swap", "memory.swap.max", l->swap, f);
	if (rc == 0 && holds & CGROUP_PIDS)
		rc = set_whole(c, "pids", "pids.max", l->pids, f);
	if (rc == 0 && l->cpus > 0)
		rc = set_limit(c, "cpus", "cpu.max", cpu_words(l->cpus), f);
	if (rc == 0)
		rc = set_whole(c, "io", "io.weight", l->io, f);
	return rc;
}

static const char *const event_files[CGROUP_EVENTS] = { "memory.events", "pids.events" };

int cgroup_limit(struct cgroup *c, const struct plan *p, pid_t init, struct fault *f)
{
	const struct cgroup_facts *facts = &p->frame.cgroup;
	struct cgroup_counts unused;
	int rc;

	if (facts->how == CGROUP_NONE)
		return 0;
	rc = facts->how == CGROUP_SYSTEMD ? scope_start(facts->socket, p, init, &c->path, f)
					  : set_all(c, p, f);
	if (rc < 0)
		return rc;
	for (int i = 0; i < CGROUP_EVENTS; i++)
		c->events[i] = openat(AT_FDCWD, path_join(c->path, event_files[i]),
			O_RDONLY | O_CLOEXEC);
	cgroup_count(c, &unused); /* poll(2) reports changes since the last read */
	return 0;
}

/* --- counts ---------------------------------------------------------------------- */

/* The number behind a word at the beginning of a line. */
static bool find_count(const char *text, const char *word, unsigned long long *ret)
{
	const size_t n = strlen(word);

	for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
		if (!strncmp(at, word, n) && at[n] == ' ') {
			*ret = strtoull(at + n + 1, NULL, 10);
			return true;
		}
	return false;
}

/* Called in the supervisor's loop: it must not allocate. */
void cgroup_count(const struct cgroup *c, struct cgroup_counts *counts)
{
	static const char *const words[CGROUP_EVENTS] = { "oom_kill", "max" };
	unsigned long long *const values[CGROUP_EVENTS] = { &counts->oom_kills,
		&counts->pids_max };
	char text[512];

	for (int i = 0; i < CGROUP_EVENTS; i++) {
		ssize_t n =
			c->events[i] < 0 ? -1 : pread(c->events[i], text, sizeof(text) - 1, 0);

		if (n <= 0)
			continue;
		text[n] = '\0';
		(void)find_count(text, words[i], values[i]);
	}
}

void cgroup_poll(const struct cgroup *c, struct pollfd *fds)
{
	for (int i = 0; i < CGROUP_EVENTS; i++)
		fds[i] = (struct pollfd){ .fd = c->events[i], .events = POLLPRI };
}

bool cgroup_use(const char *path, struct cgroup_use *ret)
{
	const char *memory = fd_read_file(AT_FDCWD, path_join(path, "memory.current"), 4096);
	const char *cpu = fd_read_file(AT_FDCWD, path_join(path, "cpu.stat"), 4096);
	struct cgroup_use use = { 0 };

	if (!memory || !cpu || !find_count(cpu, "usage_usec", &use.cpu_usec))
		return false;
	use.memory = strtoull(memory, NULL, 10);
	*ret = use;
	return true;
}

/* --- removing it ----------------------------------------------------------------- */

/* The kernel may still be removing init's mounts; cgroup.events says when init is gone. */
static void await_empty(const char *path)
{
	const long long until = clock_ms() + LEAVE_MS;
	auto_close int fd =
		openat(AT_FDCWD, path_join(path, "cgroup.events"), O_RDONLY | O_CLOEXEC);
	struct pollfd p = { .fd = fd, .events = POLLPRI };
	unsigned long long populated = 1;
	char text[256];

	while (fd >= 0) {
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
		long long left = until - clock_ms();

		if (n <= 0 || left <= 0)
			return;
		text[n] = '\0';
		if (!find_count(text, "populated", &populated) || !populated)
			return;
		poll(&p, 1, (int)left);
	}
}

void cgroup_remove(struct cgroup *c)
{
	for (int i = 0; i < CGROUP_EVENTS; i++)
		fd_close(&c->events[i]);
	if (c->leaf >= 0) { /* systemd removes a scope */
		await_empty(c->path);
		remove_both(c->path);
	}
	fd_close(&c->leaf);
	c->path = NULL;
}
