/*
 * supervise/disk-watch.h - the limit of what a box writes to its layers
 *
 *	disk_watch_begin(&w, plan, f);       before the box starts
 *	disk_watch_poll(), _timeout()        for poll(2)
 *	disk_watch_serve(&w, fds)            true: a look has ended, see w->used
 *	disk_watch_end(&w);                  the last look, once the box is dead
 *
 * All zeros is a watch without a limit.
 */
#ifndef SUPERVISE_DISK_WATCH_H
#define SUPERVISE_DISK_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct fault;
struct plan;
struct pollfd;

enum { DISK_LAYERS = 16, DISK_FDS = 1 };

struct disk_watch {
	unsigned long long limit; /* bytes; 0: there is none */
	unsigned long long used;  /* bytes that the last look has seen */

	/* Private. */
	int layers[DISK_LAYERS], n;
	pid_t pid;               /* of the process that looks; 0: none does */
	int answer;              /* the pipe on which it says how much it saw */
	long long began, ended;  /* ms: the last look */
	long long cpu;           /* ms of processor time that it took */
	long long next, checked; /* ms: when to look at the free space again, and when it was */
	unsigned long long free_at_look, names_at_look, free_at_check;
};

int disk_watch_begin(struct disk_watch *w, const struct plan *p, struct fault *f);
void disk_watch_poll(const struct disk_watch *w, struct pollfd *fd);
int disk_watch_timeout(const struct disk_watch *w);
bool disk_watch_serve(struct disk_watch *w, const struct pollfd *fd);
bool disk_watch_is_over(const struct disk_watch *w);
void disk_watch_end(struct disk_watch *w);

#endif
