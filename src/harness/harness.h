/*
 * harness/harness.h - what carrel knows about a client
 *
 * Each client has one file with one struct harness: a table of facts and two functions. They
 * turn a job (what the manifest declares, how it is started) into additions to the request:
 * arguments, files in the box, mounts and variables. They look up and write nothing on the
 * host, so a plan shows all that a client will get.
 *
 * harness/assemble.c does what all clients have in common (role, skills, prompt, the agent's
 * own environment). Facts about clients are measured against a mock of their API; the tests in
 * tests/clients say with which version.
 */
#ifndef HARNESS_HARNESS_H
#define HARNESS_HARNESS_H

#include <stdbool.h>

#include "base/mem.h"
#include "harness/ssh-config.h"
#include "manifest/manifest.h"
#include "plan/request.h"

struct json_value;

/* carrel puts files for a client here, in the box's own root, which the box cannot write. */
#define HARNESS_DIR    "/etc/carrel"
#define HARNESS_PROMPT HARNESS_DIR "/prompt.md"

/* The first message on a terminal, for clients that take it only as an argument. */
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
	CAN_PROMPTS = 1 << 10,    /* skipPrompts: false has an effect */
	CAN_COMMAND = 1 << 11,
};

/* What the agent's home holds; as the manifest's "home". */
enum job_home { HOME_DECLARED, HOME_MINE, HOME_DIRECT };

struct job {
	const struct agent *agent;
	enum job_home kind;
	const char *config;      /* the contents of the client's file .config, or NULL */
	const char *program;     /* to execute, as the box sees it */
	const char *home;        /* the same in the box */
	const char *workspace;   /* canonical, the same in the box */
	bool headless;           /* no terminal: follow the prompt, print, end */
	bool events;             /* headless: print the client's event stream */
	const char *const *args; /* further arguments from the command line; NULL-terminated */
	const char *login; /* the contents for the credentials file; NULL: none is needed */
	const char *login_name;  /* the kind of login, for a person; or NULL */
	const char *login_until; /* when it expires, or NULL */
	ssh_facts_vec ssh;       /* for each entry of the agent's */
	name_vec variables;      /* those of struct harness that are set here */
	const char *key_tail;    /* of the first key, in a conversation: see run/login.c */
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
 * One line of a client's event stream. Missing values are 0 or NULL. A result without a text
 * means the last text that was said. Figures are summed over all lines.
 */
struct harness_event {
	enum event_kind kind;
	const char *text;  /* what was said, or the error, or the final answer */
	bool part;         /* TEXT: continues the line before */
	const char *tool;  /* TOOL: its name */
	const char *skill; /* TOOL: the skill that is used, if it can be seen */
	bool failed;       /* RESULT */
	unsigned long long turns, input_tokens, output_tokens;
	double usd;
};

/* Conversations: files whose names end in a UUID and ".jsonl". */
struct talks {
	const char *dir;    /* in the first part, private to the project */
	unsigned int depth; /* directories between that and the files */
	const char
		*words; /* the client's arguments before the UUID, to resume a conversation */
};

struct harness {
	const char *name;
	const char *title;   /* for messages */
	const char *program; /* looked for on PATH; NULL: the agent's own command */
	const char *const
		*variables; /* of the host, passed on: credentials and where they are sent */
	const char *const *keys;  /* those of them that are credentials */
	const char *login;        /* below home: used when no key is set; or NULL */
	const char *const *hosts; /* hosts that it needs, and reaches by default */
	const struct part *parts; /* of the home: where the client keeps its data; or NULL */
	const char *config;       /* below home: a file that each box gets anew; or NULL */
	const char *role;         /* below home: the file that holds the role */
	const char *skills;       /* below home: where skills are found */
	const char *const *run_words; /* first arguments that start no conversation; or NULL */
	const struct talks talks;     /* where its conversations are; all 0: not known */
	const char *const
		*hide;         /* files of a project that it would obey, and no option stops */
	unsigned int can;      /* enum harness_can */
	unsigned int mine_can; /* of these, with the user's own configuration: model, effort */

