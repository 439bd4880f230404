/*
 * cli/instances-set.c - carrel instances set
 *
 * Changes are made on the tree, which is written out and read back. So what is checked is byte
 * for byte what will be on disk: against the key table, and as a start would check it. Comments
 * in a file that was edited by hand are lost.
 */
#include "cli/cmd.h"
#include "cli/instances.h"
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "plan/request.h"
#include "run/agent.h"
#include "state/root.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>

#define NAME "settings.json"

/* ---- trees that can be changed ---- */

static struct json_value *copy_tree(const struct json_value *v)
{
	struct json_value *copy = mem_alloc(sizeof(*copy)), **end = &copy->first;

	*copy = *v;
	copy->first = copy->next = NULL;
	json_each(item, v) {
		*end = copy_tree(item);
		end = &(*end)->next;
	}
	return copy;
}

static struct json_value **find_member(struct json_value *object, const char *key)
{
	struct json_value **at = &object->first;

	while (*at && strcmp((*at)->key, key) != 0)
		at = &(*at)->next;
	return at;
}

static void put_member(struct json_value *object, const char *key, struct json_value *v)
{
	struct json_value **at = find_member(object, key);

	v->key = key;
	v->next = *at ? (*at)->next : NULL;
	*at = v;
}

static void write_value(struct json *j, const char *key, const struct json_value *v)
{
	char close = v->type == JSON_LIST ? ']' : '}';

	switch (v->type) {
	case JSON_NULL:
		json_string(j, key, NULL);
		return;
	case JSON_BOOL:
		json_bool(j, key, v->boolean);
		return;
	case JSON_NUMBER:
		json_raw(j, key, v->text);
		return;
	case JSON_STRING:
		json_string(j, key, v->text);
		return;
	case JSON_LIST:
	case JSON_OBJECT:
		break;
	}
	json_open(j, key, close == ']' ? '[' : '{');
	json_each(item, v)
		write_value(j, v->type == JSON_OBJECT ? item->key : NULL, item);
	json_close(j, close);
}

static const char *text_of(const struct json_value *tree)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .indent = true };

	write_value(&j, NULL, tree);
	str_addc(&out, '\n');
	return out.p;
}

/* ---- one KEY=VALUE ---- */

static bool fits(const struct key *k, enum json_type type)
{
	switch (k->type) {
	case KEY_FLAG:
		return type == JSON_BOOL;
	case KEY_COUNT:
	case KEY_NUMBER:
	case KEY_SIZE:
	case KEY_TIME:
		return type == JSON_NUMBER || type == JSON_STRING;
	case KEY_STRINGS:
	case KEY_OBJECTS:
		return type == JSON_LIST;
	case KEY_TEXTS:
	case KEY_OBJECT:
	case KEY_MAP:
		return type == JSON_OBJECT || (type == JSON_STRING && k->shorthand);
	default:
		return type == JSON_STRING;
	}
}

/* JSON where the key expects it, else the text itself. */
static struct json_value *value_of(const struct key *k, const char *text)
{
	struct json_value *v = mem_alloc(sizeof(*v));
	const struct json_value *tree;
	json_errors errors = { 0 };

	if (k && json_read(text, strlen(text), NULL, &tree, &errors) == 0 &&
		fits(k, tree->type))
		return copy_tree(tree);
	v->type = JSON_STRING;
	v->text = text;
	return v;
}

static const struct key variable = { .name = "variable", .type = KEY_STRING };

/* The object under a key, made if needed. */
static struct json_value *object_at(struct json_value *in, const struct key *k)
{
	struct json_value *have = *find_member(in, k->name), *made = mem_alloc(sizeof(*made));

	made->type = JSON_OBJECT;
	if (have && k->type == KEY_OBJECT && have->type == JSON_STRING)
		have = copy_tree(key_object(k, have));
	if (have && have->type == JSON_OBJECT)
		made = have;
	put_member(in, k->name, made);
	return made;
}

/* value NULL: remove it. False: it was not set. */
static bool change(struct json_value *in, const struct key *keys, const char *path,
	const char *value)
{
	size_t n = strcspn(path, ".");
	const char *name = mem_strndup(path, n);
	const struct key *k = keys == &variable ? keys : key_find(keys, name);
	bool done;

	if (path[n] && k && (k->type == KEY_OBJECT || k->type == KEY_TEXTS)) {
		struct json_value *sub =
			value || *find_member(in, name) ? object_at(in, k) : NULL;

		done = sub &&
			change(sub, k->type == KEY_TEXTS ? &variable : k->keys, path + n + 1,
				value);
		if (sub && !sub->first)
			*find_member(in, name) = (*find_member(in, name))->next;
		return done;
	}
	name = keys == &variable || (k && path[n]) ? path : name;
	if (value) {
		put_member(in, name, value_of(k, value));
		return true;
	}
	done = *find_member(in, name) != NULL;
	if (done)
		*find_member(in, name) = (*find_member(in, name))->next;
	return done;
}

/* ---- the file ---- */

/* Invalid keys do not prevent a change, or `KEY=` could not fix them. */
static int load_settings(const char *dir, struct json_value **ret, problems *bad)
{
	problems said = { 0 };
	const struct manifest_file *file = manifest_settings(path_join(dir, NAME), &said);
	const struct json_value *none;
	json_errors errors = { 0 };

	if (said.n && (!file || !file->tree || file->tree->type != JSON_OBJECT)) {
		*bad = said;
		return -1;
	}
	(void)json_read("{}", 2, NULL, &none, &errors);
	*ret = copy_tree(file ? file->tree : none);
	return 0;
}

