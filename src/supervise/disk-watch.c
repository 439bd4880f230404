/*
 * supervise/disk-watch.c - the limit of what a box writes to its layers
 *
 * Theory of operation. A user without privileges cannot set a quota, so carrel looks: a process
 * of its own walks through the layers and says what they take on disk, while the supervisor
 * goes on. A walk takes as long as the box makes it, so the time between two is a multiple of
 * the processor time that the last one took, and not shorter than it lasted.
 *
 * Between two looks the free space of the file system says how much can have been written, in
 * one system call. When it may have been half of what is left, there is a look at once. The
 * check itself comes sooner, the faster the free space goes. Nothing else depends on that
 * number, because other programs write there, too.
 *
 * A look has a longest time. What it has not seen then is not counted.
 */
#include "supervise/disk-watch.h"
#include "overlay/usage.h"
#include "plan/plan.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	PERIOD = 1000,        /* ms between two looks, and two checks of the free space */
	SHORTEST = 50,        /* the same for a box that writes fast */
	IDLE = 30000,         /* between two looks, if the free space is the same */
	SHARE = 20,           /* a look may take this part of the time, */
	HURRIED_SHARE = 4,    /* or this one if the limit may be near */
	LONGEST_LOOK = 60000, /* ms */
	LAST_LOOK = 10000,    /* the same, while the user waits for the end */
};

struct answer {
	unsigned long long bytes;
	long long cpu; /* ms */
};

struct room {
	unsigned long long bytes, names;
};

static struct room room_at(int fd)
{
	struct statvfs v;

	if (fstatvfs(fd, &v) < 0)
		return (struct room){ 0 };
	return (struct room){ (unsigned long long)v.f_bfree * v.f_frsize, v.f_ffree };
}

int disk_watch_begin(struct disk_watch *w, const struct plan *p, struct fault *f)
{
	w->limit = p->limits.disk;
	if (!w->limit)
		return 0;
	vec_each(place, &p->places) {
		if (place->kind != PLACE_OVERLAY)
			continue;
		if (w->n == DISK_LAYERS)
			return fault_set(f, 0, "this box has too many layers for --limit disk");
		w->layers[w->n] =
			open(place->source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (w->layers[w->n] < 0)
			return fault_set(f, errno, "open %s", str_visible(place->source));
		w->n++;
	}
	if (!w->n)
		BUG("a limit of disk without a layer");
	w->began = w->ended = w->checked = clock_ms();
	w->next = w->ended + PERIOD;
	w->free_at_look = w->free_at_check = room_at(w->layers[0]).bytes;
	w->names_at_look = room_at(w->layers[0]).names;
	return 0;
}

/* ---- a look ---- */

static long long cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/*
 * Runs in a process of its own, and changes nothing in *w. It closes all descriptors but its
 * own: the box would not see the end of its input while a copy of the pipe is open. The layers
 * were opened one after another, so each is above its new place.
 */
static void look(const struct disk_watch *w, int answer, pid_t parent, long long until)
{
	struct answer seen = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(answer, 0) < 0)
		_exit(1);
	for (int i = 0; i < w->n; i++)
		if (dup2(w->layers[i], 1 + i) < 0)
			_exit(1);
	(void)fd_close_range(1 + (unsigned int)w->n, ~0U);
	for (int i = 0; i < w->n; i++)
		seen.bytes += usage_of(1 + i, until);
	seen.cpu = cpu_ms();
	_exit(fd_write_all(0, &seen, sizeof(seen)) < 0);
}

static void begin_look(struct disk_watch *w, long long longest)
{
	const struct room now = room_at(w->layers[0]);
	const pid_t parent = getpid();
	int ends[2];
	pid_t pid;

	w->began = w->ended = clock_ms();
	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	pid = fork(); /* the two share *w, see mem.h */
	if (pid == 0)
		look(w, ends[1], parent, w->began + longest);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return;
	}
	w->pid = pid;
	w->answer = ends[0];
	w->free_at_look = now.bytes;
	w->names_at_look = now.names;
}

/* Does not wait long: it has answered, or ended without an answer. */
static void end_look(struct disk_watch *w)
{
	struct answer seen;

	if (read(w->answer, &seen, sizeof(seen)) == sizeof(seen)) {
		w->used = seen.bytes;
		w->cpu = seen.cpu;
	}
	fd_close(&w->answer);
	while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	w->ended = clock_ms();
}

/* ---- when to look ---- */

static unsigned long long gone(unsigned long long before, unsigned long long now)
{
	return before > now ? before - now : 0;
}

static bool is_due(const struct disk_watch *w, const struct room *room, long long now)
{
	const long long lasted = w->ended - w->began, since = now - w->ended;
	const unsigned long long left = gone(w->limit, w->used);
	const bool same = room->bytes == w->free_at_look && room->names == w->names_at_look;

	if (since < lasted)
		return false;
	if (gone(w->free_at_look, room->bytes) >= left / 2 && since >= w->cpu * HURRIED_SHARE)
		return since >= (left ? SHORTEST : PERIOD / 4);
	return since >= w->cpu * SHARE && since >= (same ? IDLE : PERIOD);
}

/* The faster the room goes, the sooner the next check. */
static long long next_check(const struct disk_watch *w, const struct room *room, long long now)
{
	const unsigned long long went = gone(w->free_at_check, room->bytes);
	const unsigned long long left =
		gone(gone(w->limit, w->used), gone(w->free_at_look, room->bytes));
	double ms = PERIOD;

	if (went)
		ms = (double)left / (double)went * (double)(now - w->checked) / 2;
	return now + (ms > PERIOD ? PERIOD : ms < SHORTEST ? SHORTEST : (long long)ms);
}

static void check(struct disk_watch *w, long long now)
{
	const struct room room = room_at(w->layers[0]);

	if (is_due(w, &room, now))
		begin_look(w, LONGEST_LOOK);
	w->next = next_check(w, &room, now);
	w->checked = now;
	w->free_at_check = room.bytes;
}

/* ---- for the loop ---- */

void disk_watch_poll(const struct disk_watch *w, struct pollfd *fd)
{
	*fd = (struct pollfd){ .fd = w->pid ? w->answer : -1, .events = POLLIN };
}

int disk_watch_timeout(const struct disk_watch *w)
{
	const long long left = w->next - clock_ms();

	if (!w->limit || w->pid)
		return -1;
	return left < 0 ? 0 : (int)left;
}

bool disk_watch_serve(struct disk_watch *w, const struct pollfd *fd)
{
	const long long now = w->limit ? clock_ms() : 0;

	if (!w->limit)
		return false;
	if (w->pid && fd->revents) {
		end_look(w);
		return true;
	}
	if (!w->pid && now >= w->next)
		check(w, now);
	return false;
}

bool disk_watch_is_over(const struct disk_watch *w)
{
	return w->limit && w->used >= w->limit;
}

void disk_watch_end(struct disk_watch *w)
{
	if (!w->limit)
		return;
	if (w->pid) {
		kill(w->pid, SIGKILL);
		end_look(w);
	}
	if (!disk_watch_is_over(w))
		begin_look(w, LAST_LOOK);
	if (w->pid)
		end_look(w);
	for (int i = 0; i < w->n; i++)
		fd_close(&w->layers[i]);
	w->n = 0;
}
