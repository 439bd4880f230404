/*
 * tests/unit/test_synth.c - every name its address, and every address its name
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

#include "base/mem.h"
#include "net/broker/synth.h"

static struct synth *table(uint64_t seed)
{
	struct synth *t = mem_alloc(sizeof(*t));

	t->seed = seed;
	return t;
}

static const char *text(struct address a)
{
	char *out = mem_alloc(ADDRESS_SIZE);

	address_format(&a, out);
	return out;
}

static const char *lookup(const struct synth *t, const char *address)
{
	struct address a;

	assert_true(address_parse(address, strlen(address), &a));
	return synth_lookup(t, &a);
}

static void test_numbers(void **state)
{
	struct synth *t = table(1);

	assert_int_equal(synth_find(t, "example.org"), -ENOENT);
	assert_int_equal(synth_name(t, "example.org"), 0);
	assert_int_equal(synth_name(t, "example.com"), 1);
	assert_int_equal(synth_name(t, "example.org"), 0);
	assert_int_equal(synth_find(t, "example.org"), 0);
	assert_int_equal(synth_find(t, "example.or"), -ENOENT);
	assert_int_equal(t->n, 2);
}

static void test_addresses(void **state)
{
	assert_string_equal(text(synth_v4(0)), "198.18.1.0");
	assert_string_equal(text(synth_v4(255)), "198.18.1.255");
	assert_string_equal(text(synth_v4(256)), "198.18.2.0");
	assert_string_equal(text(synth_v4(SYNTH_NAMES - 1)), "198.18.64.255");
	assert_string_equal(text(synth_v6(0)), "fd63:6172:7265:6c00::100");
	assert_string_equal(text(synth_v6(SYNTH_NAMES - 1)), "fd63:6172:7265:6c00::40ff");
}

/* Only what was given out is known, in both families; neighbours are not. */
static void test_lookup(void **state)
{
	static const char *const nothing[] = { "198.18.0.0", "198.18.0.255", "198.18.1.2",
		"198.19.1.0", "198.17.1.0", "198.20.1.0", "10.18.1.0",
		"fd63:6172:7265:6c00::", "fd63:6172:7265:6c00::ff", "fd63:6172:7265:6c00::102",
		"fd63:6172:7265:6c00::1:100", "fd63:6172:7265:6c00::100:100",
		"fd63:6172:7265:6c00:1::100", "fd63:6172:7265:6c01::100",
		"fd63:6172:7265:6c00::ffff:ffff", "::100" };
	struct synth *t = table(1);

	assert_null(lookup(t, "198.18.1.0"));
	synth_name(t, "example.org");
	synth_name(t, "example.com");
	assert_string_equal(lookup(t, "198.18.1.0"), "example.org");
	assert_string_equal(lookup(t, "::ffff:198.18.1.0"), "example.org");
	assert_string_equal(lookup(t, "fd63:6172:7265:6c00::100"), "example.org");
	assert_string_equal(lookup(t, "198.18.1.1"), "example.com");
	assert_string_equal(lookup(t, "fd63:6172:7265:6c00::101"), "example.com");
	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++)
		if (lookup(t, nothing[i]))
			fail_msg("%s stands for %s", nothing[i], lookup(t, nothing[i]));
}

static void test_range(void **state)
{
	static const struct {
		const char *address;
		bool in;
	} rows[] = { { "198.18.0.0", true }, { "198.19.255.255", true },
		{ "198.17.255.255", false }, { "198.20.0.0", false },
		{ "fd63:6172:7265:6c00::ffff:ffff", true },
		{ "fd63:6172:7265:6c00:0:1::", false }, { "::1", false } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct address a;

		assert_true(address_parse(rows[i].address, strlen(rows[i].address), &a));
		assert_int_equal(synth_is_range(&a), rows[i].in);
		/* Neither the policy lets anybody open them. */
		assert_true(!rows[i].in || !address_range(&a)->can_open);
	}
}

/* Every one of the promised names, and not one more; those that have an address keep it. */
static void test_full_of_names(void **state)
{
	struct synth *t = table(7);
	char name[NAME_SIZE];

	for (int i = 0; i < SYNTH_NAMES; i++) {
		snprintf(name, sizeof(name), "host-%d.example.org", i);
		assert_int_equal(synth_name(t, name), i);
	}
	assert_int_equal(synth_name(t, "more.example.org"), -ENOSPC);
	assert_int_equal(synth_find(t, "more.example.org"), -ENOENT);
	for (int i = 0; i < SYNTH_NAMES; i++) {
		struct address v4 = synth_v4((unsigned int)i), v6 = synth_v6((unsigned int)i);

		snprintf(name, sizeof(name), "host-%d.example.org", i);
		assert_int_equal(synth_name(t, name), i);
		assert_string_equal(synth_lookup(t, &v4), name);
		assert_string_equal(synth_lookup(t, &v6), name);
	}
}

static void test_full_of_text(void **state)
{
	struct synth *t = table(7);
	char name[NAME_SIZE];
	int n = 0;

	do {
		memset(name, 'a', NAME_LENGTH);
		name[63] = name[127] = name[191] = '.';
		snprintf(name + 200, sizeof(name) - 200, "%053d", n);
		assert_int_equal(strlen(name), NAME_LENGTH);
	} while (synth_name(t, name) == n++);
	n--;
	assert_int_equal(n, SYNTH_TEXT / (NAME_LENGTH + 1));
	assert_int_equal(synth_find(t, name), -ENOENT);
	/* A shorter one still finds room. */
	assert_int_equal(synth_name(t, "b"), n);
	assert_int_equal(synth_name(t, name), -ENOSPC);
	assert_int_equal(synth_find(t, "b"), n);
}

static void test_seeds(void **state)
{
	struct synth *t = table(0), *other = table(~0ull);

	synth_name(t, "example.org");
	synth_name(other, "example.org");
	assert_int_not_equal(t->hash[0], other->hash[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_full_of_names),
		cmocka_unit_test(test_full_of_text),
		cmocka_unit_test(test_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
