/*
 * net/synth.h - addresses that stand for names in one box
 *
 * The box's resolver answers every allowed name with an address of its own, and the broker
 * learns from the address that is dialled which name was meant. So a connection is judged
 * by name although no client needs to know of any proxy.
 *
 * The n-th name, from 0, has
 *
 *	IPv4	198.18.1.0 + n                  in 198.18.0.0/15 (benchmarking, RFC 2544)
 *	IPv6	fd63:6172:7265:6c00::100 + n    /96; the bytes spell "carrel" after fd
 *
 * and the first 256 addresses of both ranges are left to the box itself (its resolver,
 * the gateway). An address, once given, stands for its name for as long as the box lives,
 * because clients keep addresses for as long as they like. So nothing is ever dropped:
 * when the table is full no new name can be looked up, and the caller says SERVFAIL.
 *
 * The limits are SYNTH_NAMES names and SYNTH_TEXT bytes of text. The struct is flat and
 * large (1.2 MB); pages of it that are not used cost nothing where it begins as zeros.
 */
#ifndef NET_SYNTH_H
#define NET_SYNTH_H

#include "net/name.h"

enum {
	SYNTH_NAMES = 16384,
	SYNTH_SLOTS = 2 * SYNTH_NAMES,
	SYNTH_TEXT = 1 << 20,
	SYNTH_FIRST = 256, /* the offset of the first name's address */
};

struct synth {
	uint16_t slot[SYNTH_SLOTS]; /* a name's number plus one, or 0 */
	uint32_t hash[SYNTH_NAMES];
	uint32_t at[SYNTH_NAMES]; /* where in text */
	char text[SYNTH_TEXT];
	uint64_t seed;
	uint32_t n, text_len;
};

/*
 * An all-zero table is ready but for the seed: something the box cannot guess, so that it
 * cannot choose names that collide.
 */
void synth_init(struct synth *t, uint64_t seed);

/* The number of a canonical name, which gets one if it has none; -ENOSPC when full. */
int synth_name(struct synth *t, const char *name);

/* Of a name that has a number: -ENOENT when it has none. */
int synth_find(const struct synth *t, const char *name);

struct address synth_v4(unsigned int number);
struct address synth_v6(unsigned int number);

/* The name an address stands for, or NULL. Valid for as long as the table. */
const char *synth_lookup(const struct synth *t, const struct address *a);

/* Is it in one of the two ranges, whether it stands for a name or not? */
bool synth_is_range(const struct address *a);

#endif
