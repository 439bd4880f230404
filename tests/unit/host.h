/*
 * tests/unit/host.h - a machine written down by hand, for the resolver
 *
 * An ordinary merged-usr system with a normal user "ada" (uid 1000) whose project is
 * /home/ada/proj. Tests change what they are about. Nothing here is looked up.
 */
#ifndef TESTS_UNIT_HOST_H
#define TESTS_UNIT_HOST_H

#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "plan/host.h"
#include "plan/layout.h"
#include "plan/request.h"

static const char *const host_env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "TERM=xterm",
	"LANG=C.UTF-8", "SECRET_TOKEN=hunter2", NULL };

static inline struct fact host_dir(const char *path)
{
	return (struct fact){
		.path = path, .kind = KIND_DIR, .real_kind = KIND_DIR, .real = path
	};
}

static inline struct fact host_file(const char *path)
{
	return (struct fact){
		.path = path, .kind = KIND_FILE, .real_kind = KIND_FILE, .real = path
	};
}

static inline struct fact host_link(const char *path, const char *text, const char *real)
{
	return (struct fact){ .path = path,
		.kind = KIND_LINK,
		.real_kind = real ? KIND_DIR : KIND_ABSENT,
		.real = real,
		.link = text };
}

/* A link of the system that leads to what is in the box as well, and is made again there. */
static inline struct fact host_own_link(const char *path, const char *text)
{
	return (struct fact){
		.path = path, .kind = KIND_LINK, .real_kind = KIND_LINK, .link = text
	};
}

static inline struct fact host_absent(const char *path)
{
	return (struct fact){ .path = path };
}

static inline void host_fill_system(struct host *h)
{
	h->system = mem_alloc(layout_system_n * sizeof(*h->system));
	for (size_t i = 0; i < layout_system_n; i++) {
		const char *path = layout_system[i];

		h->system[i] = !strcmp(path, "/usr") ? host_dir(path) : host_absent(path);
		if (!strcmp(path, "/bin") || !strcmp(path, "/lib64"))
			h->system[i] = host_own_link(path, path_join("usr", path + 1));
	}
	h->etc = mem_alloc(layout_etc_n * sizeof(*h->etc));
	for (size_t i = 0; i < layout_etc_n; i++) {
		const char *path = path_join("/etc", layout_etc[i].name);

		h->etc[i] = !strcmp(layout_etc[i].name, "ssl/certs") ? host_dir(path)
			: strchr(path, '.')                          ? host_file(path)
								     : host_absent(path);
		if (!strcmp(layout_etc[i].name, "localtime"))
			h->etc[i] = host_own_link(path, "/usr/share/zoneinfo/UTC");
	}
}

static inline void host_fill_toolchains(struct host *h)
{
	h->toolchains = mem_alloc(layout_toolchains_n * sizeof(*h->toolchains));
	for (size_t i = 0; i < layout_toolchains_n; i++)
		h->toolchains[i] = host_absent(path_join(h->home, layout_toolchains[i].dir));
}

static inline struct host host_make(void)
{
	struct host h = {
		.uid = 1000,
		.gid = 1000,
		.user = "ada",
		.group = "ada",
		.home = "/home/ada",
		.shell = "/bin/bash",
		.cwd = "/home/ada/proj",
		.env = host_env,
		.landlock_abi = 6,
		.ram = 16ULL << 30,
		.max_pids = 30000,
		.pids = 20000,
		.open_files = 1024,
		.workspace = host_dir("/home/ada/proj"),
	};

	host_fill_system(&h);
	host_fill_toolchains(&h);
	return h;
}

static inline struct host host_make_root(void)
{
	struct host h = host_make();

	h.uid = h.gid = 0;
	h.user = h.group = "agent";
	h.home = "/root";
	h.cwd = "/srv/proj";
	h.workspace = host_dir("/srv/proj");
	host_fill_toolchains(&h);
	return h;
}

/* The facts for the mounts of a request: each source is a directory that is there. */
static inline void host_fill_mounts(struct host *h, const struct request *r)
{
	h->mounts = mem_alloc((r->mounts.n + 1) * sizeof(*h->mounts));
	for (size_t i = 0; i < r->mounts.n; i++)
		h->mounts[i] = host_dir(path_clean(path_join(h->cwd, r->mounts.v[i].source)));
}

static inline struct rule make_rule(enum path_rule kind, const char *why,
	const struct fact *facts, size_t n)
{
	struct rule rule = { .kind = kind, .why = why };

	for (size_t i = 0; i < n; i++)
		vec_push(&rule.trail, facts[i]);
	return rule;
}

#define ADD_RULE(h, kind, why, ...)                                                   \
	do {                                                                          \
		const struct fact facts_[] = { __VA_ARGS__ };                         \
		struct rule rule_ = make_rule(kind, why, facts_, ARRAY_SIZE(facts_)); \
		vec_push(&(h)->rules, rule_);                                         \
	} while (0)

#define ADD_MOUNT(r, ...) \
	vec_push(&(r)->mounts, ((struct request_mount){ .why = "--mount", __VA_ARGS__ }))
#define ADD_ENV(r, name_, value_)                                               \
	vec_push(&(r)->env,                                                     \
		((struct request_env){ .name = (name_),                         \
			.how = (const char *)(value_) ? ENV_LITERAL : ENV_COPY, \
			.value = (value_) ?: (name_),                           \
			.from = ENV_ASKED,                                      \
			.why = "--env " name_ }))

#endif
