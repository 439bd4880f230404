/*
 * supervise/asciicast.h - record a terminal's output as an asciicast v2 file
 *
 *	record_open(&rec, path, &head, f);		before the box starts
 *	relay_tap(&out, record_tap, &rec.out);		and &rec.err for a separate stderr
 *	record_resize(&rec, cols, rows);
 *	timeout = record_timeout(&rec); poll(...); record_tick(&rec);
 *	record_close(&rec, f);				or record_discard() when nothing started
 *
 * A struct record of zeros records nothing, and all calls are allowed on it. A recording never
 * disturbs the session. A full disk ends the recording after a whole line, and record_close()
 * reports it. Keys that the user types are not recorded, because they may be a password.
 */
#ifndef SUPERVISE_ASCIICAST_H
#define SUPERVISE_ASCIICAST_H

#include <stdbool.h>
#include <stddef.h>

struct fault;
struct record;

struct record_head {
	unsigned int cols, rows;
	const char *title, *term, *shell; /* NULL: left out */
	bool lines; /* from pipes: a line ends in LF alone, and is recorded as CR LF */
};

/* One source of bytes, with its unfinished UTF-8 character. */
struct record_stream {
	struct record *record;
	unsigned char part[4], have;
};

struct record {
	struct record_stream out, err;

	/* Private. */
	const char *path;
	int fd;
	int error; /* the first errno of a write; nothing is written after it */
	bool created, lines;
	unsigned long long began; /* CLOCK_MONOTONIC, ns */
	unsigned long long due;   /* when the buffer must be written */
	unsigned long long good;  /* bytes of whole lines in the file */
	char *buf;                /* NULL: not recording */
	size_t len;
};

/*
 * Create path (which must live as long as r) and write the header. A file that
 * exists is never overwritten, except an empty one of our own, as mktemp makes.
 */
int record_open(struct record *r, const char *path, const struct record_head *head,
	struct fault *f);

/* Bytes for the screen. record_tap is that as a relay_tap_fn; ctx is a record_stream. */
void record_output(struct record_stream *s, const char *bytes, size_t n);
void record_tap(void *ctx, const char *bytes, size_t n);

void record_resize(struct record *r, unsigned int cols, unsigned int rows);

/* Milliseconds until record_tick() has something to do, or -1. */
int record_timeout(const struct record *r);
void record_tick(struct record *r);

/* Write the rest. -errno and f when any of the recording could not be written. */
int record_close(struct record *r, struct fault *f);

/* The box never started: leave no file behind. */
void record_discard(struct record *r);

#endif
