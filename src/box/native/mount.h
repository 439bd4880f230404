/* box/native/mount.h - what the files that make the mount tree share */
#ifndef BOX_NATIVE_MOUNT_H
#define BOX_NATIVE_MOUNT_H

struct fault;
struct place;

/* A path of the host as O_PATH, refusing any symlink on the way. */
int mount_open(const char *path, struct fault *f);

/* overlay.c: a detached mount of the place's overlay, to be mounted on target. */
int mount_overlay(int target, const struct place *place, struct fault *f);

#endif
