/*
 * host/survey-secrets.c - what is secret inside the toolchains that a box is shown
 *
 * Most secrets lie beside the programs of a toolchain, so the box does not get the directory
 * that they are in (plan/layout.c). Some lie among the programs. Each of those that is there
 * gets a rule that hides it, wherever the box would see it.
 */
#include "host/survey.h"
#include "plan/host.h"
#include "plan/layout.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct expand {
	struct host *h;
	const char *rest; /* of the path, below what matches the star */
};

static void hide_file(struct host *h, const char *path)
{
	struct fact fact = { 0 };
	struct rule rule = { .kind = RULE_HIDE, .why = "secret of a toolchain" };
	struct fault f = { 0 };
	struct stat st;
	int rc = look_through(AT_FDCWD, path, &st, &f);

	if (rc > 0)
		fact.path = fd_real_path(path);
	/* Where we may not go, the box may not either. */
	if (rc < 0 && rc != -EACCES)
		survey_failed(h, &f);
	if (!fact.path)
		return;
	fact.kind = S_ISDIR(st.st_mode) ? KIND_DIR : KIND_FILE;
	rule.dir = fact.kind == KIND_DIR;
	vec_push(&rule.trail, fact);
	vec_push(&h->rules, rule);
}

static void expand(struct host *h, const char *dir, const char *rest);

static void expand_entry(void *ctx, const char *dir, const struct dirent *e)
{
	const struct expand *x = ctx;

	if (e->d_name[0] != '.' && e->d_type != DT_REG)
		expand(x->h, path_join(dir, mem_strdup(e->d_name)), x->rest);
}

/* A star stands for one part of the path. */
static void expand(struct host *h, const char *dir, const char *rest)
{
	const char *star = strstr(rest, "*/");

	if (star)
		survey_entries(h, path_join(dir, mem_strndup(rest, (size_t)(star - rest))),
			expand_entry, &(struct expand){ h, star + 2 });
	else
		hide_file(h, path_join(dir, rest));
}

static bool is_shown(const struct host *h, const char *path)
{
	for (size_t i = 0; i < layout_toolchains_n; i++)
		if (h->toolchains[i].real_kind == KIND_DIR &&
			path_within(path, layout_toolchains[i].dir))
			return true;
	return false;
}

void survey_secrets(struct host *h)
{
	for (size_t i = 0; i < layout_secrets_n; i++)
		if (is_shown(h, layout_secrets[i]))
			expand(h, h->home, layout_secrets[i]);
}
