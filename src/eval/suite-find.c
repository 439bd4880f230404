/*
 * eval/suite-find.c - where a suite is, and what it names
 *
 * The order of places is BMAD's: what was given, the skill's own evals/ and its root, then
 * evals/<skill>/ beside the skill's parents and anywhere below evals/ of the project. Nothing
 * found: the message lists every place. Of two files in one directory the first name wins,
 * and a note says so.
 *
 * Files that cases name are looked for below the project's root, the suite's directory and
 * the skill's, in this order, because the public formats differ in which they mean.
 */
#include "eval/suite.h"
#include "overlay/tree.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/look.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SKILL_BYTES = 1 << 20, DEPTH = 6, PLACES = 64, SKILLS = 100, SKILL_DIRS = 5000 };

static const char *const case_names[] = { "evals.json", "eval.json", "cases.json" };
static const char *const trigger_names[] = { "triggers.json", "trigger-eval.json",
	"trigger-evals.json", "trigger-queries.json", "trigger_eval_set.json" };

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- a skill ---- */

/* The value after "key:" in the front matter, on one line or as an indented block. */
static const char *front_matter(const char *text, const char *key)
{
	size_t n = strlen(key);
	const char *at, *end;
	struct str out = { 0 };

	if (strncmp(text, "---", 3) != 0)
		return NULL;
	for (at = strchr(text, '\n'); at && strncmp(at + 1, "---", 3) != 0;
		at = strchr(at + 1, '\n'))
		if (!strncmp(at + 1, key, n) && at[1 + n] == ':')
			break;
	if (!at || strncmp(at + 1, "---", 3) == 0)
		return NULL;
	for (at += n + 2;; at = end + 1) {
		end = at + strcspn(at, "\n");
		at += strspn(at, " \t");
		if (at < end && *at != '|' && *at != '>')
			str_addf(&out, "%s%.*s", out.len ? " " : "", (int)(end - at), at);
		if (!*end || (end[1] != ' ' && end[1] != '\t'))
			break;
	}
	while (out.len && strchr(" \t\r\"'", out.p[out.len - 1]))
		out.p[--out.len] = '\0';
	return out.len ? out.p + strspn(out.p, "\"'") : NULL;
}

