/*
 * base/hash.h - SHA-256, and the SHA-1 by which git names a file's contents
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>

/* 64 hex digits, in lower case. */
const char *hash_hex(const void *bytes, size_t n);

/* The same for the rest of an open file, from its current offset; NULL and errno. */
const char *hash_fd(int fd);

/* 40 hex digits: the name of a blob with these bytes in a git repository. */
const char *hash_git_blob(const void *bytes, size_t n);

#endif
