/*
 * cli/cmd-diff.c - carrel diff
 *
 * A box wrote the names and contents, so both are made visible before they are shown. Only
 * --format patch shows raw bytes; it is for programs and refuses a terminal.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "cli/pager.h"
#include "overlay/changeset.h"
#include "overlay/export.h"
#include "overlay/patch.h"
#include "state/registry.h"
#include "state/workspace.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMAT_UNIFIED, FORMAT_PATCH };
enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };
enum { BAR = 40, WIDEST_NAME = 60 };

struct diff_args {
	bool stat, names, json, now, git, no_pager;
	unsigned int format, colour;
	const char *export;
};

/* A change that is shown, and its set. */
struct shown {
	const struct changeset *set;
	const struct changed *c;
	bool counted, protected;
	size_t added, removed; /* lines, if counted */
};
typedef VEC(struct shown) shown_vec;

struct view {
	const struct diff_args *args;
	const struct workspace *w;
	bool colour;
	shown_vec all;
};

/* ---- which changes ---- */

static bool is_named(const char *path, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		const char *name = path_clean(argv[i]);

		if (!strcmp(name, ".") || !strcmp(path, name) ||
			(!strncmp(path, name, strlen(name)) && path[strlen(name)] == '/'))
			return true;
	}
	return !argc;
}

/* A directory that only holds changes is not one itself, for a person. */
static bool is_shown(const struct view *v, const struct changed *c, const struct changed *next)
{
	if (c->gone || (c->git && !v->args->git))
		return false;
	if (v->args->json || v->args->export || c->unlisted || c->what)
		return true;
	if ((c->kind == CHANGED_DELETED ? c->base : c->box).type != TYPE_DIR)
		return true;
	return !(next && path_within(next->path, c->path));
}

static bool is_dir(const struct changed *c)
{
	return (c->kind == CHANGED_DELETED ? c->base : c->box).type == TYPE_DIR;
}

static void choose(struct view *v, const struct changeset *set, int argc, char **argv)
{
	const struct changed *end = set->all.v + set->all.n;

	vec_each(c, &set->all)
		if (is_shown(v, c, c + 1 < end ? c + 1 : NULL) && is_named(c->path, argc, argv))
			vec_push(&v->all,
				((struct shown){ .set = set,
					.c = c,
					.protected = workspace_protects(v->w, c->path,
						is_dir(c)) }));
}

static void count_lines(struct view *v)
{
	vec_each(s, &v->all)
		s->counted = patch_count(s->set, s->c, &s->added, &s->removed);
}

/* ---- forms ---- */

static char letter_of(const struct changed *c)
{
	return c->kind == CHANGED_ADDED      ? 'A'
		: c->kind == CHANGED_DELETED ? 'D'
		: c->what & WHAT_TYPE        ? 'T'
					     : 'M';
}

static const char *name_of(const struct changed *c)
{
	struct str name = { 0 };

	patch_add_name(&name, "", c->path);
	if (is_dir(c))
		str_addc(&name, '/');
	return name.p;
}

static void add_bar(struct str *out, const struct view *v, const struct shown *s, size_t most)
{
	size_t all = s->added + s->removed, wide = most > BAR ? all * BAR / most : all;
	size_t plus = all ? wide * s->added / all : 0, minus;

	plus += s->added && !plus;
	minus = wide > plus ? wide - plus : 0;
	minus += s->removed && !minus;
	str_addf(out, "%5zu %s", all, v->colour ? "\033[32m" : "");
	for (size_t i = 0; i < plus; i++)
		str_addc(out, '+');
	str_add(out, v->colour ? "\033[31m" : "");
	for (size_t i = 0; i < minus; i++)
		str_addc(out, '-');
	str_add(out, v->colour ? "\033[m" : "");
}

static void add_remarks(struct str *out, const struct shown *s)
{
	const struct changed *c = s->c;

	if (!s->counted && !is_dir(c) && c->kind != CHANGED_DELETED)
		str_addf(out, "  %llu bytes%s", c->box.size,
			c->box.type == TYPE_OTHER ? ", a special file" : ", binary or large");
	if (c->what & WHAT_MODE)
		str_addf(out, "  mode %04o → %04o", c->base.mode, c->box.mode);
	if (c->what & WHAT_TYPE || c->box.type == TYPE_LINK)
		str_addf(out, "  now %s",
			c->box.type == TYPE_LINK          ? "a link"
				: c->box.type == TYPE_DIR ? "a directory"
							  : "a file");
	if (c->what & WHAT_XATTRS)
		str_add(out, "  attributes");
	if (s->protected)
		str_add(out, "  protected");
	if (c->base_is == BASE_UNSURE)
		str_add(out, "  changed on the host since");
	if (c->unlisted)
		str_add(out, "  cannot be listed");
	if (c->unreadable)
		str_add(out, "  cannot be read");
}

