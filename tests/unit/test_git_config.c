/*
 * tests/unit/test_git_config.c - git's configuration files, compared with what git says
 *
 * Random files are put together from pieces that matter to the syntax. git lists each, or stops
 * at it, and the reader must say the same. CARREL_TEST_ROUNDS asks for more of them, and
 * CARREL_TEST_SEED for the same again.
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
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "git/git-config.h"

enum { ROUNDS = 200, MOST_PIECES = 24 };

static char top[64];

static const char *in_top(const char *name)
{
	return path_join(top, name);
}

static int set_up(void **state)
{
	strcpy(top, "/tmp/carrel-config-XXXXXX");
	unsetenv("GIT_DIR");
	return mkdtemp(top) && setenv("HOME", top, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	return system(mem_printf("rm -rf '%s'", top));
}

static const char *write_bytes(const char *name, const char *bytes, size_t n)
{
	const char *path = in_top(name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, n, file), n);
	assert_int_equal(fclose(file), 0);
	return path;
}

static const char *write_text(const char *name, const char *text)
{
	return write_bytes(name, text, strlen(text));
}

/* ---- what they say: name, newline and value, or only the name, each with a NUL behind ---- */

static void add_setting(void *ctx, const struct git_setting *s)
{
	struct str *said = ctx;

	str_add(said, s->name);
	if (s->value)
		str_addf(said, "\n%s", s->value);
	str_addc(said, '\0');
}

/* git before 2.45 reads a blank of any kind in a value as a space. */
static void even_out(struct str *s)
{
	for (size_t i = 0; i < s->len; i++)
		if (s->p[i] == '\t' || s->p[i] == '\r')
			s->p[i] = ' ';
}

static int ask_git(const char *path, struct str *said)
{
	FILE *out = popen(mem_printf("git config --list -z -f '%s' 2>/dev/null", path), "r");
	char block[4096];
	size_t n;
	int status;

	assert_non_null(out);
	while ((n = fread(block, 1, sizeof(block), out)) > 0)
		str_addn(said, block, n);
	status = pclose(out);
	assert_true(status == 0 || status == 128 << 8);
	return status ? -EBADMSG : 1;
}

static void compare(const char *bytes, size_t n)
{
	const char *path = write_bytes("compared", bytes, n);
	struct str ours = { 0 }, gits = { 0 };
	struct fault f = { 0 };
	int rc = git_config_read(path, add_setting, &ours, &f);

	if (rc != ask_git(path, &gits))
		fail_msg("we say %d of: %s", rc, str_visible(mem_strndup(bytes, n)));
	if (rc < 0)
		return;
	even_out(&ours);
	even_out(&gits);
	if (ours.len != gits.len || (ours.len && memcmp(ours.p, gits.p, ours.len)))
		fail_msg("we read %zu bytes, git %zu, of: %s", ours.len, gits.len,
			str_visible(mem_strndup(bytes, n)));
}

#define SAME(text) compare(text, sizeof(text) - 1)

/* ---- tests ---- */

static void known_forms(void **state)
{
	SAME("");
	SAME("\xef\xbb\xbf[core]\n\thooksPath = a\n");
	SAME("\xef\xbb[core]\n\thooksPath = a\n");
	SAME("\xef");
	SAME("[core]\n\thooksPath = .git\\\nhooks\n");
	SAME("[core]\n\thooksPath = .git \\\n hooks # no \\\n [a]b=c\n");
	SAME("[core]\r\n\thooksPath = \"a b \" \r\n");
	SAME("[core]hooksPath=x\n");
	SAME("[core][core \"a\\\"b\\\\c\\d\"]x=1\n[CORE.Sub]Y=2\n[core.Sub \"A\"]y = 3");
	SAME("[core]\nbare\nBare=\n");
	SAME("key = before\n[.]\nkey=x\n[ \"a\"]\nkey=x\n");
	SAME("[]\nkey=x\n");
	SAME("[a]\nb = c;d\n;x\n#y\nb = \"c;d\" \"\" e\n");
	SAME("[a]\nb = \"c\n");
	SAME("[a]\nb = \\x\n");
	SAME("[a\nb = c\n");
	SAME("[a ]\nb = c\n");
	SAME("[a \"b\" ]\nb = c\n");
	SAME("[a \"b\nc\"]\nb = c\n");
	SAME("[a]\n1b = c\n");
	SAME("[a]\nb_c = c\n");
	SAME("[a]\nb c\n");
	SAME("[a]\nb = c\0d\ne = f\n");
	SAME("[a]\n# \0\nb = c\n");
	SAME("\0");
	SAME("[a]\nb = c\\");
	SAME("[a]\nb = c\\t\\n\\b\\\\\\\"\n");
	SAME("[a]\nb = x\ry\n");
}

static const char *const pieces[] = { "[", "]", "[core]", "[a \"", "\"]", "[a.B]", "\"", "\\",
	"\\\n", "\n", "\r\n", "\r", " ", "\t", "=", " = ", "#", ";", "hooksPath", "key", "k-1",
	"_", "\\n", "\\\"", "\\q", "\xef\xbb\xbf", "\xef", ".", "path = ~/x", "\n[include]\n",
	"A", "v" };

