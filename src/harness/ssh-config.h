/*
 * harness/ssh-config.h - hosts that an agent may log in to, with keys that it cannot read
 *
 * The private key stays outside: run/ssh-agent.c loads it into an agent for this box, bound to
 * the declared hosts. This file makes what ssh in the box reads: ~/.ssh/config, known_hosts and
 * the public keys, by which ssh selects one of the agent's keys.
 */
#ifndef HARNESS_SSH_CONFIG_H
#define HARNESS_SSH_CONFIG_H

#include <stddef.h>

#include "manifest/manifest.h"
#include "plan/request.h"

struct job;
struct request;

/* What the machine adds to an entry; run/ssh-keys.c fills it in. */
struct ssh_facts {
	const char *key;        /* the private key's path, canonical */
	const char *public_key; /* "TYPE BLOB" */
	name_vec host_keys;     /* "TYPE BLOB", or "@cert-authority TYPE BLOB" */
};
typedef VEC(struct ssh_facts) ssh_facts_vec;

/* "agents.x.ssh[0].Hostname" */
const char *ssh_field(const struct agent *a, size_t entry, const char *key);

/* Check that ssh takes every word literally, and that host keys are valid. */
void ssh_check(const struct agent *a, problems *bad);

/*
 * "TYPE BLOB" of a public key. blob is n bytes of base64, which contain the type; NULL when
 * they do not, or when it is not the expected type.
 */
const char *ssh_key_text(const char *blob, size_t n, const char *type);

/* The same for the form of .pub files: TYPE BLOB COMMENT. */
const char *ssh_key_line(const char *line);

/* The host as known_hosts has it: "git.example.org", "[git.example.org]:2222". */
const char *ssh_known_name(const char *host, unsigned long long port);

void ssh_assemble(const struct job *job, struct request *r);

#endif
