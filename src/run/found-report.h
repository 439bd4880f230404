/*
 * run/found-report.h - report files that a run left for the host to execute
 *
 * The terminal gets the first twenty entries; the record of the box gets all of them, as JSON
 * lines in state/boxes.h's found.jsonl:
 *
 *	{"carrel":1,"box":"carrel-shop","workspace":"/home/a/shop","time":"...","found":2}
 *	{"path":"lib/.git","why":"a repository, ...","rank":"git"}
 *	{"path":"CLAUDE.md","why":"instructions for agents","rank":"instructions"}
 *
 * The record is written completely or not at all. A box that left nothing has none.
 */
#ifndef RUN_FOUND_REPORT_H
#define RUN_FOUND_REPORT_H

#include "run/found.h"
#include "run/run.h"

#define REPORT_FILE "found.jsonl"

enum { REPORT_FORMAT = 1 };

/* Add the lines for a person to notes. The findings are sorted already. */
void report_planted(const struct plan *p, const planted_vec *found, note_vec *notes);

#endif
