/*
 * box/steps.h - the names of the native engine's steps, for `carrel check` and tests
 */
#ifndef BOX_STEPS_H
#define BOX_STEPS_H

#include <stddef.h>

/* In order; NULL past the last. */
const char *native_step_name(size_t i);

#endif
