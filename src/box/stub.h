/*
 * box/stub.h - recognise what stands for an absent name; see box/native/stub.h
 */
#ifndef BOX_STUB_H
#define BOX_STUB_H

#include <stdbool.h>

/* Does a stub stand at dir/name? */
bool stub_at(int dir, const char *name);

#endif
