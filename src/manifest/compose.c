/*
 * manifest/compose.c - one agent from two files and a chain of `extends`
 *
 * Trees are composed, not structs. So every value keeps the file and line where it was written,
 * and a relative path keeps the directory it is relative to.
 */
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "base/fault.h"
#include "base/json-read.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

enum { MOST_PARENTS = 32 };

static const struct json_value *agents_of(const struct manifest_file *file)
{
	return file ? json_member(file->tree, "agents") : NULL;
}

static const struct json_value *find_agent(const struct manifests *m, const char *name)
{
	const struct json_value *v = json_member(agents_of(m->project), name);

	return v ? v : json_member(agents_of(m->user), name);
}

static void add_names(const struct json_value *agents, const struct json_value *over,
	said_vec *ret)
{
	if (!agents)
		return;
	json_each(agent, agents)
		if (!json_member(over, agent->key))
			vec_push(ret, ((struct said){ .text = agent->key, .at = agent }));
}

void manifest_names(const struct manifests *m, said_vec *ret)
{
	add_names(agents_of(m->project), NULL, ret);
	add_names(agents_of(m->user), agents_of(m->project), ret);
}

const struct manifest_file *manifest_origin(const struct said *said)
{
	return said->at->origin;
}

const struct json_value *manifest_at(const struct agent *a, const char *key)
{
	const struct json_value *at = a->name.at, *v = a->tree;

	for (size_t n; v && *key; key += n + (key[n] == '.')) {
		n = strcspn(key, ".");
		v = json_member(v, mem_strndup(key, n));
		at = v ? v : at;
	}
	return at;
}

/* ---- composing trees ---- */

static void append(struct json_value *parent, struct json_value ***end,
	const struct json_value *v)
{
	struct json_value *copy = mem_alloc(sizeof(*copy));

	*copy = *v;
	copy->next = NULL;
	if (!*end)
		*end = &parent->first;
	**end = copy;
	*end = &copy->next;
}

static bool has_text(const struct json_value *list, const struct json_value *item)
{
	json_each(v, list)
		if (v->type == JSON_STRING && item->type == JSON_STRING &&
			!strcmp(v->text, item->text))
			return true;
	return false;
}

/* The elements of base, then those elements of over that base does not have. */
static const struct json_value *join_lists(const struct json_value *base,
	const struct json_value *over)
{
	struct json_value *list = mem_alloc(sizeof(*list)), **end = NULL;

	*list = *over;
	list->first = NULL;
	json_each(v, base)
		append(list, &end, v);
	json_each(v, over)
		if (!has_text(base, v))
			append(list, &end, v);
	return list;
}

static const struct json_value *join_objects(const struct key *keys,
	const struct json_value *base, const struct json_value *over);

static const struct json_value *join(const struct key *k, const struct json_value *base,
	const struct json_value *over)
{
	const struct json_value *joined = over;
	struct json_value *named;

	if (k && k->type == KEY_OBJECT)
		joined = join_objects(k->keys, key_object(k, base), key_object(k, over));
	else if (k && k->type == KEY_TEXTS)
		joined = join_objects(NULL, base, over);
	else if (k && k->joins)
		joined = join_lists(base, over);
	named = mem_alloc(sizeof(*named));
	*named = *joined;
	named->key = over->key;
	return named;
}

static const struct json_value *join_objects(const struct key *keys,
	const struct json_value *base, const struct json_value *over)
{
	struct json_value *object = mem_alloc(sizeof(*object)), **end = NULL;

	*object = *over;
	object->first = NULL;
	json_each(v, base) {
		const struct json_value *mine = json_member(over, v->key);

		append(object, &end,
			mine ? join(keys ? key_find(keys, v->key) : NULL, v, mine) : v);
	}
	json_each(v, over)
		if (!json_member(base, v->key))
			append(object, &end, v);
	return object;
}

static const char *suggestion(const struct manifests *m, const char *name)
{
	said_vec all = { 0 };
	const char **names, *near;

	manifest_names(m, &all);
	names = mem_alloc((all.n + 1) * sizeof(*names));
	for (size_t i = 0; i < all.n; i++)
		names[i] = all.v[i].text;
	near = str_nearest(name, names, all.n);
	return near ? mem_printf(" (did you mean \"%s\"?)", str_visible(near)) : "";
}

