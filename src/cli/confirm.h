/*
 * cli/confirm.h - ask a person
 */
#ifndef CLI_CONFIRM_H
#define CLI_CONFIRM_H

struct fault;

/*
 * Show the question and " [y/N] " on the terminal and read the answer from there:
 * standard input may be data for the box, and standard output may be a file.
 * 1: yes, 0: anything else, < 0: there is no terminal.
 */
int confirm(const char *question, struct fault *f);

/* The same with " [y/N/?] ": the answer ? shows `more`, and the question is asked again. */
int confirm_showing(const char *question, const char *ask, const char *more, struct fault *f);

#endif
