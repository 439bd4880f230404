#include "base/path.h"
#include "base/mem.h"

#include <fnmatch.h>
#include <string.h>

char *path_join(const char *dir, const char *rel)
{
	size_t n = strlen(dir), m = strlen(rel);
	char *path;

	if (rel[0] == '/')
		return mem_strndup(rel, m);
	if (!m)
		return mem_strndup(dir, n);
	path = mem_alloc(n + 1 + m + 1);
	memcpy(path, dir, n);
	if (!n || dir[n - 1] != '/')
		path[n++] = '/';
	memcpy(path + n, rel, m);
	return path;
}

/* Does a relative path end in ".."? Then another ".." climbs further. */
static bool ends_up(const char *path, size_t len)
{
	return len >= 2 && path[len - 1] == '.' && path[len - 2] == '.' &&
		(len == 2 || path[len - 3] == '/');
}

char *path_clean(const char *path)
{
	bool absolute = path[0] == '/';
	char *out = mem_alloc(strlen(path) + 2);
	size_t len = 0;

	while (*path) {
		size_t n = 0;

		while (*path == '/')
			path++;
		while (path[n] && path[n] != '/')
			n++;
		if (n == 0 || (n == 1 && path[0] == '.')) {
			path += n;
			continue;
		}
		if (n == 2 && path[0] == '.' && path[1] == '.' &&
			(absolute || (len && !ends_up(out, len)))) {
			while (len && out[--len] != '/')
				;
			path += n;
			continue;
		}
		if (len || absolute)
			out[len++] = '/';
		memcpy(out + len, path, n);
		len += n;
		path += n;
	}
	if (!len)
		out[len++] = absolute ? '/' : '.';
	out[len] = '\0';
	return out;
}

char *path_parent(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return mem_strdup(".");
	return mem_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool path_within(const char *path, const char *dir)
{
	if (dir[0] == '/' && !dir[1])
		return path[0] == '/';
	while (*dir && *path == *dir)
		path++, dir++;
	return !*dir && (!*path || *path == '/');
}

const char *path_below(const char *path, const char *dir)
{
	const char *rest = path + (dir[1] ? strlen(dir) : 0);

	while (*rest == '/')
		rest++;
	return rest;
}

int path_compare(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	if (*a == *b)
		return 0;
	/* A slash sorts before every other byte, so "/a/b" comes before "/a-b". */
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

bool path_is_pattern(const char *text)
{
	return strpbrk(text, "*?[") != NULL;
}

/* Do the first n bytes of a and the first m of b, one path part each, match? */
static bool match_part(const char *pattern, size_t n, const char *name, size_t m)
{
	char p[256], s[256];

	if (n >= sizeof(p) || m >= sizeof(s))
		return false;
	memcpy(p, pattern, n);
	p[n] = '\0';
	memcpy(s, name, m);
	s[m] = '\0';
	return fnmatch(p, s, 0) == 0;
}

static const char *next_part(const char *path)
{
	path += strcspn(path, "/");
	return path + (*path == '/');
}

static bool is_two_stars(const char *pattern)
{
	return pattern[0] == '*' && pattern[1] == '*' && (!pattern[2] || pattern[2] == '/');
}

/*
 * Match part by part. Only the last ** is ever retried with more parts: whatever an earlier one
 * could take, the last one can take as well. So the cost is at most parts times parts, which
 * matters because a box can make a very deep tree.
 */
static bool match_parts(const char *pattern, const char *rel)
{
	const char *star = NULL, *from = NULL;

	for (;;) {
		if (is_two_stars(pattern)) {
			star = pattern = next_part(pattern);
			from = rel;
			if (!*pattern)
				return *rel != '\0';
		} else if (!*rel) {
			return !*pattern;
		} else if (*pattern &&
			match_part(pattern, strcspn(pattern, "/"), rel, strcspn(rel, "/"))) {
			pattern = next_part(pattern);
			rel = next_part(rel);
		} else if (star) {
			pattern = star;
			rel = from = next_part(from);
		} else {
			return false;
		}
	}
}

bool path_match(const char *pattern, const char *rel)
{
	const char *slash = strchr(pattern, '/');

	if (!slash)
		return match_parts(pattern, path_base(rel));
	if (!slash[1])
		return match_part(pattern, (size_t)(slash - pattern), path_base(rel),
			strlen(path_base(rel)));
	return match_parts(pattern[0] == '/' ? pattern + 1 : pattern, rel);
}

/* ---- two patterns ---- */

enum { MEET_MOST = 1000 };

struct meet {
	const char *a, *b;
	char *seen; /* for each pair of positions: already known not to meet from there on */
	size_t width;
};

/* The character that one step of a pattern matches; '?': any. */
static char step_of(const char *at, const char **ret_next)
{
	const char *end = *at == '[' && at[1] ? strchr(at + 2, ']') : NULL;

	*ret_next = end ? end + 1 : at + 1;
	if (end)
		return '?';
	if (*at == '\\' && at[1])
		return *(*ret_next)++;
	return *at;
}

static bool meet(struct meet *m, const char *a, const char *b);

/* The first pattern begins with a star: it matches nothing, or one step of the other. */
static bool meet_star(struct meet *m, const char *a, const char *b, bool swapped)
{
	const bool parts = (a == (swapped ? m->b : m->a) || a[-1] == '/') && is_two_stars(a);
	const char *rest = parts ? next_part(a) : a + 1, *next = b;

	if (parts && !*rest)
		return *b;
	if (swapped ? meet(m, b, rest) : meet(m, rest, b))
		return true;
	if (!*b || (!parts && *b == '/'))
		return false;
	if (parts)
		next = next_part(b);
	else
		step_of(b, &next);
	return swapped ? meet(m, next, a) : meet(m, a, next);
}

static bool meet(struct meet *m, const char *a, const char *b)
{
	char *seen = &m->seen[(size_t)(a - m->a) * m->width + (size_t)(b - m->b)];
	char x, y;

	if (*seen)
		return false;
	*seen = 1;
	if (*a == '*')
		return meet_star(m, a, b, false);
	if (*b == '*')
		return meet_star(m, b, a, true);
	if (!*a || !*b)
		return *a == *b;
	x = step_of(a, &a);
	y = step_of(b, &b);
	if (x != y && (x == '/' || y == '/' || (x != '?' && y != '?')))
		return false;
	return meet(m, a, b);
}

/* As path_match() reads it: a pattern without a slash matches the last part of any path. */
static const char *whole(const char *pattern)
{
	size_t n = strlen(pattern);

	while (n && pattern[n - 1] == '/')
		n--;
	pattern = mem_strndup(pattern, n);
	if (!strchr(pattern, '/'))
		return mem_printf("**/%s", pattern);
	return pattern + (*pattern == '/');
}

bool path_patterns_meet(const char *a, const char *b)
{
	struct meet m = { .a = whole(a), .b = whole(b) };
	const size_t n = strlen(m.a) + 1;

	m.width = strlen(m.b) + 1;
	if (n > MEET_MOST || m.width > MEET_MOST)
		return true;
	m.seen = mem_alloc(n * m.width);
	return meet(&m, m.a, m.b);
}