int skill_read(const char *dir, struct suite_skill *ret, struct fault *f)
{
	const char *path = path_join(dir, "SKILL.md"), *real, *name;
	char *text;
	int rc = look_text(AT_FDCWD, path, SKILL_BYTES, &text, f);

	if (rc < 0)
		return rc;
	if (rc == 0) {
		fault_set(f, 0, "%s has no SKILL.md", str_visible(dir));
		return fault_fix(f,
			"Name the directory of a skill, or a suite with --skill DIR.");
	}
	real = fd_real_path(dir);
	if (!real)
		return fault_set(f, errno, "find %s", str_visible(dir));
	name = front_matter(text, "name");
	ret->dir = real;
	ret->name = name ? name : path_base(real);
	ret->description = front_matter(text, "description");
	if (ret->name[strspn(ret->name,
		    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] ||
		strlen(ret->name) > 64 || ret->name[0] == '.')
		return fault_set(f, 0,
			"%s: the name of a skill is letters, digits, '.', '_' and '-', at most "
			"64 of them",
			str_visible(path));
	return 0;
}

/* ---- which skill? ---- */

/* A skill has none within it; what is built or fetched is no place for one to work on. */
static void find_skills(const char *dir, int depth, unsigned int *dirs, text_vec *ret)
{
	tree_names names = { 0 };
	auto_close int fd = -1;

	if (is_file(path_join(dir, "SKILL.md"))) {
		vec_push(ret, dir);
		return;
	}
	fd = openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || tree_list(fd, &names) < 0)
		return;
	vec_each(name, &names) {
		struct stat st;

		if ((**name == '.' && strcmp(*name, ".claude") != 0) ||
			!strcmp(*name, "node_modules") ||
			fstatat(fd, *name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISDIR(st.st_mode) || !depth || ret->n >= SKILLS ||
			(*dirs)++ >= SKILL_DIRS)
			continue;
		find_skills(strcmp(dir, ".") ? path_join(dir, *name) : *name, depth - 1, dirs,
			ret);
	}
}

int skill_here(const char **ret, struct fault *f)
{
	text_vec found = { 0 };
	unsigned int dirs = 0;
	struct str list = { 0 };

	find_skills(".", DEPTH, &dirs, &found);
	if (found.n == 1) {
		*ret = found.v[0];
		return 0;
	}
	if (!found.n) {
		fault_set(f, 0, "there is no skill in this directory or below it");
		return fault_fix(f,
			"A skill is a directory with a SKILL.md: `carrel eval DIR`.");
	}
	vec_each(skill, &found)
		if (list.len < 200)
			str_addf(&list, "%s%s", list.len ? ", " : "", str_visible(*skill));
	fault_set(f, 0, "which skill? There is more than one here: %s", list.p);
	return fault_fix(f, "Name one: `carrel eval %s`.", str_visible(found.v[0]));
}

/* ---- places ---- */

struct finder {
	text_vec places; /* in which we looked */
	text_vec *notes;
	const char *cases, *triggers;
};

static const char *take_one(struct finder *w, const char *dir, const char *const *names,
	size_t n)
{
	const char *taken = NULL;

	for (size_t i = 0; i < n; i++) {
		const char *path = path_join(dir, names[i]);

		if (!is_file(path))
			continue;
		if (!taken)
			taken = path;
		else
			vec_push(w->notes,
				mem_printf("took %s, not %s", str_visible(taken),
					str_visible(names[i])));
	}
	return taken;
}

static void look_in(struct finder *w, const char *dir)
{
	const char *found;

	vec_each(place, &w->places)
		if (!strcmp(*place, dir))
			return;
	if (w->places.n < PLACES)
		vec_push(&w->places, dir);
	found = take_one(w, dir, case_names, ARRAY_SIZE(case_names));
	if (found && w->cases)
		vec_push(w->notes,
			mem_printf("took %s, not %s", str_visible(w->cases),
				str_visible(found)));
	else if (found)
		w->cases = found;
	found = take_one(w, dir, trigger_names, ARRAY_SIZE(trigger_names));
	if (found && w->triggers)
		vec_push(w->notes,
			mem_printf("took %s, not %s", str_visible(w->triggers),
				str_visible(found)));
	else if (found)
		w->triggers = found;
}

/* evals/<anything>/<name>/ below the project. */
static void look_below(struct finder *w, const char *dir, const char *name, int depth)
{
	DIR *open = depth ? opendir(dir) : NULL;
	struct dirent *e;

	while (open && (e = readdir(open))) {
		const char *path = path_join(dir, e->d_name);
		struct stat st;

		if (e->d_name[0] == '.' || lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (!strcmp(e->d_name, name))
			look_in(w, path);
		else
			look_below(w, path, name, depth - 1);
	}
	if (open)
		closedir(open);
}

static void add_names(struct str *out, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		str_addf(out, "%s%s", out->len ? ", " : "", names[i]);
}

static int nothing_found(const struct finder *w, struct fault *f)
{
	struct str places = { 0 }, names = { 0 };
	char cwd[PATH_MAX];
	bool here = getcwd(cwd, sizeof(cwd)) != NULL;

	vec_each(place, &w->places)
		if (places.len < 300)
			str_addf(&places, "%s%s", places.len ? ", " : "",
				str_visible(here && path_within(*place, cwd) &&
							strcmp(*place, cwd) != 0
						? path_below(*place, cwd)
						: *place));
	add_names(&names, case_names, ARRAY_SIZE(case_names));
	add_names(&names, trigger_names, ARRAY_SIZE(trigger_names));
	fault_set(f, 0, "found no suite; looked in %s for %s",
		places.len ? places.p : "no directory", names.p);
	return fault_fix(f,
		"`carrel eval init SKILL` writes one to begin with; --evals FILE "
		"names one that is elsewhere.");
}

static bool found_any(const struct finder *w)
{
	return w->cases || w->triggers;
}

/* By the skill's directory, as BMAD calls it; then by its own name, if that is another. */
static void look_around(struct finder *w, const struct suite *s)
{
	const char *const names[] = { path_base(s->skill.dir), s->skill.name };
	const char *beside = path_join(path_parent(path_parent(s->skill.dir)), "evals");

	look_in(w, path_join(s->skill.dir, "evals"));
	look_in(w, s->skill.dir);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		look_in(w, path_join(beside, names[i]));
	for (size_t i = 0; s->project && i < ARRAY_SIZE(names) && !found_any(w); i++)
		look_in(w, mem_printf("%s/evals/%s", s->project, names[i]));
	for (size_t i = 0; s->project && i < ARRAY_SIZE(names) && !found_any(w); i++)
		look_below(w, path_join(s->project, "evals"), names[i], DEPTH);
	if (s->project && !found_any(w))
		vec_push(&w->places, mem_printf("%s/evals/**", s->project));
}

static int find_files(const struct suite_where *where, const struct suite *s, struct finder *w,
	struct fault *f)
{
	const char *given = where->evals ? where->evals : where->given;

	if (is_file(given)) {
		w->cases = given;
		return 0;
	}
	if (where->evals && !is_dir(where->evals))
		return fault_set(f, ENOENT, "open the suite %s", str_visible(where->evals));
	if (where->evals)
		look_in(w, where->evals);
	if (s->skill.dir && !where->evals)
		look_around(w, s);
	return found_any(w) ? 0 : nothing_found(w, f);
}

/* ---- reading ---- */

static int read_file(struct suite *s, const char *path, struct str *all, suite_errors *errors,
	struct fault *f)
{
	auto_close int fd =
		openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t n;
	char *bytes = fd < 0 ? NULL : fd_read_bytes(take_fd(&fd), SUITE_BYTES, &n);

	if (!bytes)
		return fault_set(f, errno, "read the suite %s", str_visible(path));
	str_addn(all, bytes, n);
	return suite_read(s, path, bytes, n, errors);
}

static const char *first_dir(const struct suite *s, const char *path)
{
	const char *const tops[] = { s->project, s->dir, s->skill.dir };
	struct stat st;

	if (path[0] == '/')
		return lstat(path, &st) == 0 ? path : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
		const char *whole = tops[i] ? path_join(tops[i], path) : NULL;

		if (whole && stat(whole, &st) == 0 &&
			(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
			return whole;
	}
	return NULL;
}

/*
 * A suite comes with a repository, and what it names is shown to an agent. So that lies in the
 * same repository, or where the command line has led us, whatever links there are.
 */
static bool is_ours(const struct suite *s, const char *real)
{
	const char *const tops[] = { s->root, s->project, s->dir, s->skill.dir };

	if (!s->root)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++)
		if (tops[i] && path_within(real, tops[i]))
			return true;
	return false;
}

static void resolve_file(const struct suite *s, struct suite_file *file, suite_errors *errors)
{
	const char *found = first_dir(s, file->from), *real;

	if (!found) {
		vec_push(errors,
			mem_printf("%s: files: \"%s\" is neither in the project, nor beside "
				   "the suite, nor in the skill",
				file->where, str_visible(file->from)));
		return;
	}
	real = fd_real_path(found);
	if (real && !is_ours(s, real))
		vec_push(errors,
			mem_printf("%s: files: \"%s\" leads out of the suite's repository",
				file->where, str_visible(file->from)));
	file->from = real ? real : found;
}

/* BMAD's directories, beside the suite: setup/ for all, <id>/setup/ for one. */
static void resolve_setups(struct suite *s, struct suite_case *c, suite_errors *errors)
{
	text_vec all = { 0 };
	const char *const own[] = { path_join(s->dir, "setup"),
		mem_printf("%s/%s/setup", s->dir, c->safe) };

	for (size_t i = 0; i < ARRAY_SIZE(own) && strcmp(s->kind, "carrel") != 0; i++)
		if (is_dir(own[i]))
			vec_push(&all, own[i]);
	vec_each(dir, &c->setups) {
		const char *found = first_dir(s, *dir);

		found = found ? fd_real_path(found) : NULL;
		if (!found || !is_dir(found) || !is_ours(s, found))
			vec_push(errors,
				mem_printf("%s: setup: there is no directory \"%s\"", c->where,
					str_visible(*dir)));
		else
			vec_push(&all, found);
	}
	c->setups = all;
}

static void resolve_all(struct suite *s, suite_errors *errors)
{
	vec_each(c, &s->cases) {
		vec_each(file, &c->files)
			resolve_file(s, file, errors);
		resolve_setups(s, c, errors);
		vec_each(g, &c->graders)
			vec_each(file, &g->files)
				resolve_file(s, file, errors);
	}
	vec_each(k, &s->configurations) {
		struct suite_skill skill;
		struct fault f = { 0 };
		const char *dir = k->skill ? path_join(s->dir, k->skill) : NULL;

		if (dir && skill_read(dir, &skill, &f) < 0)
			vec_push(errors,
				mem_printf("%s: configuration %s: %s", k->where, k->name,
					f.text));
		else if (dir && !is_ours(s, skill.dir))
			vec_push(errors,
				mem_printf("%s: configuration %s: the skill leads out of the "
					   "suite's repository",
					k->where, k->name));
		else if (dir)
			k->skill = skill.dir;
	}
}

/* The skill, where only a suite was given: what it says, or the directory that it lies in. */
static int find_skill(const struct suite_where *where, struct suite *s, struct fault *f)
{
	const char *dir = s->skill.dir ? path_join(s->dir, s->skill.dir) : NULL;

	if (s->skill.name)
		return 0;
	if (where->skill)
		dir = where->skill;
	for (const char *at = s->dir; !dir && strcmp(at, "/") != 0; at = path_parent(at))
		if (is_file(path_join(at, "SKILL.md")))
			dir = at;
	if (!dir)
		return 0;
	if (skill_read(dir, &s->skill, f) < 0)
		return -EINVAL;
	return where->skill || is_ours(s, s->skill.dir)
		? 0
		: fault_set(f, 0, "the suite's skill %s leads out of its repository",
			  str_visible(dir));
}

/* The repository that the suite is in; without one the directory above it. */
static void find_root(struct suite *s)
{
	struct project p;
	struct fault f = { 0 };

	s->root = path_parent(s->dir);
	if (project_find(s->dir, &p, &f) == 0 && p.common && path_within(s->dir, p.tree))
		s->root = p.tree;
}

static int find_project(const struct suite_where *where, struct suite *s, struct fault *f)
{
	struct project p;
	const char *from = s->skill.dir ? s->skill.dir : s->dir;

	if (where->project || (s->project && s->dir)) {
		const char *said =
			where->project ? where->project : path_join(s->dir, s->project);

		s->project = fd_real_path(said);
		if (!s->project || !is_dir(s->project))
			return fault_set(f, errno ? errno : ENOTDIR, "open the project %s",
				str_visible(said));
		if (!where->project &&
			!is_ours(&(struct suite){ .root = s->root }, s->project)) {
			fault_set(f, 0, "the suite's project %s lies outside of its repository",
				str_visible(s->project));
			return fault_fix(f, "Say --project-root if that is what you mean.");
		}
		return 0;
	}
	/* The repository that the skill is in; a skill that is in none gets no project. */
	if (from && project_find(from, &p, f) == 0 && p.common && path_within(from, p.tree) &&
		strcmp(p.tree, from) != 0)
		s->project = p.tree;
	return 0;
}

int suite_load(const struct suite_where *where, struct suite *ret, suite_errors *errors,
	text_vec *notes, struct fault *f)
{
	struct suite s = { 0 };
	struct finder w = { .notes = notes };
	struct str all = { 0 };
	bool given_dir = where->given && is_dir(where->given);
	int rc = where->given && !given_dir && !is_file(where->given)
		? fault_set(f, ENOENT, "open the skill or suite %s", str_visible(where->given))
		: 0;

	if (rc == 0 && (where->skill || given_dir))
		rc = skill_read(where->skill ? where->skill : where->given, &s.skill, f);
	if (rc == 0)
		rc = find_project(where, &s, f);
	if (rc == 0)
		rc = find_files(where, &s, &w, f);
	if (rc < 0)
		return rc;
	s.path = fd_real_path(w.cases ? w.cases : w.triggers);
	s.dir = s.path ? path_parent(s.path) : NULL;
	if (!s.path)
		return fault_set(f, errno, "find the suite");
	find_root(&s);
	if (w.cases)
		rc = read_file(&s, w.cases, &all, errors, f);
	if ((rc == 0 || errors->n) && w.triggers)
		rc = read_file(&s, w.triggers, &all, errors, f);
	if (rc < 0 && !errors->n)
		return rc;
	s.trigger_path = w.cases && w.triggers ? fd_real_path(w.triggers) : NULL;
	s.sha256 = hash_hex(all.p ? all.p : "", all.len);
	rc = errors->n ? -EINVAL : find_skill(where, &s, f);
	if (rc == 0 && (s.project || !given_dir))
		rc = find_project(where, &s, f);
	if (rc < 0)
		return rc;
	suite_finish(&s, errors);
	resolve_all(&s, errors);
	*ret = s;
	return errors->n ? -EINVAL : 0;
}

int suite_resume(const char *path, struct suite *ret, suite_errors *errors, struct fault *f)
{
	struct suite s = { .path = path, .dir = path_parent(path) };
	struct str all = { 0 };
	int rc = read_file(&s, path, &all, errors, f);

	if (rc == 0 && s.skill.dir)
		rc = skill_read(s.skill.dir, &s.skill, f);
	if (rc < 0)
		return rc;
	suite_finish(&s, errors);
	resolve_all(&s, errors);
	*ret = s;
	return errors->n ? -EINVAL : 0;
}
