#include "run/leads.h"
#include "run/survey.h"
#include "plan/layout.h"
#include "plan/request.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LEADS = 64, MOST_FILE = 1 << 20 };

/* Show what stands at path, unless the box has it anyway. */
static void show(const char *path, const char *top, struct request *r)
{
	const char *real = survey_real(path);

	if (!real || path_within(real, top) || layout_in_system(real) ||
		path_within(real, r->workspace) || path_within(r->workspace, real) ||
		path_within(survey_home(), real))
		return;
	vec_each(m, &r->mounts)
		if (path_within(path, m->target ? m->target : m->source))
			return;
	vec_push(&r->mounts,
		((struct request_mount){ .source = real,
			.target = path,
			.why = "your configuration leads there",
			.declared = true }));
}

static void follow(const char *dir, const char *name, const char *top, struct request *r,
	size_t *count)
{
	const char *path = path_join(dir, name), *to;
	char text[PATH_MAX];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	if (n <= 0 || ++*count > MOST_LEADS)
		return;
	text[n] = '\0';
	to = path_clean(path_join(dir, text));
	if (!path_within(to, top))
		show(to, top, r);
}

/* Where people put links: what is looked through at every start must be small. */
static bool is_kept(const char *name)
{
	static const char *const kept[] = { "agents", "commands", "hooks", "output-styles",
		"prompts", "rules", "skills" };

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (!strcmp(name, kept[i]))
			return true;
	return false;
}

static void search(const char *dir, const char *top, bool deeper, struct request *r,
	size_t *count)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_type == DT_LNK)
			follow(dir, e->d_name, top, r, count);
		else if (e->d_type == DT_DIR && deeper && is_kept(e->d_name))
			search(path_join(dir, mem_strdup(e->d_name)), top, false, r, count);
	}
	if (d)
		closedir(d);
}

void leads_of_dir(const char *dir, struct request *r)
{
	size_t count = 0;

	search(dir, dir, true, r, &count);
}

static void visit(const struct json_value *v, const char *top, struct request *r)
{
	if (v->type == JSON_STRING && v->key && !strcmp(v->key, "path") && v->text[0] == '/')
		show(path_clean(v->text), top, r);
	json_each(item, v)
		visit(item, top, r);
}

void leads_of_file(const char *dir, const char *name, struct request *r)
{
	const char *text = fd_read_file(AT_FDCWD, path_join(dir, name), MOST_FILE);
	const struct json_value *tree;
	json_errors errors = { 0 };

	if (text && json_read(text, strlen(text), NULL, &tree, &errors) == 0)
		visit(tree, dir, r);
}
