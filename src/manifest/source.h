/*
 * manifest/source.h - paths that a manifest names, on the host
 */
#ifndef MANIFEST_SOURCE_H
#define MANIFEST_SOURCE_H

#include "manifest/manifest.h"

/* manifest_path() of a directory that contains no link leading out of it. */
const char *source_dir(const struct said *said, const char *field, const char *home,
	problems *bad);

/* Read a file that manifest_path() found; no link is followed, whatever is there by now. */
char *source_read(const char *path, size_t max);

#endif
