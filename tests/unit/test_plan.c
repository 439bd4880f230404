/*
 * tests/unit/test_plan.c - decisions of the resolver on machines written down by hand
 *
 * No system call is made and no privilege needed: what the plan says for a machine with
 * other links, another kernel or a hostile tree is tested without having one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "base/fault.h"
#include "box/engine.h"
#include "manifest/keys.h"
#include "plan/plan.h"
#include "host.h"

static const char *const command[] = { "make", "test", NULL };

static struct plan resolve(const struct request *r, struct host *h)
{
	struct fault f = { 0 };
	struct plan p = { 0 };

	if (!h->mounts)
		host_fill_mounts(h, r);
	if (plan_resolve(r, h, &p, &f) != 0)
		fail_msg("refused: %s", f.text);
	return p;
}

static struct plan resolve_default(struct host *h)
{
	return resolve(&(struct request){ .argv = command }, h);
}

/* It must be refused, with these words, and the plan left alone. */
static void check_refused(const struct request *r, struct host *h, const char *words, bool fix)
{
	struct fault f = { 0 };
	struct plan p = { .name = "untouched" };

	if (!h->mounts)
		host_fill_mounts(h, r);
	assert_true(plan_resolve(r, h, &p, &f) < 0);
	if (!strstr(f.text, words))
		fail_msg("'%s' has no '%s'", f.text, words);
	assert_int_equal(f.fix[0] != '\0', fix);
	assert_string_equal(p.name, "untouched");
}

static const struct place *at(const struct plan *p, const char *target)
{
	const struct place *found = NULL;

	vec_each(place, &p->places)
		if (!strcmp(place->target, target))
			found = place;
	return found;
}

static const struct place *must_be(const struct plan *p, const char *target,
	enum place_kind kind, bool rw)
{
	const struct place *place = at(p, target);

	if (!place)
		fail_msg("nothing at %s", target);
	if (place->kind != kind || place->rw != rw)
		fail_msg("%s is %s %s", target, place_kind_name(place->kind),
			place->rw ? "rw" : "ro");
	return place;
}

static size_t index_of(const struct plan *p, const char *target)
{
	const struct place *place = at(p, target);

	assert_non_null(place);
	return (size_t)(place - p->places.v);
}

static const struct plan_env *variable(const struct plan *p, const char *name)
{
	vec_each(e, &p->env)
		if (!strcmp(e->name, name))
			return e;
	return NULL;
}

static void check_variable(const struct plan *p, const char *name, const char *value,
	enum env_from from)
{
	const struct plan_env *e = variable(p, name);

	if (!e)
		fail_msg("no %s", name);
	assert_string_equal(e->value, value);
	assert_int_equal(e->from, from);
}

/* Every place after the one it lies in, none twice before the rules, and targets clean. */
static void check_order(const struct plan *p)
{
	for (size_t i = 0; i < p->places.n; i++) {
		const char *target = p->places.v[i].target;

		assert_string_equal(path_clean(target), target);
		for (size_t k = 0; k < i; k++)
			if (path_within(p->places.v[k].target, target) &&
				strcmp(p->places.v[k].target, target))
				fail_msg("%s comes after %s", target, p->places.v[k].target);
	}
}

#define W "/home/ada/proj"

/* ---- the usual box ---- */

/* The engine that was asked for is the frame's, and the manifest knows those of the table. */
static void test_engine(void **state)
{
	const struct request r = { .argv = command, .engine = "other" };
	struct host h = host_make();
	struct plan p = resolve_default(&h);
	struct fault f = { 0 };

	assert_string_equal(p.frame.engine, MANIFEST_ENGINES);
	assert_ptr_equal(engine_find(p.frame.engine, &f), &engine_native);
	p = resolve(&r, &h);
	assert_string_equal(p.frame.engine, "other");
	assert_null(engine_find(p.frame.engine, &f));
	assert_non_null(strstr(f.text, "has no such engine; it has: native"));
}

static void test_normal_user(void **state)
{
	struct host h = host_make();
	struct plan p = resolve_default(&h);

	assert_string_equal(p.name, "carrel-proj");
	assert_string_equal(p.workspace, W);
	assert_string_equal(p.workdir, W);
	assert_int_equal(p.frame.uid, 1000);
	assert_int_equal(p.frame.host_uid, 1000);
	assert_string_equal(p.argv[0], "make");
	must_be(&p, "/usr", PLACE_BIND, false);
	assert_string_equal(must_be(&p, "/bin", PLACE_LINK, false)->text, "usr/bin");
	assert_null(at(&p, "/opt"));
	must_be(&p, "/etc/ssl/certs", PLACE_BIND, false);
	must_be(&p, "/etc/localtime", PLACE_LINK, false);
	must_be(&p, "/proc", PLACE_PROC, true);
	must_be(&p, "/dev/pts", PLACE_PTS, true);
	must_be(&p, "/tmp", PLACE_SCRATCH, true);
	must_be(&p, "/home/ada", PLACE_SCRATCH, true);
	must_be(&p, W, PLACE_BIND, true);
	assert_null(at(&p, "/sys"));
	assert_null(at(&p, "/"));
	assert_null(at(&p, "/proc/sys"));
	check_order(&p);
}

