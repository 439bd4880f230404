/*
 * eval/report.h - one HTML file that shows runs
 *
 * The page, its style and its script are files in eval/report/, compiled in; the data of the
 * runs is put between them. docs/report.md says what the page shows and how large it may
 * get.
 */
#ifndef EVAL_REPORT_H
#define EVAL_REPORT_H

#include <stddef.h>

struct fault;
struct run_dir;
struct summary;

struct report_run {
	const struct run_dir *run;
	const struct summary *summary;
};

enum { REPORT_RUNS = 8 };

/* What did not fit; the page says it, too. */
struct report_cut {
	size_t attempts; /* whose details are left out */
	size_t bytes;    /* of the file */
};

/* Write the page of n runs to fd. *ret is untouched on failure. */
int report_write(const struct report_run *runs, size_t n, int fd, struct report_cut *ret,
	struct fault *f);

/* ---- report-attempt.c ---- */

struct attempt;
struct str;

/* All that the page of an attempt shows, as JSON, at most about REPORT_ATTEMPT bytes. */
enum { REPORT_ATTEMPT = 512 * 1024 };
void report_attempt(const struct run_dir *run, const struct attempt *a, struct str *out);

#endif
