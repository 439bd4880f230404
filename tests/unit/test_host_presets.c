/*
 * tests/unit/test_host_presets.c - registries and mirrors from the files of npm and apt
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"
#include "host/host-presets.h"

static void list_is(const struct preset_list *list, const char *expected)
{
	struct str all = { 0 };

	str_add(&all, "");
	for (size_t i = 0; i < list->n; i++)
		str_addf(&all, "%s%s", i ? " " : "", list->v[i]);
	assert_string_equal(all.p, expected);
}

/* ---- URLs ---- */

static void url_is(const char *url, const char *expected)
{
	struct preset_list list = { 0 };

	assert_int_equal(preset_add_url(&list, url, strlen(url)), expected[0] != '\0');
	list_is(&list, expected);
}

static void test_urls(void **state)
{
	url_is("https://npm.example.org/", "npm.example.org");
	url_is("http://npm.example.org", "npm.example.org");
	url_is("HTTPS://NPM.Example.org./path?x#y", "npm.example.org");
	url_is("https://npm.example.org:443/", "npm.example.org");
	url_is("http://npm.example.org:80/", "npm.example.org");
	url_is("https://npm.example.org:80/", "npm.example.org:80");
	url_is("https://npm.example.org:8443/x/", "npm.example.org:8443");
	url_is("https://npm.example.org:/x/", "npm.example.org");
	url_is("https://user:pass@npm.example.org:8443", "npm.example.org:8443");
	url_is("https://a.example.org@b.example.org/@c.example.org", "b.example.org");
	url_is("https://192.0.2.1:4873/", "192.0.2.1:4873");
	url_is("https://[2001:db8::1]/", "2001:db8::1");
	url_is("https://[2001:db8::1]:4873/", "[2001:db8::1]:4873");
	url_is("https://npm.example.org\\@b.example.org/", "npm.example.org");
}

static void test_no_urls(void **state)
{
	static const char *const rows[] = { "", "https://", "https:///x", "ftp://example.org/",
		"npm.example.org", "//npm.example.org/", "file:///srv", "https://127.1/",
		"https://a b/", "https://*.example.org/", "https://${HOST}/", "https://a:b/",
		"https://a:80:80/", "https://2001:db8::1/", "https://[a]/", "https://a..b/",
		"mirror+https://example.org/" };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		url_is(rows[i], "");
}

static void test_once_each_and_bounded(void **state)
{
	struct preset_list list = { 0 };
	char url[64];

	for (int i = 0; i < 2 * PRESET_ENTRIES; i++) {
		snprintf(url, sizeof(url), "https://h%d.example.org/", i / 2 % 100);
		preset_add_url(&list, url, strlen(url));
	}
	assert_int_equal(list.n, PRESET_ENTRIES);
	assert_string_equal(list.v[63], "h63.example.org");
	preset_add_url(&list, "https://more.example.org", 24);
	assert_int_equal(list.n, PRESET_ENTRIES);
}

/* ---- npm ---- */

static void npmrc_is(const char *text, const char *expected)
{
	struct preset_list list = { 0 }, seen = { 0 };

	preset_read_npmrc(&list, text, &seen);
	list_is(&list, expected);
}

static void test_npmrc(void **state)
{
	npmrc_is("", "");
	npmrc_is("registry=https://npm.example.org/", "npm.example.org");
	npmrc_is("; registry=https://a.example.org\n# registry=https://b.example.org\n"
		 "  registry = \"https://c.example.org/\"  \r\n"
		 "//c.example.org/:_authToken=secret\n"
		 "@corp:registry=http://d.example.org:4873 ; ours\n"
		 "save-exact=true\n",
		"c.example.org d.example.org:4873");
	npmrc_is("registry\nregistry=\nregistry =  \n", "");
	npmrc_is("registry='https://a.example.org'", "a.example.org");
	npmrc_is("my-registry=https://a.example.org\nregistry[]=https://b.example.org\n"
		 "registryx=https://c.example.org\n@corp:x=https://d.example.org\n",
		"");
	npmrc_is("[section]\nregistry=https://a.example.org\n", "");
	npmrc_is("registry=${NPM_REGISTRY}\n", "");
	npmrc_is("registry=https://a.example.org", "a.example.org");
	/* The last one counts, and one without a value does not. */
	npmrc_is("registry=https://a.example.org\n@x:registry=https://b.example.org\n"
		 "registry=https://c.example.org\nregistry=\n",
		"c.example.org b.example.org");
}

