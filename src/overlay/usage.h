/*
 * overlay/usage.h - how much room a layer takes on disk, while a box writes to it
 */
#ifndef OVERLAY_USAGE_H
#define OVERLAY_USAGE_H

/*
 * The bytes on disk of everything below an open directory, of files with several names once;
 * what is not seen until clock_ms() is `until` is left out. For a process of its own that ends
 * soon: it may move to another user namespace, to look into directories that nobody may read.
 */
unsigned long long usage_of(int dir, long long until);

#endif
