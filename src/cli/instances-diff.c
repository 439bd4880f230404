/*
 * cli/instances-diff.c - carrel instances diff, take, and drop
 *
 * A box wrote everything shown here: names and contents are made visible, and nothing of it is
 * believed. Only a person at a terminal can take something over. No option does it, or code in
 * a box could wait for a script that does. Dropping gives a box only what is the user's
 * already, so a script may do it.
 */
#include "cli/cmd.h"
#include "cli/confirm.h"
#include "cli/instances.h"
#include "harness/harness.h"
#include "host/survey.h"
#include "overlay/changes.h"
#include "state/instance.h"
#include "base/diff.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>
#include <unistd.h>

#define RUNS "would run as you, outside of any box"

/* What a client runs or obeys; the first match counts. As for path_match(). */
static const struct {
	const char *pattern, *what;
} loud[] = {
	{ "settings*.json",
		"settings: hooks and programs in it " RUNS
		", and it says what needs no asking" },
	{ "config.toml",
		"settings: programs in it " RUNS ", and it says what needs no asking" },
	{ "opencode.json*", "settings: programs in it " RUNS },
	{ "requirements.toml", "settings: it says what needs no asking" },
	{ "policies/**", "a policy: it says what needs no asking" },
	{ "trusted*.json", "settings: it says what needs no asking" },
	{ ".env", "variables that every session of yours would have" },
	{ "*mcp*.json", "MCP servers: they " RUNS },
	{ "hooks.json", "hooks: they " RUNS },
	{ "hooks/**", "a hook: it " RUNS },
	{ "CLAUDE.md", "instructions that every session of yours would obey" },
	{ "AGENTS*.md", "instructions that every session of yours would obey" },
	{ "GEMINI.md", "instructions that every session of yours would obey" },
	{ "system.md", "instructions that every session of yours would obey" },
	{ "loop.md", "instructions that sessions of yours would obey" },
	{ "rules/**", "a rule that sessions of yours would obey" },
	{ "plugins/**", "a plugin: its hooks and servers " RUNS },
	{ "plugin/**", "a plugin: it " RUNS },
	{ "extensions/**", "an extension: its servers " RUNS },
	{ "workflows/**", "a workflow: it " RUNS },
	{ "local/**", "the client itself, perhaps: it " RUNS },
	{ "node_modules/**", "a package: it " RUNS },
	{ "package.json", "packages: they " RUNS },
	{ "tools/**", "a tool: it " RUNS },
	{ "tool/**", "a tool: it " RUNS },
	{ "commands/**", "a command that sessions of yours would obey" },
	{ "command/**", "a command that sessions of yours would obey" },
	{ "prompts/**", "a command that sessions of yours would obey" },
	{ "agents/**", "an agent that sessions of yours would use" },
	{ "agent/**", "an agent that sessions of yours would use" },
	{ "agent-memory/**", "memory that agents of yours would obey" },
	{ "modes/**", "instructions that sessions of yours would obey" },
	{ "mode/**", "instructions that sessions of yours would obey" },
	{ "skill/**", "a skill that sessions of yours would use" },
	{ "skills/**", "a skill that sessions of yours would use" },
	{ "output-styles/**", "instructions that sessions of yours would obey" },
};

/* A warning to show with it; or NULL. */
static const char *danger(const struct change *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(loud); i++) {
		const char *p = loud[i].pattern, *slash = strchr(p, '/');

		if (path_match(p, c->name) ||
			(slash && !strncmp(c->name, p, (size_t)(slash - p)) &&
				!c->name[slash - p]))
			return loud[i].what;
	}
	if (c->box.type == TYPE_FILE && c->box.mode & 0111)
		return "a program: it " RUNS ", if something calls it";
	if (c->box.type == TYPE_LINK)
		return "a link: it may lead anywhere";
	if (c->box.unseen)
		return "it may hold anything";
	return NULL;
}

static const char *verb(const struct change *c)
{
	return c->users.type == TYPE_NONE  ? "added"
		: c->box.type == TYPE_NONE ? "deleted"
					   : "changed";
}

/* ---- the contents ---- */

