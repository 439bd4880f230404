/*
 * run/login.c - find the user's login of a client, and when it expires
 */
#include "run/login.h"
#include "harness/env-forms.h"
#include "harness/harness.h"
#include "plan/request.h"
#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_LOGIN = 1 << 20, MOST_CONFIG = 16 << 20 };

static bool wants_variable(const struct harness *h, const struct agent *a, const char *variable)
{
	return !h->wants || h->wants(a, variable);
}

/* The variable with the client's key; NULL: none. */
static const char *key_of(const struct harness *h, const struct agent *a,
	const struct request *r)
{
	for (size_t i = 0; h->keys && h->keys[i]; i++) {
		if (!wants_variable(h, a, h->keys[i]))
			continue;
		if (getenv(h->keys[i]) && *getenv(h->keys[i]))
			return h->keys[i];
		vec_each(e, &a->env)
			if (!strcmp(e->name, h->keys[i]))
				return h->keys[i];
		vec_each(e, &r->env)
			if (!strcmp(e->name, h->keys[i]))
				return h->keys[i];
	}
	return NULL;
}

/*
 * Claude Code asks whether to use a key that it finds, and remembers the answer by the key's
 * last bytes. If the key is still to be fetched, a placeholder stands for these bytes.
 */
static const char *key_tail(const char *key)
{
	enum { TAIL = 20 };
	size_t n = key ? strlen(key) : 0;

	return n > TAIL ? key + n - TAIL : n ? key : NULL;
}

static const char *tail_of(const struct request_env *e)
{
	switch (e->how) {
	case ENV_LITERAL:
		return key_tail(e->value);
	case ENV_COPY:
		return key_tail(getenv(e->value));
	case ENV_PROMPT:
	case ENV_COMMAND:
		return REQUEST_KEY_TAIL;
	}
	return NULL;
}

/* The command line wins over the manifest, and the manifest over the host's own variable. */
static const char *find_tail(const char *name, const struct agent *a, const struct request *r)
{
	const char *tail = key_tail(getenv(name));

	vec_each(e, &a->env) {
		struct request_env entry = env_entry(e->name, &e->value, "env");

		if (!strcmp(e->name, name))
			tail = tail_of(&entry);
	}
	vec_each(e, &r->env)
		if (!strcmp(e->name, name))
			tail = tail_of(e);
	return tail;
}

static const char *time_text(time_t at)
{
	char text[64] = "?";
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
	return mem_strdup(text);
}

/* The box has no refresh token, so it cannot renew an expired login. */
static void note_login(const struct harness *h, const char *text, struct job *job,
	struct request *r)
{
	long long ends = h->login_ends ? h->login_ends(text) : 0;

	job->login_name = mem_printf("yours of %s", h->title);
	if (ends <= 0)
		return;
	job->login_until = mem_printf("%s %s", ends > time(NULL) ? "good until" : "expired",
		time_text((time_t)ends));
	if (ends <= time(NULL))
		vec_push(&r->notices,
			mem_printf("your login of %s has expired, and a box cannot renew it: "
				   "start %s once outside of a box",
				h->title, h->program));
}

void login_find(const struct harness *h, const struct agent *a, struct job *job,
	struct request *r)
{
	const char *path, *text, *key = key_of(h, a, r);

	for (size_t i = 0; h->variables && h->variables[i]; i++)
		if (getenv(h->variables[i]))
			vec_push(&job->variables, h->variables[i]);
	if (!job->headless && h->keys)
		job->key_tail = find_tail(h->keys[0], a, r);
	if (h->config)
		job->config =
			fd_read_file(AT_FDCWD, path_join(job->home, h->config), MOST_CONFIG);
	job->login_name = key ? key : h->login ? "none" : NULL;
	if (!h->login || (job->kind == HOME_DECLARED && key))
		return;
	path = path_join(job->home, h->login);
	errno = 0;
	text = fd_read_file(AT_FDCWD, path, MOST_LOGIN);
	job->login = text && h->stage_login ? h->stage_login(text) : text;
	if (job->login && !key)
		note_login(h, text, job, r);
	/*
	 * Hide the file even if it cannot be read or does not exist yet: it may contain a
	 * refresh token, now or later.
	 */
	if (!job->login && (text || errno != ENOENT || job->kind == HOME_MINE))
		job->login = "{}";
	if (!text && !key)
		vec_push(&r->notices,
			mem_printf("no login for %s: set %s, or log in outside the box once",
				h->title, h->keys[0]));
}
