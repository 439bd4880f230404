/*
 * run/ssh-keys.h - find the keys for the hosts that an agent may log in to
 */
#ifndef RUN_SSH_KEYS_H
#define RUN_SSH_KEYS_H

#include "manifest/manifest.h"

struct fault;
struct job;

/*
 * Examine the key of each entry, and put its public key and those of its host into job->ssh.
 * Nothing is changed. An invalid entry is a problem; missing OpenSSH programs are a fault.
 */
int ssh_keys_look(struct job *job, problems *bad, struct fault *f);

#endif
