/*
 * state/workspace.c - the overlay of a box's workspace, kept with the record of the box
 *
 * What is in layers/ was written by a box and is only read through overlay/changeset.h and
 * overlay/tree.h; all else in the directory was written by carrel.
 */
#include "state/workspace.h"
#include "state/boxes.h"
#include "overlay/tree.h"
#include "git/git-head.h"
#include "plan/obeyed.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
};

/* ---- making ---- */

/* The box sees the upper directory's own mode and attributes at the top of its copy. */
static int copy_attributes(int from, int to)
{
	char names[4096], value[4096], own[40], theirs[40];
	struct stat st;
	ssize_t n;

	if (fstat(from, &st) < 0 || fchmod(to, st.st_mode & 07777) < 0)
		return -errno;
	snprintf(theirs, sizeof(theirs), "/proc/self/fd/%d", from);
	snprintf(own, sizeof(own), "/proc/self/fd/%d", to);
	n = listxattr(theirs, names, sizeof(names));
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t size = getxattr(theirs, names + at, value, sizeof(value));

		if (size >= 0 && !str_starts(names + at, "user.overlay."))
			(void)setxattr(own, names + at, value, (size_t)size, 0);
	}
	return 0;
}

static int make_layer(int layers, size_t number, const char *dir)
{
	char name[24];
	auto_close int layer = -1, upper = -1, from = -1;

	snprintf(name, sizeof(name), "%zu", number);
	if (mkdirat(layers, name, 0700) < 0)
		return -errno;
	layer = openat(layers, name, DIR_FLAGS);
	if (layer < 0 || mkdirat(layer, "upper", 0700) < 0 || mkdirat(layer, "work", 0700) < 0)
		return -errno;
	upper = openat(layer, "upper", DIR_FLAGS);
	from = openat(AT_FDCWD, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return upper < 0 || from < 0 ? -errno : copy_attributes(from, upper);
}

static int refuse_held(const char *box, struct fault *f)
{
	fault_set(f, 0, "the box '%s' holds changes that are neither applied nor discarded",
		box);
	return fault_fix(f,
		"See them with `carrel diff %s`; `carrel discard %s` drops them. Or choose "
		"another --name.",
		box, box);
}

int workspace_make(const char *box, const char *const *dirs, size_t n, const char **ret_layers,
	struct fault *f)
{
	static const char *const old[] = { "box.json", "plan.json", "result.json",
		"applied.json" };
	auto_close int dir = boxes_directory(box, true, f), layers = -1;
	int rc = 0;

	if (dir < 0)
		return dir;
	if (workspace_holds(box))
		return refuse_held(box, f);
	for (size_t i = 0; i < ARRAY_SIZE(old); i++)
		(void)unlinkat(dir, old[i], 0);
	rc = tree_remove(dir, "layers", f);
	if (rc < 0)
		return rc;
	if (mkdirat(dir, "layers", 0700) == 0)
		layers = openat(dir, "layers", DIR_FLAGS);
	if (layers < 0)
		return fault_set(f, errno, "make %s/layers", boxes_shown(box));
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = make_layer(layers, i, dirs[i]);
	if (rc < 0)
		return fault_set(f, -rc, "make a layer in %s/layers", boxes_shown(box));
	*ret_layers = path_join(boxes_path(box), "layers");
	return 0;
}

/* ---- the record ---- */

static const char *repository_of(const struct plan *p)
{
	vec_each(place, &p->places)
		if (place->layer && strcmp(place->target, p->workspace) != 0)
			return place->target;
	return NULL;
}

static int put_json(const char *box, const char *file, struct str *text, struct fault *f)
{
	str_addc(text, '\n');
	return boxes_put(box, file, text->p, text->len, f);
}

int workspace_begin(const struct plan *p, const struct request *r, const struct timespec *since,
	struct fault *f)
{
	struct str text = { 0 }, plan = { 0 };
	struct json j = { .out = &text };
	int rc;

	json_open(&j, NULL, '{');
	json_string(&j, "box", p->name);
	json_string(&j, "workspace", p->workspace);
	json_string(&j, "agent", p->agent ? p->agent->name : NULL);
	json_string(&j, "repository", repository_of(p));
	json_string(&j, "commit", git_head_of(p->workspace));
	json_number(&j, "started", since->tv_sec);
	json_number(&j, "nanoseconds", since->tv_nsec);
	json_open(&j, "protect", '[');
	vec_each(pattern, &r->protect)
		json_string(&j, NULL, *pattern);
	json_close(&j, ']');
	json_close(&j, '}');
	rc = put_json(p->name, "box.json", &text, f);
	if (rc < 0)
		return rc;
	plan_json(p, &plan);
	return boxes_put(p->name, "plan.json", plan.p, plan.len, f);
}

static const char *text_in(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_STRING ? m->text : NULL;
}

static long long number_in(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_NUMBER ? strtoll(m->text, NULL, 10) : 0;
}

static int read_record(const char *box, struct workspace *w, struct fault *f)
{
	const struct json_value *begun = boxes_json(box, "box.json", f), *protect, *result;
	struct fault ignored = { 0 };

	if (!begun)
		return f->err ? -f->err : -EINVAL;
	w->box = mem_strdup(box);
	w->root = text_in(begun, "workspace");
	w->agent = text_in(begun, "agent");
	w->git = text_in(begun, "repository");
	w->commit = text_in(begun, "commit");
	w->since = (struct timespec){ (time_t)number_in(begun, "started"),
		(long)number_in(begun, "nanoseconds") };
	if (!w->root || w->root[0] != '/')
		return fault_set(f, EINVAL, "read %s/box.json", boxes_shown(box));
	protect = json_member(begun, "protect");
	if (protect && protect->type == JSON_LIST)
		json_each(one, protect)
			if (one->type == JSON_STRING)
				vec_push(&w->protect, one->text);
	result = boxes_json(box, "result.json", &ignored);
	w->ended = number_in(result, "ended");
	w->code = (int)number_in(result, "code");
	return 0;
}

/* ---- opening ---- */

static int open_layer(int dir, const char *number, const char *lower, struct workspace *w,
	struct changeset *ret, struct fault *f)
{
	const char *layer = mem_printf("layers/%s", number);

	ret->since = w->since;
	ret->upper = openat(dir, path_join(layer, "upper"), DIR_FLAGS);
	ret->kept = openat(dir, path_join(layer, "kept"), DIR_FLAGS);
	if (ret->upper < 0) {
		fault_set(f, errno, "open %s/%s/upper", boxes_shown(w->box), layer);
		return -f->err;
	}
	ret->lower = openat(AT_FDCWD, lower, DIR_FLAGS);
	return ret->lower < 0 ? fault_set(f, errno, "open '%s'", str_visible(lower)) : 0;
}

static int no_overlay(const char *box, struct fault *f)
{
	fault_set(f, 0, "the box '%s' has no copy of a workspace", str_visible(box));
	fault_fix(f,
		"It was started without --overlay, or its changes were discarded; `carrel ps "
		"-a` lists those that have one.");
	return -ENOENT;
}

int workspace_open(const char *box, struct workspace *ret, struct fault *f)
{
	struct workspace w = { 0 };
	auto_close int dir = boxes_directory(box, false, f);
	int rc;

	w.changes.upper = w.changes.lower = w.changes.kept = -1;
	w.repository = w.changes;
	if (dir < 0 && f->err == ENOENT) {
		fault_set(f, 0, "there is no box named '%s', and no record of one",
			str_visible(box));
		fault_fix(f, "`carrel ps -a` lists those that there are.");
		return -ENOENT;
	}
	if (dir < 0)
		return dir;
	rc = faccessat(dir, "layers/0/upper", F_OK, 0) < 0 ? no_overlay(box, f)
							   : read_record(box, &w, f);
	if (rc == 0)
		rc = open_layer(dir, "0", w.root, &w, &w.changes, f);
	if (rc == 0 && w.git)
		rc = open_layer(dir, "1", w.git, &w, &w.repository, f);
	w.applied = faccessat(dir, "applied.json", F_OK, 0) == 0;
	if (rc < 0)
		workspace_close(&w);
	else
		*ret = w;
	return rc;
}

void workspace_close(struct workspace *w)
{
	int *const all[] = { &w->changes.upper, &w->changes.lower, &w->changes.kept,
		&w->repository.upper, &w->repository.lower, &w->repository.kept };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		fd_close(all[i]);
}

/* ---- the end ---- */

static int keep_base(const char *box, const struct changeset *s, struct fault *f)
{
	auto_close int dir = boxes_directory(box, false, f), kept = -1;

	if (dir < 0)
		return dir;
	if (mkdirat(dir, "layers/0/kept", 0700) < 0 && errno != EEXIST)
		return fault_set(f, errno, "make %s/layers/0/kept", boxes_shown(box));
	kept = openat(dir, "layers/0/kept", DIR_FLAGS);
	if (kept < 0)
		return fault_set(f, errno, "open %s/layers/0/kept", boxes_shown(box));
	return changeset_keep(s, kept, f);
}

static bool flag_in(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);

	return m && m->type == JSON_BOOL && m->boolean;
}

