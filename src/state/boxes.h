/*
 * state/boxes.h - records of boxes, by their names
 *
 *	$XDG_STATE_HOME/carrel/boxes/NAME/
 *	  events.jsonl		what happened on its network: supervise/journal.h
 *	  found.jsonl		what it left for the host to execute: run/found-report.h
 *	  layers/, *.json	of an overlay workspace: state/workspace.h
 *
 * A box's directory stays after the box has ended, so that the user can look. The next box of
 * that name replaces its contents, and `carrel gc` removes it when it is old. No box sees any
 * of this, and nothing that a box says becomes part of a path.
 */
#ifndef STATE_BOXES_H
#define STATE_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/mem.h"

struct fault;

enum { BOXES_DAYS = 30 }; /* how long a record is kept */

/* Of a detached box: lines that scrolled off its screen, the screen itself, and the result. */
#define BOXES_LOG      "output.log"
#define BOXES_SCREEN   "screen.txt"
#define BOXES_DETACHED "detached.json" /* "agent", "workspace", "started": at its start */
#define BOXES_RESULT   "result.json"   /* "code", "ended" (seconds of the clock) */

/* Could a box have this name, so that it is safe in a path? */
bool boxes_is_name(const char *name);

/*
 * Create a file in the box's directory, replacing an older one: a descriptor to write to, or
 * -errno. The caller holds the name (state/registry.h).
 */
int boxes_create(const char *name, const char *file, struct fault *f);

/* Write a file of the box, all or nothing. The caller holds the name. */
int boxes_put(const char *name, const char *file, const char *bytes, size_t n, struct fault *f);

/*
 * Remove a file of the box, if there is one, and the record with its last file. The caller
 * holds the name.
 */
int boxes_drop(const char *name, const char *file, struct fault *f);

/* Does the file exist? Cheaper than opening it, and only a hint. */
bool boxes_has(const char *name, const char *file);

/* The directory of a box, or of all boxes (NULL), for messages. */
const char *boxes_shown(const char *name);

/* Its path without links; and the directory itself, open, created if necessary. */
const char *boxes_path(const char *name);
int boxes_directory(const char *name, bool make, struct fault *f);

/* Open a file of a box for reading; f->err is ENOENT when there is none. */
int boxes_open(const char *name, const char *file, struct fault *f);

/* Read a file that holds one JSON object, as carrel wrote it; NULL and a fault. */
struct json_value;
const struct json_value *boxes_json(const char *name, const char *file, struct fault *f);

struct box_record {
	const char *name;
	time_t used; /* when it was last written */
	unsigned long long bytes;
	bool holds;          /* changes that are neither applied nor discarded */
	const char *problem; /* why it is not used, for a person; or NULL */
};
typedef VEC(struct box_record) box_records;

/* List all records; none when there is no such directory. */
int boxes_list(box_records *ret, struct fault *f);

/* Is it old enough to be removed? */
bool boxes_is_old(const struct box_record *r);

/* 1: there is a record of that box; 0 and a fault: there is none. */
int boxes_find(const char *name, struct fault *f);

/* Remove a record, whatever is in it. The caller holds the name. */
int boxes_erase(const char *name, struct fault *f);

/*
 * Remove an old record. -EBUSY: the name is in use, the record has become newer, or it holds
 * changes and the caller wants those kept.
 */
int boxes_remove(const struct box_record *r, bool changes, struct fault *f);

#endif
