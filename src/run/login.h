/*
 * run/login.h - find the user's login of a client, and when it expires
 */
#ifndef RUN_LOGIN_H
#define RUN_LOGIN_H

struct agent;
struct harness;
struct job;
struct request;

/* Find keys, credentials and the client's own configuration for the job; notices say more. */
void login_find(const struct harness *h, const struct agent *a, struct job *job,
	struct request *r);

#endif