static bool is_login(const struct known_part *p, const struct change *c)
{
	return p->harness->login && !strcmp(path_join(p->path, c->name), p->harness->login);
}

/*
 * Every box gets it anew from the user's own file: nobody sees what the last box wrote there.
 */
static bool is_made_anew(const struct known_part *p, const struct change *c)
{
	const char *config = p->harness->config;

	return config &&
		(!strcmp(c->name, config) || !strcmp(path_join(p->path, c->name), config));
}

/* Clients make these for later use. Nobody obeys one. */
static bool is_new_empty_dir(const struct change *c)
{
	return c->users.type == TYPE_NONE && c->box.type == TYPE_DIR && !c->box.unseen;
}

static bool is_text(const struct change_side *s)
{
	return s->type == TYPE_NONE || (s->text && diff_is_text(s->text, s->n));
}

static const char *side_text(const struct change_side *s)
{
	switch (s->type) {
	case TYPE_NONE:
		return "nothing";
	case TYPE_FILE:
		return mem_printf("a file of %s", instances_size(s->size));
	case TYPE_DIR:
		return s->unseen ? "a directory that cannot be looked into: what is in it is "
				   "not listed"
				 : "a directory";
	case TYPE_LINK:
		return mem_printf("a link to %s", s->link ? str_visible(s->link) : "?");
	case TYPE_OTHER:
		break;
	}
	return "something that is no file";
}

/* Why the contents are not shown; or NULL. */
static const char *unshown(const struct known_part *p, const struct change *c)
{
	if (is_login(p, c))
		return "what you are logged in with is not shown";
	if (is_text(&c->users) && is_text(&c->box))
		return NULL;
	return mem_printf("%s%s%s", c->users.type == TYPE_NONE ? "" : side_text(&c->users),
		c->users.type == TYPE_NONE || c->box.type == TYPE_NONE ? "" : " → ",
		c->box.type == TYPE_NONE ? "" : side_text(&c->box));
}

static void add_contents(struct str *out, const struct known_part *p, const struct change *c)
{
	const char *instead = unshown(p, c);

	if (c->users.type == TYPE_FILE && c->box.type == TYPE_FILE &&
		c->users.mode != c->box.mode)
		str_addf(out, "    mode %04o → %04o\n", c->users.mode, c->box.mode);
	if (instead)
		str_addf(out, "    (%s)\n", instead);
	else
		diff_add(out, c->users.text, c->users.n, c->box.text, c->box.n, "    ");
}

/* The user changed it after the box did, and boxes still see their own version. */
static bool is_outdated(const struct known_part *p, const struct change *c)
{
	return c->outdated && !is_login(p, c);
}

static void add_change(struct str *out, const struct known_part *p, const struct change *c)
{
	const char *what = danger(c);

	str_addf(out, "%c %-8s ~/%s/%s\n", what ? '!' : ' ', verb(c), str_visible(p->path),
		str_visible(c->name));
	if (what)
		str_addf(out, "  ! %s\n", what);
	if (is_outdated(p, c))
		str_add(out,
			"  changed by you since: - is yours, + is what boxes see; `drop` gives "
			"them yours\n");
}

/* ---- diff ---- */

static void json_side(struct json *j, const char *key, const struct change_side *s)
{
	static const char *const types[] = {
		[TYPE_NONE] = NULL,
		[TYPE_FILE] = "file",
		[TYPE_DIR] = "directory",
		[TYPE_LINK] = "link",
		[TYPE_OTHER] = "other",
	};

	json_open(j, key, '{');
	json_string(j, "type", types[s->type]);
	if (s->type == TYPE_FILE) {
		json_number(j, "size", (long long)s->size);
		json_string(j, "mode", mem_printf("%04o", s->mode));
	}
	if (s->type == TYPE_DIR)
		json_bool(j, "unseen", s->unseen);
	if (s->link)
		json_string(j, "link", s->link);
	json_close(j, '}');
}

