/*
 * plan/request.h - what the user asked for, before anything is looked up
 *
 * Filled in by the command line. Nothing here is checked against the host: that is the
 * survey's and the resolver's work.
 */
#ifndef PLAN_REQUEST_H
#define PLAN_REQUEST_H

#include <stdbool.h>

#include "base/mem.h"

enum network { NETWORK_NONE, NETWORK_HOST };

struct request_mount {
	const char *source, *target; /* target NULL: the same path as the source */
	bool rw;
};

struct request_env {
	const char *name;
	const char *value; /* NULL: copied from the host's environment, which must have it */
};

struct request_limits {
	unsigned long long time;    /* seconds of wall clock, 0 = none */
	unsigned long long pids;    /* processes and threads in the box */
	unsigned long long files;   /* open files per process */
	unsigned long long scratch; /* bytes in the box's own tmpfs: home, /tmp, ... */
};

struct request {
	const char *const *argv; /* the command, NULL-terminated; NULL: a shell */
	const char *workspace;   /* NULL: the working directory */
	const char *name;        /* NULL: made from the workspace's name */
	VEC(struct request_mount) mounts;
	VEC(struct request_env) env;
	VEC(const char *) protect; /* paths or patterns below the workspace; "!x" takes back */
	VEC(const char *) hide;
	struct request_limits limits; /* 0 = the default */
	enum network network;
	bool nest; /* user namespaces and mounts allowed inside: weaker */
};

#endif
