/*
 * cli/complete.h - completion for shells, made from the tables
 */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

struct str;

void complete_bash(struct str *out);
void complete_zsh(struct str *out);
void complete_fish(struct str *out);

#endif
