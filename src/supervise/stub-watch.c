#include "supervise/stub-watch.h"
#include "plan/plan.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_SIZE = 512 };

static bool is_stub(const struct place *place)
{
	return place->kind == PLACE_STUB && place->dir;
}

static bool is_file(const struct place *place)
{
	return place->kind == PLACE_CONFIG && !place->stub;
}

/*
 * Watch the directory of a stub, not the stub: if a process has the stub as its working
 * directory, its removal is not reported.
 */
static bool watch_place(struct stub_watch *w, const struct place *place)
{
	int watch;

	if (is_stub(place))
		return inotify_add_watch(w->fd, path_parent(place->source),
			       IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR | IN_DONT_FOLLOW) >= 0;
	if (w->n == STUB_WATCH_FILES)
		return false;
	/* IN_ATTRIB: losing its name changes a file's link count. */
	watch = inotify_add_watch(w->fd, place->source,
		IN_ATTRIB | IN_MOVE_SELF | IN_DONT_FOLLOW);
	if (watch < 0)
		return false;
	w->files[w->n].place = place;
	w->files[w->n++].watch = watch;
	return true;
}

void stub_watch_poll(const struct stub_watch *w, struct pollfd *pfd)
{
	*pfd = (struct pollfd){ .fd = w->fd, .events = POLLIN };
}

/* The name of the stub that was removed, or NULL: events of other names in its directory. */
static const char *stub_name(const struct plan *p, const struct inotify_event *e)
{
	if (!e->len || !(e->mask & IN_ISDIR))
		return NULL;
	vec_each(place, &p->places)
		if (is_stub(place) && !strcmp(path_base(place->source), e->name))
			return path_base(place->source);
	return NULL;
}

static bool is_in_place(const struct place *file)
{
	struct stat st;

	return lstat(file->source, &st) == 0 && st.st_ino == file->inode;
}

/* The name of the file that was replaced, or NULL. Once for each. */
static const char *file_name(struct stub_watch *w, const struct inotify_event *e)
{
	const struct place *place;

	for (unsigned int i = 0; i < w->n; i++) {
		place = w->files[i].place;
		if (w->files[i].lost || w->files[i].watch != e->wd)
			continue;
		/* The kernel drops the watch of a removed file; another may get its number. */
		if (!(e->mask & IN_IGNORED) && is_in_place(place))
			continue;
		w->files[i].lost = true;
		return path_base(place->source);
	}
	return NULL;
}

static const struct lost {
	const char *how, *may, *advice;
} removed = { "removed", "make",
	"what it makes there is listed when it ends; until then start no client or editor "
	"here" },
  replaced = { "replaced", "write",
	  "what became of it is listed when it ends; until then git here may obey the box" };

/* Print over whatever is on the screen, with a bell. If nobody reads, drop the message. */
static void show_lost(const struct plan *p, const struct lost *lost, const char *names,
	bool raw)
{
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[NAMES_SIZE + 512];

	snprintf(line, sizeof(line),
		"%s%scarrel: %s from outside, so that box %s can %s it now: %s\n%s  %s%s\n",
		raw ? "\r\n" : "", isatty(STDERR_FILENO) ? "\a" : "", lost->how, p->name,
		lost->may, names, raw ? "\r" : "", lost->advice, raw ? "\r" : "");
	if (poll(&room, 1, 0) <= 0 || !(room.revents & POLLOUT) ||
		write(STDERR_FILENO, line, strlen(line)) < 0)
		return;
}

static void show_names(const struct plan *p, const char *gone, const char *changed, bool raw)
{
	if (gone[0])
		show_lost(p, &removed, gone, raw);
	if (changed[0])
		show_lost(p, &replaced, changed, raw);
}

static void add_name(char names[NAMES_SIZE], const char *name)
{
	size_t len = strlen(names);

	if (name)
		snprintf(names + len, NAMES_SIZE - len, "%s%s", len ? ", " : "", name);
}

/* The box ran before the watches were set: check once what was removed before. */
static void show_early(struct stub_watch *w)
{
	char gone[NAMES_SIZE] = "", changed[NAMES_SIZE] = "";
	struct stat st;

	vec_each(place, &w->plan->places)
		if (is_stub(place) && lstat(place->source, &st) < 0)
			add_name(gone, path_base(place->source));
	for (unsigned int i = 0; i < w->n; i++) {
		if (is_in_place(w->files[i].place))
			continue;
		w->files[i].lost = true;
		add_name(changed, path_base(w->files[i].place->source));
	}
	show_names(w->plan, gone, changed, false);
}

void stub_watch_begin(struct stub_watch *w, const struct plan *p)
{
	bool any = false;

	*w = (struct stub_watch){ .plan = p, .fd = -1 };
	vec_each(place, &p->places) {
		if (!is_stub(place) && !is_file(place))
			continue;
		if (w->fd < 0)
			w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		any |= w->fd >= 0 && watch_place(w, place);
	}
	if (!any)
		fd_close(&w->fd);
	if (any)
		show_early(w);
}

void stub_watch_serve(struct stub_watch *w, const struct pollfd *pfd, bool raw)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	char gone[NAMES_SIZE] = "", changed[NAMES_SIZE] = "";
	ssize_t n;

	if (!pfd->revents)
		return;
	while ((n = read(w->fd, events, sizeof(events))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(events + at);

			at += (ssize_t)(sizeof(*e) + e->len);
			add_name(gone, stub_name(w->plan, e));
			add_name(changed, file_name(w, e));
		}
	show_names(w->plan, gone, changed, raw);
}

const char *const *stub_watch_lost(const struct stub_watch *w, const char *const *paths)
{
	const char **all;
	size_t n = 0;

	while (paths[n])
		n++;
	all = mem_alloc((n + w->n + 1) * sizeof(*all));
	memcpy(all, paths, n * sizeof(*all));
	for (unsigned int i = 0; i < w->n; i++)
		if (w->files[i].lost)
			all[n++] = w->files[i].place->source;
	return all;
}
