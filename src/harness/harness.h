/*
 * harness/harness.h - what carrel knows about a client
 *
 * One file per client, each one struct harness: a table of facts and two functions. The job
 * (what the manifest declares, how it is started) goes in; what comes out is added to the
 * request: arguments, files in the box, mounts and variables. Nothing is looked up on the
 * host and nothing is written here, so what a client will be given can be seen in a plan.
 *
 * What all clients have in common (role, skills, prompt, the agent's own environment) is
 * harness/assemble.c's. Facts about clients are measured against a mock of their API; the
 * tests in tests/clients say with which version.
 */
#ifndef HARNESS_HARNESS_H
#define HARNESS_HARNESS_H

#include <stdbool.h>

#include "base/mem.h"
#include "harness/ssh.h"
#include "manifest/manifest.h"
#include "plan/request.h"

struct json_value;

/* Files that carrel makes for a client are here: the box's own root, which it cannot write. */
#define HARNESS_DIR    "/etc/carrel"
#define HARNESS_PROMPT HARNESS_DIR "/prompt.md"

/* The first message on a terminal, for clients that take it as an argument only. */
#define HARNESS_ASK \
	"Read the file " HARNESS_PROMPT ": it is my message to you. Do what it says."

/* What an agent may declare for this client; the rest is refused. */
enum harness_can {
	CAN_MODEL = 1 << 0,
	CAN_EFFORT = 1 << 1,
	CAN_SKILLS = 1 << 2,
	CAN_MCP = 1 << 3,
	CAN_PLUGINS = 1 << 4,
	CAN_HOOKS = 1 << 5,
	CAN_TOOLS = 1 << 6,
	CAN_ALLOWED_TOOLS = 1 << 7,
	CAN_DISALLOWED_TOOLS = 1 << 8,
	CAN_PERMISSIONS = 1 << 9, /* the allow and deny lists */
	CAN_PROMPTS = 1 << 10,    /* skipPrompts: false means something */
	CAN_COMMAND = 1 << 11,
};

/* What is in the agent's home; as the manifest's "home". */
enum job_home { HOME_DECLARED, HOME_MINE, HOME_DIRECT };

struct job {
	const struct agent *agent;
	enum job_home kind;
	const char *config;      /* what the client's file .config says, or NULL */
	const char *program;     /* to execute, as the box sees it */
	const char *home;        /* the same in the box */
	const char *workspace;   /* canonical, the same in the box */
	bool headless;           /* no terminal: do what the prompt says, print, end */
	bool events;             /* headless: print the client's event stream */
	const char *const *args; /* more, from the command line; NULL-terminated */
	const char *login;       /* what goes into the credentials file; NULL: none is needed */
	ssh_facts_vec ssh;       /* for each entry of the agent's */
	name_vec variables;      /* of struct harness, those that are set here */
	const char *key_tail;    /* of the first key, in a conversation: see claude.c */
};

enum event_kind {
	EVENT_OTHER,
	EVENT_START,  /* the session began */
	EVENT_TEXT,   /* the agent said something */
	EVENT_TOOL,   /* it uses a tool */
	EVENT_RESULT, /* it has finished */
	EVENT_ERROR,
};

/*
 * One line of a client's event stream. What a client does not say is 0 or NULL; a result
 * without a text means what was said last. Figures are to be added up over all lines.
 */
struct harness_event {
	enum event_kind kind;
	const char *text;  /* said, or the error, or the final answer */
	bool part;         /* TEXT: it goes on what the line before said */
	const char *tool;  /* TOOL: its name */
	const char *skill; /* TOOL: the skill that is being used, where that can be seen */
	bool failed;       /* RESULT */
	unsigned long long turns, input_tokens, output_tokens;
	double usd;
};

