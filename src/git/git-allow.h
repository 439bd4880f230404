/*
 * git/git-allow.h - which settings of git are data, and cannot run anything
 *
 * There are two directions. Into a box go the user's own settings that say who they are and how
 * git shows and merges: no secrets, and nothing that names a program. Less goes out of a box
 * into the configuration of the repository on the host: only settings that git itself writes in
 * everyday work (`push -u`, `remote add`, `branch -m`, `submodule init`), and only values that
 * a git outside reads as data. Both are allow-lists: a setting in neither list is not copied.
 */
#ifndef GIT_GIT_ALLOW_H
#define GIT_GIT_ALLOW_H

#include <stdbool.h>

struct git_setting;

/* May every box have this setting of the user's? */
bool git_allow_in(const struct git_setting *s);

/* How a setting that a box made may reach the host. All zero: not at all. */
struct git_allow {
	bool (*good)(const char *value); /* NULL: it may not at all */
	bool remote;                     /* the value names a remote, which must exist */
	bool of_remote;                  /* it is a setting of a remote, which must exist */
	bool goes;                       /* it may also be removed: see git-allow.c */
	bool told;                       /* report every change to the user */
};

/* Decided by the name alone; .good() judges the value. */
const struct git_allow *git_allow_out(const struct git_setting *s);

/*
 * Is this a URL of a host that git reaches over the network by itself? Paths of this machine,
 * transports that are programs (`ext::`), passwords and anything that ssh could take for an
 * option are not.
 */
bool git_allow_url(const char *url);

#endif
