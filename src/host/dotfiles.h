/*
 * host/dotfiles.h - targets of links in the user's own configuration
 *
 * Many people keep their configuration in a repository of dotfiles, and ~/.claude then holds
 * links. Without their targets these would lead nowhere in a box, so the box gets the targets
 * at their own paths, read-only. A target that cannot be looked at is left out: that only makes
 * the box smaller.
 */
#ifndef HOST_DOTFILES_H
#define HOST_DOTFILES_H

struct request;

/*
 * Handle links directly in dir and in its skills, commands and so on; dir is canonical. Also
 * adds a notice if files directly in it belong to another user and so cannot be written in the
 * box.
 */
void leads_of_dir(const char *dir, struct request *r);

/* Handle the directories that a JSON file in dir names under "path": local plugins. */
void leads_of_file(const char *dir, const char *name, struct request *r);

#endif