/* As `npm config get registry` has it. */
static void test_npmrc_variables(void **state)
{
	setenv("CARREL_TEST_HOST", "env.example.org", 1);
	unsetenv("CARREL_TEST_NONE");
	npmrc_is("registry=https://${CARREL_TEST_HOST}/", "env.example.org");
	npmrc_is("registry = \"https://${CARREL_TEST_HOST}:8443/${CARREL_TEST_HOST}\" \n",
		"env.example.org:8443");
	npmrc_is("registry=https://a.${CARREL_TEST_HOST?}/", "a.env.example.org");
	npmrc_is("registry=https://a.example.org${CARREL_TEST_NONE?}/", "a.example.org");
	npmrc_is("registry=https://${CARREL_TEST_NONE}/", "");
	npmrc_is("registry=https://${CARREL_TEST_HOST-a.example.org}/", "");
	npmrc_is("registry=https://\\${CARREL_TEST_HOST}/", "");
	npmrc_is("registry=https://${}/", "");
	npmrc_is("registry=https://${CARREL_TEST_HOST", "");
	npmrc_is("registry=https://a.example.org/$", "a.example.org");
	unsetenv("CARREL_TEST_HOST");
}

/* What the user's file says is not asked of the system's. */
static void test_npmrc_order(void **state)
{
	struct preset_list list = { 0 }, seen = { 0 };

	preset_read_npmrc(&list, "registry=https://a.example.org\n", &seen);
	preset_read_npmrc(&list,
		"registry=https://b.example.org\n@x:registry=https://c.example.org\n", &seen);
	preset_read_npmrc(&list, "@x:registry=https://d.example.org\n", &seen);
	list_is(&list, "a.example.org c.example.org");
}