/* Changed files first, then new, then deleted ones; in each group the most lines first. */
static int by_weight(const void *a, const void *b)
{
	static const int ranks[] = {
		[CHANGED_CHANGED] = 0, [CHANGED_ADDED] = 1, [CHANGED_DELETED] = 2
	};
	const struct shown *x = a, *y = b;
	size_t left = x->added + x->removed, right = y->added + y->removed;

	if (x->c->kind != y->c->kind)
		return ranks[x->c->kind] - ranks[y->c->kind];
	if (x->c->kind != CHANGED_DELETED && left != right)
		return left > right ? -1 : 1;
	return path_compare(x->c->path, y->c->path);
}

static void add_stat(struct view *v, struct str *out)
{
	size_t widest = 0, most = 0;

	count_lines(v);
	if (v->all.n)
		qsort(v->all.v, v->all.n, sizeof(*v->all.v), by_weight);
	vec_each(s, &v->all) {
		size_t n = strlen(name_of(s->c));

		widest = n > widest && n <= WIDEST_NAME ? n : widest;
		most = s->added + s->removed > most ? s->added + s->removed : most;
	}
	vec_each(s, &v->all) {
		str_addf(out, " %c %-*s", letter_of(s->c), (int)widest, name_of(s->c));
		if (s->counted && s->c->kind != CHANGED_DELETED)
			add_bar(out, v, s, most);
		add_remarks(out, s);
		while (out->len && out->p[out->len - 1] == ' ')
			out->p[--out->len] = '\0';
		str_addc(out, '\n');
	}
}

static void add_names(const struct view *v, struct str *out)
{
	vec_each(s, &v->all)
		str_addf(out, "%s\n", name_of(s->c));
}

static int add_patch(const struct view *v, struct str *out, struct fault *f)
{
	const struct patch_style style = { .exact = v->args->format == FORMAT_PATCH,
		.colour = v->colour };
	int rc = 0;

	vec_each(s, &v->all) {
		if (rc == 0)
			rc = patch_add(out, s->set, s->c, &style, f);
		if (rc == 0 && !style.exact && s->c->base_is == BASE_UNSURE)
			str_addf(out,
				"(%s changed on the host since the box started: compared with "
				"what is there now)\n",
				name_of(s->c));
	}
	return rc;
}

/* ---- JSON ---- */

static void json_side(struct json *j, const char *key, const struct changed_side *s)
{
	static const char *const types[] = {
		[TYPE_FILE] = "file",
		[TYPE_DIR] = "directory",
		[TYPE_LINK] = "link",
		[TYPE_OTHER] = "special",
	};

	if (s->type == TYPE_NONE) {
		json_raw(j, key, "null");
		return;
	}
	json_open(j, key, '{');
	json_string(j, "type", types[s->type]);
	json_string(j, "mode", mem_printf("%04o", s->mode));
	if (s->type == TYPE_FILE) {
		json_count(j, "size", s->size);
		json_count(j, "links", s->links);
		json_count(j, "inode", s->ino);
	}
	if (s->type == TYPE_LINK)
		json_string(j, "target", s->link);
	json_close(j, '}');
}

static void json_change(struct json *j, const struct shown *s)
{
	static const char *const kinds[] = { "added", "changed", "deleted" };
	static const char *const bases[] = { "same", "kept", "unsure" };
	static const char *const whats[] = { "content", "mode", "type", "attributes" };
	const struct changed *c = s->c;

	json_open(j, NULL, '{');
	json_string(j, "path", c->path);
	json_string(j, "change", kinds[c->kind]);
	json_open(j, "what", '[');
	for (size_t i = 0; i < ARRAY_SIZE(whats); i++)
		if (c->what & 1U << i)
			json_string(j, NULL, whats[i]);
	json_close(j, ']');
	json_side(j, "before", &c->base);
	json_side(j, "after", &c->box);
	json_string(j, "base", bases[c->base_is]);
	if (s->counted) {
		json_count(j, "linesAdded", s->added);
		json_count(j, "linesRemoved", s->removed);
	}
	json_bool(j, "git", c->git);
	json_bool(j, "protected", s->protected);
	json_bool(j, "unreadable", c->unreadable);
	json_bool(j, "unlisted", c->unlisted);
	json_close(j, '}');
}

