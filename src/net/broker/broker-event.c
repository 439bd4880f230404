/*
 * net/broker/broker-event.c - check an event from the broker
 *
 * The broker reads hostile bytes, so an attacker may control it when it writes an event. An
 * event that passes this check is safe to print, count and compare: every text is terminated,
 * and every number is a value of its enum. The check cannot know whether the event is true.
 */
#include "net/broker/broker-event.h"
#include "net/policy/policy.h"

#include <string.h>

enum { ERRNO_MOST = 4095, LIMIT_LENGTH = 100 };

/* Reading a bool that holds any other byte is undefined. */
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

/* Texts that carrel itself writes, such as "connections a second". */
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