static void json_change(struct json *j, const struct known_part *p, const struct change *c)
{
	struct str diff = { 0 };

	if (!unshown(p, c))
		diff_add(&diff, c->users.text, c->users.n, c->box.text, c->box.n, "");
	json_open(j, NULL, '{');
	json_string(j, "harness", p->harness->name);
	json_string(j, "path", path_join(p->layers.users, c->name));
	json_string(j, "name", mem_printf("~/%s/%s", p->path, c->name));
	json_string(j, "change", verb(c));
	json_string(j, "danger", danger(c));
	json_bool(j, "outdated", is_outdated(p, c));
	json_side(j, "yours", &c->users);
	json_side(j, "boxes", &c->box);
	json_string(j, "diff", diff.len ? diff.p : NULL);
	json_close(j, '}');
}

int instances_diff(const struct instances_args *a, int argc, char **argv)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };
	known_parts parts = { 0 };
	struct fault f = { 0 };
	struct instance i;
	size_t n = 0;

	if (instances_pick(argc ? argv[0] : NULL, &i, &f) < 0)
		return cmd_fail(&f);
	instances_parts(&i, &parts);
	if (a->json)
		json_open(&j, NULL, '[');
	vec_each(p, &parts) {
		change_vec all = { 0 };

		if (changes_find(&p->layers, NULL, false, &all, &f) < 0)
			return cmd_fail(&f);
		vec_each(c, &all) {
			if (is_made_anew(p, c) || is_new_empty_dir(c))
				continue;
			n++;
			if (a->json) {
				json_change(&j, p, c);
			} else {
				add_change(&out, p, c);
				add_contents(&out, p, c);
			}
		}
	}
	if (a->json) {
		json_close(&j, ']');
		str_addc(&out, '\n');
	}
	if (i.running)
		cmd_note(mem_printf("%u running: what that changes is seen when it has ended",
			i.running));
	if (!n && !a->json)
		cmd_note(mem_printf("no box has changed anything in your configuration, for %s",
			str_visible(i.root)));
	return out.len ? cmd_print(&out) : 0;
}

/* ---- take, drop ---- */

enum what { TAKE, DROP };

/* What one word means: a file, or all changes in a directory. */
struct taken {
	const struct known_part *part;
	const char *name;
	change_vec changes;
};

/* The name below a part that a word means: as it is listed, absolute, or relative to it. */
static const char *name_in(const struct known_part *p, const char *word)
{
	const char *shown = path_join(survey_home(), p->path), *path;

	if (str_starts(word, "~/"))
		word = path_join(survey_home(), word + 2);
	path = path_clean(path_join(p->layers.users, word));
	if (path_within(path, p->layers.users))
		return path_below(path, p->layers.users);
	return path_within(path, shown) ? path_below(path, shown) : NULL;
}

static int find_taken(const known_parts *parts, enum what what, const char *word,
	struct taken *ret, struct fault *f)
{
	vec_each(p, parts) {
		struct taken t = { .part = p, .name = name_in(p, word) };
		int rc = t.name && *t.name
			? changes_find(&p->layers, t.name, true, &t.changes, f)
			: 0;

		if (rc == 0 && !t.changes.n)
			continue;
		if (rc == 0 && is_made_anew(p, &t.changes.v[0])) {
			fault_set(f, 0, "%s: every box gets it anew, from your ~/%s",
				str_visible(word), p->harness->config);
			return fault_fix(f, "Change that yourself.");
		}
		/* Before asking anybody: a directory is taken whole or not at all. */
		if (rc == 0 && what == TAKE)
			rc = changes_takable(&t.changes, f);
		if (rc == 0)
			*ret = t;
		return rc;
	}
	fault_set(f, 0, "%s: no box has changed such a file", str_visible(word));
	return fault_fix(f, "`carrel instances diff` lists what was changed.");
}

static int ask_take(const struct taken *t, struct fault *f)
{
	struct str question = { 0 };
	int answer;

	vec_each(c, &t->changes) {
		add_change(&question, t->part, c);
		add_contents(&question, t->part, c);
	}
	if (t->changes.n == 1)
		str_add(&question, "\nMake this change");
	else
		str_addf(&question, "\nMake these %zu changes", t->changes.n);
	str_addf(&question, " in %s?", str_visible(path_join(t->part->layers.users, t->name)));
	answer = confirm(question.p, f);
	if (answer < 0) {
		fault_set(f, 0, "nothing was taken over: there is no terminal to ask on");
		return fault_fix(f, "It is for a person who has seen what changes.");
	}
	return answer;
}

