/*
 * net/event.c - is what the broker tells of an event at all?
 *
 * Who writes these structs reads hostile bytes, and may be somebody else's by the time it
 * writes one. What passes here can be printed, counted and compared without another look:
 * every text ends, every number is one that its enum has. That it is true nobody can say.
 */
#include "net/event.h"
#include "net/policy.h"

#include <string.h>

enum { ERRNO_MOST = 4095, LIMIT_LENGTH = 100 };

/* A bool with any other byte in it is undefined to look at. */
static bool is_bool(const bool *b)
{
	unsigned char byte;

	memcpy(&byte, b, 1);
	return byte <= 1;
}

static bool is_address(const struct address *a)
{
	static const uint8_t zero[16];
	size_t used = a->family == ADDRESS_V6 ? 16 : a->family == ADDRESS_V4 ? 4 : 0;

	if (a->family != ADDRESS_NONE && !used)
		return false;
	return !memcmp(a->byte + used, zero, sizeof(zero) - used);
}

/* Words of our own: "connections a second". */
static bool is_words(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return n > 0 && n <= LIMIT_LENGTH;
}

static bool is_name(const char *name, size_t n)
{
	char canonical[NAME_SIZE];

	return !n || (name_canon(name, n, canonical) != NAME_BAD && !strcmp(name, canonical));
}

bool net_event_is_sane(const struct net_event *e)
{
	size_t n = strnlen(e->name, sizeof(e->name));

	if (e->kind < NET_LOOKUP || e->kind > NET_LOST || e->reason > POLICY_DATAGRAM)
		return false;
	if (!is_bool(&e->allowed) || !is_bool(&e->inbound) || n == sizeof(e->name))
		return false;
	if (!(e->kind == NET_LIMIT ? is_words(e->name, n) : is_name(e->name, n)))
		return false;
	if (e->error < 0 || e->error > ERRNO_MOST)
		return false;
	if ((e->kind == NET_CLOSE && !e->id) || (e->kind == NET_DATAGRAM && e->allowed))
		return false;
	return is_address(&e->address);
}
