/*
 * plan/host.h - facts about this machine that the plan depends on
 *
 * plan/ makes no system calls: run/survey.c fills this in, tests write it by hand.
 * All paths are absolute and canonical (no symlinks) unless said otherwise.
 */
#ifndef PLAN_HOST_H
#define PLAN_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/mem.h"
#include "plan/request.h"

typedef VEC(unsigned long) inode_vec;

enum kind { KIND_ABSENT, KIND_FILE, KIND_DIR, KIND_LINK, KIND_OTHER, KIND_MASKED };

/* One path that was looked at. For a link, `real` is where it leads (NULL: nowhere). */
struct fact {
	const char *path;
	enum kind kind;      /* of the path itself, links not followed */
	enum kind real_kind; /* after following */
	const char *real;    /* canonical */
	const char *link;    /* a link's text */
	unsigned long inode; /* in a rule's trail */
};

enum path_rule { RULE_PROTECT, RULE_HIDE };

/*
 * A path to protect or hide, and every part of it from just below the writable
 * root down to the path itself or to the first part that is missing. Links on the
 * way are in the trail, and so is what they lead to.
 */
struct rule {
	enum path_rule kind;
	const char *why;  /* the default's or option's text that asked for it */
	const char *stub; /* text of the stub while the path is absent; see box/native/stub.h */
	VEC(struct fact) trail;
};

struct host {
	uid_t uid;
	gid_t gid;
	const char *user, *group; /* names for the generated passwd and group files */
	const char *home;         /* canonical when it exists */
	const char *shell;        /* absolute path */
	const char *cwd;
	const char *name;            /* that the box gets; NULL: whatever plan_name() says */
	const char *const *env;      /* NAME=VALUE, NULL-terminated */
	int landlock_abi;            /* 0: not available */
	unsigned long long ram;      /* bytes */
	unsigned long long max_pids; /* what the user may have at most */

	struct fact *system;     /* parallel to layout_system[] */
	struct fact *etc;        /* parallel to layout_etc[] */
	struct fact *toolchains; /* parallel to layout_toolchains[]; absent: or not on PATH */
	struct fact *mounts;     /* parallel to request->mounts */
	struct fact workspace;
	const char *project, *project_id; /* the root that stands for the project, and its id */
	const char *sockets; /* where the agents of boxes with ssh keys listen, or NULL */
	VEC(struct rule) rules;
	VEC(const char *) notices; /* for the person, before the confirmation */
	net_rule_vec net_rules;    /* what the entries of the request came to */
	inode_vec known; /* of names that run/planted.c looks for, there before the run */

	/* A linked worktree's repository lives elsewhere; NULL when there is none. */
	const char
		*git_common; /* its common directory, proven to point back at the workspace */
};

#endif
