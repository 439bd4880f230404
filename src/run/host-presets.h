/*
 * run/host-presets.h - presets that depend on the user's own configuration
 */
#ifndef RUN_HOST_PRESETS_H
#define RUN_HOST_PRESETS_H

#include "net/policy.h"

/* "@npm" and "@debian", with entries or with why there are none. */
void presets_of_host(struct policy_preset ret[2]);

#endif
