/*
 * run/git-own.h - the user's own git settings, in every box
 *
 * A commit needs a name and an address, and people are used to their defaults, colours and
 * aliases. So those of the user's settings that are only data (git/git-allow.h) are written to
 * a ~/.gitconfig in the box, an ordinary file that is removed with it. Includes are followed as
 * git does for this workspace, so a user with one identity for work and another for the rest
 * gets the right one. Secrets and names of programs stay outside.
 */
#ifndef RUN_GIT_OWN_H
#define RUN_GIT_OWN_H

struct host;
struct request;

/* Add the files to the request, unless something else uses their path. */
void git_own(struct request *r, const struct host *h);

#endif
