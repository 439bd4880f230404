/*
 * plan/host.h - facts about this machine that the plan depends on
 *
 * plan/ makes no system calls: host/survey.c fills this in, tests write it by hand.
 * All paths are absolute and canonical (no symlinks) unless said otherwise.
 */
#ifndef PLAN_HOST_H
#define PLAN_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/mem.h"
#include "plan/cgroup-facts.h"
#include "plan/request.h"

struct policy;

/*
 * Something that existed before the run. Path and inode identify it together: a box can give a
 * known file another name.
 */
struct known {
	const char *rel; /* below the workspace */
	unsigned long inode;
};
typedef VEC(struct known) known_vec;

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

/*
 * PIN: can be written, but neither renamed nor removed. OPEN: writable inside a protected
 * directory.
 */
enum path_rule { RULE_PROTECT, RULE_HIDE, RULE_PIN, RULE_OPEN };

/*
 * A path to protect or hide. The trail has every part of it, from just below the writable root
 * down to the path itself or to the first missing part. Links on the way are in the trail, and
 * so is what they lead to.
 */
struct rule {
	enum path_rule kind;
	const char *why; /* the text of the default or option that asked for it */
	/* While the path is absent (box/stubs.h): */
	const char *stub;    /* the text of the stub on the host, if it is a file */
	const char *neutral; /* what the box reads; NULL: a link to nowhere */
	bool dir;            /* a directory, on both sides */
	bool elsewhere;      /* the path ends where no box can write; only its trail counts */
	const char *copy; /* the contents of a git file that is copied into the box; or NULL */
	const char *copy_at; /* where that copy is in the box */
	bool asked; /* by the user or a manifest: it counts in a copy of the workspace too */
	VEC(struct fact) trail;
};

struct host {
	uid_t uid;
	gid_t gid;
	const char *user, *group; /* names for the generated passwd and group files */
	const char *home;         /* canonical when it exists */
	const char *shell;        /* absolute path */
	const char *cwd;
	const char *name;             /* the box's name; NULL: plan_name() decides */
	const char *const *env;       /* NAME=VALUE, NULL-terminated */
	int landlock_abi;             /* 0: not available */
	unsigned long long ram, swap; /* bytes */
	struct cgroup_facts cgroup;
	unsigned long long watches; /* inotify watches that a box may have; 0: no limit */
	/* Limits of the user: most processes, processes now, and open files per process. */
	unsigned long long max_pids, pids, open_files;

	struct fact *system; /* parallel to layout_system[] */
	struct fact *etc;    /* parallel to layout_etc[] */
	struct fact
		*toolchains; /* parallel to layout_toolchains[]; absent also if not on PATH */
	VEC(struct fact) programs; /* directories that links in ~/.local/bin lead to */
	struct fact *mounts;       /* parallel to request->mounts */
	struct fact workspace;
	const char *project, *project_id; /* the root that stands for the project, and its id */
	const char *sockets;      /* where the agents of boxes with ssh keys listen, or NULL */
	const char *over;         /* layers of the box that the copy lies on, or NULL */
	const char *layers;       /* of an overlay workspace; NULL: the plan is only shown */
	name_vec writable, shown; /* canonical paths that mounts show: writable ones, and all */
	VEC(struct rule) rules;
	struct fault *failed;        /* the first look for a rule that failed; NULL: none */
	name_vec notices;            /* for the person, before the confirmation */
	net_rule_vec net_rules;      /* the request's entries as rules, in text form */
	const struct policy *policy; /* the same for the broker; NULL: no broker */
	known_vec known;  /* files before the run whose names run/found.c looks for */
	name_vec tracked; /* keys of files that git tracks and that are not hidden */

	struct git_settings *git_user; /* the user's own git configuration */
	struct git_seen *git;          /* the contents of git directories: host/git-dirs.h */
	struct contents *contents;     /* host/contents.h */

	/* A linked worktree's repository lives elsewhere; NULL when there is none. */
	const char
		*git_common;   /* its common directory, proven to point back at the workspace */
	const char *git_admin; /* where git keeps what belongs to this working tree alone */
};

#endif