/* Nothing of the host is writable but the workspace; devices work in /dev alone. */
static void test_writable_binds(void **state)
{
	struct host h = host_make();
	struct plan p = resolve_default(&h);

	vec_each(place, &p.places) {
		if (place->kind != PLACE_BIND)
			continue;
		assert_int_equal(place->device, path_within(place->target, "/dev"));
		if (place->rw && !place->device)
			assert_string_equal(place->target, W);
	}
}

static void test_accounts(void **state)
{
	struct host h = host_make(), root = host_make_root(), nobody = host_make();
	struct plan p = resolve_default(&h);

	assert_string_equal(must_be(&p, "/etc/passwd", PLACE_FILE, false)->text,
		"root:x:0:0:root:/root:/usr/sbin/nologin\n"
		"ada:x:1000:1000::/home/ada:/bin/bash\n"
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	assert_string_equal(at(&p, "/etc/group")->text,
		"root:x:0:\nada:x:1000:\nnogroup:x:65534:\n");
	p = resolve_default(&root);
	assert_non_null(strstr(at(&p, "/etc/passwd")->text,
		"agent:x:1000:1000::/root:/bin/bash\n"));
	nobody.uid = nobody.gid = 65534;
	p = resolve_default(&nobody);
	assert_null(strstr(at(&p, "/etc/passwd")->text, "nobody"));
	assert_null(strstr(at(&p, "/etc/group")->text, "nogroup"));
}

static void test_root(void **state)
{
	struct host h = host_make_root();
	struct plan p = resolve_default(&h);

	assert_int_equal(p.frame.uid, 1000);
	assert_int_equal(p.frame.gid, 1000);
	assert_int_equal(p.frame.host_uid, 0);
	assert_int_equal(p.frame.host_gid, 0);
	must_be(&p, "/root", PLACE_SCRATCH, true);
	must_be(&p, "/proc/sys", PLACE_SEAL, false);
	must_be(&p, "/proc/sysrq-trigger", PLACE_SEAL, false);
	must_be(&p, "/proc/kcore", PLACE_HIDE, false);
	vec_each(place, &p.places)
		if (path_within(place->target, "/proc") && strcmp(place->target, "/proc"))
			assert_true(place->optional);
	check_order(&p);
}

static void test_namespaces_and_network(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command, .network = NETWORK_HOST };
	struct plan none = resolve_default(&h), shared = resolve(&r, &h);

	assert_true(none.frame.namespaces & CLONE_NEWNET);
	assert_int_equal(none.frame.namespaces & ~shared.frame.namespaces, CLONE_NEWNET);
	must_be(&none, "/etc/resolv.conf", PLACE_FILE, false);
	must_be(&none, "/etc/hosts", PLACE_FILE, false);
	assert_null(at(&none, "/etc/gai.conf"));
	must_be(&shared, "/etc/resolv.conf", PLACE_COPY, false);
	must_be(&shared, "/etc/gai.conf", PLACE_COPY, false);
}

static void test_shell_when_no_command(void **state)
{
	struct host h = host_make();
	struct plan p = resolve(&(struct request){ 0 }, &h);

	assert_string_equal(p.argv[0], "/bin/bash");
	assert_null(p.argv[1]);
}

/* ---- the workspace ---- */

static void test_workspace_refused(void **state)
{
	static const char *const never[] = { "/", "/etc", "/etc/x", "/proc/1", "/dev", "/sys/x",
		"/home", "/home/ada" };
	struct request r = { .argv = command };

	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		struct host h = host_make();
		bool holds_home = path_within(h.home, never[i]);

		h.workspace = host_dir(never[i]);
		check_refused(&r, &h, holds_home ? "home directory" : "cannot be a workspace",
			holds_home);
	}
}

static void test_workspace_must_be_a_directory(void **state)
{
	struct host absent = host_make(), file = host_make();
	struct request r = { .argv = command };

	absent.workspace = host_absent("/x");
	check_refused(&r, &absent, "workspace /x", false);
	file.workspace = host_file("/x");
	check_refused(&r, &file, "workspace /x", false);
}

