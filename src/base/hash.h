/*
 * base/hash.h - SHA-256
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>

/* 64 hex digits, in lower case. */
const char *hash_hex(const void *bytes, size_t n);

#endif
