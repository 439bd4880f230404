/*
 * tests/unit/test_str.c - growing strings, text made safe, and numbers in words
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

static void test_grows(void **state)
{
	struct str s = { 0 };

	for (int i = 0; i < 10000; i++)
		str_addf(&s, "%d,", i % 10);
	assert_int_equal(s.len, 20000);
	assert_int_equal(strlen(s.p), 20000);
	for (size_t i = 0; i < 20000; i += 2)
		assert_int_equal(s.p[i], '0' + (int)(i / 2 % 10));
	str_addn(&s, "a\0b", 3);
	assert_int_equal(s.len, 20003);
	assert_memory_equal(s.p + 20000, "a\0b", 4);
}

static void test_nothing_is_a_string_too(void **state)
{
	struct str s = { 0 };

	str_add(&s, "");
	assert_string_equal(s.p, "");
	assert_string_equal(str_visible(""), "");
}

static void test_utf8_good(void **state)
{
	static const char *const good[] = { "a", "\x7f", "\xc2\x80", "\xc3\xa4", "\xdf\xbf",
		"\xe0\xa0\x80", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
		"\xf0\x90\x80\x80", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		size_t n = strlen(good[i]);

		assert_int_equal(utf8_length(good[i], n), n);
		assert_int_equal(utf8_length(good[i], 10), n);
		for (size_t less = 0; less < n; less++)
			assert_int_equal(utf8_length(good[i], less), 0);
	}
	assert_int_equal(utf8_length("", 1), 1); /* a NUL is a character */
}

