/*
 * cli/cmd-init.c - carrel init
 *
 * It looks around and writes a manifest for what it finds. It tests each skill first, with a
 * manifest of that skill alone and the code that will read it: a skill that would be refused
 * later is left out now, with the reason. File names are data: they are quoted in the manifest,
 * and texts from files appear only in comments, made visible.
 *
 * Must not: change an existing file.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "harness/harness.h"
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "plan/request.h"
#include "run/agent.h"
#include "host/survey.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WIDTH = 90, LONGEST = 160 };

#define OWN_SKILLS "~/.claude/skills"

struct init_args {
	bool print;
};

struct found_skill {
	const char *name, *source, *description; /* source: NULL for the user's own */
};

struct found {
	const char *dir, *home;
	VEC(const struct harness *) clients;
	VEC(struct found_skill) skills, own;
	VEC(const char *) roles; /* "./roles/x.md" */
	bool instructions;       /* there is a CLAUDE.md */
	VEC(const char *) left;  /* what was left out, and why */
};

/* ---- looking around ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The sorted entries of a directory, without hidden ones. */
static name_vec names_in(const char *path)
{
	name_vec names = { 0 };
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			vec_push(&names, mem_strdup(e->d_name));
	if (dir)
		closedir(dir);
	if (names.n)
		qsort(names.v, names.n, sizeof(*names.v), compare_names);
	return names;
}

static const char *quoted(const char *text)
{
	struct str out = { 0 };

	json_add_quoted(&out, text, strlen(text));
	return out.p;
}

/* The last part of "carrel.json:1:9: library.skills.x.source: why". */
static const char *reason(const char *problem)
{
	for (int i = 0; i < 2 && strstr(problem, ": "); i++)
		problem = strstr(problem, ": ") + 2;
	return problem;
}

/*
 * Why a manifest that gives an agent "x" this one skill would be refused. NULL: it would not
 * be, and *ret_description is set.
 */
static const char *try_manifest(const struct found *f, const struct str *text,
	const char **ret_description)
{
	struct manifest_file file = { .path = path_join(f->dir, MANIFEST_NAME),
		.dir = f->dir,
		.name = MANIFEST_NAME,
		.project = true };
	const struct manifests m = { .project = &file };
	json_errors errors = { 0 };
	struct fault fault = { 0 };
	struct agent agent = { 0 };
	problems bad = { 0 };

	if (json_read(text->p, text->len, &file, &file.tree, &errors) < 0)
		return "its name is not UTF-8";
	manifest_check(&file, manifest_keys, &bad);
	if (!bad.n && manifest_agent(&m, "x", &agent, &bad, &fault) == 0)
		manifest_resolve(&m, f->home, &agent, &bad);
	if (bad.n)
		return reason(bad.v[0]);
	*ret_description = agent.use_skills.v[0].description.text;
	return NULL;
}

static void leave_out(struct found *f, const char *what, const char *why)
{
	vec_push(&f->left, mem_printf("left out %s: %s", str_visible(what), why));
}

static const char *source_of(const struct found *f, const char *name)
{
	vec_each(s, &f->skills)
		if (!strcmp(s->name, name))
			return s->source;
	return NULL;
}

/* Add the skill, or say why not. */
static void try_skill(struct found *f, const char *name, const char *source, const char *shown)
{
	const char *why, *taken = source_of(f, name);
	struct str text = { 0 };
	struct found_skill s = { .name = name, .source = source };

	if (taken) {
		leave_out(f, shown, mem_printf("%s has that name", str_visible(taken)));
		return;
	}
	str_add(&text, "{ ");
	if (source)
		str_addf(&text, "\"library\": { \"skills\": { %s: { \"source\": %s } } }, ",
			quoted(name), quoted(source));
	str_addf(&text, "\"agents\": { \"x\": { \"skills\": [ %s ] } } }", quoted(name));
	why = try_manifest(f, &text, &s.description);
	if (why) {
		leave_out(f, shown, why);
		return;
	}
	if (source)
		vec_push(&f->skills, s);
	else
		vec_push(&f->own, s);
}