static void test_workspace_by_link(void **state)
{
	struct host h = host_make();
	struct plan p;

	h.workspace = host_link("/home/ada/current", "proj", W);
	h.cwd = W "/src";
	p = resolve_default(&h);
	assert_string_equal(p.workspace, W);
	assert_string_equal(p.workdir, W "/src");
	h.cwd = "/home/ada/project-two";
	p = resolve_default(&h);
	assert_string_equal(p.workdir, W);
}

static void test_home_within_scratch(void **state)
{
	struct host h = host_make();
	struct plan p;

	h.home = "/tmp/home";
	h.workspace = host_dir("/tmp/home/proj");
	h.cwd = "/tmp/home/proj";
	host_fill_toolchains(&h);
	p = resolve_default(&h);
	assert_true(must_be(&p, "/tmp/home", PLACE_SCRATCH, true)->create);
	assert_true(must_be(&p, "/tmp/home/proj", PLACE_BIND, true)->create);
	assert_true(index_of(&p, "/tmp") < index_of(&p, "/tmp/home"));
	assert_true(index_of(&p, "/tmp/home") < index_of(&p, "/tmp/home/proj"));
}

/* As service users and containers have it. */
static void test_home_is_scratch_itself(void **state)
{
	static const char *const homes[] = { "/tmp", "/var/tmp", "/run" };

	for (size_t i = 0; i < ARRAY_SIZE(homes); i++) {
		struct host h = host_make();
		struct plan p;

		h.home = homes[i];
		h.workspace = host_dir("/srv/proj");
		h.cwd = "/srv/proj";
		host_fill_toolchains(&h);
		p = resolve_default(&h);
		must_be(&p, homes[i], PLACE_SCRATCH, true);
		check_order(&p);
	}
}

static void set_toolchain(struct host *h, const char *dir)
{
	for (size_t i = 0; i < layout_toolchains_n; i++)
		if (!strcmp(layout_toolchains[i].dir, dir))
			h->toolchains[i] = host_dir(path_join(h->home, dir));
}

static void test_toolchains(void **state)
{
	static const char *const env[] = { "PATH=/home/ada/.cargo/bin:/usr/bin", NULL };
	struct host h = host_make();
	struct plan p;

	h.env = env;
	set_toolchain(&h, ".cargo/bin");
	set_toolchain(&h, ".rustup");
	p = resolve_default(&h);
	must_be(&p, "/home/ada/.cargo/bin", PLACE_BIND, false);
	must_be(&p, "/home/ada/.rustup", PLACE_BIND, false);
	assert_null(at(&p, "/home/ada/.cargo"));
	assert_null(at(&p, "/home/ada/.pyenv"));
	check_variable(&p, "PATH", "/home/ada/.cargo/bin:/usr/bin", ENV_SET);
	check_order(&p);
}

static void test_worktree(void **state)
{
	struct host h = host_make();
	struct plan p;

	h.git_common = "/home/ada/main/.git";
	vec_push(&h.notices, "a word about it");
	ADD_RULE(&h, RULE_PROTECT, "hooks", host_dir("/home/ada/main/.git/hooks"));
	p = resolve_default(&h);
	must_be(&p, "/home/ada/main/.git", PLACE_BIND, true);
	must_be(&p, "/home/ada/main/.git/hooks", PLACE_PROTECT, false);
	assert_string_equal(p.notices.v[p.notices.n - 1], "a word about it");
}

/* ---- mounts ---- */

static void test_mounts(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct plan p;

	ADD_MOUNT(&r, .source = "/data");
	ADD_MOUNT(&r, .source = "/data/in", .target = "/data/in/here", .rw = true);
	ADD_MOUNT(&r, .source = "../other", .target = "/mnt/./x/../y//");
	p = resolve(&r, &h);
	assert_false(must_be(&p, "/data", PLACE_BIND, false)->moved);
	assert_true(must_be(&p, "/data/in/here", PLACE_BIND, true)->moved);
	assert_string_equal(must_be(&p, "/mnt/y", PLACE_BIND, false)->source,
		"/home/ada/other");
	assert_true(at(&p, "/data")->create);
	assert_false(at(&p, "/data/in/here")->create); /* must be there on the host */
	check_order(&p);
}