/* The agent that v extends; NULL if there is no valid one. */
static const struct json_value *parent_of(const struct manifests *m,
	const struct json_value *const *chain, size_t n, const struct json_value *extends,
	problems *bad)
{
	const struct manifest_file *from = extends->origin;
	/* A project's agent cannot replace what the user's own file refers to. */
	const struct json_value *parent = from->project
		? find_agent(m, extends->text)
		: json_member(agents_of(m->user), extends->text);
	const char *name = chain[n - 1]->key;
	const char *field = !name || !strcmp(name, "mine")
		? "mine.extends"
		: mem_printf("agents.%s.extends", str_visible(name));

	if (!parent) {
		manifest_problem(bad, extends, field, "there is no agent \"%s\"%s",
			str_visible(extends->text), suggestion(m, extends->text));
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		if (chain[i] != parent)
			continue;
		manifest_problem(bad, extends, field, "a circle: \"%s\" extends this one",
			str_visible(parent->key));
		return NULL;
	}
	if (n == MOST_PARENTS) {
		manifest_problem(bad, extends, field, "more than %d agents in a row",
			MOST_PARENTS);
		return NULL;
	}
	return parent;
}

/* The agent's own tree over those it extends; NULL and a problem when it cannot be composed. */
static const struct json_value *compose(const struct manifests *m, const struct json_value *own,
	problems *bad)
{
	const struct json_value *chain[MOST_PARENTS] = { own }, *extends, *all;
	size_t n = 1;

	while ((extends = json_member(chain[n - 1], "extends"))) {
		const struct json_value *parent = parent_of(m, chain, n, extends, bad);

		if (!parent)
			return NULL;
		chain[n++] = parent;
	}
	all = chain[n - 1];
	while (n-- > 1)
		all = join_objects(agent_keys, all, chain[n - 1]);
	return all;
}

void manifest_check_extends(const struct manifests *m, const struct json_value *agent,
	problems *bad)
{
	const struct json_value *extends = json_member(agent, "extends");

	if (extends && extends->type == JSON_STRING && *extends->text)
		(void)parent_of(m, &agent, 1, extends, bad);
}

/* Is anything in the tree from that file? */
static bool has_origin(const struct json_value *v, const struct manifest_file *file)
{
	if (v->origin == file)
		return true;
	json_each(item, v)
		if (has_origin(item, file))
			return true;
	return false;
}

int manifest_agent(const struct manifests *m, const char *name, struct agent *ret,
	problems *bad, struct fault *f)
{
	const struct json_value *own = find_agent(m, name), *all;
	struct agent agent = { 0 };

	if (!own) {
		fault_set(f, 0, "there is no agent \"%s\"%s", str_visible(name),
			suggestion(m, name));
		return fault_fix(f,
			"`carrel agents` lists those that are declared; to box a command write "
			"-- before it: carrel run -- %s",
			str_visible(name));
	}
	all = compose(m, own, bad);
	if (!all)
		return -EINVAL;
	manifest_bind(agent_keys, all, &agent);
	agent.name = (struct said){ .text = own->key, .at = own };
	agent.tree = all;
	agent.project_says = m->project && has_origin(all, m->project);
	*ret = agent;
	return 0;
}

void manifest_mine(const struct manifests *m, const struct manifest_file *settings,
	struct agent *ret, problems *bad)
{
	const struct json_value *const said[] = {
		m->user ? json_member(m->user->tree, "mine") : NULL,
		m->project ? json_member(m->project->tree, "mine") : NULL,
		settings ? settings->tree : NULL,
	};
	const struct json_value *all = NULL, *extends;
	struct agent agent = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(said); i++)
		if (said[i])
			all = all ? join_objects(agent_keys, all, said[i]) : said[i];
	extends = json_member(all, "extends");
	if (extends) {
		const struct json_value *parent = parent_of(m, &all, 1, extends, bad);

		parent = parent ? compose(m, parent, bad) : NULL;
		all = parent ? join_objects(agent_keys, parent, all) : all;
	}
	if (all)
		manifest_bind(agent_keys, all, &agent);
	agent.name = (struct said){ .text = "mine", .at = all };
	agent.tree = all;
	agent.mine = true;
	agent.project_says = all && m->project && has_origin(all, m->project);
	*ret = agent;
}
