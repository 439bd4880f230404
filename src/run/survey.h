/*
 * run/survey.h - look at the host, once, before planning
 *
 * Everything plan_resolve() wants to know, gathered with plain system calls as the
 * invoking user. Changes nothing.
 */
#ifndef RUN_SURVEY_H
#define RUN_SURVEY_H

struct fault;
struct host;
struct project;
struct request;
struct rule;

int survey_host(const struct request *r, struct host *ret, struct fault *f);

/* Which project a workspace belongs to: looked up once, so it cannot become another. */
int survey_project(const char *workspace, struct project *ret, struct fault *f);

/* Is the workspace apart from what carrel itself goes by? */
int survey_apart(const char *workspace, struct fault *f);

/* The user's home as the box will have it. */
const char *survey_home(void);

/* Of the machine, in bytes. */
unsigned long long survey_ram(void);

/* survey-git.c: rules for the workspace's repository, and where it is if elsewhere. */
int survey_git(struct host *h, struct fault *f);

/* survey-rules.c */
int survey_rules(const struct request *r, struct host *h, struct fault *f);

/* One protect rule for the path rel below root, with all its parts looked up. */
void survey_protect(struct host *h, const char *root, const char *rel, const char *why,
	const char *stub);

/* The same, hidden. */
void survey_hide(struct host *h, const char *root, const char *rel, const char *why);

#endif
