/*
 * git/git-allow.h - which settings of git are data, and cannot run anything
 *
 * Two directions. Into a box go those of the user's own settings that say who they are and how
 * git shows and joins things: no secrets, and nothing that names a program. Out of a box, into
 * the configuration of the repository on the host, goes less: only what git itself writes
 * there in everyday work (`push -u`, `remote add`, `branch -m`, `submodule init`), and only
 * with values that a git outside reads as data. Both are lists of what is good. Whatever is
 * in neither stays where it is.
 */
#ifndef GIT_GIT_ALLOW_H
#define GIT_GIT_ALLOW_H

#include <stdbool.h>

struct git_setting;

/* May this setting of the user's be in every box? */
bool git_allow_in(const struct git_setting *s);

/* How a setting that a box made may reach the host. All zero: it may not. */
struct git_allow {
	bool (*good)(const char *value); /* NULL: it may not at all */
	bool remote;    /* the value names a remote, and only one that is there */
	bool of_remote; /* it says more of a remote, and only of one that is there */
	bool goes;      /* it may also be removed: see git-allow.c */
	bool told;      /* the user hears of every change */
};

/* By the names alone; values are for .good() to judge. */
const struct git_allow *git_allow_out(const struct git_setting *s);

/*
 * Is this a URL of a host that git reaches over the network by itself? No path of this
 * machine, no transport that is a program (`ext::`), no password, nothing that ssh could take
 * for an option.
 */
bool git_allow_url(const char *url);

#endif