/* Every directory below that has a SKILL.md; `as` is how a manifest names it. */
static void find_skills(struct found *f, const char *below, const char *as, bool own)
{
	name_vec names = names_in(below);

	vec_each(name, &names) {
		const char *shown = mem_printf("%s/%s", as, *name);

		if (access(mem_printf("%s/%s/SKILL.md", below, *name), F_OK) == 0)
			try_skill(f, *name, own ? NULL : shown, shown);
	}
}

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

static bool is_text(const char *name)
{
	size_t n = strlen(name), len;

	for (size_t i = 0; i < n; i += len)
		if (!(len = utf8_length(name + i, n - i)))
			return false;
	return true;
}

static void find_roles(struct found *f)
{
	name_vec names = names_in(path_join(f->dir, "roles"));

	vec_each(name, &names) {
		const char *role = mem_printf("./roles/%s", *name);

		if (str_ends(*name, ".md") && is_text(*name) &&
			is_file(path_join(f->dir, role)))
			vec_push(&f->roles, role);
	}
}

static int look_around(struct found *ret, struct fault *fault)
{
	struct found f = { .home = survey_home() };
	int rc = agent_workspace(&(struct request){ 0 }, &f.dir, fault);

	if (rc < 0)
		return rc;
	for (const struct harness *const *h = harness_all; *h; h++)
		if (agent_program(*h, f.dir))
			vec_push(&f.clients, *h);
	find_skills(&f, path_join(f.dir, ".claude/skills"), "./.claude/skills", false);
	find_skills(&f, path_join(f.dir, "skills"), "./skills", false);
	if (strcmp(f.dir, f.home) != 0)
		find_skills(&f, path_join(f.home, ".claude/skills"), OWN_SKILLS, true);
	find_roles(&f);
	f.instructions = is_file(path_join(f.dir, "CLAUDE.md"));
	*ret = f;
	return 0;
}

/* ---- what is written ---- */

static void indent(struct str *out, size_t n)
{
	while (n--)
		str_addc(out, ' ');
}

/* Write text as a comment, wrapped to a readable width. */
static void comment(struct str *out, size_t column, const char *text)
{
	size_t at = 0;

	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		size_t n = strcspn(text, " ");

		if (!at || at + 1 + n > WIDTH) {
			if (at)
				str_addc(out, '\n');
			indent(out, column);
			str_add(out, "//");
			at = column + 2;
		}
		str_addc(out, ' ');
		str_addn(out, text, n);
		at += 1 + n;
		text += n;
	}
	str_addc(out, '\n');
}

static void explain(struct str *out, size_t column, const struct key *keys, const char *name)
{
	comment(out, column, key_find(keys, name)->doc);
}

/* What a skill says about itself, shortened. */
static const char *about(const struct found_skill *s)
{
	const char *text = s->description && *s->description ? s->description : "a skill";
	size_t n = 0;

	while (text[n] && n < LONGEST) {
		size_t len = utf8_length(text + n, strlen(text + n));

		n += len ? len : 1;
	}
	return mem_printf("%s%s", str_visible(mem_strndup(text, n)), text[n] ? "..." : "");
}

static void add_library(const struct found *f, struct str *out)
{
	explain(out, 2, manifest_keys, "library");
	if (!f->skills.n) {
		str_add(out,
			"  // \"library\": { \"skills\": "
			"{ \"review\": { \"source\": \"./skills/review\" } } },\n\n");
		return;
	}
	str_add(out, "  \"library\": {\n");
	comment(out, 4,
		mem_printf("Skills by name. source: %s", key_find(skill_keys, "source")->doc));
	str_add(out, "    \"skills\": {\n");
	vec_each(s, &f->skills) {
		comment(out, 6, about(s));
		str_addf(out, "      %s: { \"source\": %s }%s\n", quoted(s->name),
			quoted(s->source), s + 1 < f->skills.v + f->skills.n ? "," : "");
	}
	str_add(out, "    }\n  },\n\n");
}

static void add_example_line(struct str *out, const char *line, const char *text)
{
	str_addf(out, "    //   %-48s // %s\n", line, text);
}

