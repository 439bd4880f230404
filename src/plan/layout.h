/*
 * plan/layout.h - what of the host is in every box, as tables
 *
 * The survey looks up each of these paths (struct host holds the results in the same order);
 * the resolver decides. A new path is one new line in layout.c.
 */
#ifndef PLAN_LAYOUT_H
#define PLAN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

/* Top-level directories with the system's programs; a link stays a link. */
extern const char *const layout_system[];
extern const size_t layout_system_n;
bool layout_in_system(const char *path); /* is it in or below one of them? */

struct layout_etc {
	const char *name;       /* below /etc */
	bool copy;              /* at most a page: copying it costs less than a mount */
	bool only_with_network; /* the host's own only when the box shares its network */
};
extern const struct layout_etc layout_etc[];
extern const size_t layout_etc_n;

struct layout_toolchain {
	const char *dir;  /* below home */
	const char *when; /* below home: in the box when PATH has an entry there; NULL: dir */
};
extern const struct layout_toolchain layout_toolchains[];
extern const size_t layout_toolchains_n;

/* Hidden in a toolchain that the box has, below home; a part that is * is any name. */
extern const char *const layout_secrets[];
extern const size_t layout_secrets_n;

/* In the syntax of --hide. Protected paths are in plan/obeyed.h. */
extern const char *const layout_hide[];
extern const size_t layout_hide_n;

/* Host variables that pass; a name ending in * is a prefix. */
extern const char *const layout_env[];
extern const size_t layout_env_n;

struct layout_proc {
	const char *path;
	bool dir, hide; /* hidden, else sealed read-only */
};
extern const struct layout_proc layout_proc_root[];
extern const size_t layout_proc_root_n;

#endif
