/*
 * host/survey.h - look at the host, once, before planning
 *
 * Everything plan_resolve() wants to know, gathered with plain system calls as the
 * invoking user. Changes nothing.
 */
#ifndef HOST_SURVEY_H
#define HOST_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

struct fault;
struct host;
struct project;
struct frame;
struct request;
struct rule;

int survey_host(const struct request *r, struct host *ret, struct fault *f);

/* Which project a workspace belongs to: looked up once, so it cannot become another. */
int survey_project(const char *workspace, struct project *ret, struct fault *f);

/* Is the workspace apart from what carrel itself goes by? */
int survey_apart(const char *workspace, struct fault *f);

/* The user's home as the box will have it. */
const char *survey_home(void);

/* The frame of a request: the few facts that it takes are read quickly. */
void survey_frame(const struct request *r, struct frame *ret);

/* Why git's own files are protected. */
#define SURVEY_GIT "git runs or obeys it"

/* survey-programs.c: what the links in ~/.local/bin lead to; after the toolchains. */
void survey_programs(struct host *h);

/* survey-secrets.c: rules that hide what is secret inside the toolchains; after these. */
void survey_secrets(struct host *h);

/* survey-git.c: rules for the workspace's repository, and where it is if elsewhere. */
int survey_git(struct host *h, struct fault *f);

/* survey-rules.c */
int survey_rules(const struct request *r, struct host *h, struct fault *f);

/*
 * survey-trail.c: a rule for path, absolute and as it is written, with all its parts looked up.
 * A look that fails is kept in h->failed, which stops the start. The directory that the path
 * leads to, canonical; NULL: it leads to none.
 */
const char *survey_rule(struct host *h, struct rule rule, const char *path);

/*
 * One protect rule for the path rel below root. The same, only kept from being renamed or
 * removed. The same, hidden.
 */
void survey_protect(struct host *h, const char *root, const char *rel, const char *why,
	const char *stub);
void survey_pin(struct host *h, const char *root, const char *rel, const char *why);
void survey_hide(struct host *h, const char *root, const char *rel, const char *why);

/* Protect path wherever it leads, if a box could write it there. As survey_rule(). */
const char *survey_lead(struct host *h, const char *path, const char *why);

/* Refuse a workspace and mounts that a link leads to which a box could have made. */
int survey_leads(const struct request *r, struct host *h, struct fault *f);

/* Could the box write at this canonical path? */
bool survey_reaches(const struct host *h, const char *path);

/*
 * survey-home.c: the entries of a directory, but for itself and its parent. 1; an absent one
 * has none, 0; what fails is kept in h->failed.
 */
struct dirent;
typedef void survey_entry_fn(void *ctx, const char *dir, const struct dirent *e);
int survey_entries(struct host *h, const char *dir, survey_entry_fn *visit, void *ctx);

/*
 * Which names a directory may have, from one listing of it, so that absent ones need not be
 * looked at one by one. A bit for each hash: a name that is there is never missed.
 */
struct survey_names {
	bool any; /* the listing tells nothing: every name may be there */
	uint64_t bits[64];
};

/* Of the directory with this path; visit may be NULL. */
void survey_list(struct host *h, const char *dir, survey_entry_fn *visit, void *ctx,
	struct survey_names *ret);

/* May there be something at the path rel below it? */
bool survey_may_have(const struct survey_names *names, const char *rel);

/* survey_lead() for each link directly in a directory. */
void survey_links(struct host *h, const char *dir, const char *why);

/* Protect what carrel, clients, git and the shell obey of the user's own. */
int survey_own_files(struct host *h, struct fault *f);

/* Keep a look that failed; the first one stops the start. */
void survey_failed(struct host *h, const struct fault *f);

/* ---- survey-mounts.c ---- */

/* A fault if something is mounted below the directory: no overlay can lie on it then. */
int survey_no_mounts(const char *dir, struct fault *f);

#endif
