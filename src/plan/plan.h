/*
 * plan/plan.h - the plan: all that a box will be, as data
 *
 * argv ─ cli ─▶ request ─▶ survey ─▶ plan ─▶ shown, confirmed ─▶ engine ─▶ supervise
 *
 * With --yes nobody waits for a confirmation, and the engine begins with the frame meanwhile.
 * plan_resolve() decides everything. The engine only executes the plan, in this order.
 * plan_print() and plan_json() show the same struct. Values of environment variables are
 * carried for the engine and never shown or hashed.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "plan/cgroup-facts.h"
#include "base/mem.h"
#include "plan/host.h"
#include "plan/request.h"

struct fault;
struct policy;
struct str;

/* How one place in the box is made. Executed in list order: parents before children. */
enum place_kind {
	PLACE_LINK, /* a symlink in the box's own root; `text` is its target */
	PLACE_FILE, /* a file in the box's own root; `text` is its contents */
	PLACE_COPY, /* a file in the box's own root with the contents of the host's `source` */
	PLACE_BIND, /* a mount of the host's `source` */
	PLACE_SCRATCH, /* a writable directory in the box's own root */
	PLACE_OVERLAY, /* directories of the host on top of each other; changes go to a layer */
	PLACE_PROC,    /* a proc of the box's own pid namespace */
	PLACE_PTS,     /* a devpts instance for the box */
	PLACE_PIN, /* source mounted over itself: it can be used but not renamed or removed */
	PLACE_PROTECT, /* source mounted over itself, read-only */
	PLACE_CONFIG,  /* a configuration of git's: in its place a link, which leads to `text`,
			  a copy that the box may write */
	PLACE_STUB,    /* a name that is absent and must stay so: box/stubs.h */
	PLACE_HIDE,    /* an empty file or directory, read-only, on top of what is there */
	PLACE_SEAL,    /* a path of the box and everything below it, mounted over itself;
		       read-only unless rw. It comes after all other places, so that they can
		       be made first */
};

struct place {
	enum place_kind kind;
	const char *target;  /* in the box */
	const char *source;  /* on the host, or NULL */
	unsigned long inode; /* PROTECT: of the original; neither shown nor hashed */
	const char *text;    /* LINK, FILE; STUB: its contents, if it is a file */
	const char *neutral; /* STUB: what the box reads instead; neither shown nor hashed */
	const char *why; /* for the person: "system", "toolchain", "workspace", a rule's text */
	const char *const *lowers; /* OVERLAY: the topmost first, NULL-terminated */
	const char *work;          /* OVERLAY: beside source, the upper directory */
	const char *const
		*files; /* OVERLAY: names of files that are put into it at the start */
	const char *const *texts; /* their contents; neither shown nor hashed */
	/* FILE: as in struct request_file */
	const char *fill;
	bool rw;
	bool dir;      /* a directory (else a file or, for PIN, perhaps a link) */
	bool device;   /* a bind on which device nodes work: /dev only */
	bool create;   /* the target lies in the box's own root: make it; else it must exist */
	bool moved;    /* a bind at another path in the box than on the host */
	bool named;    /* text or source contains the box's name, and is not part of the hash */
	bool sealed;   /* FILE: the box could write its directory, so it is mounted on itself */
	bool own;      /* BIND: the instance's, not the user's */
	bool declared; /* BIND: a manifest asked for it */
	bool watched;  /* FILE: its access time is zero until it is read */
	bool sandbox;  /* FILE: its text describes the plan itself */
	bool brief;    /* FILE: shown as length and hash */
	bool secret;   /* FILE: neither shown nor hashed */
	bool open;     /* PIN: writable inside a read-only directory */
	bool stub;     /* PIN, CONFIG: absent; made while the box runs */
	bool layer;    /* OVERLAY: of the workspace or its repository, at its own path; what the
			* box writes is in `source` and the directory below stays as it is */
	bool optional; /* SEAL, HIDE: skipped on kernels that lack it */
	bool early;    /* part of the frame: init makes it before there is a plan */
	mode_t mode;   /* the mode of what the engine makes */
};
typedef VEC(struct place) place_vec;

struct plan_env {
	const char *name;
	const char *value; /* NULL: still to be fetched, as `how` says */
	enum env_from
		from; /* copied from the host, made by carrel, declared, given by the user */
	enum env_how how;
	const char *message;     /* PROMPT */
	const char *const *argv; /* COMMAND */
};

