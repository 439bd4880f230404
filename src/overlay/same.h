/*
 * overlay/same.h - are two files alike: bytes and extended attributes
 */
#ifndef OVERLAY_SAME_H
#define OVERLAY_SAME_H

#include <stdbool.h>

/* 1: a/name and b/name are plain files with the same bytes; 0: they are not; -errno. */
int same_bytes_at(int a, int b, const char *name);
int same_bytes(int a, int b);

/*
 * Do both have the same attributes? Overlayfs's own do not count. Attributes that cannot be
 * read count as absent.
 */
bool same_xattrs_at(int a, int b, const char *name);

#endif