static void test_utf8_bad(void **state)
{
	static const char *const bad[] = {
		"\x80", "\xbf",                                /* no lead */
		"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",        /* overlong */
		"\xf0\x8f\xbf\xbf",                            /* overlong */
		"\xed\xa0\x80", "\xed\xbf\xbf",                /* surrogates */
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80",        /* above U+10FFFF */
		"\xfe", "\xff", "\xc3(", "\xe2\x82(", "\xf0(", /* broken off */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(utf8_length(bad[i], strlen(bad[i])), 0);
}

static void test_visible(void **state)
{
	static const char *const rows[][2] = {
		{ "plain text", "plain text" },
		{ "a\nb\tc\\d", "a\\nb\\tc\\\\d" },
		{ "\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m" },
		{ "\x01\x1f\x7f", "\\x01\\x1f\\x7f" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xff\xfe", "\\xff\\xfe" },
		{ "\xc3", "\\xc3" },
		{ "\xc2\x9b"
		  "31m",
			"\\xc2\\x9b31m" }, /* CSI as one character */
		{ "\xc2\xa0", "\xc2\xa0" },
		{ "\r", "\\x0d" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(str_visible(rows[i][0]), rows[i][1]);
}

/* Nothing that could drive a terminal is left of any byte, alone or in a pair. */
static void test_visible_is_harmless(void **state)
{
	for (int a = 1; a < 256; a++) {
		for (int b = 1; b < 256; b += 7) {
			const char text[] = { (char)a, (char)b, '\0' };
			const char *seen = str_visible(text);
			size_t len;

			for (const char *p = seen; *p; p += len) {
				len = utf8_length(p, strlen(p));
				assert_true(len > 0);
				assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
				assert_false(len == 2 && (unsigned char)p[0] == 0xc2 &&
					(unsigned char)p[1] < 0xa0);
			}
		}
	}
}

static void test_word(void **state)
{
	static const char *const rows[][2] = {
		{ "", "''" },
		{ "ls", "ls" },
		{ "--name=a/b.c", "--name=a/b.c" },
		{ "two words", "'two words'" },
		{ "it's", "'it'\\''s'" },
		{ "$HOME", "'$HOME'" },
		{ "a\nb", "$'a\\nb'" },
		{ "it's\n", "$'it\\'s\\n'" },
		{ "\xff", "$'\\xff'" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct str s = { 0 };

		str_add_word(&s, rows[i][0]);
		assert_string_equal(s.p, rows[i][1]);
	}
}

/* Give a script to bash and compare what it prints. */
static void check_bash_prints(const char *script, const char *expected, size_t n)
{
	char got[64 * 1024];
	size_t len = 0;
	int out[2], status;
	ssize_t some;
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		close(out[0]);
		execlp("bash", "bash", "--norc", "-c", script, NULL);
		_exit(127);
	}
	close(out[1]);
	while ((some = read(out[0], got + len, sizeof(got) - len)) > 0)
		len += (size_t)some;
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(len, n);
	assert_memory_equal(got, expected, n);
}

/* What the plan shows as the command can be pasted into a shell, whatever the words are. */
static void test_word_comes_back_from_a_shell(void **state)
{
	static const char *const odd[] = { "", " ", "a b", "it's", "\"", "\\", "\\n", "$(x)",
		"`x`", "!", "*", "~", "-n", "a\nb", "\n", "\t'\\", "\033[1m", "\xff'\xfe",
		"\xc3\xa4", "\xc2\x85",
		"\x01"
		"f",
		"#", "{a,b}", "'''", "\n0",
		"\x7f"
		"7" };
	struct str script = { 0 }, expected = { 0 };

	str_add(&script, "printf '%s\\0'");
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		str_addc(&script, ' ');
		str_add_word(&script, odd[i]);
		str_addn(&expected, odd[i], strlen(odd[i]) + 1);
	}
	for (int c = 1; c < 256; c++) {
		const char text[] = { 'x', (char)c, 'f', '\0' };

		str_addc(&script, ' ');
		str_add_word(&script, text);
		str_addn(&expected, text, sizeof(text));
	}
	check_bash_prints(script.p, expected.p, expected.len);
}

static void test_nearest(void **state)
{
	static const char *const names[] = { "network", "name", "nest", "networks", "mount",
		"record" };
	static const char *const rows[][2] = {
		{ "net", "network" },
		{ "networ", "network" },
		{ "rec", "record" },
		{ "re", NULL },
		{ "network", "network" },
		{ "netwrok", "network" },
		{ "netwok", "network" },
		{ "nam", "name" },
		{ "naem", "name" },
		{ "mounts", "mount" },
		{ "recrod", "record" },
		{ "zzzzzz", NULL },
		{ "completely-different", NULL },
	};
	char endless[200];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *near = str_nearest(rows[i][0], names, ARRAY_SIZE(names));

		if (rows[i][1])
			assert_string_equal(near, rows[i][1]);
		else
			assert_null(near);
	}
	memset(endless, 'n', sizeof(endless));
	for (size_t n = 0; n < sizeof(endless); n++) {
		endless[n] = '\0';
		str_nearest(endless, names, ARRAY_SIZE(names));
		endless[n] = 'n';
	}
	assert_null(str_nearest("x", names, 0));
}

static void test_starts_and_ends(void **state)
{
	assert_true(str_starts("abc", "ab"));
	assert_true(str_starts("abc", ""));
	assert_true(str_starts("", ""));
	assert_false(str_starts("ab", "abc"));
	assert_true(str_ends("abc", "bc"));
	assert_true(str_ends("abc", ""));
	assert_false(str_ends("bc", "abc"));
	assert_false(str_ends("abc", "ab"));
}

struct number_row {
	const char *text;
	unsigned long long value;
};

static void check_numbers(bool (*parse)(const char *, unsigned long long *),
	const struct number_row *good, size_t n, const char *const *bad, size_t n_bad)
{
	for (size_t i = 0; i < n; i++) {
		unsigned long long value = 77;

		if (!parse(good[i].text, &value) || value != good[i].value)
			fail_msg("'%s' became %llu", good[i].text, value);
	}
	for (size_t i = 0; i < n_bad; i++) {
		unsigned long long value = 77;

		if (parse(bad[i], &value))
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(value, 77);
	}
}

static void test_durations(void **state)
{
	static const struct number_row good[] = {
		{ "0", 0 },
		{ "90", 90 },
		{ "90s", 90 },
		{ "5m", 300 },
		{ "1h30m", 5400 },
		{ "2d", 172800 },
		{ "1d1h1m1s", 90061 },
		{ "007", 7 },
		{ "18446744073709551615", UINT64_MAX },
		{ "213503982334601d", 213503982334601ULL * 86400 },
	};
	static const char *const bad[] = { "", "s", "m", "-1", "+1", " 1", "1 ", "1x", "1.5h",
		"1hh", "1h-1m", "1e3", "0x10", "18446744073709551616", "213503982334602d",
		"18446744073709551615s1s", "99999999999999999999h" };

	check_numbers(str_parse_duration, good, ARRAY_SIZE(good), bad, ARRAY_SIZE(bad));
}

static void test_sizes(void **state)
{
	static const struct number_row good[] = {
		{ "0", 0 },
		{ "512", 512 },
		{ "64K", 65536 },
		{ "3M", 3ULL << 20 },
		{ "2G", 2ULL << 30 },
		{ "1T", 1ULL << 40 },
		{ "18446744073709551615", UINT64_MAX },
		{ "16777215T", 16777215ULL << 40 },
	};
	static const char *const bad[] = { "", "K", "1k", "1KB", "1KiB", "-1", "+1", " 1", "1 ",
		"1.5G", "1P", "0x10", "18446744073709551616", "16777216T", "18014398509481984K",
		"1G1M" };

	check_numbers(str_parse_size, good, ARRAY_SIZE(good), bad, ARRAY_SIZE(bad));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_nothing_is_a_string_too),
		cmocka_unit_test(test_utf8_good),
		cmocka_unit_test(test_utf8_bad),
		cmocka_unit_test(test_visible),
		cmocka_unit_test(test_visible_is_harmless),
		cmocka_unit_test(test_word),
		cmocka_unit_test(test_word_comes_back_from_a_shell),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_starts_and_ends),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
