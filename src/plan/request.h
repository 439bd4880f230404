/*
 * plan/request.h - what the user asked for, before anything is looked up
 *
 * The command line fills it in and, for a declared agent, its harness from its manifest.
 * Nothing here is checked against the host; the survey and the resolver do that.
 */
#ifndef PLAN_REQUEST_H
#define PLAN_REQUEST_H

#include <stdbool.h>
#include <sys/types.h>

#include "manifest/limits.h"
#include "base/mem.h"

struct fault;

enum {
	MOST_UID = 60000,   /* higher ids have special meanings */
	MOST_PORTS = 64,    /* ports of the host that lead to one box */
	MOST_SERVICES = 16, /* services of the host on one box's loopback */
	BROKERS_PORT = 53,  /* of a box: this port and those below it are the broker's */
	LOW_PORTS = 1024,   /* by default those below need privilege */
	PROXY_PORT = 3128,  /* the explicit proxy's port on the box's loopback */
};

enum network {
	NETWORK_NONE,  /* the box's own loopback */
	NETWORK_ALLOW, /* through the broker, what the policy allows */
	NETWORK_OPEN,  /* through the broker, what is public and not denied */
	NETWORK_HOST,  /* the host's own */
};

static inline bool network_is_brokered(enum network network)
{
	return network == NETWORK_ALLOW || network == NETWORK_OPEN;
}

/*
 * Sockets of a brokered network, made in the box's namespace for the broker. The last two
 * receive the kernel's refusals of datagrams. -1: there is none.
 */
enum net_end { END_LISTENER, END_RESOLVER, END_REFUSED_V4, END_REFUSED_V6, NET_ENDS };

/* An entry of the policy, as written: net/policy/policy.h has the language. */
struct request_host {
	const char *entry;
	const char *origin; /* begins a message: "--allow", "carrel.json:3:7: agents.x..." */
	bool deny;
};

/* A rule made from the entries: the plan shows it, and the broker enforces it. */
struct net_rule {
	const char *text;
	bool deny;
};
typedef VEC(struct net_rule) net_rule_vec;

struct request_mount {
	const char *source, *target; /* target NULL: the same path as the source; or ~/... */
	bool rw;
	/* Not looked up: it will exist when the box starts, as this. */
	enum { SURE_NOT, SURE_DIR, SURE_FILE } sure;
	bool users;      /* the user's own nevertheless */
	bool declared;   /* by a manifest, which may do less than the command line */
	const char *why; /* what it is for: "--mount", "skill"; begins every message about it */
};

/*
 * Where a variable's value comes from. The last two are fetched once the user has agreed to the
 * box.
 */
enum env_how { ENV_LITERAL, ENV_COPY, ENV_PROMPT, ENV_COMMAND };

enum env_from { ENV_HOST, ENV_SET, ENV_DECLARED, ENV_ASKED };

struct request_env {
	const char *name;
	enum env_how how;
	const char *value; /* LITERAL: itself; COPY: the host's variable; PROMPT: the message */
	const char *const *argv; /* COMMAND: without a shell */
	enum env_from from;      /* for the person */
	const char *why;         /* begins a message: "--env TOKEN" */
};

/*
 * A placeholder in a file for the last bytes of a key that is fetched once the user has agreed.
 */
#define REQUEST_KEY_TAIL "@the end of the key@"

/* A file that is made for the box, and is read-only there unless rw. */
struct request_file {
	const char *target; /* absolute, or ~/... */
	const char *text;
	const char *why;
	mode_t mode;
	bool rw;
	bool brief;       /* long, for a person: the plan shows its length and hash */
	bool secret;      /* the plan shows nothing of it */
	const char *fill; /* the variable whose end replaces REQUEST_KEY_TAIL; or NULL */
};

typedef VEC(const char *) name_vec;

/* A directory made for the box that cannot be moved away or, unless rw, changed. */
struct request_dir {
	const char *target; /* absolute, or ~/... */
	const char *why;
	bool rw;
};

/* A part of the home that a client keeps its data in; one table per client. */
struct part {
	const char *path; /* below home: ".claude" */
	const char *const
		*own_dirs; /* in it, private to the project; NULL-terminated, or NULL */
	const char *const *own_files; /* the same, files */
	const char *const *traces;    /*
				       * in it: names that would reveal other projects, and are
				       * hidden; add new ones at the end, see make_hiding()
				       */
	bool whole;          /* all of it is private: nothing of the user's is visible */
	const char *plugins; /* in it: names directories elsewhere (host/dotfiles.h); or NULL */
	const char *const *notes; /*
				   * in it: notes of the client about itself (counters, its own
				   * id), which it neither runs nor obeys; or NULL
				   */
};

