/*
 * run/base-url.h - a client that is told to look for its model elsewhere
 */
#ifndef RUN_BASE_URL_H
#define RUN_BASE_URL_H

struct agent;
struct harness;
struct request;

/*
 * The host in a client's own *_BASE_URL is reached by default. A host on this machine's
 * loopback is not, because the box has its own loopback: add a notice.
 */
void base_url_hosts(const struct harness *h, const struct agent *a, struct request *r);

#endif
