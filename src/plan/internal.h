/*
 * plan/internal.h - the parts of plan_resolve(), one file each
 */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include <stdbool.h>

struct frame;
struct fault;
struct host;
struct plan;
struct request;

/* network-mode.c: what the box may reach, and what reaches it. */
/* Does one of its ports lead to a port of the box below 1024? */
bool request_low_ports(const struct request *r);
void request_services(const struct request *r, struct frame *ret);
int plan_add_network(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f);

/* places.c: everything in the box that is not a rule, in order. */
int plan_add_places(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f);

/* Places that every box has and that nothing else can replace, in order. */
void plan_add_early(struct frame *frame);

/* Sort parents before children, refuse two places with one target, mark what has to be made. */
int plan_order_places(struct plan *p, struct fault *f);

/* rules.c: pins, protected and hidden paths and stubs, on top of the binds. */
int plan_add_rules(const struct host *h, struct plan *p, struct fault *f);

/* ssh.c: the agent's socket; after all other places, because none of them may show a key. */
int plan_add_ssh(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f);

/* sandbox.c: a text for the agent, once all places are known. */
const char *plan_sandbox_text(const struct plan *p);

/* box-env.c: after the places, because PATH keeps only what is in the box. */
int plan_add_env(const struct request *r, const struct host *h, struct plan *p,
	struct fault *f);

/* Does the box have this absolute path of the host at the same path? */
bool plan_shows(const struct plan *p, const char *path);

#endif
