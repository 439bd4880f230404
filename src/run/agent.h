/*
 * run/agent.h - from an agent's name to the request for its box
 */
#ifndef RUN_AGENT_H
#define RUN_AGENT_H

#include <stdbool.h>

#include "manifest/manifest.h"
#include "manifest/trust.h"

struct fault;
struct harness;
struct request;

struct agent_options {
	const char *name;        /* NULL: the user's own client */
	const char *client;      /* which client; NULL: as "mine" says */
	const char *manifest;    /* -m FILE, or NULL */
	const char *const *args; /* further arguments for the client, or NULL */
	bool shell;              /* start a shell in its box instead of the client */
	bool headless, events;
	bool prompts; /* let the client ask for permission */
};

/* What the caller must settle before it starts anything. */
struct agent_result {
	problems bad; /* the problems that prevent it */
	/* The project's manifest and the verdict, if it is not approved; or NULL. */
	const struct manifest_file *untrusted;
	struct trust_state trust;
	bool own; /* the user's own client, not a declared agent */
};

/*
 * Read the manifests, check them, find the client, and add everything to the request, which may
 * have values of the command line. On failure either result.bad or the fault says why.
 */
int agent_request(const struct agent_options *o, struct request *r, struct agent_result *ret,
	struct fault *f);

/*
 * Check settings of a project before they are saved. They fit the key table; would a start
 * refuse them, whatever the manifests say?
 */
void agent_check_settings(const struct manifest_file *file, problems *bad);

/* Where a client is installed, for an agent in that workspace; NULL: nowhere on PATH. */
const char *agent_program(const struct harness *h, const char *workspace);

/* The workspace of a request, canonical; a fault if there is none. */
int agent_workspace(const struct request *r, const char **ret, struct fault *f);

#endif