static void add_json(struct view *v, struct str *out)
{
	struct json j = { .out = out, .indent = true };
	const struct changeset *s = &v->w->changes;

	count_lines(v);
	json_open(&j, NULL, '{');
	json_string(&j, "box", v->w->box);
	json_string(&j, "workspace", v->w->root);
	json_string(&j, "against", v->args->now ? "now" : "start");
	json_bool(&j, "running", registry_is_held(v->w->box));
	json_count(&j, "added", s->added);
	json_count(&j, "changed", s->changed);
	json_count(&j, "deleted", s->deleted);
	json_count(&j, "git", s->git + v->w->repository.all.n);
	json_bool(&j, "partial", s->partial || v->w->repository.partial);
	json_open(&j, "changes", '[');
	vec_each(one, &v->all)
		json_change(&j, one);
	json_close(&j, ']');
	json_close(&j, '}');
	str_addc(out, '\n');
}

/* ---- export ---- */

static int make_export(const char *path, int *ret_files, struct fault *f)
{
	auto_close int dir = -1;

	if (mkdir(path, 0755) < 0) {
		fault_set(f, errno, "make the directory '%s'", str_visible(path));
		return f->err == EEXIST ? fault_fix(f, "Name one that is not there yet.")
					: -f->err;
	}
	dir = openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0 && mkdirat(dir, "files", 0755) == 0)
		*ret_files =
			openat(dir, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_files < 0 ? fault_set(f, errno, "open '%s'", str_visible(path)) : 0;
}