enum seccomp_program { SECCOMP_STRICT, SECCOMP_NEST };

/*
 * What is known about a box before anything was looked up. It is enough to make the box's
 * namespaces while the host is surveyed.
 */
struct frame {
	const char *engine;  /* builds the box; a name of MANIFEST_ENGINES */
	uid_t uid, host_uid; /* inside, outside */
	gid_t gid, host_gid;
	unsigned long namespaces; /* CLONE_NEW* bits */
	enum network network;
	bool proxy;     /* the broker is used as a proxy; nothing is redirected to it */
	bool low_ports; /* a server in the box may listen below 1024 */
	unsigned short services
		[MOST_SERVICES]; /* services of the host's loopback that appear on the box's */
	unsigned int n_services;
	bool nest;
	unsigned long long scratch, scratch_inodes; /* of the box's own file system */
	unsigned long long watches; /* inotify watches of its programs; 0: no limit */
	struct cgroup_facts cgroup;
	place_vec early; /* /proc and /dev: nothing else can be put there, so init can make
			    them before there is a plan. The plan contains them as well. */
};

struct plan {
	struct frame frame;
	const char *name;                  /* also the host name inside; not part of the hash */
	const char *image;                 /* the source of its programs: "host" */
	const struct request_agent *agent; /* NULL: any command */
	const char *const *argv;
	const char *input; /* a file in the box that is its standard input; NULL: the user's */
	const char *workdir;
	const char *workspace;
	bool overlay; /* the box has a copy-on-write copy of it */
	const char *home;
	const char *project, *project_id; /* the project whose state it uses, or would use */

	const char *user;
	const char *git_ignore; /* as in the request; a file in the box holds it */
	const char *git_user;   /* whose git settings are in its home, in words; or NULL */

	enum seccomp_program seccomp;
	int landlock_abi; /* 0: no Landlock layer (only with nest) */

	struct limits limits; /* resolved: defaults filled in */

	net_rule_vec
		net_rules; /* ALLOW, OPEN: what may be reached, from host/network-policy.h */
	name_vec reaches;  /* the entries that allow, as written; neither shown nor hashed */
	const struct policy *policy; /* the same for the broker, net/policy/policy.h; or NULL */
	bool ask;
	VEC(struct port_pair) ports;

	place_vec places;
	VEC(struct plan_env) env;
	VEC(struct request_ssh) ssh;
	VEC(const char *) notices; /* for the person, before the confirmation */
	known_vec known;           /* as in struct host; neither shown nor hashed */
	name_vec tracked;          /* the same */
	struct git_seen *git;      /* the same */
	struct contents *contents; /* the same */
};

/* The frame of a request. Uses only uid, gid, ram and watches of the host. */
void plan_frame(const struct request *r, const struct host *h, struct frame *ret);

/* Are the frames equal? The early places follow from the rest and are not compared. */
bool plan_same_frame(const struct frame *a, const struct frame *b);

/*
 * The preferred name of a box: the requested one, or carrel-SLUG after its agent or workspace.
 * Another box may have it: state/registry.h.
 */
int plan_name(const struct request *r, const char *workspace, const char **ret,
	struct fault *f);

/* Can this be a workspace? Checked before it is searched. */
int plan_check_workspace(const struct host *h, struct fault *f);

/* Decide everything. Pure: no system calls. */
int plan_resolve(const struct request *r, const struct host *h, struct plan *ret,
	struct fault *f);

/* For a person, for a machine, and the hash (64 hex digits) that identifies this box. */
void plan_print(const struct plan *p, bool colour, struct str *out);
void plan_json(const struct plan *p, struct str *out);
const char *plan_hash(const struct plan *p);

/* The short form, for a person who is about to start it; brief.c says what is in it. */
void plan_brief(const struct plan *p, bool colour, struct str *out);

/* The programs of the host that give values: the one thing that runs outside of the box. */
void plan_programs(const struct plan *p, bool colour, struct str *out);

/*
 * The hash of what a person agrees to: as plan_hash(), without notices, without what the user
 * typed for his own client, and without what changes from one box of a project to the next.
 */
const char *plan_agreement(const struct plan *p);

/* Names of the enums as the JSON has them. */
const char *place_kind_name(enum place_kind kind);
const char *env_from_name(enum env_from from);
const char *env_how_name(enum env_how how);
const char *network_name(enum network network);
const char *seccomp_name(enum seccomp_program program);

#endif
