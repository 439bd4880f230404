/*
 * tests/unit/test_obeyed.c - which entry of the table a path falls under
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "plan/obeyed.h"

static const struct {
	const char *rel;
	bool dir;
	const char *path; /* of the entry; NULL: none */
	enum obeyed_how how;
} cases[] = {
	{ ".claude", true, ".claude", OBEYED_KEPT },
	{ ".claude", false, ".claude", OBEYED_KEPT }, /* a link to one */
	{ ".claude/settings.json", false, ".claude", OBEYED_KEPT },
	{ "a/b/.claude/skills/x/SKILL.md", false, ".claude", OBEYED_KEPT },
	{ ".claude/worktrees", true, ".claude/worktrees", OBEYED_OPEN },
	{ ".claude/worktrees/x/src/main.c", false, ".claude/worktrees", OBEYED_OPEN },
	{ ".claude/worktrees/x/.claude/settings.json", false, ".claude", OBEYED_KEPT },
	{ ".claude/worktreesx", false, ".claude", OBEYED_KEPT },
	{ ".claudex", false, NULL, 0 },
	{ "x.claude", true, NULL, 0 },
	{ ".mcp.json", false, ".mcp.json", OBEYED_GATED },
	{ ".mcp.json", true, NULL, 0 },
	{ "sub/opencode.jsonc", false, "opencode.jsonc", OBEYED_KEPT },
	{ "opencode.jsonc/file", false, NULL, 0 },
	{ "x/y.code-workspace", false, "*.code-workspace", OBEYED_REPORTED },
	{ "y.code-workspace", true, NULL, 0 },
	{ "y.code-workspace/z", false, NULL, 0 },
	{ ".github/hooks/a.json", false, ".github/hooks", OBEYED_GATED },
	{ ".github/workflows/a.yml", false, NULL, 0 },
	{ "docs/AGENTS.md", false, "AGENTS.md", OBEYED_TOLD },
	{ "lib/.hg/hgrc", false, ".hg/hgrc", OBEYED_GATED },
	{ ".hg/store/data", false, NULL, 0 },
	{ "package.json", false, NULL, 0 },
	{ "Makefile", false, NULL, 0 },
	{ "src/main.c", false, NULL, 0 },
};

static void test_find(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct obeyed *o = obeyed_find(cases[i].rel, cases[i].dir);

		if (!cases[i].path && !o)
			continue;
		if (!cases[i].path || !o)
			fail_msg("%s: %s", cases[i].rel, o ? o->path : "none");
		assert_string_equal(o->path, cases[i].path);
		assert_int_equal(o->how, cases[i].how);
	}
}

/* What a row must say: see obeyed.h. */
static void test_rows(void **state)
{
	for (size_t i = 0; i < obeyed_n; i++) {
		const struct obeyed *o = &obeyed_all[i];

		assert_true(o->who && *o->who && o->why && *o->why && o->source && *o->source);
		assert_true(o->path[0] != '/' && !strstr(o->path, "..") &&
			!strchr(o->path + 1, '*'));
		assert_true(o->path[0] != '*' || o->how == OBEYED_REPORTED);
		assert_int_equal(o->neutral != NULL, o->how == OBEYED_KEPT && !o->dir);
		assert_true(o->how == OBEYED_KEPT || !o->homes[0]);
		assert_true(obeyed_find(o->path, o->dir) == o || o->path[0] == '*');
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(o->path, obeyed_all[k].path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
