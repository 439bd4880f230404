/*
 * cli/run-args.h - the options that run, plan and shell share
 *
 * One table for all three, so that what `carrel plan` shows is what `carrel run`
 * with the same words does.
 */
#ifndef CLI_RUN_ARGS_H
#define CLI_RUN_ARGS_H

#include <stdbool.h>

#include "cli/opt.h"
#include "plan/request.h"

struct run_args {
	const char *agent; /* first: the word before "--" */
	struct request request;
	const char *manifest;
	bool headless, events, shell, prompts;
	bool mine;          /* neither an agent nor a command: the user's own client */
	const char *client; /* which client; NULL: the one "mine" names */
	const char *record;
	bool dry, yes, json;
	bool detach, foreground;
	unsigned int restarts; /* after failures, at most */
};

extern const struct opt run_opts[];

/* ---- start.c ---- */

/* Take what is left of the command line: the agent's further arguments, or a command. */
void run_args_line(struct run_args *a, int argc, char **argv);

/* Plan what was asked, and say what is wrong with it; 0 or the exit code. */
struct plan;
int run_args_plan(struct run_args *a, const struct plan **ret);

/* Print the plan of what was asked, as text or JSON; the exit code. */
int run_args_show(struct run_args *a);

/* Plan it, show and ask unless that was agreed to before, run it; the exit code. */
int run_args_start(struct run_args *a);

#endif
