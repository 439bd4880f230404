/*
 * supervise/exec-client.h - run a further command in a box, on our own streams
 */
#ifndef SUPERVISE_EXEC_CLIENT_H
#define SUPERVISE_EXEC_CLIENT_H

struct fault;

/*
 * Run it to its end: 0 and its exit code. A fault whose step is "exec" is about the command,
 * as with an engine's start.
 */
int exec_in_box(const char *name, const char *const *argv, int *ret_code, struct fault *f);

#endif
