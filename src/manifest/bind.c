/*
 * manifest/bind.c - from a checked tree to structs, by the key table
 */
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "base/json-read.h"
#include "base/str.h"

#include <string.h>

/* The layout that VEC() gives any type. */
struct any_vec {
	char *v;
	size_t n, cap;
};

const struct json_value *key_object(const struct key *k, const struct json_value *v)
{
	struct json_value *object, *member;

	if (!k->shorthand || v->type != JSON_STRING)
		return v;
	object = mem_alloc(sizeof(*object));
	member = mem_alloc(sizeof(*member));
	*object = *v;
	object->type = JSON_OBJECT;
	object->text = NULL;
	object->first = member;
	*member = *v;
	member->key = k->shorthand;
	member->key_at = v->at;
	member->next = NULL;
	return object;
}

static struct said said(const struct json_value *v)
{
	return (struct said){ .text = v->text, .at = v };
}

static void bind_strings(const struct json_value *v, said_vec *to)
{
	vec_reserve(to, 1);
	json_each(item, v)
		vec_push(to, said(item));
}

static void bind_texts(const struct json_value *v, named_vec *to)
{
	json_each(item, v)
		vec_push(to, ((struct named){ .name = item->key, .value = said(item) }));
}

static void bind_structs(const struct key *k, const struct json_value *v, struct any_vec *to)
{
	size_t n = 0;

	json_each(item, v)
		n++;
	to->v = mem_alloc((n + 1) * k->size);
	to->cap = n;
	json_each(item, v) {
		char *one = to->v + k->size * to->n++;

		manifest_bind(k->keys, item, one);
		*(struct said *)one = (struct said){ .text = item->key, .at = item };
	}
}

static void bind_number(const struct key *k, const struct json_value *v, char *to)
{
	struct measure m = { .whole = (unsigned long long)v->number, .real = v->number };

	if (v->type == JSON_STRING)
		(void)measure_parse(k->type, v->text, &m);
	if (k->type == KEY_NUMBER)
		*(double *)(void *)(to + k->offset) = m.real;
	else
		*(unsigned long long *)(void *)(to + k->offset) = m.whole;
	if (k->optional)
		*(bool *)(to + k->optional) = m.optional;
}

static void bind_value(const struct key *k, const struct json_value *v, char *to)
{
	void *field = to + k->offset;

	switch (k->type) {
	case KEY_STRING:
	case KEY_CHOICE:
		*(struct said *)field = said(v);
		break;
	case KEY_FLAG:
		*(enum flag *)field = v->boolean ? FLAG_ON : FLAG_OFF;
		break;
	case KEY_COUNT:
	case KEY_SIZE:
	case KEY_TIME:
	case KEY_NUMBER:
		bind_number(k, v, to);
		break;
	case KEY_STRINGS:
		bind_strings(v, field);
		break;
	case KEY_TEXTS:
		bind_texts(v, field);
		break;
	case KEY_OBJECT:
		manifest_bind(k->keys, key_object(k, v), to);
		break;
	case KEY_OBJECTS:
	case KEY_MAP:
		bind_structs(k, v, field);
		break;
	case KEY_END:
		break;
	}
}

void manifest_bind(const struct key *keys, const struct json_value *v, void *to)
{
	json_each(item, v) {
		const struct key *k = key_find(keys, item->key);

		if (k)
			bind_value(k, item, to);
	}
}
