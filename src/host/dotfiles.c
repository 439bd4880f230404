#include "host/dotfiles.h"
#include "host/survey.h"
#include "plan/layout.h"
#include "plan/request.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_LEADS = 64, MOST_FILE = 1 << 20, ROOM = 4096 };

/* Show what is at path, unless the box has it anyway. */
static void show_path(const char *path, const char *top, struct request *r)
{
	const char *real = fd_real_path(path);

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

static void follow_entry(const char *dir, const char *name, const char *top, struct request *r,
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
		show_path(to, top, r);
}

/* Directories where people put links. Every start searches them, so they must be small. */
static bool is_kept(const char *name)
{
	static const char *const kept[] = { "agents", "commands", "hooks", "output-styles",
		"prompts", "rules", "skills" };

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (!strcmp(name, kept[i]))
			return true;
	return false;
}

/* Files that other users own: the first one, and how many. */
struct others {
	uid_t uid; /* the user's own */
	gid_t gid;
	const char *first;
	size_t n;
};

/*
 * A box maps one user and one group, and overlayfs copies up no file of another one
 * (EOVERFLOW): the box can replace or remove it, but not write it.
 */
static void look_at_owner(int dir, const char *name, struct others *o)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		(st.st_uid == o->uid && st.st_gid == o->gid))
		return;
	if (!o->n++)
		o->first = mem_strdup(name);
}

static void search(const char *dir, const char *top, struct others *o, struct request *r,
	size_t *count);

static void look_at(int fd, const struct dirent *e, const char *dir, const char *top,
	struct others *o, struct request *r, size_t *count)
{
	bool kept = e->d_type == DT_DIR && o && is_kept(e->d_name);

	if (e->d_type == DT_LNK)
		follow_entry(dir, e->d_name, top, r, count);
	else if (o && (e->d_type == DT_REG || kept || !strcmp(e->d_name, "plugins")))
		look_at_owner(fd, e->d_name, o);
	if (kept)
		search(path_join(dir, mem_strdup(e->d_name)), top, NULL, r, count);
}

/* Not readdir(3), which allocates its buffer with malloc(3): that costs more than the rest. */
static void search(const char *dir, const char *top, struct others *o, struct request *r,
	size_t *count)
{
	char entries[ROOM] __attribute__((aligned(8)));
	auto_close int fd = openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;

	while (fd >= 0 && (n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n;) {
			const struct dirent *e = (const void *)(entries + at);

			look_at(fd, e, dir, top, o, r, count);
			at += e->d_reclen;
		}
}

void leads_of_dir(const char *dir, struct request *r)
{
	struct others o = { .uid = getuid(), .gid = getgid() };
	size_t count = 0;

	search(dir, dir, &o, r, &count);
	if (o.n == 1)
		vec_push(&r->notices,
			mem_printf("%s is another user's or group's: the box can read it, not "
				   "write it, until you chgrp it to your own (%u)",
				str_visible(path_join(dir, o.first)), o.gid));
	else if (o.n)
		vec_push(&r->notices,
			mem_printf("%s and %zu more there are another user's or group's: the "
				   "box can read them, not write them, until you chgrp them to "
				   "your own (%u)",
				str_visible(path_join(dir, o.first)), o.n - 1, o.gid));
}

static void visit_value(const struct json_value *v, const char *top, struct request *r)
{
	if (v->type == JSON_STRING && v->key && !strcmp(v->key, "path") && v->text[0] == '/')
		show_path(path_clean(v->text), top, r);
	json_each(item, v)
		visit_value(item, top, r);
}

void leads_of_file(const char *dir, const char *name, struct request *r)
{
	const char *text = fd_read_file(AT_FDCWD, path_join(dir, name), MOST_FILE);
	const struct json_value *tree;
	json_errors errors = { 0 };

	if (text && json_read(text, strlen(text), NULL, &tree, &errors) == 0)
		visit_value(tree, dir, r);
}
