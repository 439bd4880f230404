/*
 * host/user-hosts.h - hosts that the user allows or denies to every box
 *
 * $XDG_CONFIG_HOME/carrel/allow: an entry a line, as in net/policy/policy.h, `!entry` to
 * deny, empty lines and what follows a # ignored. It is about boxes whose network is "allow"
 * or "open"; in the others nothing is decided.
 */
#ifndef HOST_USER_HOSTS_H
#define HOST_USER_HOSTS_H

#include <stdbool.h>

struct fault;
struct request;

/* Add them to the request's hosts, if there are any. Their origin is the file and line. */
int user_hosts(struct request *r, struct fault *f);

/*
 * Add an entry for all boxes to come; *ret_was says that it was there already. A line that
 * says the contrary of the same entry is taken out. The rest of the file stays as it is; where
 * a start would not understand it, nothing is written.
 */
int user_hosts_add(const char *entry, bool deny, bool *ret_was, struct fault *f);

/* Where it is, for messages; NULL: nowhere. */
const char *user_hosts_path(void);

#endif
