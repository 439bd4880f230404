/*
 * git/git-merge.h - take over what a box changed in a copy of git's configuration
 *
 * There are three texts: what the box began with, what it left, and what the host has now. The
 * differences between the first two are the box's changes. Those that git/git-allow.h lets out
 * are applied to the third as edits of single settings. Each is written anew: no byte of the
 * box's text is copied. Pure; the texts may be hostile.
 */
#ifndef GIT_GIT_MERGE_H
#define GIT_GIT_MERGE_H

#include <stddef.h>

#include "base/mem.h"

struct fault;

struct git_text {
	const char *p;
	size_t n;
};

struct git_refusal {
	const char *name; /* of the setting, as `git config --list` has it: not safe to print */
	const char *why;  /* NULL: boxes may not change this setting */
};

struct git_merge {
	struct git_text text;   /* the new text for the host; .p is NULL if nothing changes */
	size_t taken;           /* how many settings changed */
	VEC(const char *) told; /* "NAME = VALUE" of changes to report to the user */
	VEC(struct git_refusal) refused;
};

/*
 * -EBADMSG: git would stop at one of the texts. -E2BIG: there are too many settings. -EINVAL:
 * the box left no configuration of a repository, or its changes contradict each other.
 */
int git_merge(const struct git_text *base, const struct git_text *box,
	const struct git_text *now, struct git_merge *ret, struct fault *f);

/* One setting as git writes it, "\tKEY = VALUE\n" with quotes where they are needed. */
struct str;
void git_write_section(struct str *out, const char *section, const char *subsection);
void git_write_setting(struct str *out, const char *key, const char *value);

#endif
