/*
 * net/broker/synth.c - names to numbers to addresses, and back
 *
 * A hash table with open addressing whose slots hold numbers. Names are numbered in the order
 * in which they came, so a number finds its text and address without a search. Nothing is
 * removed.
 */
#include "net/broker/synth.h"

#include <errno.h>
#include <string.h>

static const uint8_t range_v4[4] = { 198, 18 };
static const uint8_t range_v6[16] = { 0xfd, 0x63, 0x61, 0x72, 0x72, 0x65, 0x6c };

/* FNV-1a with a secret start, mixed once more so that all bits count. */
static uint32_t hash_of(const struct synth *t, const char *name)
{
	uint64_t h = t->seed ^ 0xcbf29ce484222325;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3;
	h = (h ^ h >> 33) * (t->seed | 1);
	return (uint32_t)(h >> 32 ^ h);
}

/* The slot of the name, or the empty slot where it belongs. There is always one. */
static uint32_t slot_of(const struct synth *t, const char *name, uint32_t hash)
{
	uint32_t i = hash % SYNTH_SLOTS;

	for (; t->slot[i]; i = (i + 1) % SYNTH_SLOTS) {
		unsigned int number = t->slot[i] - 1u;

		if (t->hash[number] == hash && !strcmp(t->text + t->at[number], name))
			break;
	}
	return i;
}

int synth_find(const struct synth *t, const char *name)
{
	uint32_t i = slot_of(t, name, hash_of(t, name));

	return t->slot[i] ? t->slot[i] - 1 : -ENOENT;
}

int synth_name(struct synth *t, const char *name)
{
	uint32_t hash = hash_of(t, name), i = slot_of(t, name, hash);
	size_t size = strlen(name) + 1;

	if (t->slot[i])
		return t->slot[i] - 1;
	if (t->n == SYNTH_NAMES || size > SYNTH_TEXT - t->text_len)
		return -ENOSPC;
	memcpy(t->text + t->text_len, name, size);
	t->at[t->n] = t->text_len;
	t->hash[t->n] = hash;
	t->text_len += (uint32_t)size;
	t->slot[i] = (uint16_t)++t->n;
	return (int)t->n - 1;
}

struct address synth_v4(unsigned int number)
{
	struct address a = address_v4(range_v4);
	unsigned int offset = SYNTH_FIRST + number;

	a.byte[1] = (uint8_t)(a.byte[1] + (offset >> 16));
	a.byte[2] = (uint8_t)(offset >> 8);
	a.byte[3] = (uint8_t)offset;
	return a;
}

struct address synth_v6(unsigned int number)
{
	struct address a = address_v6(range_v6);
	unsigned int offset = SYNTH_FIRST + number;

	a.byte[13] = (uint8_t)(offset >> 16);
	a.byte[14] = (uint8_t)(offset >> 8);
	a.byte[15] = (uint8_t)offset;
	return a;
}

bool synth_is_range(const struct address *a)
{
	struct address v4 = address_v4(range_v4), v6 = address_v6(range_v6);

	return address_within(a, &v4, 15) || address_within(a, &v6, 96);
}

const char *synth_lookup(const struct synth *t, const struct address *a)
{
	const uint8_t *b = a->byte + (a->family == ADDRESS_V6 ? 12 : 0);
	uint32_t offset;

	if (!synth_is_range(a))
		return NULL;
	offset = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
	if (a->family == ADDRESS_V4)
		offset &= 0x1ffff;
	if (offset < SYNTH_FIRST || offset - SYNTH_FIRST >= t->n)
		return NULL;
	return t->text + t->at[offset - SYNTH_FIRST];
}
