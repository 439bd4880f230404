/*
 * box/native/seccomp.h - the system call filter of a box
 */
#ifndef BOX_NATIVE_SECCOMP_H
#define BOX_NATIVE_SECCOMP_H

#include "plan/plan.h"

struct fault;

/*
 * Put the calling process, all its threads and all that it will start under the filter,
 * for good. no_new_privs must be set. Needs no memory and opens nothing, so it can be
 * the last thing before exec.
 */
int seccomp_apply(enum seccomp_program which, struct fault *f);

#endif
