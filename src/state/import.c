#include "state/import.h"
#include "state/instance.h"
#include "overlay/layers.h"
#include "state/root.h"
#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"
#include "base/xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	MOST_ROOT = 1 << 16,
	MOST_HISTORY = 256 << 20,
};

static const char part[] = "claude/claude";
static const char copying[] = "import";

struct import {
	const char *history; /* the whole file, or NULL */
	bool only_look;
};

/* ---- prompts ---- */

static const char *project_of(const char *line, size_t n)
{
	const struct json_value *tree, *project;
	json_errors errors = { 0 };

	if (json_read(line, n, NULL, &tree, &errors) < 0)
		return NULL;
	project = json_member(tree, "project");
	return project && project->type == JSON_STRING ? project->text : NULL;
}

/* The lines of this root, or of a directory in it. */
static unsigned int prompts_of(const char *history, const char *root, struct str *ret)
{
	unsigned int found = 0;

	for (const char *line = history, *end; line && *line; line = end) {
		size_t n = strcspn(line, "\n");
		const char *project = project_of(line, n);

		end = line + n + (line[n] == '\n');
		if (!project || project[0] != '/' || !path_within(path_clean(project), root))
			continue;
		str_addn(ret, line, n);
		str_addc(ret, '\n');
		found++;
	}
	return found;
}

/*
 * Written in place, because running boxes have this very file mounted; and only into an empty
 * one, because the lines are ordered by age.
 */
static int add_prompts(const char *own, const struct str *lines, struct fault *f)
{
	const char *path = path_join(own, "history.jsonl");
	auto_close int fd = open(path,
		O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : fd_write_all(fd, lines->p, lines->len);

	if (rc < 0 && fd >= 0)
		(void)!ftruncate(fd, 0);
	return rc < 0 ? fault_set(f, -rc, "write %s", str_visible(path)) : 0;
}

static bool has_prompts(const char *own)
{
	struct stat st;

	return lstat(path_join(own, "history.jsonl"), &st) == 0 && st.st_size > 0;
}

/* ---- directories ---- */

/* Copy under a temporary name first: the directory appears complete or not at all. */
static int copy_in(int from, const char *name, const char *dir, struct imported *i,
	struct fault *f)
{
	auto_close int to = open(dir, DIR_FLAGS);
	int rc = to < 0 ? fault_set(f, errno, "open %s", str_visible(dir))
			: tree_remove(to, copying, f);

	if (rc == 0)
		rc = tree_copy(from, name, to, copying, &i->left_out, f);
	if (rc == 0 && renameat(to, copying, to, mem_printf("own/projects/%s", name)) < 0)
		rc = fault_set(f, errno, "copy %s", str_visible(name));
	if (rc < 0 && to >= 0)
		(void)tree_remove(to, copying, &(struct fault){ 0 });
	return rc;
}

static bool is_dir(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int copy_dirs(int from, const char *dir, bool only_look, struct imported *i,
	struct fault *f)
{
	const char *projects = path_join(dir, "own/projects");
	tree_names names = { 0 };
	struct stat st;
	int rc = tree_list(from, &names);

	if (rc < 0)
		return fault_set(f, -rc, "read %s", str_visible(i->from));
	for (size_t n = 0; rc == 0 && n < names.n; n++) {
		const char *name = names.v[n];

		if (!is_dir(from, name)) {
			i->left_out += strcmp(name, "project-root") != 0;
		} else if (lstat(path_join(projects, name), &st) == 0) {
			vec_push(&i->skipped, name);
		} else {
			rc = only_look ? 0 : copy_in(from, name, dir, i, f);
			if (rc == 0)
				vec_push(&i->copied, name);
		}
	}
	return rc;
}

/* ---- one project ---- */

static int fill_instance(int from, const char *dir, const struct import *how,
	struct imported *i, struct fault *f)
{
	const char *own = path_join(dir, "own");
	struct str lines = { 0 };
	auto_close int change = -1;
	int rc = how->only_look ? 0 : xdg_make(path_join(own, "projects"), f);

	if (rc == 0 && !how->only_look) {
		change = layers_lock(dir, "change", LOCK_EX, f);
		rc = change < 0 ? change : 0;
	}
	if (rc == 0)
		rc = copy_dirs(from, dir, how->only_look, i, f);
	if (rc < 0)
		return rc;
	i->prompts = prompts_of(how->history, i->root, &lines);
	i->history_skipped = i->prompts && has_prompts(own);
	if (i->history_skipped)
		i->prompts = 0;
	return i->prompts && !how->only_look ? add_prompts(own, &lines, f) : 0;
}

/* The text as written, perhaps with a newline at its end. */
static const char *read_root(int from)
{
	size_t n;
	char *root = tree_read(from, "project-root", MOST_ROOT, &n);

	if (root && n && root[n - 1] == '\n')
		root[--n] = '\0';
	return root && root[0] == '/' && strlen(root) == n ? root : NULL;
}

static int import_one(int from, const struct import *how, struct imported *i, struct fault *f)
{
	struct fault ignored = { 0 };
	const char *dir;
	struct project p;
	struct stat st;
	auto_close int held = -1;
	int rc;

	i->root = read_root(from);
	if (!i->root || stat(i->root, &st) < 0 || !S_ISDIR(st.st_mode) ||
		project_find(i->root, &p, &ignored) < 0) {
		i->why = i->root ? "this project is not there any more"
				 : "it does not say which project it belongs to";
		return 0;
	}
	i->root = p.root;
	if (how->only_look) {
		rc = instance_look(&p, &dir, f);
	} else {
		held = instance_enter(&p, &dir, f);
		rc = held < 0 ? held : 0;
	}
	if (rc < 0)
		return rc;
	i->id = p.id;
	return fill_instance(from, path_join(dir, part), how, i, f);
}

static bool is_hash(const char *name)
{
	return strlen(name) == 16 && strspn(name, "0123456789abcdef") == 16;
}

static int no_projects(const char *dir, int err, struct fault *f)
{
	if (err != ENOENT)
		return fault_set(f, err, "read %s/projects", str_visible(dir));
	fault_set(f, 0, "nothing to import: there is no %s/projects", str_visible(dir));
	return fault_fix(f, "`carrel instances import DIR` looks in another directory.");
}

int import_all(const char *dir, bool only_look, imported_vec *ret, struct fault *f)
{
	/* The user named it, so it may be a link. */
	auto_close int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int projects = top < 0 ? -1 : openat(top, "projects", DIR_FLAGS);
	struct import how = { .only_look = only_look };
	tree_names names = { 0 };
	size_t n;
	int rc = projects < 0 ? -errno : tree_list(projects, &names);

	if (rc < 0)
		return no_projects(dir, -rc, f);
	how.history = tree_read(top, "history.jsonl", MOST_HISTORY, &n);
	if (!how.history && errno != ENOENT)
		return fault_set(f, errno, "read %s/history.jsonl", str_visible(dir));
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		auto_close int from = openat(projects, names.v[i], DIR_FLAGS);
		struct imported one = { .from = names.v[i] };

		if (from < 0 || !is_hash(names.v[i]))
			continue;
		rc = import_one(from, &how, &one, f);
		vec_push(ret, one);
	}
	return rc;
}
