/*
 * plan/cgroup-facts.h - how this machine lets a user have a control group
 *
 * Only cgroup v2 counts: v1 cannot be delegated to a user safely. host/survey-cgroup.c finds
 * out, box/cgroup.c makes the box's group.
 */
#ifndef PLAN_CGROUP_FACTS_H
#define PLAN_CGROUP_FACTS_H

enum cgroup_how {
	CGROUP_NONE,    /* the user may have none */
	CGROUP_BESIDE,  /* beside our own group, in a parent that the user may write */
	CGROUP_BELOW,   /* below our own group, which was delegated and holds only carrel */
	CGROUP_SYSTEMD, /* the user's systemd makes a scope */
};

/* What a group can hold: controllers of the kernel; SWAP is part of memory. */
enum {
	CGROUP_MEMORY = 1 << 0,
	CGROUP_SWAP = 1 << 1,
	CGROUP_CPU = 1 << 2,
	CGROUP_PIDS = 1 << 3,
	CGROUP_IO = 1 << 4,
};

struct cgroup_facts {
	enum cgroup_how how;
	unsigned int holds; /* CGROUP_* */
	const char *dir;    /* BESIDE, BELOW: the group above the box's */
	const char *socket; /* SYSTEMD: of its manager */
	const char *why;    /* NONE: what is missing, for a person */
};

#endif
