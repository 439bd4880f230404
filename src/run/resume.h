/*
 * run/resume.h - how to resume the conversation of a box
 */
#ifndef RUN_RESUME_H
#define RUN_RESUME_H

struct plan;
struct timespec;

/*
 * The client's arguments to resume the newest conversation that boxes of this project have
 * written since then, as "--resume UUID"; NULL: there is none.
 */
const char *resume_words(const struct plan *p, const struct timespec *since);

#endif
