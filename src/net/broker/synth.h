/*
 * net/broker/synth.h - addresses that stand for names in one box
 *
 * The box's resolver answers every allowed name with an address of its own. When that address
 * is dialled, the broker knows which name was meant. So connections are judged by name, and no
 * client needs to know of a proxy.
 *
 * The n-th name, from 0, has
 *
 *	IPv4	198.18.1.0 + n                  in 198.18.0.0/15 (benchmarking, RFC 2544)
 *	IPv6	fd63:6172:7265:6c00::100 + n    /96; the bytes spell "carrel" after fd
 *
 * The first 256 addresses of both ranges are left to the box itself (its resolver, the
 * gateway). An address stands for its name as long as the box lives, because clients may keep
 * addresses for ever. So nothing is ever dropped: when the table is full, the resolver answers
 * new names with SERVFAIL.
 *
 * The limits are SYNTH_NAMES names and SYNTH_TEXT bytes of text. The struct is flat and large
 * (1.2 MB); its unused pages cost nothing as long as they are zeros.
 */
#ifndef NET_BROKER_SYNTH_H
#define NET_BROKER_SYNTH_H

#include "net/policy/name.h"

enum {
	SYNTH_NAMES = 16384,
	SYNTH_SLOTS = 2 * SYNTH_NAMES,
	SYNTH_TEXT = 1 << 20,
	SYNTH_FIRST = 256, /* the offset of the first name's address */
};

struct synth {
	uint16_t slot[SYNTH_SLOTS]; /* a name's number plus one, or 0 */
	uint32_t hash[SYNTH_NAMES];
	uint32_t at[SYNTH_NAMES]; /* offset in text */
	char text[SYNTH_TEXT];
	uint64_t seed; /* secret: the box must not be able to choose names that collide */
	uint32_t n, text_len;
};

/* A table of zeros is ready, but for its seed. */

/* The number of a canonical name; assigns one if it has none. -ENOSPC when full. */
int synth_name(struct synth *t, const char *name);

/* The number of a name; -ENOENT when it has none. */
int synth_find(const struct synth *t, const char *name);

struct address synth_v4(unsigned int number);
struct address synth_v6(unsigned int number);

/* The name that an address stands for, or NULL. Valid as long as the table. */
const char *synth_lookup(const struct synth *t, const struct address *a);

/* Is the address in one of the two ranges, whether it stands for a name or not? */
bool synth_is_range(const struct address *a);

#endif
