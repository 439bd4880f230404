/*
 * host/dotfiles.h - where the user's own configuration leads to
 *
 * Many keep it in a repository of dotfiles, and what is in ~/.claude are links. In a box they
 * would lead nowhere. What they lead to is shown at its own path, read-only. What cannot be
 * looked at is not shown: that only makes the box smaller.
 */
#ifndef HOST_DOTFILES_H
#define HOST_DOTFILES_H

struct request;

/*
 * For the links directly in dir, and in its skills, commands ...; dir is canonical. A notice,
 * too, if files directly in it are not the user's and so cannot be written in the box.
 */
void leads_of_dir(const char *dir, struct request *r);

/* For the directories that a JSON file in dir names under "path": local plugins. */
void leads_of_file(const char *dir, const char *name, struct request *r);

#endif
