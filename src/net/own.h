/*
 * net/own.h - is an address of this machine by now?
 *
 * A policy knows the addresses that the machine had when the box was started. More come
 * while the box runs: another network, a VPN, an address that changes every day.
 */
#ifndef NET_OWN_H
#define NET_OWN_H

#include <stdbool.h>
#include <stdint.h>

struct address;
struct policy;

/*
 * Ask the kernel about this address, and add it to the policy if it is the machine's own.
 * False when it is and the policy has no more room, or the kernel cannot be asked now: then it
 * must not be dialled.
 */
bool own_learn(struct policy *p, const struct address *a, uint64_t now); /* ms */

void own_rest(void); /* nothing is asked for now: make ready for the next time */
void own_idle(void); /* nothing will be for a while: keep nothing */

#endif
