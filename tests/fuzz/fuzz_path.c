/*
 * tests/fuzz/fuzz_path.c - paths as text: a pattern, a NUL, a path
 *
 * The properties hold for all text; that a matcher ends is checked by libFuzzer's timeout.
 */
#include "fuzz.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>

static void check_clean(const char *path)
{
	const char *clean = path_clean(path);
	size_t n = strlen(clean);

	CHECK(n > 0);
	CHECK((clean[0] == '/') == (path[0] == '/'));
	CHECK(!strstr(clean, "//"));
	CHECK(!strstr(clean, "/./"));
	CHECK(n == 1 || clean[n - 1] != '/');
	CHECK(clean[0] != '/' || (!strstr(clean, "/../") && !str_ends(clean, "/..")));
	CHECK(!strcmp(path_clean(clean), clean));
}

static void check_tree(const char *a, const char *b)
{
	const char *dir = path_clean(path_join("/", a)), *path = path_join(dir, b);

	CHECK(path_within(dir, "/") && path_within(dir, dir));
	CHECK(path_compare(dir, dir) == 0);
	CHECK(path_within(path_clean(path_join("/x", a)), path_parent("/x/y")) ||
		strstr(a, "..") || a[0] == '/');
	if (b[0] && b[0] != '/') {
		CHECK(path_within(path, dir));
		CHECK(path_compare(dir, path) < 0 && path_compare(path, dir) > 0);
		CHECK(!strcmp(path_join(dir, path_below(path, dir)), path));
	}
}

static void check_match(const char *pattern, const char *rel)
{
	const char *name = path_base(rel);

	path_match(pattern, rel);
	/* Text without wildcards and backslashes is a name. */
	if (*name && strlen(name) < 256 && !path_is_pattern(name) && !strchr(name, '\\'))
		CHECK(path_match(name, rel));
	if (*rel && strlen(name) < 256 && *name)
		CHECK(path_match("*", rel) || path_match("**", rel));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = strnlen((const char *)data, size);
	char *pattern, *path;
	int stars = 0;

	if (size > 4096)
		return 0;
	pattern = strndup((const char *)data, n);
	path = n < size ? strndup((const char *)data + n + 1, size - n - 1) : strdup("");
	check_clean(pattern);
	check_clean(path);
	check_tree(pattern, path);
	/* More than four are refused before they get here. */
	for (const char *s = pattern; (s = strstr(s, "**")); s += 2)
		stars++;
	if (stars <= 4 && path[0] != '/')
		check_match(pattern, path);
	free(pattern);
	free(path);
	memory_reset();
	return 0;
}
