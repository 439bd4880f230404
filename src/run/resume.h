/*
 * run/resume.h - the conversation that a box has just ended, for the user to go on with
 */
#ifndef RUN_RESUME_H
#define RUN_RESUME_H

struct plan;
struct timespec;

/*
 * The words for its client that go on with the newest conversation which boxes of this project
 * have written since then, as "--resume UUID"; NULL: there is none, or none that is known.
 */
const char *resume_words(const struct plan *p, const struct timespec *since);

#endif
