/*
 * net/broker/own-addresses.h - has an address become this machine's own?
 *
 * A policy knows the addresses that the machine had when the box started. The machine may get
 * more while the box runs: another network, a VPN, an address that changes every day.
 */
#ifndef NET_BROKER_OWN_ADDRESSES_H
#define NET_BROKER_OWN_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

struct address;
struct policy;

/*
 * Ask the kernel about this address, and add it to the policy if it is the machine's own. False
 * when the policy has no room for it, or the kernel cannot be asked: the caller must not dial
 * it.
 */
bool own_learn(struct policy *p, const struct address *a);

#endif
