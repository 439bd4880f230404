/*
 * cli/man.h - the manual page carrel(1), made from the tables
 */
#ifndef CLI_MAN_H
#define CLI_MAN_H

struct str;

void man_page(struct str *out);

#endif