/* Children after parents, whatever order they were given in and whatever sorts between. */
static void test_nested_mounts_in_order(void **state)
{
	static const char *const targets[] = { "/m/a/b/c", "/m/a-b", "/m", "/m/a/b", "/m/a",
		"/m/a.b/c", W "/deps", W "-two", W "/deps/x" };
	struct host h = host_make();
	struct request r = { .argv = command };
	struct plan p;

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		ADD_MOUNT(&r, .source = "/data", .target = targets[i]);
	p = resolve(&r, &h);
	check_order(&p);
	assert_true(index_of(&p, "/m/a") < index_of(&p, "/m/a/b"));
	assert_true(index_of(&p, "/m/a/b/c") < index_of(&p, "/m/a-b"));
	assert_true(index_of(&p, W) < index_of(&p, W "/deps"));
	assert_true(at(&p, "/m")->create);
	assert_false(at(&p, "/m/a")->create);
	assert_false(at(&p, W "/deps")->create);
	assert_true(at(&p, W "-two")->create);
}

static void test_hundreds_of_mounts(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct plan p;

	for (int i = 0; i < 500; i++)
		ADD_MOUNT(&r, .source = "/data", .target = mem_printf("/m/%d", i * 7 % 500));
	p = resolve(&r, &h);
	check_order(&p);
	assert_true(p.places.n >= 500);
}

static void check_mount_refused(const char *source, const char *target, const char *words)
{
	struct host h = host_make();
	struct request r = { .argv = command };

	ADD_MOUNT(&r, .source = source, .target = target);
	check_refused(&r, &h, words, false);
}

static void test_mounts_refused(void **state)
{
	check_mount_refused("/data", "/", "absolute path");
	check_mount_refused("/data", "/..", "absolute path");
	check_mount_refused("/data", "/proc", "the box's own");
	check_mount_refused("/data", "/proc/x", "the box's own");
	check_mount_refused("/data", "/dev/sda", "the box's own");
	check_mount_refused("/data", "/etc/passwd", "the box's own");
	check_mount_refused("/data", "/x/../etc/group", "the box's own");
	check_mount_refused("/proc", "/host-proc", "the host's proc");
	check_mount_refused("/proc/1/root", "/x", "the host's proc");
	check_mount_refused("/data", "/usr", "two things want to be at /usr");
	check_mount_refused("/data", "/tmp", "two things want to be at /tmp");
	check_mount_refused("/data", W, "two things want to be at");
	check_mount_refused("/data", "/bin/x", "no directory");
}

static void test_absent_source(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct fact absent = host_absent("/x");

	ADD_MOUNT(&r, .source = "/x");
	h.mounts = &absent;
	check_refused(&r, &h, "--mount /x", false);
}

static void test_same_target_twice(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };

	ADD_MOUNT(&r, .source = "/one", .target = "/x");
	ADD_MOUNT(&r, .source = "/two", .target = "/x/");
	check_refused(&r, &h, "two things want to be at /x", false);
}

static void test_mount_in_a_file(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct fact facts[2];

	ADD_MOUNT(&r, .source = "/file");
	ADD_MOUNT(&r, .source = "/data", .target = "/file/below");
	facts[0] = host_file("/file");
	facts[1] = host_dir("/data");
	h.mounts = facts;
	check_refused(&r, &h, "no directory", false);
}

/* ---- rules ---- */

static void test_protect_pins_ancestors(void **state)
{
	struct host h = host_make();
	struct plan p;

	ADD_RULE(&h, RULE_PROTECT, "deep", host_dir(W "/a"), host_dir(W "/a/b"),
		host_file(W "/a/b/c"));
	p = resolve_default(&h);
	must_be(&p, W "/a", PLACE_PIN, true);
	must_be(&p, W "/a/b", PLACE_PIN, true);
	assert_string_equal(must_be(&p, W "/a/b/c", PLACE_PROTECT, false)->why, "deep");
	assert_true(index_of(&p, W "/a") < index_of(&p, W "/a/b"));
	assert_true(index_of(&p, W "/a/b") < index_of(&p, W "/a/b/c"));
}

static void test_absent_names_become_stubs(void **state)
{
	struct host h = host_make();
	struct plan p;

	ADD_RULE(&h, RULE_PROTECT, "hooks", host_dir(W "/.git"), host_absent(W "/.git/hooks"));
	h.rules.v[0].stub = "text";
	ADD_RULE(&h, RULE_PROTECT, "mcp", host_absent(W "/.mcp.json"));
	p = resolve_default(&h);
	must_be(&p, W "/.git", PLACE_PIN, true);
	assert_string_equal(must_be(&p, W "/.git/hooks", PLACE_STUB, false)->text, "text");
	assert_null(must_be(&p, W "/.mcp.json", PLACE_STUB, false)->text);
}

