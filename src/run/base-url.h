/*
 * run/base-url.h - a client that is told to look for its model elsewhere
 */
#ifndef RUN_BASE_URL_H
#define RUN_BASE_URL_H

struct agent;
struct harness;
struct request;

/*
 * The host of a client's own *_BASE_URL belongs to what the client reaches by default. One on
 * this machine's loopback does not, and is a notice: the box has another loopback.
 */
void base_url_hosts(const struct harness *h, const struct agent *a, struct request *r);

#endif
