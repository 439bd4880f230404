/*
 * cli/cmd-logs.c - carrel logs
 *
 * A detached box's screen keeps two files (screen/screen.h): lines that have scrolled off, and
 * what is shown now. To follow a box, carrel reads both repeatedly. A line that scrolled off is
 * final. Lines on the screen may still change, so a line is printed once two reads in a row
 * have found it the same. Of a full-screen program only the last screen is printed.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "screen/screen.h"
#include "state/boxes.h"
#include "state/registry.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_MS = 300, SCREEN_TEXT_SIZE = 8 << 20, CHUNK = 64 * 1024 };

struct logs_args {
	bool follow;
};

/* How far a follower has come. */
struct follower {
	const char *name;
	int log;
	off_t at;       /* in the log */
	size_t printed; /* lines of the screen that were printed and have not scrolled off */
	char *before;   /* the screen at the last read; NULL: none */
};

static int put_out(const char *bytes, size_t n)
{
	return fd_write_all(STDOUT_FILENO, bytes, n);
}

static int complain(int rc, struct fault *f)
{
	return rc < 0 ? fault_set(f, -rc, "write to standard output") : 0;
}

/* The text of the screen, its kind first; NULL: there is none. */
static char *read_screen(const char *name)
{
	struct fault unused = { 0 };
	int fd = boxes_open(name, BOXES_SCREEN, &unused);
	char *text = fd < 0 ? NULL : fd_read_open(fd, SCREEN_TEXT_SIZE);

	return text && text[0] && text[1] == '\n' ? text : NULL;
}

static const char *next_line(const char *at)
{
	return at + strcspn(at, "\n") + 1;
}

/* The length of the whole lines that are the same in both. */
static size_t same_lines(const char *a, const char *b)
{
	size_t n = 0;

	while (*a && *b && strchr(a, '\n') && strchr(b, '\n') &&
		next_line(a) - a == next_line(b) - b &&
		!strncmp(a, b, (size_t)(next_line(a) - a))) {
		a = next_line(a);
		b = next_line(b);
		n++;
	}
	return n;
}

/* Print what was added to the log, except lines that were printed while on the screen. */
static int copy_log(struct follower *w)
{
	char bytes[CHUNK];
	struct stat st;
	ssize_t n;

	if (fstat(w->log, &st) == 0 && st.st_size < w->at)
		w->at = st.st_size; /* the older half was dropped */
	while ((n = pread(w->log, bytes, sizeof(bytes), w->at)) > 0) {
		const char *from = bytes, *end = bytes + n;
		int rc;

		for (; w->printed && from < end; w->printed--) {
			const char *feed = memchr(from, '\n', (size_t)(end - from));

			if (!feed)
				break;
			from = feed + 1;
		}
		rc = w->printed && from < end ? 0 : put_out(from, (size_t)(end - from));
		if (rc < 0)
			return rc;
		w->at += w->printed ? from - bytes : n;
		if (w->printed)
			break;
	}
	return 0;
}

/* Lines of the screen from the first that was not printed; all: also those that may change. */
static int copy_screen(struct follower *w, bool all)
{
	char *now = read_screen(w->name);
	const char *at = now ? now + 2 : "", *from;
	size_t stable, n = 0;
	int rc = 0;

	if (!now || (now[0] == SCREEN_FULL && !all))
		return 0;
	stable = all ? (size_t)-1 : w->before ? same_lines(w->before + 2, now + 2) : 0;
	for (; *at && n < w->printed; n++)
		at = next_line(at);
	from = at;
	for (; *at && n < stable; n++)
		at = next_line(at);
	/* The last line usually has the cursor, and is not complete. */
	if (!all && !*at && at > from) {
		const char *last = from;

		while (*next_line(last))
			last = next_line(last);
		at = last;
		n--;
	}
	if (at > from) {
		rc = put_out(from, (size_t)(at - from));
		w->printed = n;
	}
	w->before = now;
	return rc;
}

static int follow_log(struct follower *w, struct fault *f)
{
	int rc = 0;
	bool runs = true;

	while (rc == 0 && runs) {
		runs = registry_is_held(w->name);
		rc = copy_log(w);
		if (rc == 0)
			rc = copy_screen(w, !runs);
		if (runs)
			poll(NULL, 0, LOOK_MS);
	}
	return complain(rc, f);
}

static int cmd_logs(void *args, int argc, char **argv)
{
	const struct logs_args *a = args;
	struct follower w = { .name = argv[0] };
	struct fault f = { 0 };
	int rc;

	(void)argc;
	w.log = boxes_open(w.name, BOXES_LOG, &f);
	if (w.log < 0) {
		if (f.err != ENOENT)
			return cmd_fail(&f);
		fault_set(&f, 0, "there is no output of a box named '%s'", str_visible(w.name));
		fault_fix(&f, "It is kept of boxes that are started with -d.");
		return cmd_fail(&f);
	}
	if (a->follow)
		return follow_log(&w, &f) < 0 ? cmd_fail(&f) : 0;
	rc = copy_log(&w);
	if (rc == 0)
		rc = copy_screen(&w, true);
	return complain(rc, &f) < 0 ? cmd_fail(&f) : 0;
}

static const struct opt logs_opts[] = {
	OPT_FLAG('f', "follow", struct logs_args, follow,
		"go on with what the box writes, until it ends"),
	OPT_END,
};

const struct cmd cmd_logs_entry = {
	.name = "logs",
	.args = "BOX",
	.about = "print what a detached box wrote, as plain text",
	.detail =
		"What has scrolled off its screen, at most the last 8 MiB of it, and then what "
		"is on it: text as a person would have read it, without colours and other "
		"controls. It is kept when the box has ended, until another box has its "
		"name.\n"
		"\n"
		"  carrel logs carrel-app\n"
		"  carrel logs carrel-app -f",
	.opts = logs_opts,
	.size = sizeof(struct logs_args),
	.takes = TAKES_BOX,
	.ended = true,
	.run = cmd_logs,
};