static void test_hide(void **state)
{
	struct host h = host_make();
	struct plan p;

	ADD_RULE(&h, RULE_HIDE, "**/.env", host_dir(W "/app"), host_file(W "/app/.env"));
	ADD_RULE(&h, RULE_HIDE, "secrets", host_dir(W "/secrets"));
	ADD_RULE(&h, RULE_HIDE, "not there", host_absent(W "/gone"));
	p = resolve_default(&h);
	must_be(&p, W "/app", PLACE_PIN, true);
	assert_false(must_be(&p, W "/app/.env", PLACE_HIDE, false)->dir);
	assert_true(must_be(&p, W "/secrets", PLACE_HIDE, false)->dir);
	assert_null(at(&p, W "/gone"));
}

/* A link is pinned, so that it cannot be bent, and what it leads to is guarded. */
static void test_rules_through_links(void **state)
{
	struct host h = host_make();
	struct plan p;

	ADD_RULE(&h, RULE_PROTECT, "cfg", host_link(W "/cfg", "real", W "/real"),
		host_dir(W "/real"), host_file(W "/real/file"));
	ADD_RULE(&h, RULE_HIDE, "out", host_link(W "/out", "/etc/shadow", "/etc/shadow"));
	p = resolve_default(&h);
	must_be(&p, W "/cfg", PLACE_PIN, true);
	must_be(&p, W "/real", PLACE_PIN, true);
	must_be(&p, W "/real/file", PLACE_PROTECT, false);
	must_be(&p, W "/out", PLACE_PIN, true);
}

/* The same file by another name in the box is guarded there too. */
static void test_rules_follow_every_bind(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct plan p;

	ADD_RULE(&h, RULE_HIDE, "**/.env", host_file(W "/.env"));
	ADD_RULE(&h, RULE_PROTECT, "hooks", host_dir(W "/.git"), host_dir(W "/.git/hooks"));
	ADD_MOUNT(&r, .source = "/home/ada", .target = "/all", .rw = true);
	ADD_MOUNT(&r, .source = W, .target = "/copy");
	ADD_MOUNT(&r, .source = W "/.git", .target = "/git", .rw = true);
	p = resolve(&r, &h);
	must_be(&p, W "/.env", PLACE_HIDE, false);
	must_be(&p, "/all/proj/.env", PLACE_HIDE, false);
	must_be(&p, "/copy/.env", PLACE_HIDE, false);
	must_be(&p, "/all/proj/.git/hooks", PLACE_PROTECT, false);
	must_be(&p, "/all/proj/.git", PLACE_PIN, true);
	must_be(&p, "/git/hooks", PLACE_PROTECT, false);
	assert_null(at(&p, "/copy/.git/hooks")); /* read-only as it is */
}

/* A mount that is exactly the guarded path. */
static void test_mount_of_a_guarded_path(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct plan p;

	ADD_RULE(&h, RULE_HIDE, "secrets", host_dir(W "/secrets"));
	ADD_RULE(&h, RULE_PROTECT, "hooks", host_dir(W "/hooks"));
	ADD_MOUNT(&r, .source = W "/secrets", .target = "/s", .rw = true);
	ADD_MOUNT(&r, .source = W "/hooks", .target = "/h", .rw = true);
	p = resolve(&r, &h);
	must_be(&p, W "/secrets", PLACE_HIDE, false);
	must_be(&p, W "/hooks", PLACE_PROTECT, false);
	must_be(&p, "/s", PLACE_BIND, true); /* asked for by name */
	must_be(&p, "/h", PLACE_BIND, true);
}

/* Below a mount that covers part of the workspace the rule is about something else. */
static void test_rules_under_another_mount(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct plan p;

	ADD_RULE(&h, RULE_HIDE, ".env", host_dir(W "/sub"), host_file(W "/sub/.env"));
	ADD_MOUNT(&r, .source = "/data", .target = W "/sub");
	p = resolve(&r, &h);
	must_be(&p, W "/sub", PLACE_BIND, false);
	assert_null(at(&p, W "/sub/.env"));
}

/* A pin laid after a mount that lies in it would cover that mount up. */
static void test_rules_do_not_cover_mounts(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct plan p;

	ADD_RULE(&h, RULE_PROTECT, "hooks", host_dir(W "/.git"), host_dir(W "/.git/hooks"));
	ADD_MOUNT(&r, .source = "/data", .target = W "/.git/objects");
	ADD_MOUNT(&r, .source = "/data", .target = W "/.git/hooks/more");
	p = resolve(&r, &h);
	must_be(&p, W "/.git", PLACE_PIN, true);
	must_be(&p, W "/.git/hooks", PLACE_PROTECT, false);
	must_be(&p, W "/.git/objects", PLACE_BIND, false);
	check_order(&p);
}

