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
	const char *client;      /* which of those; NULL: what "mine" says */
	const char *manifest;    /* -m FILE, or NULL */
	const char *const *args; /* more for the client, or NULL */
	bool shell;              /* its box, with a shell in it instead of the client */
	bool headless, events;
	bool prompts; /* let the client ask for permission */
};

/* What the caller must settle before it starts anything. */
struct agent_result {
	problems bad; /* why it cannot be */
	/* The project's manifest, where it is not approved, and the verdict; or NULL. */
	const struct manifest_file *untrusted;
	struct trust_state trust;
	bool own; /* it is the user's own client, and no declared agent */
};

/*
 * Read the manifests, check them, find the client and add it all to the request, which may
 * hold what the command line said. On failure either result.bad or the fault says why.
 */
int agent_request(const struct agent_options *o, struct request *r, struct agent_result *ret,
	struct fault *f);

/*
 * Settings of a project that are about to be kept, and fit the key table: would a start refuse
 * them, whatever the manifests say beside them?
 */
void agent_check_settings(const struct manifest_file *file, problems *bad);

/* Where a client is installed, for an agent in that workspace; NULL: nowhere on PATH. */
const char *agent_program(const struct harness *h, const char *workspace);

/* The directory a request is about, canonical; a fault when there is none. */
int agent_workspace(const struct request *r, const char **ret, struct fault *f);

#endif
