/*
 * base/fault.h - what went wrong, for a person
 *
 * A function that can fail returns 0 or -errno and takes a struct fault as its
 * last argument. The record has a fixed size and holds no pointer, so it is
 * usable after fork, needs no allocation, and crosses the pipe from the box's
 * init byte for byte. Library code fills it in and returns; cli/ prints it once.
 *
 * Convention: `text` says what could not be done ("mount '/usr' at '/usr'"), the
 * errno's own words are added when it is printed; `fix` is a whole sentence that
 * tells the user what to do, and may be empty.
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

struct fault {
	int err;       /* an errno, or 0 when the text says it all */
	char step[24]; /* the step of the engine that failed, or "" */
	char text[600];
	char fix[400];
};

/* Fill in f and return -err (-EINVAL when err is 0), so callers can `return fault_set(...)`. */
int fault_set(struct fault *f, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Add the suggestion to a fault that is set already; returns what fault_set returned. */
int fault_fix(struct fault *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * For ETOOMANYREFS (too many of the user's descriptors are in flight between processes), add
 * what to do. Any other fault stays as it is. Returns what fault_set() returned.
 */
int fault_in_flight(struct fault *f);

/* The text with the errno's own words, in one line. */
const char *fault_line(const struct fault *f);

/* An impossible state: say where and abort. Never for bad input. */
#define BUG(...) bug_abort(__FILE__, __LINE__, __VA_ARGS__)
void bug_abort(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

#endif