static void test_stronger_rule_wins(void **state)
{
	struct host h = host_make();
	struct plan p;
	size_t n = 0;

	ADD_RULE(&h, RULE_PROTECT, "p", host_dir(W "/d"), host_file(W "/d/x"));
	ADD_RULE(&h, RULE_HIDE, "h", host_dir(W "/d"), host_file(W "/d/x"));
	ADD_RULE(&h, RULE_PROTECT, "q", host_dir(W "/d"));
	p = resolve_default(&h);
	must_be(&p, W "/d", PLACE_PROTECT, false);
	must_be(&p, W "/d/x", PLACE_HIDE, false);
	vec_each(place, &p.places)
		n += path_within(place->target, W "/d");
	assert_int_equal(n, 2);
}

static void test_nothing_below_hidden(void **state)
{
	struct host h = host_make();
	struct plan p;

	ADD_RULE(&h, RULE_HIDE, "d", host_dir(W "/d"));
	ADD_RULE(&h, RULE_PROTECT, "x", host_dir(W "/d"), host_absent(W "/d/x"));
	ADD_RULE(&h, RULE_HIDE, "y", host_dir(W "/d"), host_file(W "/d/y"));
	ADD_RULE(&h, RULE_PROTECT, "d-x", host_file(W "/d-x"));
	p = resolve_default(&h);
	must_be(&p, W "/d", PLACE_HIDE, false);
	assert_null(at(&p, W "/d/x"));
	assert_null(at(&p, W "/d/y"));
	must_be(&p, W "/d-x", PLACE_PROTECT, false);
}

/* ---- environment ---- */

static void test_env_allow_list(void **state)
{
	static const char *const env[] = { "TERM=xterm", "LANG=de_DE.UTF-8", "LC_ALL=C",
		"LC_TIME=C", "TZ=UTC", "COLORTERM=truecolor", "NO_COLOR=1", "EDITOR=vi",
		"AWS_SECRET_ACCESS_KEY=k", "SSH_AUTH_SOCK=/run/a", "LD_PRELOAD=/tmp/x.so",
		"BASH_ENV=/tmp/x", "LCX=1", "TERMINFO=/tmp", "HOME=/other", "USER=eve",
		"SHELL=/tmp/sh", "broken", "CARREL_BOX=lie", NULL };
	static const char *const pass[] = { "TERM", "LANG", "LC_ALL", "LC_TIME", "TZ",
		"COLORTERM", "NO_COLOR", "EDITOR" };
	struct host h = host_make();
	struct plan p;

	h.env = env;
	p = resolve_default(&h);
	for (size_t i = 0; i < ARRAY_SIZE(pass); i++)
		assert_int_equal(variable(&p, pass[i])->from, ENV_HOST);
	assert_int_equal(p.env.n, ARRAY_SIZE(pass) + 6);
	check_variable(&p, "HOME", "/home/ada", ENV_SET);
	check_variable(&p, "USER", "ada", ENV_SET);
	check_variable(&p, "LOGNAME", "ada", ENV_SET);
	check_variable(&p, "SHELL", "/bin/bash", ENV_SET);
	check_variable(&p, "CARREL_BOX", "carrel-proj", ENV_SET);
	check_variable(&p, "PATH", "/usr/local/bin:/usr/bin:/bin", ENV_SET);
}

static void test_env_asked(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct plan p;

	ADD_ENV(&r, "SECRET_TOKEN", NULL);
	ADD_ENV(&r, "TERM", "dumb");
	ADD_ENV(&r, "EMPTY", "");
	ADD_ENV(&r, "TWICE", "1");
	ADD_ENV(&r, "TWICE", "2");
	p = resolve(&r, &h);
	check_variable(&p, "SECRET_TOKEN", "hunter2", ENV_ASKED);
	check_variable(&p, "TERM", "dumb", ENV_ASKED);
	check_variable(&p, "EMPTY", "", ENV_ASKED);
	check_variable(&p, "TWICE", "2", ENV_ASKED);
}

static void test_env_not_set(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };

	ADD_ENV(&r, "SECRET", NULL); /* a prefix of one that is set */
	check_refused(&r, &h, "--env SECRET: not set", true);
}