static void random_files(void **state)
{
	const char *asked = getenv("CARREL_TEST_ROUNDS"), *given = getenv("CARREL_TEST_SEED");
	unsigned int seed = given ? (unsigned int)atol(given) : (unsigned int)time(NULL);
	int rounds = asked ? atoi(asked) : ROUNDS;

	print_message("CARREL_TEST_SEED=%u\n", seed);
	srandom(seed);
	for (int i = 0; i < rounds; i++) {
		struct str text = { 0 };

		/* Most random files are broken early; a sane beginning lets more of them go on. */
		str_add(&text, random() % 2 ? "[core]\n" : "");
		for (long n = random() % MOST_PIECES; n >= 0; n--)
			str_add(&text, pieces[(size_t)random() % ARRAY_SIZE(pieces)]);
		compare(text.p, text.len);
	}
}

static void keep_last(void *ctx, const struct git_setting *s)
{
	*(struct git_setting *)ctx = *s;
}

static void parts_of_a_name(void **state)
{
	const char *path = write_text("parts", "[One \"Two.Three\"]\nFour = x\n");
	struct git_setting s = { 0 };
	struct fault f;

	assert_int_equal(git_config_read(path, keep_last, &s, &f), 1);
	assert_string_equal(s.section, "one");
	assert_string_equal(s.subsection, "Two.Three");
	assert_string_equal(s.key, "four");
	assert_string_equal(s.name, "one.Two.Three.four");
	assert_string_equal(s.value, "x");
	assert_string_equal(s.file, path);
}

static void no_file_and_no_answer(void **state)
{
	struct str said = { 0 };
	struct fault f = { 0 };

	assert_int_equal(git_config_read(in_top("absent"), add_setting, &said, &f), 0);
	assert_int_equal(git_config_read("/dev/null", add_setting, &said, &f), 1);
	assert_int_equal(git_config_read(in_top("."), add_setting, &said, &f), -EINVAL);
	assert_int_equal(mkfifo(in_top("fifo"), 0600), 0);
	assert_int_equal(git_config_read(in_top("fifo"), add_setting, &said, &f), -EINVAL);
	assert_int_equal(symlink("loop", in_top("loop")), 0);
	assert_int_equal(git_config_read(in_top("loop"), add_setting, &said, &f), -ELOOP);
	assert_int_equal(said.len, 0);
	assert_int_equal(git_config_read(write_text("bad", "[a]\nb=c\nd e\n"), add_setting,
				 &said, &f),
		-EBADMSG);
	assert_non_null(strstr(f.text, "line 3"));
}

static void read_all(const char *path, int expected, const char *said)
{
	struct str ours = { 0 };
	struct fault f = { 0 };

	assert_int_equal(git_config_read_all(path, add_setting, &ours, &f), expected);
	for (size_t i = 0; i < ours.len; i++)
		if (!ours.p[i] || ours.p[i] == '\n')
			ours.p[i] = ours.p[i] ? '=' : '|';
	assert_string_equal(ours.p ? ours.p : "", said);
}

static void includes(void **state)
{
	const char *path = write_text("main",
		"[include]path=sub/one\n[includeIf \"onbranch:x\"]path=~/two\n[a]z=9\n");

	assert_int_equal(mkdir(in_top("sub"), 0700), 0);
	write_text("sub/one", "[include]path = ../three\n[include]path=absent\n[a]b=1\n");
	write_text("two", "[include]path = main\n[a]b=2\n");
	write_text("three", "[a]b=3\n");
	read_all(path, 1,
		"include.path=sub/one|include.path=../three|a.b=3|include.path=absent|a.b=1|"
		"includeif.onbranch:x.path=~/two|include.path=main|a.b=2|a.z=9|");
}

static void broken_includes(void **state)
{
	write_text("broken", "[a]b=1\n[a");
	read_all(write_text("main", "[include]path=broken\n[a]z=9\n"), -EBADMSG,
		"include.path=broken|a.b=1|a.z=9|");
	read_all(write_text("main", "[includeIf \"gitdir:/x\"]path=broken\n[a]z=9\n"), 1,
		"includeif.gitdir:/x.path=broken|a.b=1|a.z=9|");
}

static void depth_of_includes(void **state)
{
	struct str said = { 0 };
	struct fault f = { 0 };
	const char *first = in_top("i0");

	for (int i = 0; i < 10; i++)
		write_text(mem_printf("i%d", i), mem_printf("[include]path=i%d\n", i + 1));
	write_text("i10", "[a]b=c\n");
	assert_int_equal(git_config_read_all(first, add_setting, &said, &f), 1);
	write_text("i10", "[include]path=i11\n");
	write_text("i11", "[a]b=c\n");
	assert_int_equal(git_config_read_all(first, add_setting, &said, &f), -EBADMSG);
}

static void paths(void **state)
{
	assert_string_equal(git_config_expand("a/b"), "a/b");
	assert_string_equal(git_config_expand("~/b"), in_top("b"));
	assert_string_equal(git_config_expand("~"), top);
	assert_string_equal(git_config_expand("~root/b"), "/root/b");
	assert_null(git_config_expand("~no-such-user/b"));
}

static void truth(void **state)
{
	assert_true(git_config_is_true(NULL));
	assert_true(git_config_is_true("Yes"));
	assert_true(git_config_is_true("-1"));
	assert_true(git_config_is_true("1k"));
	assert_false(git_config_is_true(""));
	assert_false(git_config_is_true("0"));
	assert_false(git_config_is_true("off"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(known_forms, set_up, tear_down),
		cmocka_unit_test_setup_teardown(random_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(parts_of_a_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_file_and_no_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(includes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(broken_includes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(depth_of_includes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(paths, set_up, tear_down),
		cmocka_unit_test_setup_teardown(truth, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
