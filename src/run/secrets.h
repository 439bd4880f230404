/*
 * run/secrets.h - values that are fetched once the user has agreed to the box
 *
 * A value goes from here into the memory of the plan and from there into the environment of
 * the box's command: never into an argument, a file, a log or the environment of another
 * process.
 */
#ifndef RUN_SECRETS_H
#define RUN_SECRETS_H

struct fault;

/*
 * Ask on the terminal, /dev/tty, with the echo off: "MESSAGE (input hidden): "; message NULL or
 * "" has a text of its own that names the variable. The echo is restored afterwards, even if a
 * signal ends or stops us meanwhile. Without a terminal: a fault that names the variable. An
 * empty line is an empty value; end of file (Ctrl-D), a NUL byte or more than 64 KiB is a
 * fault. The usual keys erase; every other byte is part of the value.
 */
int secret_ask(const char *name, const char *message, const char **ret, struct fault *f);

/*
 * Run a program of the host, found by the user's PATH, without a shell, and take what it
 * prints, less one line end. Its standard input is /dev/null, its working directory / and
 * its standard error is ours.
 * It keeps our controlling terminal, so a password manager can still ask on /dev/tty. A
 * status other than 0, a NUL byte in the output, or more than 64 KiB of it is a fault that
 * names the variable and the program.
 */
int secret_run(const char *name, const char *const *argv, const char **ret, struct fault *f);

#endif
