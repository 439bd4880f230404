/*
 * run/git-own.h - the user's own settings of git, in every box
 *
 * A commit needs a name and an address, and people are used to their defaults, colours and
 * aliases. So what of the user's configuration is data (git/git-allow.h) is written to a
 * ~/.gitconfig in the box, an ordinary file that ends with it. Includes are followed as git
 * does it for this workspace, so that who has one identity for work and one for the rest has
 * the right one. Secrets and names of programs stay outside.
 */
#ifndef RUN_GIT_OWN_H
#define RUN_GIT_OWN_H

struct host;
struct request;

/* Add the files to the request, where nothing of the user's stands in their place. */
void git_own(struct request *r, const struct host *h);

#endif
