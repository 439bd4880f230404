/*
 * run/ssh-keys.h - what this machine has to say to the hosts that an agent may log in to
 */
#ifndef RUN_SSH_KEYS_H
#define RUN_SSH_KEYS_H

#include "manifest/manifest.h"

struct fault;
struct job;

/*
 * Look at the key of each entry and find the public keys, its own and those of its host; into
 * job->ssh. Nothing is changed. What is wrong with an entry is a problem; a fault, when OpenSSH
 * is not there.
 */
int ssh_keys_look(struct job *job, problems *bad, struct fault *f);

#endif