static char *write_file(const char *dir, const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", dir, name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static void npm_of_host_is(const char *expected)
{
	struct policy_preset presets[2];
	struct str all = { 0 };

	presets_of_host("/nowhere", presets);
	assert_string_equal(presets[0].name, "@npm");
	assert_string_equal(presets[1].name, "@debian");
	str_add(&all, "");
	for (size_t i = 0; i < presets[0].n; i++)
		str_addf(&all, "%s%s", i ? " " : "", presets[0].entry[i]);
	assert_string_equal(all.p, expected);
	assert_true(presets[0].missing && presets[1].missing);
}

static void npm_is_empty_for(const char *why)
{
	struct policy_preset presets[2];

	presets_of_host("/nowhere", presets);
	assert_int_equal(presets[0].n, 0);
	assert_non_null(strstr(presets[0].missing, why));
}

static void test_npm_of_host(void **state)
{
	char dir[] = "/tmp/carrel-presets.XXXXXX", *user, *global, *pipe;

	assert_non_null(mkdtemp(dir));
	user = write_file(dir, "user",
		"registry=https://user.example.org\n@a:registry=https://a.example.org\n");
	global = write_file(dir, "global", "registry=https://global.example.org\n");
	pipe = mem_printf("%s/pipe", dir);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	setenv("npm_config_userconfig", user, 1);
	setenv("npm_config_globalconfig", global, 1);
	unsetenv("npm_config_registry");
	unsetenv("NPM_CONFIG_REGISTRY");
	npm_of_host_is("user.example.org a.example.org");
	setenv("NPM_CONFIG_REGISTRY", "https://env.example.org:8443/", 1);
	npm_of_host_is("env.example.org:8443 a.example.org");
	setenv("npm_config_registry", "https://lower.example.org", 1);
	npm_of_host_is("lower.example.org a.example.org");
	unsetenv("npm_config_registry");
	unsetenv("NPM_CONFIG_REGISTRY");
	setenv("npm_config_userconfig", pipe, 1); /* not waited for */
	npm_of_host_is("global.example.org");
	/* A relative path would be the project's. */
	assert_int_equal(chdir(dir), 0);
	setenv("npm_config_userconfig", "user", 1);
	npm_of_host_is("global.example.org");
	setenv("npm_config_globalconfig", mem_printf("%s/absent", dir), 1);
	npm_of_host_is("");
	npm_is_empty_for("no registry in your npm configuration");
	setenv("DIR_OF_TEST", dir, 1);
	setenv("npm_config_userconfig", "${DIR_OF_TEST}/user", 1);
	npm_of_host_is("user.example.org a.example.org");
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(unlink(user) | unlink(global) | unlink(pipe) | rmdir(dir), 0);
}

/* Why there is none, where it is not that none is set. */
static void test_npm_is_empty(void **state)
{
	char dir[] = "/tmp/carrel-presets.XXXXXX", *user;

	assert_non_null(mkdtemp(dir));
	user = mem_printf("%s/user", dir);
	setenv("npm_config_userconfig", user, 1);
	setenv("npm_config_globalconfig", "/dev/null", 1);
	npm_is_empty_for("no registry in your npm configuration");
	assert_int_equal(symlink("user", user), 0); /* unreadable for root too */
	npm_is_empty_for(mem_printf("'%s' cannot be read (%s)", user, strerror(ELOOP)));
	assert_int_equal(unlink(user), 0);
	write_file(dir, "user", "registry=https://${CARREL_TEST_NONE}/\n");
	npm_is_empty_for("is no http or https URL");
	assert_int_equal(unlink(user) | rmdir(dir), 0);
}

/* What comes of it is what a policy takes; and without any, it says what to do. */
static void test_entries_are_a_policy(void **state)
{
	static struct policy policy;
	struct preset_list list = { 0 };
	struct policy_preset preset = { .name = "@npm", .missing = "no registry" };
	struct policy_entry entry = { .text = "@npm" };
	struct fault f = { 0 };

	preset_add_url(&list, "https://npm.example.org", 23);
	preset_add_url(&list, "https://[2001:db8::1]:4873", 26);
	preset_add_url(&list, "http://npm:4873", 15);
	policy_init(&policy, false);
	assert_int_not_equal(policy_parse(&policy, &entry, 1, &preset, 1, &f), 0);
	preset.entry = list.v;
	preset.n = list.n;
	assert_int_equal(policy_parse(&policy, &entry, 1, &preset, 1, &f), 0);
	assert_true(policy_connect(&policy, "npm.example.org", 443).allowed);
	assert_true(policy_connect(&policy, "npm", 4873).allowed);
	assert_false(policy_connect(&policy, "npm", 443).allowed);
}

/* ---- apt ---- */

static void test_sources_list(void **state)
{
	struct preset_list list = { 0 };

	preset_read_sources_list(&list,
		"# deb https://no1.example.org/debian stable main\n"
		"deb http://a.example.org/debian stable main contrib\n"
		"deb-src\thttps://b.example.org/debian stable main # https://no2.example.org\n"
		"  deb [arch=amd64 signed-by=/usr/share/key.gpg] https://c.example.org:8443/x "
		"./\n"
		"deb [ arch=amd64 ]\thttps://d.example.org/x stable main\r\n"
		"deb[trusted=yes] https://e.example.org/x stable main\n"
		"deb cdrom:[Debian]/ stable main\n"
		"deb mirror+file:/etc/apt/mirrors.txt stable main\n"
		"deb file:///srv/mirror stable main\n"
		"deb tor+http://no3.example.org stable main\n"
		"debs https://no4.example.org/ stable\n"
		"deb\n"
		"deb [unclosed https://no5.example.org/ stable\n"
		"#\n"
		"deb http://a.example.org/security stable main");
	list_is(&list,
		"a.example.org b.example.org c.example.org:8443 d.example.org "
		"e.example.org");
}

static void test_deb822(void **state)
{
	struct preset_list list = { 0 };

	preset_read_deb822(&list,
		"# a comment\n"
		"Types: deb deb-src\n"
		"URIs: https://a.example.org/debian http://b.example.org:3142/debian\n"
		" https://c.example.org/\n"
		"# inside\n"
		"\thttps://d.example.org/\n"
		"Suites: stable\n"
		" https://no1.example.org/\n"
		"\n"
		"Types: deb\n"
		"uris:\n"
		" https://e.example.org/\r\n"
		"Enabled: yes\n"
		"  \t\n"
		"Enabled: no\n"
		"URIs: https://no2.example.org/\n"
		"\n"
		"URIs: https://no3.example.org/ file:///srv\n"
		"Enabled: FALSE\n"
		"\n"
		"Signed-By: https://no4.example.org/\n"
		"X-URIs: https://no5.example.org/\n"
		"URIs https://no6.example.org/\n"
		"\n"
		" https://no7.example.org/\n"
		"URIs: mirror+file:/etc/apt/mirrors.txt\n"
		"\n"
		"URIs: https://f.example.org");
	list_is(&list,
		"a.example.org b.example.org:3142 c.example.org d.example.org "
		"e.example.org f.example.org");
}

static void conf_is(const char *text, const char *expected)
{
	struct preset_list list = { 0 };

	preset_read_apt_conf(&list, text);
	list_is(&list, expected);
}

static void test_apt_conf(void **state)
{
	conf_is("", "");
	conf_is("Acquire::http::Proxy \"http://proxy.example.org:3142/\";\n",
		"proxy.example.org:3142");
	conf_is("Acquire::HTTPS::proxy http://proxy.example.org:3142;\n",
		"proxy.example.org:3142");
	conf_is("Acquire {\n  Retries \"3\";\n  http {\n    Pipeline-Depth 0;\n"
		"    Proxy \"http://user:pass@proxy.example.org:8080\";\n  };\n"
		"  https { Proxy \"DIRECT\"; };\n};\n",
		"proxy.example.org:8080");
	conf_is("Acquire::http { Proxy { \"http://a.example.org:1\"; };\n"
		"Proxy::deb.example.org \"http://b.example.org:2\"; };",
		"a.example.org:1 b.example.org:2");
	conf_is("// Acquire::http::Proxy \"http://a.example.org\";\n"
		"# Acquire::http::Proxy \"http://b.example.org\";\n"
		"/* Acquire::http::Proxy \"http://c.example.org\";\n */ APT::X \"1\";\n"
		"Acquire::http::Proxy \"http://d.example.org:4/\"; // e\n",
		"d.example.org:4");
	conf_is("Acquire::http::Proxy-Auto-Detect \"http://a.example.org\";\n"
		"Acquire::ftp::Proxy \"http://b.example.org\";\n"
		"APT { Acquire::http::Proxy \"http://c.example.org\"; };\n"
		"Dir \"http://d.example.org\";\n",
		"");
	conf_is("DPkg::Post-Invoke { \"rm -f /x || true\"; \"y\"; };\n"
		"Acquire::http::Proxy \"http://a.example.org:1\";",
		"a.example.org:1");
}

/* Nothing of this ends badly, or in anything. */
static void test_broken_apt_conf(void **state)
{
	static const char *const rows[] = { "Acquire::http::Proxy", "Acquire::http::Proxy \"",
		"Acquire::http::Proxy \"http://", "}}}};;;", "/*", "/", "\"\"\"",
		"{{{{{{{{{{{{{{{{{", "a { b { c { d { e { f { g { h { i { j {",
		"Acquire { http", ";\";\n;{\"" };
	char key[1000];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		conf_is(rows[i], "");
	memset(key, 'k', sizeof(key));
	key[sizeof(key) - 1] = '\0';
	conf_is(key, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_no_urls),
		cmocka_unit_test(test_once_each_and_bounded),
		cmocka_unit_test(test_npmrc),
		cmocka_unit_test(test_npmrc_variables),
		cmocka_unit_test(test_npmrc_order),
		cmocka_unit_test(test_npm_of_host),
		cmocka_unit_test(test_npm_is_empty),
		cmocka_unit_test(test_entries_are_a_policy),
		cmocka_unit_test(test_sources_list),
		cmocka_unit_test(test_deb822),
		cmocka_unit_test(test_apt_conf),
		cmocka_unit_test(test_broken_apt_conf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
