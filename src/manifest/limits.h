/*
 * manifest/limits.h - all limits of a box, in one table
 *
 * A row is a limit. The key of a manifest, the option --limit with its completion, the plan's
 * JSON, its schema and the manual follow from it. To add a limit, add a row here and enforce it
 * in one place. plan/held.c says which mechanism holds it.
 *
 *	X(name, type, most, such, plan, key)
 *
 *	type	KEY_COUNT, KEY_SIZE, KEY_TIME or KEY_NUMBER (manifest/keys.h)
 *	most	the largest value, as one writes it: more would overflow in the kernel or here
 *	such	what --limit expects; `most` is added to it
 *	plan	what the value in a plan means
 *	key	the documentation of the manifest's key
 *
 * A value of 0 is the default. A value written with a question mark at its end ("4G?") is
 * optional: a machine that cannot hold the limit starts the box without it. The group says
 * who enforces a limit.
 */
#ifndef MANIFEST_LIMITS_H
#define MANIFEST_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

/* The supervisor (time, idle), the size of the box's tmpfs, rlimits and cgroups. */
#define LIMITS_OF_BOX(X)                                                                      \
	X(time, KEY_TIME, "3650d", "a time such as 90s, 30m or 1h30m, at most",               \
		"seconds of wall clock, 0: no limit", "Wall-clock time, as `30m`.")           \
	X(idle, KEY_TIME, "3650d", "a time such as 90s, 30m or 1h30m, at most",               \
		"seconds without input, output or network, 0: no limit",                      \
		"Time without input, output or network traffic, as `10m`.")                   \
	X(pids, KEY_COUNT, "4194304", "a number from 1 to",                                   \
		"processes and threads, 0: no limit", "Processes and threads.")               \
	X(files, KEY_COUNT, "1073741824", "a number from 1 to", "open files in each process", \
		"Open files of each process.")                                                \
	X(scratch, KEY_SIZE, "1024T", "a size such as 512M or 2G, at most",                   \
		"bytes in the box's own file system",                                         \
		"What may be written outside the workspace: home, /tmp.")                     \
	X(disk, KEY_SIZE, "1024T", "a size such as 512M or 2G, at most",                      \
		"bytes on disk of what it changes in its copies, 0: no limit",                \
		"What may be written to a copy of the workspace (mode `overlay`), on disk.")  \
	X(memory, KEY_SIZE, "1024T", "a size such as 512M or 4G, at most",                    \
		"bytes of memory of all processes, scratch included, 0: no limit",            \
		"Memory of all processes together, with what they write to scratch.")         \
	X(swap, KEY_SIZE, "1024T", "a size such as 512M or 4G, at most",                      \
		"bytes of swap of all processes, 0: no limit",                                \
		"Swap of all processes together; less than a page is none.")                  \
	X(cpus, KEY_NUMBER, "8192", "a number of processors such as 2 or 0.5, at most",       \
		"processors' worth of time, 0: no limit",                                     \
		"Processor time of all processes together, in processors: `1.5`.")            \
	X(io, KEY_COUNT, "10000", "a weight from 1 to",                                       \
		"weight among others at the same disk, 0: the usual 100",                     \
		"Weight at the disks from 1 to 10000; others have 100.")

/* The broker; only in networks that have one. */
#define LIMITS_OF_NETWORK(X)                                                            \
	X(connections, KEY_COUNT, "4096", "a number from 1 to", "how many at once",     \
		"Connections at once, where the network is `allow` or `open`.")         \
	X(traffic, KEY_SIZE, "1024T", "a size such as 500M or 10G, at most",            \
		"bytes in both directions, 0: no limit",                                \
		"Bytes over such a network in all, in both directions.")                \
	X(rate, KEY_SIZE, "1T", "a size for each second, such as 500K or 10M, at most", \
		"bytes a second, 0: no limit", "The same, each second.")

/* Not enforced yet: an agent that sets one is refused. */
#define LIMITS_OF_NOBODY(X)                                               \
	X(usd, KEY_NUMBER, NULL, NULL, NULL, "Money spent on the model.") \
	X(tokens, KEY_COUNT, NULL, NULL, NULL, "Tokens used.")

enum { MOST_CONNECTIONS = 4096 }; /* of one box, at once */

#define LIMIT_FIELD_KEY_COUNT  unsigned long long
#define LIMIT_FIELD_KEY_SIZE   unsigned long long
#define LIMIT_FIELD_KEY_TIME   unsigned long long
#define LIMIT_FIELD_KEY_NUMBER double
#define LIMIT_FIELD(name, type, most, such, plan, key) \
	LIMIT_FIELD_##type name;                       \
	bool name##_optional;

struct limits {
	LIMITS_OF_BOX(LIMIT_FIELD)
	LIMITS_OF_NETWORK(LIMIT_FIELD)
	LIMITS_OF_NOBODY(LIMIT_FIELD)
};

enum limit_group { LIMIT_OF_BOX, LIMIT_OF_NETWORK, LIMIT_OF_NOBODY };

struct limit_row {
	const char *name;
	enum limit_group group;
	size_t offset, optional; /* in struct limits */
	int type;                /* enum key_type */
	const char *most, *such;
};

extern const struct limit_row limit_table[]; /* ends with a name of NULL */

/* The limits of a group in order: for (l = limit_first(g); l; l = limit_next(l)) */
const struct limit_row *limit_first(enum limit_group group);
const struct limit_row *limit_next(const struct limit_row *l);
const struct limit_row *limit_find(const char *name);

bool limit_is_set(const struct limits *all, const struct limit_row *l);
bool limit_is_optional(const struct limits *all, const struct limit_row *l);

/* Set it to 0: the box has no such limit. */
void limit_clear(struct limits *all, const struct limit_row *l);

/* Take from `from` the limits of one group that `to` does not set. */
void limit_inherit(struct limits *to, const struct limits *from, enum limit_group group);

/* Set a limit from text. False: the text is no value, or out of range. */
bool limit_set(struct limits *all, const struct limit_row *l, const char *text);

/* A limit's value as text for a person: "4 GiB", "1h30m", "512". */
const char *limit_words(const struct limits *all, const struct limit_row *l);

/* A value as it is written: a number of that type, and whether a question mark follows. */
struct measure {
	unsigned long long whole; /* COUNT, SIZE, TIME */
	double real;              /* NUMBER */
	bool optional;
};

/* False: the text is no such number, or the number is not above 0. type: enum key_type. */
bool measure_parse(int type, const char *text, struct measure *ret);

#endif