static void test_path_keeps_what_is_there(void **state)
{
	static const struct {
		const char *host, *box;
	} rows[] = {
		{ "PATH=/usr/bin", "/usr/bin" },
		{ "PATH=/usr/bin/:/bin//", "/usr/bin:/bin" },
		{ "PATH=/home/ada/bin:/usr/bin", "/usr/bin" },
		{ "PATH=/opt/x:/usr/bin", "/usr/bin" },
		{ "PATH=.:bin::/usr/bin", "/usr/bin" },
		{ "PATH=" W "/node_modules/.bin:/usr/bin", "/usr/bin" },
		{ "PATH=/usr/games", "/usr/games:/usr/local/bin:/usr/bin:/bin" },
		{ "PATH=", "/usr/local/bin:/usr/bin:/bin" },
		{ "PATHS=/x", "/usr/local/bin:/usr/bin:/bin" },
		{ "PATH=/tmp/bin:/bin", "/bin" },
		{ "PATH=/usr/../home/ada:/bin", "/bin" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct host h = host_make();
		struct plan p;

		h.env = (const char *const[]){ rows[i].host, NULL };
		p = resolve_default(&h);
		check_variable(&p, "PATH", rows[i].box, ENV_SET);
	}
}

static void test_path_with_mounts(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct plan p;

	h.env = (const char *const[]){ "PATH=/tools/bin:/moved/bin:/bin", NULL };
	ADD_MOUNT(&r, .source = "/tools");
	ADD_MOUNT(&r, .source = "/moved", .target = "/elsewhere");
	p = resolve(&r, &h);
	check_variable(&p, "PATH", "/tools/bin:/bin", ENV_SET);
}

/* ---- names and limits ---- */

static void test_name_from_workspace(void **state)
{
	static const char *const rows[][2] = {
		{ "/srv/My Project!", "carrel-my-project" },
		{ "/srv/a.b_c", "carrel-a-b-c" },
		{ "/srv/--x--", "carrel-x" },
		{ "/srv/\xc3\xa4\xff\n", "carrel-box" },
		{ "/srv/0123456789012345678901234567890123456789abcdef",
			"carrel-0123456789012345678901234567890123456789" },
		{ "/srv/012345678901234567890123456789012345678-x",
			"carrel-012345678901234567890123456789012345678" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct host h = host_make();
		struct plan p;

		h.workspace = host_dir(rows[i][0]);
		p = resolve_default(&h);
		assert_string_equal(p.name, rows[i][1]);
		assert_true(strlen(p.name) <= 63);
	}
}

static void test_name_given(void **state)
{
	static const char longest[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567890";
	static const char *const good[] = { "a", "0", "my-box", longest };
	static const char *const bad[] = { "", "-a", "a b", "a.b", "a_b", "a\n", "\xc3\xa4",
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345678901" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct host h = host_make();
		struct request r = { .argv = command, .name = good[i] };
		struct plan p = resolve(&r, &h);

		assert_string_equal(p.name, good[i]);
		check_variable(&p, "CARREL_BOX", good[i], ENV_SET);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct host h = host_make();
		struct request r = { .argv = command, .name = bad[i] };

		check_refused(&r, &h, "a name is 1 to 63", false);
	}
}

static void test_limits(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command,
		.limits = { .time = 60, .pids = 10, .files = 20, .scratch = 1 << 20 } };
	struct plan p = resolve_default(&h);

	assert_int_equal(p.limits.time, 0);
	assert_int_equal(p.limits.pids, 4096);
	assert_int_equal(p.limits.scratch, 4ULL << 30);
	h.ram = 1ULL << 40;
	p = resolve_default(&h);
	assert_int_equal(p.limits.scratch, 8ULL << 30);
	p = resolve(&r, &h);
	assert_memory_equal(&p.limits, &r.limits, sizeof(p.limits));
	/* The kernel rounds up to a page, and what is printed is what there is. */
	r.limits.scratch = 100001;
	assert_int_equal(resolve(&r, &h).limits.scratch, 2 * 64 * 1024);
	/* Open files: what the user may have, and what of that a box gets. */
	static const unsigned long long files[][2] = { { 1024, 704 }, { 256, 128 },
		{ 640, 320 }, { 641, 321 }, { 4096, 3072 }, { 20000, 15000 }, { 524288, 65536 },
		{ UINT64_MAX, 65536 } };
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		h.open_files = files[i][0];
		assert_int_equal(resolve_default(&h).limits.files, files[i][1]);
	}
	/* Processes: half of what the user may have now, and never more than at most. */
	h.pids = 3000;
	assert_int_equal(resolve_default(&h).limits.pids, 1500);
	h.max_pids = 1000;
	assert_int_equal(resolve_default(&h).limits.pids, 1000);
	h.ram = 25276518001;
	assert_int_equal(resolve_default(&h).limits.scratch % (64 * 1024), 0);
}

static void test_limits_of_root(void **state)
{
	struct host h = host_make_root();
	struct request r = { .argv = command, .limits = { .pids = 10 } };
	struct plan p = resolve_default(&h);

	assert_int_equal(p.limits.pids, 0);
	check_refused(&r, &h, "--limit pids", true);
}

/* ---- layers ---- */

static void test_nest(void **state)
{
	struct host h = host_make(), root = host_make_root();
	struct request r = { .argv = command, .nest = true };
	struct plan p = resolve(&r, &h);

	assert_int_equal(p.seccomp, SECCOMP_NEST);
	assert_int_equal(p.landlock_abi, 0);
	assert_true(p.frame.nest);
	assert_int_equal(p.notices.n, 1);
	check_refused(&r, &root, "--nest", true);
}

static void test_landlock(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command }, nest = { .argv = command, .nest = true };
	struct plan p = resolve_default(&h);

	assert_int_equal(p.landlock_abi, 6);
	assert_int_equal(p.notices.n, 0);
	h.landlock_abi = 1;
	p = resolve_default(&h);
	assert_int_equal(p.notices.n, 1);
	h.landlock_abi = 0;
	check_refused(&r, &h, "Landlock is not available", true);
	resolve(&nest, &h);
}

