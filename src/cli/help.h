/*
 * cli/help.h - help texts, made from the tables
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdbool.h>

struct cmd;
struct str;

/* The help of a command, or with NULL that of the program. */
void help_write(const struct cmd *c, bool bold, struct str *out);

/* The same to standard output; the exit code. */
int help_print(const struct cmd *c);

#endif
