/*
 * run/ssh-agent.h - the ssh-agent of one box
 */
#ifndef RUN_SSH_AGENT_H
#define RUN_SSH_AGENT_H

#include <stdbool.h>
#include <sys/types.h>

struct fault;
struct plan;

/* The directory of the agents' sockets, canonical; make: create it. */
int ssh_agent_dir(bool make, const char **ret, struct fault *f);

/*
 * Start the box's agent and load its keys, each bound to the hosts it is declared for; asks for
 * passphrases on the terminal. The caller holds the box's name, and so the name of the socket.
 */
int ssh_agent_start(const struct plan *p, pid_t *ret, struct fault *f);

/*
 * The box has ended, or was never started: stop the agent and set the pid to 0. Does nothing if
 * it is 0.
 */
void ssh_agent_stop(pid_t *agent);

#endif