/* What the supervisor of a detached box has written of its end stays. */
static void copy_end(struct json *j, const struct json_value *end)
{
	const struct json_value *limits = json_member(end, "limits");

	json_bool(j, "stopped", flag_in(end, "stopped"));
	json_bool(j, "time_is_up", flag_in(end, "time_is_up"));
	json_open(j, "limits", '[');
	if (limits && limits->type == JSON_LIST)
		json_each(one, limits)
			json_string(j, NULL, one->text);
	json_close(j, ']');
}

static int put_result(const struct workspace *w, struct fault *f)
{
	struct fault ignored = { 0 };
	const struct json_value *end = boxes_json(w->box, "result.json", &ignored);
	struct str text = { 0 };
	struct json j = { .out = &text };

	json_open(&j, NULL, '{');
	json_string(&j, "box", w->box);
	json_number(&j, "ended", w->ended);
	json_number(&j, "code", w->code);
	json_count(&j, "added", w->changes.added);
	json_count(&j, "changed", w->changes.changed);
	json_count(&j, "deleted", w->changes.deleted);
	json_count(&j, "git", w->changes.git + w->repository.all.n);
	json_bool(&j, "partial", w->changes.partial);
	if (end)
		copy_end(&j, end);
	json_close(&j, '}');
	return put_json(w->box, "result.json", &text, f);
}

