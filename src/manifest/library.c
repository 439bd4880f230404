/* manifest/library.c - look up the names in an agent's whitelists */
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "manifest/source.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_ROLE = 1 << 20 };

/* One whitelist: where its entries are declared, and where an agent keeps what was found. */
struct family {
	const char *key; /* in an agent and in the library */
	const struct key *keys;
	size_t names, used; /* offsets in struct agent */
	size_t size;
};

static const struct family skills = { "skills", skill_keys, offsetof(struct agent, skills),
	offsetof(struct agent, use_skills), sizeof(struct skill) };
static const struct family mcp_servers = { "mcpServers", mcp_server_keys,
	offsetof(struct agent, mcp_servers), offsetof(struct agent, use_mcp_servers),
	sizeof(struct mcp_server) };
static const struct family plugins = { "plugins", plugin_keys, offsetof(struct agent, plugins),
	offsetof(struct agent, use_plugins), sizeof(struct plugin) };
static const struct family hooks = { "hooks", hook_keys, offsetof(struct agent, hooks),
	offsetof(struct agent, use_hooks), sizeof(struct hook) };

static const struct json_value *entries(const struct manifest_file *file,
	const struct family *family)
{
	const struct json_value *v =
		file ? json_member(json_member(file->tree, "library"), family->key) : NULL;

	return v && v->type == JSON_OBJECT ? v : NULL;
}

/*
 * Search the library of the file that names it, then the other one. The project's library never
 * defines a name that the user's file uses.
 */
static const struct json_value *find_in_libraries(const struct manifests *m,
	const struct family *family, const struct said *name)
{
	const struct manifest_file *const files[] = { manifest_origin(name), m->project,
		m->user };
	const struct json_value *v = NULL;

	for (size_t i = 0; !v && i < ARRAY_SIZE(files); i++)
		v = json_member(entries(files[i], family), name->text);
	return v;
}

static const char *nearest(const struct manifests *m, const struct family *family,
	const char *name)
{
	const struct manifest_file *const files[] = { m->project, m->user };
	VEC(const char *) names = { 0 };
	const char *near;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct json_value *v = entries(files[i], family);

		for (v = v ? v->first : NULL; v; v = v->next)
			vec_push(&names, v->key);
	}
	near = str_nearest(name, names.v, names.n);
	return near ? mem_printf(" (did you mean \"%s\"?)", near) : "";
}

const char *manifest_field(const struct agent *a, const char *key)
{
	return a->mine ? mem_printf("mine.%s", key)
		       : mem_printf("agents.%s.%s", str_visible(a->name.text), key);
}

/* "carrel.json or ~/.config/carrel/carrel.json" */
static const char *files_text(const struct manifests *m)
{
	const struct manifest_file *one = m->project ? m->project : m->user;

	if (m->project && m->user)
		return mem_printf("%s or %s", str_visible(m->project->name),
			str_visible(m->user->name));
	return one ? str_visible(one->name) : "any manifest";
}

