/*
 * plan/internal.h - the parts of plan_resolve(), one file each
 */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include <stdbool.h>

struct fault;
struct host;
struct plan;
struct request;

/* network.c: whom the box may reach, and who reaches it. */
/* Does one of its ports lead to one of the box below 1024? */
bool request_low_ports(const struct request *r);
int plan_add_network(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f);

/* places.c: everything of the box that is no rule, in order. */
int plan_add_places(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f);

/* Sort parents before children, refuse two places with one target, find what is to be made. */
int plan_order_places(struct plan *p, struct fault *f);

/* rules.c: pins, protected, hidden and stubs on top of the binds that are there. */
int plan_add_rules(const struct host *h, struct plan *p, struct fault *f);

/* ssh.c: the agent's socket; after all other places, none of which may show a key. */
int plan_add_ssh(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f);

/* sandbox.c: for the agent, once all places are there. */
const char *plan_sandbox_text(const struct plan *p);

/* env.c: after the places, because PATH keeps only what is in the box. */
int plan_add_env(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f);

/* Will an absolute path of the host be seen at the same path in the box? */
bool plan_shows(const struct plan *p, const char *path);

#endif
