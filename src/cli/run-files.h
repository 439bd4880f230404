/*
 * cli/run-files.h - files of an evaluation run that the user asked for by name
 *
 * `carrel eval` writes them at its end and `carrel report` of a run that is there.
 */
#ifndef CLI_RUN_FILES_H
#define CLI_RUN_FILES_H

struct fault;
struct run_dir;
struct summary;

/* Paths; NULL: not wanted, "-": standard output. */
struct run_files {
	const char *junit, *markdown, *inspect, *csv;
};

int run_files_write(const struct run_files *want, const struct run_dir *run,
	const struct summary *s, struct fault *f);

/*
 * Make the file whole or not at all: write() fills another one, which then takes its place.
 * "-" is standard output.
 */
int run_files_put(const char *path, int (*write)(const void *arg, int fd, struct fault *f),
	const void *arg, struct fault *f);

#endif