/* ---- ports and modes ---- */

static void test_ports(void **state)
{
	static const char *const bad[] = { "", ":", "0", "00", "080", "65536", "99999",
		"123456", "80:", ":80", "80:0", "80:65536", "1:2:3", " 80", "80 ", "+80", "-1",
		"0x50", "8a", "80,81", "4294967376", "18446744073709551696" };
	struct port_pair p = { 7, 7 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(port_parse(bad[i], &p));
	assert_true(p.host == 7 && p.box == 7);
	assert_true(port_parse("3000", &p) && p.host == 3000 && p.box == 3000);
	assert_true(port_parse("8080:80", &p) && p.host == 8080 && p.box == 80);
	assert_true(port_parse("65535:1", &p) && p.host == 65535 && p.box == 1);
}

static void test_modes(void **state)
{
	struct request r = { 0 };
	struct fault f;

	(void)state;
	assert_int_equal(request_settle(&r, &f), 0);
	assert_int_equal(r.network, NETWORK_NONE);
	vec_push(&r.hosts, ((struct request_host){ "x.org", "--deny", true }));
	assert_true(request_settle(&r, &f) < 0);
	vec_push(&r.hosts, ((struct request_host){ "y.org", "--allow", false }));
	assert_int_equal(request_settle(&r, &f), 0);
	assert_int_equal(r.network, NETWORK_ALLOW);
	r.ask = true;
	assert_int_equal(request_settle(&r, &f), 0);
	r.network = NETWORK_OPEN;
	assert_true(request_settle(&r, &f) < 0);
	r.ask = false;
	assert_int_equal(request_settle(&r, &f), 0);
	for (int mode = NETWORK_NONE; mode <= NETWORK_HOST; mode += NETWORK_HOST) {
		r.network = (enum network)mode;
		r.network_said = true;
		assert_true(request_settle(&r, &f) < 0);
		assert_non_null(strstr(f.text, "x.org"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_engine),
		cmocka_unit_test(test_normal_user),
		cmocka_unit_test(test_writable_binds),
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_namespaces_and_network),
		cmocka_unit_test(test_shell_when_no_command),
		cmocka_unit_test(test_workspace_refused),
		cmocka_unit_test(test_workspace_must_be_a_directory),
		cmocka_unit_test(test_workspace_by_link),
		cmocka_unit_test(test_home_within_scratch),
		cmocka_unit_test(test_home_is_scratch_itself),
		cmocka_unit_test(test_toolchains),
		cmocka_unit_test(test_worktree),
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_nested_mounts_in_order),
		cmocka_unit_test(test_hundreds_of_mounts),
		cmocka_unit_test(test_mounts_refused),
		cmocka_unit_test(test_absent_source),
		cmocka_unit_test(test_same_target_twice),
		cmocka_unit_test(test_mount_in_a_file),
		cmocka_unit_test(test_protect_pins_ancestors),
		cmocka_unit_test(test_absent_names_become_stubs),
		cmocka_unit_test(test_hide),
		cmocka_unit_test(test_rules_through_links),
		cmocka_unit_test(test_rules_follow_every_bind),
		cmocka_unit_test(test_mount_of_a_guarded_path),
		cmocka_unit_test(test_rules_under_another_mount),
		cmocka_unit_test(test_rules_do_not_cover_mounts),
		cmocka_unit_test(test_stronger_rule_wins),
		cmocka_unit_test(test_nothing_below_hidden),
		cmocka_unit_test(test_env_allow_list),
		cmocka_unit_test(test_env_asked),
		cmocka_unit_test(test_env_not_set),
		cmocka_unit_test(test_path_keeps_what_is_there),
		cmocka_unit_test(test_path_with_mounts),
		cmocka_unit_test(test_name_from_workspace),
		cmocka_unit_test(test_name_given),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_limits_of_root),
		cmocka_unit_test(test_nest),
		cmocka_unit_test(test_landlock),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_modes),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