static void missing(const struct manifests *m, const struct family *family,
	const struct agent *a, const struct said *name, const char *also, problems *bad)
{
	manifest_problem(bad, name->at, manifest_field(a, family->key),
		"\"%s\" is not declared in library.%s of %s%s%s", str_visible(name->text),
		family->key, files_text(m), also, nearest(m, family, name->text));
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- one entry of each family ---- */

/* A skill that is in no library may be one of the user's own. */
static bool users_skill(const char *home, const struct said *name, struct skill *ret)
{
	const char *path = mem_printf("%s/.claude/skills/%s", home, name->text);

	if (strchr(name->text, '/') || name->text[0] == '.' || !is_dir(path))
		return false;
	*ret = (struct skill){ .name = *name, .source = { .text = path, .at = name->at } };
	return true;
}

static const char *users_text(const char *home, const struct said *name)
{
	return mem_printf(", nor is it at %s/.claude/skills/%s", str_visible(home),
		str_visible(name->text));
}

/* The `description:` of the front matter, which the client uses as well. */
static const char *described(const char *skill)
{
	char *text = source_read(path_join(skill, "SKILL.md"), MOST_ROLE);
	const char *at, *end = text ? strstr(text + 1, "\n---") : NULL;

	if (!text || !str_starts(text, "---\n") || !end)
		return "";
	at = strstr(text, "\ndescription:");
	if (!at || at > end)
		return "";
	at += strlen("\ndescription:");
	at += strspn(at, " \t");
	return mem_strndup(at, strcspn(at, "\r\n"));
}

static void resolve_skill(const char *home, struct skill *s, problems *bad)
{
	const char *field =
		mem_printf(s->source.at == s->name.at ? "skill %s" : "library.skills.%s.source",
			str_visible(s->name.text));

	s->path = source_dir(&s->source, field, home, bad);
	if (s->path && access(path_join(s->path, "SKILL.md"), R_OK) < 0) {
		manifest_problem(bad, s->source.at, field, "there is no SKILL.md in %s",
			str_visible(s->path));
		s->path = NULL;
	}
	if (s->path && !s->description.text)
		s->description.text = described(s->path);
}

/* The path of a program that is named with a slash; others are searched in the box. */
static const char *program_path(const struct said *command, const char *field, const char *home,
	problems *bad)
{
	const char *path;

	if (!strchr(command->text, '/'))
		return NULL;
	path = manifest_path(command, field, home, bad);
	if (path && access(path, X_OK) < 0)
		manifest_problem(bad, command->at, field, "%s cannot be executed: %s",
			str_visible(path), strerror(errno));
	return path;
}

static void resolve_hook(struct hook *h, const char *home, problems *bad)
{
	const char *field = mem_printf("library.hooks.%s.command", h->name.text);

	if (!h->command.n || !*h->command.v[0].text)
		manifest_problem(bad, h->name.at, field, "is empty");
	else
		h->path = program_path(&h->command.v[0], field, home, bad);
}

static void resolve_entry(const struct family *family, const char *home, void *entry,
	problems *bad)
{
	if (family == &skills) {
		resolve_skill(home, entry, bad);
	} else if (family == &mcp_servers) {
		struct mcp_server *s = entry;

		s->path = program_path(&s->command,
			mem_printf("library.mcpServers.%s.command", s->name.text), home, bad);
	} else if (family == &plugins) {
		struct plugin *p = entry;

		p->path = source_dir(&p->source,
			mem_printf("library.plugins.%s.source", p->name.text), home, bad);
	} else {
		resolve_hook(entry, home, bad);
	}
}

static bool find_entry(const struct manifests *m, const struct family *family, const char *home,
	const struct said *name, void *entry, bool *project_says)
{
	const struct json_value *v = find_in_libraries(m, family, name);

	if (!v)
		return family == &skills && users_skill(home, name, entry);
	*project_says |= m->project && v->origin == m->project;
	manifest_bind(family->keys, v, entry);
	*(struct said *)entry = (struct said){ .text = v->key, .at = v };
	return true;
}

static void resolve_family(const struct manifests *m, const struct family *family,
	const char *home, struct agent *a, problems *bad)
{
	const said_vec *names = (const said_vec *)((char *)a + family->names);
	struct {
		char *v;
		size_t n, cap;
	} *used = (void *)((char *)a + family->used);

	used->v = mem_alloc((names->n + 1) * family->size);
	used->cap = names->n;
	vec_each(name, names) {
		char *entry = used->v + family->size * used->n;

		if (find_entry(m, family, home, name, entry, &a->project_says)) {
			resolve_entry(family, home, entry, bad);
			used->n++;
			continue;
		}
		missing(m, family, a, name, family == &skills ? users_text(home, name) : "",
			bad);
	}
}

static void resolve_mounts(const char *home, struct agent *a, problems *bad)
{
	for (size_t i = 0; i < a->mounts.n; i++) {
		struct agent_mount *m = &a->mounts.v[i];
		const char *target = m->target.text;

		m->path = manifest_path(&m->source,
			manifest_field(a, mem_printf("mounts[%zu].source", i)), home, bad);
		if (target && target[0] != '/' && !str_starts(target, "~/"))
			manifest_problem(bad, m->target.at,
				manifest_field(a, mem_printf("mounts[%zu].target", i)),
				"%s is neither absolute nor below ~", str_visible(target));
	}
}

static void resolve_role(const char *home, struct agent *a, problems *bad)
{
	const char *field = manifest_field(a, "role");
	const char *path;

	if (!a->role.text)
		return;
	path = manifest_path(&a->role, field, home, bad);
	if (!path)
		return;
	a->role_path = path;
	a->role_text = source_read(path, MOST_ROLE);
	if (!a->role_text)
		manifest_problem(bad, a->role.at, field, "%s: %s", str_visible(path),
			errno == EFBIG            ? "larger than 1 MB"
				: errno == EINVAL ? "not a regular file"
						  : strerror(errno));
}

/* ---- names in files whose form is wrong somewhere ---- */

static void check_names(const struct manifests *m, const struct family *family,
	const char *home, const struct json_value *tree, const struct agent *a, problems *bad)
{
	const struct json_value *list = json_member(tree, family->key);
	struct skill unused;

	if (!list || list->type != JSON_LIST)
		return;
	json_each(item, list) {
		const struct said name = { .text = item->text, .at = item };

		if (item->type != JSON_STRING || !*item->text ||
			find_in_libraries(m, family, &name))
			continue;
		if (family != &skills)
			missing(m, family, a, &name, "", bad);
		else if (!users_skill(home, &name, &unused))
			missing(m, family, a, &name, users_text(home, &name), bad);
	}
}

static void check_agent(const struct manifests *m, const char *home,
	const struct json_value *tree, bool mine, problems *bad)
{
	static const struct family *const all[] = { &skills, &mcp_servers, &plugins, &hooks };
	const struct agent a = { .mine = mine, .name = { .text = tree->key, .at = tree } };

	if (tree->type != JSON_OBJECT)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		check_names(m, all[i], home, tree, &a, bad);
	manifest_check_extends(m, tree, bad);
}

void manifest_check_names(const struct manifests *m, const char *home, problems *bad)
{
	const struct manifest_file *const files[] = { m->project, m->user };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct json_value *tree = files[i] ? files[i]->tree : NULL;
		const struct json_value *agents = json_member(tree, "agents");
		const struct json_value *mine = json_member(tree, "mine");

		if (agents && agents->type == JSON_OBJECT)
			json_each(agent, agents)
				check_agent(m, home, agent, false, bad);
		if (mine)
			check_agent(m, home, mine, true, bad);
	}
}

void manifest_resolve(const struct manifests *m, const char *home, struct agent *a,
	problems *bad)
{
	resolve_family(m, &skills, home, a, bad);
	resolve_family(m, &mcp_servers, home, a, bad);
	resolve_family(m, &plugins, home, a, bad);
	resolve_family(m, &hooks, home, a, bad);
	resolve_role(home, a, bad);
	resolve_mounts(home, a, bad);
}
