/*
 * plan/held.h - which mechanism holds each limit of a box
 */
#ifndef PLAN_HELD_H
#define PLAN_HELD_H

struct cgroup_facts;
struct fault;
struct host;
struct limit_row;
struct plan;
struct request;

/* "cgroup", "rlimit", "tmpfs", "supervisor", "broker"; NULL: it is not set. */
const char *held_by(const struct plan *p, const struct limit_row *l);

/* Can this machine hold it? The same words; NULL: no. */
const char *held_on(const struct cgroup_facts *c, unsigned int uid, const struct limit_row *l);

/*
 * Set the plan's limits: what was asked for, and defaults where they can be held. An optional
 * limit that cannot be held becomes a notice, any other a fault.
 */
int held_resolve(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f);

#endif