static void check_text(const char *text, problems *bad)
{
	struct manifest_file file = { .path = NAME,
		.dir = "/",
		.name = "the new settings",
		.settings = true,
		.bytes = text,
		.size = strlen(text) };
	json_errors errors = { 0 };

	if (json_read(text, file.size, &file, &file.tree, &errors) < 0) {
		vec_each(e, &errors)
			problem_add(bad, mem_printf("the new settings: %s", e->text));
		return;
	}
	manifest_check(&file, agent_keys, bad);
	if (!bad->n)
		agent_check_settings(&file, bad);
}

static const struct key *key_at(const struct key *keys, const char *path)
{
	size_t n = strcspn(path, ".");
	const struct key *k = key_find(keys, mem_strndup(path, n));

	return k && path[n] ? k->type == KEY_OBJECT ? key_at(k->keys, path + n + 1) : NULL : k;
}

/* A list is written as JSON, which nobody guesses: show it with the user's own words. */
static int check_list(const char *key, const char *value, struct fault *f)
{
	const struct key *k = key_at(agent_keys, key);
	struct str list = { 0 };

	if (!k || k->type != KEY_STRINGS || value_of(k, value)->type == JSON_LIST)
		return 0;
	if (strpbrk(value, "[]\"'\\"))
		value = "a,b";
	for (const char *end; *value; value = end + (*end == ',')) {
		end = value + strcspn(value, ",");
		str_addf(&list, "%s\"%.*s\"", list.len ? ", " : "", (int)(end - value), value);
	}
	fault_set(f, 0, "%s: expected a list", key);
	return fault_fix(f, "As in: carrel instances set '%s=[%s]'", key,
		str_visible(list.len ? list.p : ""));
}

/* quiet: do not mention keys that were not set. */
static int apply(struct json_value *tree, int argc, char **argv, bool quiet, struct fault *f)
{
	for (int i = 0; i < argc; i++) {
		const char *value = strchr(argv[i], '='), *key;

		if (!value || value == argv[i]) {
			fault_set(f, 0, "'%s' is no KEY=VALUE", str_visible(argv[i]));
			return fault_fix(f, "As in: carrel instances set model=opus");
		}
		key = mem_strndup(argv[i], (size_t)(value - argv[i]));
		if (value[1] && check_list(key, value + 1, f) < 0)
			return -EINVAL;
		if (!change(tree, agent_keys, key, value[1] ? value + 1 : NULL) && !quiet)
			cmd_note(mem_printf("%s was not set", str_visible(key)));
	}
	return 0;
}

static bool only_takes_back(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		const char *value = strchr(argv[i], '=');

		if (!value || value[1])
			return false;
	}
	return true;
}

/* The new contents of the file. Of several invalid keys, one may be removed alone. */
static int prepare_text(const char *dir, int argc, char **argv, bool quiet, const char **ret,
	problems *bad, struct fault *f)
{
	struct json_value *tree;
	const char *text;
	int rc = load_settings(dir, &tree, bad);

	if (rc == 0)
		rc = apply(tree, argc, argv, quiet, f);
	if (rc < 0)
		return rc;
	text = text_of(tree);
	if (!only_takes_back(argc, argv))
		check_text(text, bad);
	if (bad->n)
		return -1;
	*ret = text;
	return 0;
}

/* Try it before anything is made, then do it under a lock. */
static int edit(const struct project *p, int argc, char **argv, problems *bad, struct fault *f)
{
	auto_close int held = -1, lock = -1;
	const char *dir, *text;
	int rc = instance_look(p, &dir, f);

	if (rc == 0)
		rc = prepare_text(dir, argc, argv, true, &text, bad, f);
	if (rc < 0)
		return rc;
	held = instance_enter(p, &dir, f);
	if (held < 0)
		return held;
	lock = layers_lock(dir, "project-root", LOCK_EX, f);
	rc = lock < 0 ? lock : prepare_text(dir, argc, argv, false, &text, bad, f);
	return rc < 0 ? rc : instance_write(dir, NAME, text, f);
}

/* The project of the instance that is named, or of the working directory. */
static int find_project(const char *id, struct project *ret, struct fault *f)
{
	struct instance i;
	const char *dir;
	int rc;

	if (id) {
		rc = instances_pick(id, &i, f);
		if (rc == 0)
			*ret = (struct project){ .root = i.root, .id = i.id };
		return rc;
	}
	rc = agent_workspace(&(struct request){ 0 }, &dir, f);
	if (rc == 0)
		rc = project_find(dir, ret, f);
	if (rc == 0 && ret->note)
		cmd_note(ret->note);
	return rc;
}

static int show_settings(const char *dir, problems *bad)
{
	struct json_value *tree;
	struct str out = { 0 };

	if (load_settings(dir, &tree, bad) < 0)
		return cmd_problems(bad->v, bad->n);
	str_add(&out, text_of(tree));
	return cmd_print(&out);
}

int instances_set(const struct instances_args *a, int argc, char **argv)
{
	bool named = argc && !strchr(argv[0], '=');
	struct fault f = { 0 };
	problems bad = { 0 };
	const char *dir;
	struct project p;
	int rc = find_project(named ? argv[0] : NULL, &p, &f);

	(void)a;
	argc -= named, argv += named;
	if (rc == 0 && argc)
		rc = edit(&p, argc, argv, &bad, &f);
	if (rc == 0)
		rc = instance_look(&p, &dir, &f);
	if (rc < 0)
		return bad.n ? cmd_problems(bad.v, bad.n) : cmd_fail(&f);
	return show_settings(dir, &bad);
}
