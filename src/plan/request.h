/*
 * plan/request.h - what the user asked for, before anything is looked up
 *
 * Filled in by the command line and, for a declared agent, from its manifest by its harness.
 * Nothing here is checked against the host: that is the survey's and the resolver's work.
 */
#ifndef PLAN_REQUEST_H
#define PLAN_REQUEST_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/mem.h"

struct fault;

enum {
	MOST_UID = 60000,        /* behind it are ids with a meaning of their own */
	MOST_CONNECTIONS = 4096, /* of one box, at once */
	MOST_PORTS = 64,         /* of the host that lead to one box */
	BROKERS_PORT = 53,       /* of a box: it and those below it are the broker's */
	LOW_PORTS = 1024,        /* those below are the system's, where nobody says otherwise */
	PROXY_PORT = 3128,       /* on the box's loopback, where it has an explicit proxy */
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
 * Sockets of a brokered network, made in the box's namespace for the broker: of the last two
 * the kernel says which datagrams it refused. -1 where there is none.
 */
enum net_end { END_LISTENER, END_RESOLVER, END_REFUSED_V4, END_REFUSED_V6, NET_ENDS };

/* An entry of the policy, as it was written: net/policy.h has the language. */
struct request_host {
	const char *entry;
	const char *origin; /* begins a complaint: "--allow", "carrel.json:3:7: agents.x..." */
	bool deny;
};

/* A rule that came of the entries: what stands in the plan, and is enforced. */
struct net_rule {
	const char *text;
	bool deny;
};
typedef VEC(struct net_rule) net_rule_vec;

struct request_mount {
	const char *source, *target; /* target NULL: the same path as the source; or ~/... */
	bool rw;
	/* Not looked at: it will be there when the box starts, as this. */
	enum { SURE_NOT, SURE_DIR, SURE_FILE } sure;
	bool users;    /* and is the user's own all the same */
	bool declared; /* by a manifest, which has less of a say than the command line */
	const char
		*why; /* what it is for: "--mount", "skill"; begins every complaint about it */
};

/* Where a variable's value comes from. The last two are fetched when the box is agreed on. */
enum env_how { ENV_LITERAL, ENV_COPY, ENV_PROMPT, ENV_COMMAND };

enum env_from { ENV_HOST, ENV_SET, ENV_DECLARED, ENV_ASKED };

struct request_env {
	const char *name;
	enum env_how how;
	const char *value; /* LITERAL: itself; COPY: the host's variable; PROMPT: the message */
	const char *const *argv; /* COMMAND: without a shell */
	enum env_from from;      /* for the person */
	const char *why;         /* begins a complaint: "--env TOKEN" */
};

/* A file that is made for the box, and is read-only there unless rw. */
struct request_file {
	const char *target; /* absolute, or ~/... */
	const char *text;
	const char *why;
	mode_t mode;
	bool rw;
	bool brief;  /* long, for a person: the plan has its length and hash */
	bool secret; /* the plan has nothing of it */
};

typedef VEC(const char *) name_vec;

/* A directory that is made for the box and cannot be moved away or, unless rw, be changed. */
struct request_dir {
	const char *target; /* absolute, or ~/... */
	const char *why;
	bool rw;
};

/* A part of the home that a client keeps its things in; one table per client. */
struct part {
	const char *path; /* below home: ".claude" */
	const char *const
		*own_dirs; /* in it, private to the project; NULL-terminated, or NULL */
	const char *const *own_files; /* the same, files */
	const char *const *traces;    /* in it: tells of other projects, and is not seen; a new
				       * one goes to the end, see make_hiding() */
	bool whole;                   /* all of it is private: nothing of the user's is seen */
	const char *plugins; /* in it: names directories elsewhere, see run/leads.h; or NULL */
};

/* A file on top of a part, also where an earlier box left another one: a login, say. */
struct part_file {
	const char *part, *name, *text;
};

/* A directory of the user's that the box sees, and changes on a layer of its own. */
struct request_overlay {
	const char *target;
	name_vec lowers;          /* of the host, the uppermost first */
	name_vec files, texts;    /* below what the box writes, above all else */
	const char *upper, *work; /* NULL in a plan that is only shown */
	const char *why;
};

/* Where a box finds the agent that has its ssh keys. */
#define REQUEST_SSH_SOCKET "/etc/carrel/ssh-agent"
#define REQUEST_SSH_SUFFIX ".agent" /* of the socket on the host, after the box's name */

/* A host to log in to, with a key that stays outside. */
struct request_ssh {
	const char *host; /* its name in the box */
	const char *host_name, *user;
	unsigned int port;
	const char *key;   /* the private key's path on the host, canonical */
	const char *to;    /* where the key may be used, as ssh-add has it */
	const char *known; /* the keys that this host shows, as lines of known_hosts */
	bool token;        /* the key's other half is in a FIDO token */
};

/* For the person who is asked, and for the record: what the agent is made of. */
struct request_agent {
	const char *name, *harness, *model;
	const char *prompt; /* or NULL */
	name_vec skills, mcp_servers, plugins, hooks, tools;
};

struct request_limits {
	unsigned long long time;    /* seconds of wall clock, 0 = none */
	unsigned long long pids;    /* processes and threads in the box */
	unsigned long long files;   /* open files per process */
	unsigned long long scratch; /* bytes in the box's own tmpfs: home, /tmp, ... */
	/* Of a network with a broker. */
	unsigned long long connections; /* at once */
	unsigned long long traffic;     /* bytes in both directions, 0 = any */
	unsigned long long rate;        /* bytes a second, 0 = any */
};

struct request {
	const struct request_agent *agent; /* NULL: any command */
	const char *const *argv;           /* the command, NULL-terminated; NULL: a shell */
	const char *input;                 /* a file in the box that is its standard input */
	const char *workspace;             /* NULL: the working directory */
	const char *name;                  /* NULL: made from the agent's or the workspace's */
	VEC(struct request_mount) mounts;
	VEC(struct request_file) files;
	VEC(struct request_dir) dirs;
	VEC(struct request_overlay) overlays;
	const struct part *parts; /* of the home, kept for this project; or NULL */
	bool parts_direct;        /* the user's own, with no layer between */
	VEC(struct part_file) part_files;
	bool sandbox; /* tell the agent in HARNESS_DIR/SANDBOX.md what this box is */
	VEC(struct request_env) env;
	VEC(struct request_ssh) ssh;
	VEC(const char *) notices; /* for the person, before the confirmation */
	VEC(const char *) protect; /* paths or patterns below the workspace; "!x" takes back */
	VEC(const char *) hide;
	VEC(const char *) empty;      /* directories below the workspace that look empty */
	struct request_limits limits; /* 0 = the default */
	enum network network;
	bool network_said; /* by the command line, over what an agent declares */
	VEC(struct request_host) hosts;
	bool proxy;              /* clients must ask a proxy: where there is no tproxy */
	bool ask;                /* about hosts that no entry is about */
	VEC(const char *) ports; /* "3000", "8080:80": the host's loopback to the box's */
	unsigned long long uid;  /* user and group in the box; 0: as outside */
	bool nest;               /* user namespaces and mounts allowed inside: weaker */
};

/* ---- plan/network.c ---- */

/* "3000" or "8080:80": a port of the host's loopback, and that of the box it leads to. */
struct port_pair {
	unsigned short host, box;
};
bool port_parse(const char *text, struct port_pair *ret);
/* The same for those that a server in the box can listen on: what is wrong with it, or NULL. */
const char *port_problem(const char *text, struct port_pair *ret);

/* The mode that `mode`, when nobody said more, becomes: --allow opens what would be none. */
enum network request_mode(const struct request *r, enum network mode);

/*
 * Settle the mode before anything is started, and say what of the request cannot be with it.
 * In `hosts` of a request without a broker there is only what the command line said.
 */
int request_settle(struct request *r, struct fault *f);

#endif
