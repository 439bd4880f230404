/*
 * box/cgroup.h - the control group of a box
 *
 *	cgroup_make(&facts, &c, f);       before the clone: init begins in c.leaf
 *	cgroup_limit(&c, plan, init, f);  set the plan's limits
 *	cgroup_count(&c, &counts);        whenever cgroup_poll() says so, and at the end
 *	cgroup_remove(&c);                the box is dead
 *
 * A box on a machine without delegated groups has CGROUP_ABSENT, and all of these do nothing.
 */
#ifndef BOX_CGROUP_H
#define BOX_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

struct cgroup_facts;
struct fault;
struct plan;

enum { CGROUP_EVENTS = 2 }; /* files that report limits that were reached */

struct cgroup {
	const char *path; /* of the group with the limits; NULL: there is none (yet) */
	int leaf;         /* the group below it, for init; -1: none */
	int events[CGROUP_EVENTS];
};

#define CGROUP_ABSENT                            \
	{                                        \
		.leaf = -1, .events = { -1, -1 } \
	}

/* How often a limit was reached. */
struct cgroup_counts {
	unsigned long long oom_kills; /* processes that the kernel killed for memory */
	unsigned long long pids_max;  /* forks that failed */
};

/*
 * Make a group below facts->dir, and remove those that killed supervisors left there. If
 * systemd makes the group, or nothing can, *ret is CGROUP_ABSENT.
 */
int cgroup_make(const struct cgroup_facts *facts, struct cgroup *ret, struct fault *f);

/* Set the limits. If systemd makes the group, this moves init into a scope. */
int cgroup_limit(struct cgroup *c, const struct plan *p, pid_t init, struct fault *f);

/* Read the counts. Those that cannot be read any more keep their value. */
void cgroup_count(const struct cgroup *c, struct cgroup_counts *counts);

/* Entries for poll(2): revents is set when a count may have changed. */
struct pollfd;
void cgroup_poll(const struct cgroup *c, struct pollfd *fds);

/*
 * Remove the group once its last process is gone. If that takes too long, the next box does it.
 */
void cgroup_remove(struct cgroup *c);

/* Remove groups below dir whose supervisors are gone. */
void cgroup_sweep(const char *dir);

/* scope.c: ask systemd to move init into a scope with the plan's limits. */
int scope_start(const char *socket, const struct plan *p, pid_t init, const char **ret_path,
	struct fault *f);

/* Read what `carrel ps` shows of a group, by its path; false: it cannot be read. */
struct cgroup_use {
	unsigned long long memory;   /* bytes */
	unsigned long long cpu_usec; /* of all processes, also those that have ended */
};
bool cgroup_use(const char *path, struct cgroup_use *ret);

#endif