struct harness {
	const char *name;
	const char *title;   /* for messages */
	const char *program; /* looked for on PATH; NULL: the agent's own command */
	const char *const
		*variables;       /* of the host, passed on: credentials and where they go */
	const char *const *keys;  /* those of them that are credentials */
	const char *login;        /* below home: used when no key is set; or NULL */
	const char *const *hosts; /* that it cannot do without: what it reaches by default */
	const struct part *parts; /* of the home: where it keeps what is its own; or NULL */
	const char *config;       /* below home: a file that each box gets made anew; or NULL */
	const char *role;         /* below home: what the role becomes */
	const char *skills;       /* below home: where skills are found */
	const char *const *hide;  /* of a project: what it would obey, and no option stops */
	unsigned int can;         /* enum harness_can */
	unsigned int mine_can; /* of these, with the user\'s own configuration: model, effort */

	/* Whether this agent has a use for a variable or key of the host; NULL: for all. */
	bool (*wants)(const struct agent *a, const char *variable);
	/* More of them, which depend on the agent and on the keys there are; or NULL. */
	void (*add_hosts)(const struct job *job, name_vec *ret);
	/* What else cannot be with this client; or NULL. */
	void (*check)(const struct agent *a, problems *bad);
	/* What of the credentials file goes into the box; NULL: it cannot be used. */
	const char *(*stage_login)(const char *text);
	/* Program and arguments; files, variables and mounts of this client's own. */
	void (*assemble)(const struct job *job, name_vec *argv, struct request *r);
	/* The same with the user's own configuration in the home; NULL: it has none. */
	void (*assemble_mine)(const struct job *job, name_vec *argv, struct request *r);
	/* Read one line of its event stream, parsed. */
	void (*event)(const struct json_value *line, struct harness_event *ret);
};

extern const struct harness harness_claude, harness_codex, harness_gemini, harness_opencode,
	harness_command;

extern const struct harness *const harness_all[]; /* ends with NULL */

/* NULL: there is none of that name. */
const struct harness *harness_find(const char *name);

/* Is everything that the agent declares something that its client can do? */
void harness_check(const struct harness *h, const struct agent *a, enum job_home home,
	problems *bad);

/*
 * Of that, what is wrong whichever the client is and whatever another file adds to it: also
 * asked about a part of an agent, before that is kept.
 */
void harness_check_alone(const struct agent *a, problems *bad);

/* What the agent's home is; mine: it is what `carrel` alone starts. */
enum job_home harness_home(const struct agent *a, bool mine);

/* Turn the job into the request, which may hold what the command line said. */
void harness_assemble(const struct harness *h, const struct job *job, struct request *r);

/* ---- network.c ---- */

/* The mode an agent declares, or has because it declares none. */
enum network harness_mode(const struct agent *a);

/* Does it say itself whom it may reach? Else: its client's hosts, in the mode allow. */
bool harness_says_hosts(const struct agent *a);

/* Those. Of the job, the agent and what it is logged in with. */
void harness_hosts(const struct harness *h, const struct job *job, name_vec *ret);

void harness_check_network(const struct agent *a, problems *bad);

/* Mode, hosts and ports, over which the command line's own words stand. */
void harness_network(const struct harness *h, const struct job *job, struct request *r);

/* ---- for the clients' files ---- */

void harness_option(name_vec *argv, const char *name, const char *value);

/* A file that the box can read and not write, and its path. */
const char *harness_file(struct request *r, const char *name, const char *text,
	const char *why);
/* The same below its home. */
void harness_home_file(struct request *r, const char *name, const char *text, const char *why);

void harness_set(struct request *r, const char *name, const char *value);

/*
 * A text of a manifest as a client's configuration may hold it. One whose value comes from
 * elsewhere, or that the client would expand, becomes a variable of the box, and `form` (with a
 * %s for the variable's name) says how the client refers to it.
 */
const char *harness_text(struct request *r, const struct said *text, const char *form,
	const char *field);
const char *harness_value(struct request *r, const struct named *env, const char *form,
	const char *field);

/*
 * For clients that hand variables of their own on to MCP servers: the value of a server's
 * variable if the manifest has it, else NULL; those others become variables of the box.
 */
const char *harness_literal(const struct named *env);
void harness_share(const struct agent *a, struct request *r);
void harness_check_shared(const struct harness *h, const struct agent *a, problems *bad);

/* The program of a server or hook: by its path where the manifest gives one. */
const char *harness_program(const struct said *command, const char *path);

#endif
