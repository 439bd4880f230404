/*
 * plan/plan.h - the plan: all that a box will be, as data
 *
 * argv ─ cli ─▶ request ─▶ survey ─▶ plan ─▶ shown, confirmed ─▶ engine ─▶ supervise
 *
 * With --yes nobody waits for it, and the engine begins with the frame alone meanwhile.
 * plan_resolve() decides everything; the engine only executes, in this order, what
 * stands here; plan_print() and plan_json() show the very same struct. Values of
 * environment variables are carried for the engine and never shown nor hashed.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/mem.h"
#include "plan/host.h"
#include "plan/request.h"

struct fault;
struct str;

/* How one place in the box comes to be. Executed in list order: parents before children. */
enum place_kind {
	PLACE_LINK, /* a symlink of the box's own root, `text` is where it leads */
	PLACE_FILE, /* a file of the box's own root, `text` is what it says */
	PLACE_COPY, /* a file of the box's own root that says what the host's `source` says */
	PLACE_BIND, /* a mount of the host's `source` */
	PLACE_SCRATCH, /* a directory of the box's own root that it may write to */
	PLACE_OVERLAY, /* directories of the host on top of each other, changed on a layer */
	PLACE_PROC,    /* a proc of the box's own pid namespace */
	PLACE_PTS,     /* a devpts instance of the box's own */
	PLACE_PIN, /* source mounted over itself: it can be used but not renamed or removed */
	PLACE_PROTECT, /* source mounted over itself, read-only */
	PLACE_STUB,    /* a name that is absent and must stay so: box/native/stub.h */
	PLACE_HIDE,    /* an empty unreadable file or directory on top of what is there */
	PLACE_SEAL, /* a path of the box itself, with all in it, mounted over itself: after all
		       others, so that what is in it can be made first; read-only unless rw */
};

struct place {
	enum place_kind kind;
	const char *target;  /* in the box */
	const char *source;  /* on the host, or NULL */
	unsigned long inode; /* PROTECT: of what was there; neither shown nor hashed */
	const char *text;    /* LINK, FILE; STUB: what the stub says, if it is a file */
	const char *why; /* for the person: "system", "toolchain", "workspace", a rule's text */
	const char *const *lowers; /* OVERLAY: the uppermost first, NULL-terminated */
	const char *work;          /* OVERLAY: beside source, the upper directory */
	const char *const *files;  /* OVERLAY: names that are put into it at the start */
	const char *const *texts;  /* of those; neither shown nor hashed */
	bool rw;
	bool dir;    /* a directory (else a file or, for PIN, perhaps a link) */
	bool device; /* a bind on which device nodes work: /dev only */
	bool create; /* the target lies in the box's own root: make it; else it must exist */
	bool moved;  /* a bind that is elsewhere in the box than on the host */
	bool named;  /* text or source has the box's name in it, and is not part of the hash */
	bool sealed; /* FILE: the box could write what it lies in, so it is mounted on itself */
	bool own;    /* BIND: of the instance, not of the user's */
	bool declared; /* BIND: a manifest asked for it */
	bool sandbox;  /* FILE: its text is about the plan itself */
	bool brief;    /* FILE: shown as length and hash */
	bool secret;   /* FILE: neither shown nor hashed */
	bool optional; /* SEAL, HIDE: not every kernel has it; nothing to do then */
	bool early;    /* of plan_own_places() */
	mode_t mode;   /* of what is made; HIDE of a directory: not 0 if it looks empty */
};

struct plan_env {
	const char *name;
	const char *value; /* NULL: still to be fetched, by `how` */
	enum env_from
		from; /* copied from the host, made by carrel, declared, given by the user */
	enum env_how how;
	const char *message;     /* PROMPT */
	const char *const *argv; /* COMMAND */
};

enum seccomp_program { SECCOMP_STRICT, SECCOMP_NEST };

/*
 * What a box is before anything was looked up: enough to make its namespaces, which takes
 * as long as the looking up and is done meanwhile.
 */
struct frame {
	uid_t uid, host_uid; /* inside, outside */
	gid_t gid, host_gid;
	unsigned long namespaces; /* CLONE_NEW* bits */
	enum network network;
	bool proxy;     /* the broker is asked as a proxy; nothing comes to it by itself */
	bool low_ports; /* a server in the box may listen below 1024 */
	bool nest;
	unsigned long long scratch, scratch_inodes; /* of the box's own file system */
};

struct plan {
	struct frame frame;
	const char *name;                  /* also the host name inside; not part of the hash */
	const char *engine;                /* "native" */
	const char *image;                 /* where its programs come from: "host" */
	const struct request_agent *agent; /* NULL: any command */
	const char *const *argv;
	const char *input; /* a file in the box that is its standard input; NULL: the user's */
	const char *workdir;
	const char *workspace;
	const char *home;
	const char *project, *project_id; /* whose state it uses, or would use */

	const char *user;

	enum seccomp_program seccomp;
	int landlock_abi; /* 0: no Landlock layer (only with nest) */

	struct request_limits limits; /* resolved: defaults filled in */

	net_rule_vec net_rules; /* ALLOW, OPEN: who may be reached, by run/egress.h */
	bool ask;
	VEC(struct port_pair) ports;

	VEC(struct place) places;
	VEC(struct plan_env) env;
	VEC(struct request_ssh) ssh;
	VEC(const char *) notices; /* for the person, before the confirmation */
	inode_vec known;           /* as in struct host; neither shown nor hashed */
};

/* The frame of a request by this user, on a machine with so many bytes of memory. */
void plan_frame(const struct request *r, uid_t uid, gid_t gid, unsigned long long ram,
	struct frame *ret);

/*
 * What every box has at places that nothing else can be put at, so that it can be made before
 * there is a plan: /proc and /dev. All of it is in the plan as well, as early.
 */
int plan_own_places(const struct frame *frame, struct plan *ret, struct fault *f);

/*
 * The name a box would like to have: the one that was asked for, or carrel-SLUG after its agent
 * or workspace. Another box may have it: state/registry.h.
 */
int plan_name(const struct request *r, const char *workspace, const char **ret,
	struct fault *f);

/* Could this be a workspace? Asked before it is searched. */
int plan_check_workspace(const struct host *h, struct fault *f);

/* Decide everything. Pure: no system calls. */
int plan_resolve(const struct request *r, const struct host *h, struct plan *ret,
	struct fault *f);

/* For a person, for a machine, and the hash (64 hex digits) that names this box. */
void plan_print(const struct plan *p, bool colour, struct str *out);
void plan_json(const struct plan *p, struct str *out);
const char *plan_hash(const struct plan *p);

/* Names of the enums as the JSON has them. */
const char *place_kind_name(enum place_kind kind);
const char *env_from_name(enum env_from from);
const char *env_how_name(enum env_how how);
const char *network_name(enum network network);
const char *seccomp_name(enum seccomp_program program);

#endif