/* It comes first, so that nobody who uncomments it has to add a comma to the entry before. */
static void add_example(const struct found *f, struct str *out)
{
	const struct harness *h = f->clients.n ? f->clients.v[0] : &harness_claude;

	comment(out, 4, "An example: take the slashes at the left away to have it.");
	str_add(out, "    // \"reviewer\": {\n");
	if (f->clients.n)
		add_example_line(out, mem_printf("\"extends\": \"%s\",", h->name),
			"another agent to begin with");
	else
		add_example_line(out, mem_printf("\"harness\": \"%s\",", h->name),
			"the client that is run");
	if (f->roles.n && h->role)
		add_example_line(out, mem_printf("\"role\": %s,", quoted(f->roles.v[0])),
			"standing instructions");
	add_example_line(out, "\"prompt\": \"Review the last commit.\",",
		"what it is told at its start");
	add_example_line(out, "\"env\": { \"TOKEN\": \"?Token for the tracker\" },",
		"variables; ? asks for one");
	add_example_line(out, "\"mounts\": [ { \"source\": \"/var/log\" } ],",
		"more that it can read");
	add_example_line(out, "\"limits\": { \"time\": \"30m\" }", "what it may use up");
	str_add(out, "    // },\n");
}

static void add_roles(const struct found *f, const struct harness *h, struct str *out)
{
	if (f->instructions && h == &harness_claude)
		comment(out, 6,
			"This project's CLAUDE.md is in the workspace, and is read as ever.");
	if (!f->roles.n || !h->role)
		return;
	explain(out, 6, agent_keys, "role");
	vec_each(role, &f->roles)
		str_addf(out, "      // \"role\": %s,\n", quoted(*role));
}

/* The user's own skills are commented out: each costs the agent attention. */
static void add_skills(const struct found *f, const struct harness *h, struct str *out)
{
	if (!(h->can & CAN_SKILLS) || (!f->skills.n && !f->own.n))
		return;
	explain(out, 6, agent_keys, "skills");
	str_add(out, "      \"skills\": [\n");
	vec_each(s, &f->own) {
		comment(out, 8, about(s));
		str_addf(out, "        // %s,\n", quoted(s->name));
	}
	vec_each(s, &f->skills)
		str_addf(out, "        %s%s\n", quoted(s->name),
			s + 1 < f->skills.v + f->skills.n ? "," : "");
	str_add(out, "      ],\n");
}

static const char *own_hosts(const struct harness *h)
{
	struct job job = { .agent = &(struct agent){ 0 } };
	name_vec hosts = { 0 };
	struct str out = { 0 };

	harness_hosts(h, &job, &hosts);
	vec_each(host, &hosts)
		str_addf(&out, "%s%s", out.len ? " and " : "", *host);
	return out.len ? out.p : "of which none are known";
}

static void add_agent(const struct found *f, const struct harness *h, struct str *out)
{
	str_addf(out, "\n    // carrel run %s\n    \"%s\": {\n", h->name, h->name);
	explain(out, 6, agent_keys, "description");
	str_addf(out, "      \"description\": %s,\n",
		quoted(mem_printf("%s in this project", h->title)));
	explain(out, 6, agent_keys, "harness");
	str_addf(out, "      \"harness\": \"%s\",\n", h->name);
	add_roles(f, h, out);
	add_skills(f, h, out);
	comment(out, 6,
		mem_printf(
			"What it can reach. allow: the hosts that the client itself needs, %s. "
			"To have others write { \"allow\": [\"HOST\", ...] } with all of them; "
			"open is the public Internet, none is nothing at all.",
			own_hosts(h)));
	str_add(out, "      \"network\": \"allow\"\n    }");
}

static void write_manifest(const struct found *f, struct str *out)
{
	comment(out, 0,
		"The agents of this project. Each works in a box that has what is written here "
		"and nothing else. carrel schema has every key; carrel plan AGENT shows what a "
		"box would be.");
	str_add(out, "{\n");
	add_library(f, out);
	explain(out, 2, manifest_keys, "agents");
	str_add(out, "  \"agents\": {\n");
	add_example(f, out);
	for (size_t i = 0; i < f->clients.n; i++) {
		add_agent(f, f->clients.v[i], out);
		str_add(out, i + 1 < f->clients.n ? ",\n" : "\n");
	}
	str_add(out, "  }\n}\n");
}

/* ---- writing it ---- */

static int exists(const char *path, struct fault *f)
{
	fault_set(f, 0, "%s is there already, and stays as it is", str_visible(path));
	return fault_fix(f, "`carrel init --print` prints what would be written.");
}

