#include "manifest/limits.h"
#include "manifest/keys.h"
#include "base/str.h"

#include <string.h>

#define ROW(group_, name_, type_, most_, such_) \
	{ #name_, group_, offsetof(struct limits, name_), type_, most_, such_ },
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

static unsigned long long *whole_at(struct limits *all, const struct limit_row *l)
{
	return (unsigned long long *)((char *)all + l->offset);
}

static unsigned long long whole_value(const struct limits *all, const struct limit_row *l)
{
	return *(const unsigned long long *)((const char *)all + l->offset);
}

bool limit_is_set(const struct limits *all, const struct limit_row *l)
{
	if (l->type == KEY_NUMBER)
		return *(const double *)((const char *)all + l->offset) > 0;
	return whole_value(all, l) != 0;
}

void limit_inherit(struct limits *to, const struct limits *from, enum limit_group group)
{
	for (const struct limit_row *l = limit_first(group); l; l = limit_next(l))
		if (!limit_is_set(to, l))
			*whole_at(to, l) = whole_value(from, l);
}

static bool parse_value(const struct limit_row *l, const char *text, unsigned long long *ret)
{
	if (l->type == KEY_TIME)
		return str_parse_duration(text, ret);
	if (l->type == KEY_COUNT && strspn(text, "0123456789") != strlen(text))
		return false;
	return str_parse_size(text, ret);
}

bool limit_set(struct limits *all, const struct limit_row *l, const char *text)
{
	unsigned long long value, most;

	/* 0 would mean no limit, but in a request it means the default. */
	if (!parse_value(l, text, &value) || !value)
		return false;
	if (!parse_value(l, l->most, &most) || value > most)
		return false;
	*whole_at(all, l) = value;
	return true;
}