static int write_changes(const char *path, const struct str *json, struct fault *f)
{
	const char *name = path_join(path, "changes.json");
	auto_close int fd = openat(AT_FDCWD, name,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int rc = fd < 0 ? -errno : fd_write_all(fd, json->p, json->len);

	return rc < 0 ? fault_set(f, -rc, "write '%s'", str_visible(name)) : 0;
}

static int export_all(struct view *v, struct fault *f)
{
	const char *path = v->args->export;
	auto_close int files = -1;
	struct str json = { 0 };
	size_t n = 0, special = 0;
	int rc = make_export(path, &files, f);

	vec_each(s, &v->all) {
		int one = rc < 0 ? rc : export_one(s->set, s->c, files, f);

		rc = one < 0 ? one : 0;
		n += one > 0;
		special += s->c->box.type == TYPE_OTHER;
	}
	add_json(v, &json);
	if (rc == 0)
		rc = write_changes(path, &json, f);
	if (rc == 0)
		cmd_note(mem_printf("%zu copied to %s/files; %s/changes.json lists all changes",
			n, str_visible(path), str_visible(path)));
	if (rc == 0 && special)
		cmd_note(mem_printf("%zu left out: neither files, links nor directories",
			special));
	return rc;
}

/* ---- all of it ---- */

static int find_changes(struct workspace *w, const struct diff_args *a, struct fault *f)
{
	int rc;

	w->changes.now = w->repository.now = a->now;
	rc = changeset_find(&w->changes, f);
	if (rc == 0 && w->git)
		rc = changeset_find(&w->repository, f);
	vec_each(c, &w->repository.all) {
		c->path = !strcmp(c->path, ".") ? w->git : path_join(w->git, c->path);
		c->git = true;
	}
	return rc;
}

static bool may_colour(const struct diff_args *a)
{
	return a->colour == COLOUR_ALWAYS ||
		(a->colour == COLOUR_AUTO && cmd_colour(STDOUT_FILENO));
}

static int check_args(const struct diff_args *a, struct fault *f)
{
	if (a->stat + a->names + a->json + (a->export != NULL) + (a->format == FORMAT_PATCH) >
		1)
		return fault_set(f, 0,
			"--stat, --name-only, --json, --format patch and --export exclude each "
			"other");
	if (a->format == FORMAT_PATCH && isatty(STDOUT_FILENO)) {
		fault_set(f, 0,
			"a patch has every byte that the box wrote, and this is a terminal");
		return fault_fix(f, "Send it to a file or a program, or leave --format away.");
	}
	return 0;
}

static void note_rest(const struct view *v)
{
	const struct workspace *w = v->w;
	size_t git = w->changes.git + w->repository.all.n;

	if (w->changes.partial)
		cmd_note("some of it cannot be read or named; --stat says what");
	if (git && !v->args->git && !v->args->json)
		cmd_note(mem_printf("%zu of git's own files changed, too: --git shows them",
			git));
}

static int show_diff(struct view *v, struct fault *f)
{
	const struct diff_args *a = v->args;
	struct str out = { 0 };
	int rc = 0, code;

	if (a->export)
		return export_all(v, f);
	if (a->json)
		add_json(v, &out);
	else if (a->stat)
		add_stat(v, &out);
	else if (a->names)
		add_names(v, &out);
	else
		rc = add_patch(v, &out, f);
	if (rc < 0)
		return rc;
	code = pager_print(&out, !a->no_pager && !a->json && a->format != FORMAT_PATCH);
	return code ? fault_set(f, 0, "standard output") : 0;
}

static int cmd_diff(void *args, int argc, char **argv)
{
	const struct diff_args *a = args;
	struct fault f = { 0 };
	struct workspace w;
	struct view v = { .args = a, .w = &w };
	int rc = check_args(a, &f);

	if (rc == 0)
		rc = workspace_open(argv[0], &w, &f);
	if (rc == 0)
		rc = find_changes(&w, a, &f);
	if (rc < 0)
		return cmd_fail(&f);
	v.colour = may_colour(a) && a->format != FORMAT_PATCH && !a->json;
	choose(&v, &w.changes, argc - 1, argv + 1);
	if (a->git)
		choose(&v, &w.repository, argc - 1, argv + 1);
	rc = show_diff(&v, &f);
	if (rc < 0)
		return cmd_fail(&f);
	note_rest(&v);
	return 0;
}

static const struct opt diff_opts[] = {
	OPT_FLAG(0, "stat", struct diff_args, stat, "a line for each file"),
	OPT_FLAG(0, "name-only", struct diff_args, names, "only the names"),
	OPT_FLAG(0, "json", struct diff_args, json, "all that is known of each, as JSON"),
	OPT_CHOICE(0, "format", struct diff_args, format, "unified|patch",
		"for a person, or exact: for `git apply`"),
	OPT_STR(0, "export", struct diff_args, export, "DIR",
		"copy added and changed files to DIR/files, and write DIR/changes.json",
		.hint = OPT_HINT_DIR),
	OPT_FLAG(0, "now", struct diff_args, now,
		"against the files of the host as they are now, not as at the start"),
	OPT_FLAG(0, "git", struct diff_args, git, "with git's own files, in .git"),
	OPT_CHOICE(0, "color", struct diff_args, colour, "auto|always|never",
		"whether to colour it"),
	OPT_FLAG(0, "no-pager", struct diff_args, no_pager, "do not start a pager"),
	OPT_END,
};

const struct cmd cmd_diff_entry = {
	.name = "diff",
	.args = "BOX [PATH...]",
	.about = "show what a box changed in its copy of the workspace",
	.detail =
		"For a box that was started with `--overlay`, while it runs or after it has "
		"ended. Files are compared by content, mode, type and extended attributes; a "
		"file that was only touched has not changed. Of deletions and changes of mode "
		"nothing is left out. What is in `.git` is counted, and shown with `--git`. "
		"PATH "
		"is relative to the workspace.\n"
		"\n"
		"The other side is the workspace when the box started. Where a file of the "
		"host has changed since, a copy of it that was kept when the box ended is "
		"used; without one it is compared with what is there now, and said so.\n"
		"\n"
		"`--format patch` has every byte, binary files too, and can be applied with "
		"`git apply`. A patch has no form for directories, special files and modes "
		"other than execution: `--json` has them all.\n"
		"\n"
		"On a terminal the output goes through `CARREL_PAGER`, `GIT_PAGER`, `PAGER` or "
		"less.",
	.opts = diff_opts,
	.size = sizeof(struct diff_args),
	.takes = TAKES_BOX,
	.ended = true,
	.many = true,
	.hint = OPT_HINT_FILE,
	.run = cmd_diff,
};