/* A file on top of a part. It replaces one that an earlier box left: a login, for example. */
struct part_file {
	const char *part, *name, *text;
};

/* A directory of the user's. The box sees it, and changes it on a layer of its own. */
struct request_overlay {
	const char *target;
	name_vec lowers;       /* of the host, the topmost first */
	name_vec files, texts; /* files below what the box writes and above everything else */
	const char *upper, *work; /* NULL in a plan that is only shown */
	const char *why;
};

/* The path of the agent that holds the box's ssh keys. */
#define REQUEST_SSH_SOCKET "/etc/carrel/ssh-agent"
#define REQUEST_SSH_SUFFIX ".agent" /* of the socket on the host, after the box's name */

/* A host to log in to, with a key that stays outside. */
struct request_ssh {
	const char *host; /* its name in the box */
	const char *host_name, *user;
	unsigned int port;
	const char *key;   /* the private key's path on the host, canonical */
	const char *to;    /* where the key may be used, in the syntax of ssh-add */
	const char *known; /* this host's keys, as lines of known_hosts */
	bool token;        /* the key's other half is in a FIDO token */
};

/* For the person who is asked, and for the record: the agent's parts. */
struct request_agent {
	const char *name, *harness, *model;
	const char *prompt; /* or NULL */
	name_vec skills, mcp_servers, plugins, hooks, tools;
	const char *title;                                      /* of its client; NULL: none */
	bool own;                                               /* the user's own client */
	enum { PROMPTS_NONE, PROMPTS_OFF, PROMPTS_ON } prompts; /* NONE: it has none */
	const char *login;       /* the kind of login, for a person; or NULL */
	const char *login_until; /* when it expires; not part of the hash; or NULL */
	size_t typed;            /* how many of the last words of argv the user typed */
};

struct request {
	const struct request_agent *agent; /* NULL: any command */
	const char *const *argv;           /* the command, NULL-terminated; NULL: a shell */
	const char *input;                 /* a file in the box that is its standard input */
	const char *workspace;             /* NULL: the working directory */
	const char *name;                  /* NULL: derived from the agent or the workspace */
	const char *engine;                /* a name of MANIFEST_ENGINES; NULL: the first */
	bool overlay;     /* the box works on a copy-on-write copy of the workspace */
	const char *over; /* a box: the copy is of the workspace as that one left it; or NULL */
	VEC(struct request_mount) mounts;
	VEC(struct request_file) files;
	VEC(struct request_dir) dirs;
	VEC(struct request_overlay) overlays;
	const struct part *parts; /* of the home, kept for this project; or NULL */
	bool parts_direct;        /* the user's own, without a layer */
	VEC(struct part_file) part_files;
	bool sandbox; /* tell the agent in HARNESS_DIR/SANDBOX.md what this box is */
	VEC(struct request_env) env;
	VEC(struct request_ssh) ssh;
	VEC(const char *) notices; /* for the person, before the confirmation */
	name_vec protect;          /* paths or patterns below the workspace; "!x" removes one */
	name_vec hide;
	VEC(const char *) empty; /* directories below the workspace that look empty */
	struct limits limits;    /* 0 = the default */
	enum network network;
	bool network_said; /* the command line set it, over what an agent declares */
	VEC(struct request_host) hosts;
	bool proxy;                 /* clients must use a proxy, for kernels without tproxy */
	bool ask;                   /* about hosts in neither list */
	VEC(const char *) services; /* "5432": of the host's loopback, also on the box's */
	VEC(const char *) ports;    /* "3000", "8080:80": the host's loopback to the box's */
	unsigned long long uid;     /* user and group in the box; 0: as outside */
	bool no_git;                /* the user's own git settings stay outside */
	const char *git_ignore;     /* what the user's git ignores everywhere, or NULL */
	const char *git_user; /* whose git settings are in the box, in words; NULL: nobody's */
	bool nest;            /* user namespaces and mounts allowed inside: weaker */
};

/* ---- plan/network-mode.c ---- */

/* "3000" or "8080:80": a port of the host's loopback, and the port of the box it leads to. */
struct port_pair {
	unsigned short host, box;
};
bool port_parse(const char *text, struct port_pair *ret);
/* The same, limited to ports that a server in the box can use: what is wrong, or NULL. */
const char *port_problem(const char *text, struct port_pair *ret);

/* What is wrong with the port of a service, or NULL. */
const char *service_problem(const char *text, unsigned short *ret);

/*
 * The mode that `mode` becomes if none was given: --allow, --ask and --port open what would be
 * none.
 */
enum network request_mode(const struct request *r, enum network mode);

/*
 * Settle the mode before anything starts, and report parts of the request that it does not
 * allow. If there is no broker, `hosts` holds only entries of the command line.
 */
int request_settle(struct request *r, struct fault *f);

#endif
