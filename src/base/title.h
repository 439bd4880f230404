/*
 * base/title.h - what `ps` shows of this process
 */
#ifndef BASE_TITLE_H
#define BASE_TITLE_H

/* Remember where the arguments are; main() calls it before anything else. */
void title_init(int argc, char **argv);

/*
 * Overwrite the arguments with text. The box can read its init's command line, which is a copy
 * of the supervisor's and may hold paths and values given with --env.
 */
void title_set(const char *text);

#endif