/* A rename that replaces nothing. Not every file system supports it, nor links. */
static int put_in_place(int dir, const char *temp)
{
	if (syscall(SYS_renameat2, dir, temp, dir, MANIFEST_NAME, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(dir, temp, dir, MANIFEST_NAME, 0) < 0)
		return -errno;
	unlinkat(dir, temp, 0);
	return 0;
}

static int write_file(const char *where, const struct str *text, struct fault *f)
{
	const char *temp = mem_printf("." MANIFEST_NAME ".%ld", (long)getpid());
	const char *path = path_join(where, MANIFEST_NAME);
	auto_close int dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct stat st;
	int rc;

	if (dir < 0)
		return fault_set(f, errno, "open %s", str_visible(where));
	if (fstatat(dir, MANIFEST_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return exists(path, f);
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return fault_set(f, errno, "write in %s", str_visible(where));
	rc = fd_write_all(fd, text->p, text->len);
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (rc == 0)
		rc = put_in_place(dir, temp);
	if (rc < 0)
		unlinkat(dir, temp, 0);
	if (rc == -EEXIST)
		return exists(path, f);
	return rc < 0 ? fault_set(f, -rc, "write %s", str_visible(path)) : 0;
}

/* ---- what is said ---- */

static void say_list(struct str *out, const char *label, const struct str *text)
{
	if (text->len)
		str_addf(out, "  %-9s%s\n", label, text->p);
}

static void add_item(struct str *list, const char *text)
{
	str_addf(list, "%s%s", list->len ? ", " : "", str_visible(text));
}

static int say_found(const struct found *f)
{
	struct str out = { 0 }, clients = { 0 }, skills = { 0 }, own = { 0 }, roles = { 0 };

	for (size_t i = 0; i < f->clients.n; i++)
		add_item(&clients, f->clients.v[i]->title);
	vec_each(s, &f->skills)
		add_item(&skills, s->source);
	vec_each(s, &f->own)
		add_item(&own, s->name);
	vec_each(role, &f->roles)
		add_item(&roles, *role);
	if (own.len)
		str_add(&own, " (in " OWN_SKILLS "; commented out)");
	if (!f->clients.n)
		str_add(&clients, "none found on your PATH");
	str_addf(&out, "Wrote %s.\n", str_visible(path_join(f->dir, MANIFEST_NAME)));
	say_list(&out, "clients", &clients);
	say_list(&out, "skills", &skills);
	say_list(&out, "yours", &own);
	say_list(&out, "roles", &roles);
	if (f->clients.n)
		str_addf(&out,
			"Next: carrel run %s\n"
			"It shows what the manifest grants and asks for your approval first.\n",
			f->clients.v[0]->name);
	else
		str_add(&out,
			"Next: install a client and write an agent for it, after the example "
			"in the file.\n");
	return cmd_print(&out);
}

static int cmd_init(void *args, int argc, char **argv)
{
	const struct init_args *a = args;
	struct fault fault = { 0 };
	struct str text = { 0 };
	struct found f;

	(void)argc, (void)argv;
	if (look_around(&f, &fault) < 0)
		return cmd_fail(&fault);
	write_manifest(&f, &text);
	if (!a->print && write_file(f.dir, &text, &fault) < 0)
		return cmd_fail(&fault);
	vec_each(line, &f.left)
		cmd_note(*line);
	return a->print ? cmd_print(&text) : say_found(&f);
}

static const struct opt init_opts[] = {
	OPT_FLAG(0, "print", struct init_args, print, "print it instead of writing it"),
	OPT_END,
};

const struct cmd cmd_init_entry = {
	.name = "init",
	.about = "write a manifest to begin with",
	.detail =
		"It makes a `carrel.json` in the working directory, with a comment for every "
		"key: an agent for each client that is on your PATH, with the skills that are "
		"in `.claude/skills` and `skills` here. Those in `~/.claude/skills` and the "
		"files in `roles` are in it as comments, to be taken in where they are wanted. "
		"A `carrel.json` that is there already is left as it is. What is written is "
		"not approved by that: the first start shows what it grants, and asks.",
	.opts = init_opts,
	.size = sizeof(struct init_args),
	.run = cmd_init,
};
