/*
 * run/ssh-agent.h - the agent that has the keys of one box
 */
#ifndef RUN_SSH_AGENT_H
#define RUN_SSH_AGENT_H

#include <stdbool.h>
#include <sys/types.h>

struct fault;
struct plan;

/* Where the sockets of agents are; made if that is wanted. Canonical. */
int ssh_agent_dir(bool make, const char **ret, struct fault *f);

/*
 * Start the box's agent and load its keys, each bound to the hosts it is declared for; asks
 * for passphrases on the terminal. The box's name is ours, and with it the name of the socket.
 */
int ssh_agent_start(const struct plan *p, pid_t *ret, struct fault *f);

/* The box has ended, or never came to be. Does nothing when it is 0, which it is then. */
void ssh_agent_stop(pid_t *agent);

#endif
