#include "manifest/limits.h"
#include "manifest/keys.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define ROW(group_, name_, type_, most_, such_)           \
	{ #name_, group_, offsetof(struct limits, name_), \
		offsetof(struct limits, name_##_optional), type_, most_, such_ },
#define BOX_ROW(name, type, most, such, plan, key) ROW(LIMIT_OF_BOX, name, type, most, such)
#define NETWORK_ROW(name, type, most, such, plan, key) \
	ROW(LIMIT_OF_NETWORK, name, type, most, such)
#define NOBODY_ROW(name, type, most, such, plan, key) \
	ROW(LIMIT_OF_NOBODY, name, type, most, such)

const struct limit_row limit_table[] = {
	/* clang-format off */
	LIMITS_OF_BOX(BOX_ROW)
	LIMITS_OF_NETWORK(NETWORK_ROW)
	LIMITS_OF_NOBODY(NOBODY_ROW)
	{ 0 },
	/* clang-format on */
};

static const struct limit_row *find_group(const struct limit_row *l, enum limit_group group)
{
	while (l->name && l->group != group)
		l++;
	return l->name ? l : NULL;
}

const struct limit_row *limit_first(enum limit_group group)
{
	return find_group(limit_table, group);
}

const struct limit_row *limit_next(const struct limit_row *l)
{
	return find_group(l + 1, l->group);
}

const struct limit_row *limit_find(const char *name)
{
	const struct limit_row *l = limit_table;

	while (l->name && strcmp(l->name, name) != 0)
		l++;
	return l->name ? l : NULL;
}

/* Every value, a whole number or not, has the same size. */
_Static_assert(sizeof(double) == sizeof(unsigned long long), "limits are copied as one size");

static void *value_at(struct limits *all, const struct limit_row *l)
{
	return (char *)all + l->offset;
}

static struct measure measure_of(const struct limits *all, const struct limit_row *l)
{
	const char *at = (const char *)all + l->offset;
	struct measure m = { 0 };

	if (l->type == KEY_NUMBER)
		memcpy(&m.real, at, sizeof(m.real));
	else
		memcpy(&m.whole, at, sizeof(m.whole));
	return m;
}

bool limit_is_set(const struct limits *all, const struct limit_row *l)
{
	const struct measure m = measure_of(all, l);

	return m.whole || m.real > 0;
}

bool limit_is_optional(const struct limits *all, const struct limit_row *l)
{
	return *((const char *)all + l->optional);
}

void limit_clear(struct limits *all, const struct limit_row *l)
{
	memset(value_at(all, l), 0, sizeof(double)); /* 0.0 is all zeros, too */
}

void limit_inherit(struct limits *to, const struct limits *from, enum limit_group group)
{
	for (const struct limit_row *l = limit_first(group); l; l = limit_next(l)) {
		if (limit_is_set(to, l))
			continue;
		memcpy(value_at(to, l), (const char *)from + l->offset, sizeof(double));
		*((char *)to + l->optional) = limit_is_optional(from, l);
	}
}

static bool parse_real(const char *text, double *ret)
{
	char *end;

	if (!*text || strspn(text, "0123456789.") != strlen(text))
		return false;
	*ret = strtod(text, &end);
	return !*end;
}

bool measure_parse(int type, const char *text, struct measure *ret)
{
	const size_t n = strlen(text);
	const bool optional = n && text[n - 1] == '?';
	const char *value = mem_strndup(text, n - optional);
	struct measure m = { .optional = optional };
	bool good;

	if (type == KEY_NUMBER)
		good = parse_real(value, &m.real);
	else if (type == KEY_TIME)
		good = str_parse_duration(value, &m.whole);
	else if (type == KEY_COUNT && strspn(value, "0123456789") != strlen(value))
		good = false;
	else
		good = str_parse_size(value, &m.whole);
	/* 0 would mean no limit, but in a request it means the default. */
	if (!good || (!m.whole && m.real <= 0))
		return false;
	*ret = m;
	return true;
}

bool limit_set(struct limits *all, const struct limit_row *l, const char *text)
{
	struct measure m, most;

	if (!measure_parse(l->type, text, &m) || !measure_parse(l->type, l->most, &most))
		return false;
	if (m.whole > most.whole || m.real > most.real)
		return false;
	if (l->type == KEY_NUMBER)
		memcpy(value_at(all, l), &m.real, sizeof(m.real));
	else
		memcpy(value_at(all, l), &m.whole, sizeof(m.whole));
	*((char *)all + l->optional) = m.optional;
	return true;
}

static const char *size_words(unsigned long long bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;

	/* Exact while it can be; a large size that is no round number loses its end. */
	while (unit + 1 < ARRAY_SIZE(units) && bytes >= 1024 &&
		(bytes % 1024 == 0 || bytes >= 10000)) {
		bytes /= 1024;
		unit++;
	}
	return mem_printf("%llu %s", bytes, units[unit]);
}

const char *limit_words(const struct limits *all, const struct limit_row *l)
{
	const struct measure m = measure_of(all, l);

	switch (l->type) {
	case KEY_NUMBER:
		return mem_printf("%g", m.real);
	case KEY_SIZE:
		return size_words(m.whole);
	case KEY_TIME:
		return mem_printf("%llu s", m.whole);
	default:
		return mem_printf("%llu", m.whole);
	}
}