/* 1: taken, 0: the user said no. */
static int take_one(const struct taken *t, struct fault *f)
{
	const char *users = t->part->layers.users;
	struct str out = { 0 };
	int rc = ask_take(t, f);

	if (rc > 0) {
		rc = changes_take(&t->part->layers, &t->changes, f);
		if (rc < 0)
			return rc;
		vec_each(c, &t->changes)
			str_addf(&out, "%s is %s\n", str_visible(path_join(users, c->name)),
				c->box.type == TYPE_NONE ? "removed" : "yours now");
		return cmd_print(&out) ? fault_set(f, 0, "standard output") : 1;
	}
	if (rc == 0)
		cmd_note(mem_printf("%s was not taken over",
			str_visible(path_join(users, t->name))));
	return rc;
}

static int ask_drop(const struct taken *t, struct fault *f)
{
	struct str question = { 0 };
	int answer;

	vec_each(c, &t->changes) {
		add_change(&question, t->part, c);
		add_contents(&question, t->part, c);
	}
	str_addf(&question, "\nForget what boxes made of %s, and show them yours?",
		str_visible(path_join(t->part->layers.users, t->name)));
	answer = confirm(question.p, f);
	if (answer < 0) {
		fault_set(f, 0, "nothing was dropped: there is no terminal to ask on");
		return fault_fix(f, "Pass -y to drop it without asking.");
	}
	return answer;
}

/* 1: dropped, 0: the user said no. */
static int drop_one(const struct taken *t, bool yes, struct fault *f)
{
	const char *shown = str_visible(path_join(t->part->layers.users, t->name));
	struct str out = { 0 };
	int rc = yes ? 1 : ask_drop(t, f);

	if (rc == 0)
		cmd_note(mem_printf("%s was not dropped", shown));
	if (rc <= 0)
		return rc;
	rc = changes_drop(&t->part->layers, t->name, &t->changes, f);
	if (rc < 0)
		return rc;
	str_addf(&out, "%s: the next box sees yours\n", shown);
	return cmd_print(&out) ? fault_set(f, 0, "standard output") : 1;
}

static int prepare_take(const struct instance *i, enum what what, int argc, char **argv,
	struct taken *ret, struct fault *f)
{
	known_parts *parts = mem_alloc(sizeof(*parts)); /* the results point into it */
	int rc = 0;

	if (!argc)
		return fault_set(f, 0, "which file? `carrel instances diff` lists them");
	if (i->running) {
		fault_set(f, 0, "%s: a box of %s runs, and its layers are in use", i->id,
			str_visible(i->root));
		return fault_fix(f, "End it, then try again.");
	}
	instances_parts(i, parts);
	for (int n = 0; rc == 0 && n < argc; n++)
		rc = find_taken(parts, what, argv[n], &ret[n], f);
	return rc;
}

static int take_or_drop(enum what what, bool yes, int argc, char **argv)
{
	struct taken *files = mem_alloc((size_t)(argc + 1) * sizeof(*files));
	bool named = argc > 1 && instances_is_id(argv[0]), all = true;
	struct fault f = { 0 };
	struct instance i;
	int rc = instances_pick(named ? argv[0] : NULL, &i, &f);

	argc -= named, argv += named;
	if (rc == 0)
		rc = prepare_take(&i, what, argc, argv, files, &f);
	for (int n = 0; rc >= 0 && n < argc; n++) {
		rc = what == TAKE ? take_one(&files[n], &f) : drop_one(&files[n], yes, &f);
		all &= rc > 0;
	}
	if (rc < 0)
		return cmd_fail(&f);
	return all ? 0 : EXIT_CARREL;
}

int instances_take(const struct instances_args *a, int argc, char **argv)
{
	(void)a;
	return take_or_drop(TAKE, false, argc, argv);
}

int instances_drop(const struct instances_args *a, int argc, char **argv)
{
	return take_or_drop(DROP, a->yes, argc, argv);
}