	/* Does this agent use this variable or key of the host? NULL: all of them. */
	bool (*wants)(const struct agent *a, const char *variable);
	/* More hosts, which depend on the agent and on the available keys; or NULL. */
	void (*add_hosts)(const struct job *job, name_vec *ret);
	/* What else this client does not support; or NULL. */
	void (*check)(const struct agent *a, problems *bad);
	/* When the credentials expire, in seconds; 0: unknown. */
	long long (*login_ends)(const char *text);
	/* The part of the credentials file that goes into the box; NULL: it cannot be used. */
	const char *(*stage_login)(const char *text);
	/* Program and arguments; files, variables and mounts for this client. */
	void (*assemble)(const struct job *job, name_vec *argv, struct request *r);
	/* The same with the user's own configuration in the home; NULL: not supported. */
	void (*assemble_mine)(const struct job *job, name_vec *argv, struct request *r);
	/* Read one line of its event stream, parsed. */
	void (*event)(const struct json_value *line, struct harness_event *ret);
};

extern const struct harness harness_claude, harness_codex, harness_gemini, harness_opencode,
	harness_command;

extern const struct harness *const harness_all[]; /* ends with NULL */

/* NULL: there is none of that name. */
const struct harness *harness_find(const char *name);

/* Can the client do everything that the agent declares? */
void harness_check(const struct harness *h, const struct agent *a, enum job_home home,
	problems *bad);

/*
 * Errors that do not depend on the client or on other files. Also used for a part of an agent,
 * before it is saved.
 */
void harness_check_alone(const struct agent *a, problems *bad);

/* Did the user type the client's own word for a run without a conversation? */
bool harness_says_run(const struct harness *h, const struct job *job);

/* The agent's home; mine: the agent that `carrel` alone starts. */
enum job_home harness_home(const struct agent *a, bool mine);

/* Turn the job into the request, which may hold values from the command line. */
void harness_assemble(const struct harness *h, const struct job *job, struct request *r);

/* ---- network.c ---- */

/* The mode that an agent declares, or its default. */
enum network harness_mode(const struct agent *a);

/*
 * Does the agent itself say which hosts it may reach? Else: its client's hosts, in mode allow.
 */
bool harness_says_hosts(const struct agent *a);

/* The client's hosts, which depend on the job, the agent and its login. */
void harness_hosts(const struct harness *h, const struct job *job, name_vec *ret);

void harness_check_network(const struct agent *a, problems *bad);

/* Set mode, hosts and ports; values from the command line win. */
void harness_network(const struct harness *h, const struct job *job, struct request *r);

/* ---- for the clients' files ---- */

void harness_option(name_vec *argv, const char *name, const char *value);

/* Add a file that the box can read but not write; returns its path. */
const char *harness_file(struct request *r, const char *name, const char *text,
	const char *why);
/* The same below its home. */
void harness_home_file(struct request *r, const char *name, const char *text, const char *why);

void harness_set(struct request *r, const char *name, const char *value);

/*
 * A text of a manifest for a client's configuration. A text whose value comes from elsewhere,
 * or that the client would expand, becomes a variable of the box; `form` (with a %s for the
 * variable's name) says how the client refers to it.
 */
const char *harness_text(struct request *r, const struct said *text, const char *form,
	const char *field);
const char *harness_value(struct request *r, const struct named *env, const char *form,
	const char *field);

/*
 * For clients that pass their own variables on to MCP servers: the value of a server's variable
 * if the manifest has it, else NULL. Those others become variables of the box.
 */
const char *harness_literal(const struct named *env);
void harness_share(const struct agent *a, struct request *r);
void harness_check_shared(const struct harness *h, const struct agent *a, problems *bad);

/* The program of a server or hook: its path if the manifest gives one. */
const char *harness_program(const struct said *command, const char *path);

#endif