int workspace_end(const char *box, int code, struct workspace *ret, struct fault *f)
{
	int rc = workspace_open(box, ret, f);

	if (rc < 0)
		return rc;
	ret->code = code;
	ret->ended = (long long)time(NULL);
	rc = changeset_find(&ret->changes, f);
	if (rc == 0 && ret->git)
		rc = changeset_find(&ret->repository, f);
	if (rc == 0)
		rc = put_result(ret, f);
	if (rc == 0 && !ret->changes.all.n && !ret->repository.all.n)
		return workspace_drop(box, f);
	return rc < 0 ? rc : keep_base(box, &ret->changes, f);
}

/* ---- what is protected ---- */

/* The last pattern that matches decides; -1: none is about it. */
static int asked_for(const struct workspace *w, const char *path)
{
	int verdict = -1;

	vec_each(pattern, &w->protect) {
		const char *body = *pattern + (**pattern == '!');

		if (path_match(body, path) || !strcmp(path_clean(body), path))
			verdict = **pattern != '!';
	}
	return verdict;
}

/* The last parts of a path: no obeyed name has more, and a hostile path has thousands. */
static const char *tail_of(const char *path)
{
	enum { MOST_PARTS = 6 };
	const char *at = path + strlen(path);

	for (int slashes = 0; at > path; at--)
		if (at[-1] == '/' && ++slashes == MOST_PARTS)
			break;
	return at;
}

static bool protects_one(const struct workspace *w, const char *path, bool dir)
{
	const struct obeyed *o = obeyed_find(tail_of(path), dir);
	int asked = w->protect.n ? asked_for(w, path) : -1;

	return asked >= 0 ? asked : o && o->how <= OBEYED_GATED;
}

bool workspace_protects(const struct workspace *w, const char *path, bool dir)
{
	bool found = false;

	for (const char *slash = path; !found && (slash = strchr(slash, '/')); slash++) {
		void *mark = mem_mark();

		found = protects_one(w, mem_strndup(path, (size_t)(slash - path)), true);
		mem_reset(mark);
	}
	return found || protects_one(w, path, dir);
}

/* ---- whether it is still needed ---- */

/* Is there something in it? Where that cannot be told, there is. */
static bool has_names(int dir, const char *path)
{
	auto_close int fd = openat(dir, path, DIR_FLAGS);
	tree_names names = { 0 };

	if (fd < 0)
		return errno != ENOENT;
	return tree_list(fd, &names) < 0 || names.n;
}

bool workspace_holds(const char *box)
{
	struct fault ignored = { 0 };
	auto_close int dir = boxes_directory(box, false, &ignored);

	return dir >= 0 &&
		(has_names(dir, "layers/0/upper") || has_names(dir, "layers/1/upper")) &&
		faccessat(dir, "applied.json", F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

int workspace_applied(const char *box, struct fault *f)
{
	struct str text = { 0 };
	struct json j = { .out = &text };

	json_open(&j, NULL, '{');
	json_number(&j, "applied", (long long)time(NULL));
	json_close(&j, '}');
	return put_json(box, "applied.json", &text, f);
}

int workspace_drop(const char *box, struct fault *f)
{
	auto_close int dir = boxes_directory(box, false, f);

	return dir < 0 ? dir : tree_remove(dir, "layers", f);
}
