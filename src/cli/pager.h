/*
 * cli/pager.h - output through the user's pager, as git does it
 */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>

struct str;

/*
 * Write text to standard output; on a terminal through $CARREL_PAGER, $GIT_PAGER, $PAGER or
 * less, unless that is empty or "cat". The exit code, as cmd_print() has it.
 */
int pager_print(const struct str *text, bool wanted);

#endif
