/*
 * The user's own hosts: which lines are entries, and that none is skipped in silence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "plan/request.h"
#include "host/user-hosts.h"

static char *base;

static int set_up(void **state)
{
	char made[] = "/tmp/carrel-hosts-XXXXXX";

	(void)state;
	if (!mkdtemp(made))
		return -1;
	base = mem_strdup(made);
	setenv("XDG_CONFIG_HOME", base, 1);
	return mkdir(path_join(base, "carrel"), 0700);
}

static int tear_down(void **state)
{
	(void)state;
	return system(mem_printf("rm -rf %s", base));
}

static void write_file(const char *text, size_t n)
{
	auto_close int fd = -1;

	(void)unlink(user_hosts_path());
	fd = open(user_hosts_path(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(fd, text, n), 0);
}

static void check(const char *text, const char *want)
{
	struct request r = { 0 };
	struct str got = { 0 };
	struct fault f = { 0 };

	write_file(text, strlen(text));
	assert_int_equal(user_hosts(&r, &f), 0);
	vec_each(h, &r.hosts)
		str_addf(&got, "%s%s@%s ", h->deny ? "!" : "", h->entry,
			strrchr(h->origin, ':') + 1);
	assert_string_equal(got.len ? got.p : "", want);
}

static void test_lines(void **state)
{
	struct request r = { 0 };
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(user_hosts(&r, &f), 0); /* there is none */
	check("", "");
	check("a.example", "a.example@1 ");
	check("# x\n\n a.example:22 \t# y\r\n!b.example\n ! c.example\r\n",
		"a.example:22@3 !b.example@4 !c.example@5 ");
	/* What is no entry is not skipped: the policy's parser will complain. */
	check("a b\n!\n", "a b@1 !@2 ");
}

static void test_refused(void **state)
{
	struct request r = { 0 };
	struct fault f = { 0 };
	bool was;

	(void)state;
	write_file("a\0!b\n", 5);
	assert_true(user_hosts(&r, &f) < 0);
	write_file("", 0);
	assert_int_equal(truncate(user_hosts_path(), 70000), 0);
	assert_true(user_hosts(&r, &f) < 0);
	unlink(user_hosts_path());
	assert_int_equal(mkfifo(user_hosts_path(), 0600), 0);
	assert_true(user_hosts(&r, &f) < 0);
	unlink(user_hosts_path());
	assert_int_equal(symlink("/dev/null", user_hosts_path()), 0);
	assert_true(user_hosts(&r, &f) < 0);
	assert_non_null(strstr(f.text, "is a link"));
	assert_int_equal(r.hosts.n, 0);
	unlink(user_hosts_path());
	static const char *const bad[] = { "", "a\nb", "!a.example", "a #b", "*", "@nothing",
		"http://a.example", "127.0.0.1" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(user_hosts_add(bad[i], false, &was, &f) < 0);
	assert_int_equal(access(user_hosts_path(), F_OK), -1);
	assert_int_equal(user_hosts_add("@github", false, &was, &f), 0);
	assert_false(was);
	assert_int_equal(user_hosts_add("@github", false, &was, &f), 0);
	assert_true(was);
}

static bool is_unchanged(const char *text)
{
	const char *now = fd_read_file(AT_FDCWD, user_hosts_path(), 4096);

	return now && !strcmp(now, text);
}

/* What another line denies is not called allowed, and nothing is written. */
static void test_denied_by_another_line(void **state)
{
	static const struct {
		const char *file, *entry, *denial; /* NULL: it is added */
	} rows[] = {
		{ "!x.example.org:*\n", "x.example.org:443", "!x.example.org:* in " },
		{ "!x.example.org:22\n", "x.example.org:443", NULL },
		{ "!x.example.org\n", "x.example.org", NULL }, /* instead of that line */
		{ "a.org\n!*.example.org # y\n", "x.example.org", "!*.example.org in " },
		{ "!*.example.org\n", "*.a.example.org", "!*.example.org in " },
		{ "!b.org\n!a.org:443\n!a.org:80\n", "a.org", "!a.org:80 in " },
		{ "!10.0.0.0/8\n", "10.1.0.0/16", "!10.0.0.0/8 in " },
		{ "a.org:443\n!a.org:*\n", "a.org:443", "!a.org:* in " }, /* it was there */
		{ "!github.com\n", "@github", NULL },                     /* a part of it */
		{ "!github.com\n!*.github.com\n!*.githubusercontent.com\n", "@github",
			"!*.githubusercontent.com in " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fault f = { 0 };
		bool was;
		int rc;

		write_file(rows[i].file, strlen(rows[i].file));
		rc = user_hosts_add(rows[i].entry, false, &was, &f);
		assert_int_equal(rc < 0, rows[i].denial != NULL);
		assert_int_equal(is_unchanged(rows[i].file), rows[i].denial != NULL);
		assert_true(!rows[i].denial || strstr(f.text, rows[i].denial));
		assert_true(!rows[i].denial || strstr(f.text, user_hosts_path()));
		/* To deny is never in vain. */
		assert_int_equal(user_hosts_add(rows[i].entry, true, &was, &f), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_denied_by_another_line, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
