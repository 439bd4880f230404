/*
 * cli/cmd-top.c - carrel top
 *
 * The boxes in a list that is read anew every second, and keys that do with the selected one
 * what other commands do: those are executed, so that there is one way to do each. What they
 * print is shown in pages, in which every control character is visible text.
 *
 * A question about a held host is asked about the text that was shown, however the list
 * changes meanwhile.
 */
#include "cli/box-rows.h"
#include "cli/cmd.h"
#include "cli/full-screen.h"
#include "supervise/control.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LOOK_MS = 1000,
	WAIT_MS = 2000,
	NAME = 128,
	MESSAGE = 400,
	MOST_TEXT = 1 << 20, /* of the output of a command: its end */
	AROUND = 4,          /* lines of a frame that are no boxes */
};

struct top {
	struct full_screen *screen;
	bool all;
	box_rows rows;       /* of the last look */
	char selected[NAME]; /* a box's name */
	size_t first;        /* row that is shown */
	char message[MESSAGE];
	struct box_samples samples;
};

/* ---- a frame ---- */

#define REVERSE "\033[7m"
#define BOLD    "\033[1m"
#define PLAIN   "\033[0m"

enum { BOX, AGENT, PROJECT, STATE, AGE, CPU, MEM, NET, COLUMNS };

static const struct {
	const char *head;
	size_t most; /* columns of the terminal */
	const char *(*text)(const struct box_row *r);
} columns[COLUMNS] = {
	[BOX] = { "NAME", 28, NULL },
	[AGENT] = { "AGENT", 10, box_agent },
	[PROJECT] = { "PROJECT", 12, box_project },
	[STATE] = { "STATE", 15, box_state },
	[AGE] = { "AGE", 7, box_age },
	[CPU] = { "CPU", 5, box_cpu },
	[MEM] = { "MEM", 6, box_memory },
	[NET] = { "NET", 60, box_network },
};

static const char *cell(const struct box_row *r, size_t column)
{
	return columns[column].text ? columns[column].text(r) : str_visible(r->name);
}

/* In characters; a wide one counts for one, and the right edge does not wrap. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* text in exactly width columns. */
static void add_cell(struct str *out, const char *text, size_t width)
{
	size_t n = 0;

	for (; *text; text++) {
		n += ((unsigned char)*text & 0xc0) != 0x80;
		if (n > width)
			return;
		str_addc(out, *text);
	}
	str_addf(out, "%*s", (int)(width - n), "");
}

static void measure(const struct top *t, size_t cols, size_t *widths)
{
	size_t left = cols - 1;

	for (size_t c = 0; c < COLUMNS; c++) {
		widths[c] = width_of(columns[c].head);
		vec_each(r, &t->rows) {
			const size_t n = width_of(cell(r, c));

			widths[c] = n > widths[c] ? n : widths[c];
		}
		if (widths[c] > columns[c].most)
			widths[c] = columns[c].most;
		if (c == NET || widths[c] > left)
			widths[c] = left;
		left -= widths[c] < left ? widths[c] + 1 : left;
	}
}

static bool waits(const struct box_row *r)
{
	return r->waiting.n || (r->state && !strcmp(r->state, "waits for input"));
}

static void add_row(const struct top *t, struct str *out, const struct box_row *r,
	const size_t *widths)
{
	const bool colour = full_screen_colour(t->screen),
		   chosen = !strcmp(r->name, t->selected);

	if (colour)
		str_add(out, chosen ? REVERSE : waits(r) ? BOLD : "");
	str_addc(out, chosen ? '>' : ' ');
	for (size_t c = 0; c < COLUMNS; c++) {
		add_cell(out, cell(r, c), widths[c]);
		str_add(out, c + 1 < COLUMNS && widths[c + 1] ? " " : "");
	}
	str_add(out, colour ? PLAIN "\n" : "\n");
}

static const struct box_row *selected(const struct top *t)
{
	vec_each(r, &t->rows)
		if (!strcmp(r->name, t->selected))
			return r;
	return NULL;
}

/* "3 boxes, 1 waits for input, 2 hosts are held" */
static void add_summary(const struct top *t, struct str *out)
{
	size_t running = 0, waiting = 0, held = 0;

	vec_each(r, &t->rows) {
		running += !r->ended;
		waiting += r->state && !strcmp(r->state, "waits for input");
		held += r->waiting.n;
	}
	str_addf(out, " carrel: %zu running", running);
	if (t->rows.n > running)
		str_addf(out, ", %zu ended", t->rows.n - running);
	if (waiting)
		str_addf(out, ", %zu wait%s for input", waiting, waiting == 1 ? "s" : "");
	if (held)
		str_addf(out, ", %zu held", held);
	str_addc(out, '\n');
}

/* The lines that describe the selected box. */
static void add_detail(const struct top *t, struct str *out)
{
	const struct box_row *r = selected(t);

	if (t->message[0])
		str_addf(out, " %s", t->message);
	else if (r && r->waiting.n)
		str_addf(out, " asks for %s: press h to answer", str_visible(r->waiting.v[0]));
	else if (r && r->changes)
		str_addf(out, " its workspace: %s", r->changes);
	else if (r && r->project)
		str_addf(out, " %s", str_visible(r->project));
	str_addc(out, '\n');
}

static void draw(struct top *t)
{
	const bool colour = full_screen_colour(t->screen);
	unsigned int rows, cols;
	size_t widths[COLUMNS], room, at = 0;
	struct str out = { 0 };

	full_screen_size(t->screen, &rows, &cols);
	room = rows > AROUND ? rows - AROUND : 1;
	measure(t, cols, widths);
	for (size_t i = 0; i < t->rows.n; i++)
		at = !strcmp(t->rows.v[i].name, t->selected) ? i : at;
	if (t->first + room > t->rows.n)
		t->first = t->rows.n > room ? t->rows.n - room : 0;
	if (at < t->first)
		t->first = at;
	if (at >= t->first + room)
		t->first = at - room + 1;
	add_summary(t, &out);
	str_add(&out, colour ? BOLD " " : " ");
	for (size_t c = 0; c < COLUMNS; c++) {
		add_cell(&out, columns[c].head, widths[c]);
		str_addc(&out, ' ');
	}
	str_addc(&out, '\n');
	for (size_t i = t->first; i < t->first + room; i++) {
		if (i < t->rows.n)
			add_row(t, &out, &t->rows.v[i], widths);
		else
			str_add(&out, !t->rows.n && i == t->first ? " no boxes run\n" : "\n");
	}
	add_detail(t, &out);
	str_add(&out,
		" Return attach  s stop  d diff  e events  l log  h held  a all  q quit\n");
	full_screen_show(t->screen, &out);
}

/* ---- the list ---- */

static void say(struct top *t, const char *text)
{
	const size_t n = strlen(text) < MESSAGE - 1 ? strlen(text) : MESSAGE - 1;

	memcpy(t->message, text, n);
	t->message[n] = '\0';
}

static void choose(struct top *t, const char *name)
{
	if (strlen(name) < NAME)
		strcpy(t->selected, name);
}

/* Read the list anew, in memory that the caller gives back. */
static void look(struct top *t)
{
	struct fault f = { 0 };

	t->rows = (box_rows){ 0 };
	if (box_rows_read(t->all, &t->samples, &t->rows, &f) < 0)
		say(t, fault_line(&f));
	if (t->rows.n && !selected(t))
		choose(t, t->rows.v[0].name);
}

static void move(struct top *t, long by)
{
	const long last = (long)t->rows.n - 1;
	long at = 0;

	if (last < 0)
		return;
	for (long i = 0; i <= last; i++)
		if (!strcmp(t->rows.v[i].name, t->selected))
			at = i;
	at = by < -last || at + by < 0 ? 0 : by > last || at + by > last ? last : at + by;
	choose(t, t->rows.v[at].name);
}

/* ---- other commands ---- */

/* Signals as they are for a program that somebody starts. */
static _Noreturn void become(const char *const *argv)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv("/proc/self/exe", (char *const *)argv);
	_exit(EXIT_CARREL);
}

static int await(struct top *t, pid_t pid)
{
	const int status = pid > 0 ? full_screen_wait(t->screen, pid) : 0;

	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CARREL;
}

/* The end of what the command prints, on both its streams. */
static char *output_of(struct top *t, const char *const *argv)
{
	char *text = mem_alloc(MOST_TEXT + 1);
	size_t n = 0;
	int ends[2];
	ssize_t got;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return text;
	pid = fork();
	if (pid == 0) {
		const int null = open("/dev/null", O_RDONLY);

		dup2(null, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		become(argv);
	}
	close(ends[1]);
	while ((got = read(ends[0], text + n, MOST_TEXT - n)) > 0 ||
		(got < 0 && errno == EINTR)) {
		n += got > 0 ? (size_t)got : 0;
		if (n == MOST_TEXT) {
			memmove(text, text + n / 2, n - n / 2);
			n -= n / 2;
		}
	}
	close(ends[0]);
	await(t, pid);
	text[n] = '\0';
	return text;
}

/* ---- pages ---- */

struct pages {
	const char *title;
	VEC(const char *) lines;
	size_t first;
};

/* Tabs are widened; all else that controls is shown. */
static const char *shown_line(const char *at, size_t n)
{
	struct str line = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (at[i] == '\t')
			str_add(&line, "    ");
		else
			str_addc(&line, at[i] ? at[i] : ' ');
	}
	return line.len ? str_visible(line.p) : "";
}

static void draw_pages(struct top *t, struct pages *p)
{
	unsigned int rows, cols;
	struct str out = { 0 };
	size_t room;

	full_screen_size(t->screen, &rows, &cols);
	room = rows > 2 ? rows - 2 : 1;
	if (p->first + room > p->lines.n)
		p->first = p->lines.n > room ? p->lines.n - room : 0;
	str_addf(&out, full_screen_colour(t->screen) ? BOLD " %s\n" : " %s\n", p->title);
	for (size_t i = p->first; i < p->first + room; i++) {
		add_cell(&out, i < p->lines.n ? p->lines.v[i] : "", cols);
		str_addc(&out, '\n');
	}
	str_add(&out, " arrows and pages move  q back\n");
	full_screen_show(t->screen, &out);
}

/* false: end. */
static bool show_pages(struct top *t, struct pages *p)
{
	for (;;) {
		void *mark = mem_mark();
		unsigned int rows, cols;
		int key;

		draw_pages(t, p);
		mem_reset(mark);
		full_screen_size(t->screen, &rows, &cols);
		key = full_screen_key(t->screen, -1);
		if (key == KEY_GONE)
			return false;
		if (key == 'q' || key == KEY_ESCAPE)
			return true;
		if (key == KEY_DOWN || key == 'j' || key == KEY_RETURN)
			p->first++;
		else if (key == KEY_UP || key == 'k')
			p->first -= p->first > 0;
		else if (key == KEY_PAGE_DOWN || key == ' ')
			p->first += rows;
		else if (key == KEY_PAGE_UP)
			p->first -= p->first < rows ? p->first : rows;
		else if (key == KEY_HOME || key == 'g')
			p->first = 0;
		else if (key == KEY_END || key == 'G')
			p->first = p->lines.n;
	}
}

static bool show_output(struct top *t, const char *title, const char *const *argv, bool end)
{
	struct pages p = { .title = title };

	for (const char *at = output_of(t, argv); *at;) {
		const size_t n = strcspn(at, "\n");

		vec_push(&p.lines, shown_line(at, n));
		at += n + (at[n] == '\n');
	}
	if (!p.lines.n)
		vec_push(&p.lines, "nothing");
	p.first = end ? p.lines.n : 0;
	return show_pages(t, &p);
}

/* ---- keys ---- */

/* 'y', 'n' or something else; the question is about a text that does not change. */
static int ask(struct top *t, const char *question)
{
	int key;

	say(t, question);
	do {
		draw(t);
		key = full_screen_key(t->screen, -1);
	} while (key == KEY_NONE);
	say(t, "");
	return key;
}

static bool on_stop(struct top *t, const struct box_row *r)
{
	const struct json_value *reply;
	struct fault f = { 0 };
	int key = ask(t, mem_printf("Stop %s? [y/N]", str_visible(r->name)));

	if (key != 'y')
		return key != KEY_GONE;
	if (control_ask(r->name, control_ask_stop(10, false), WAIT_MS, &reply, &f) < 0)
		say(t, fault_line(&f));
	else
		say(t, mem_printf("%s has 10 seconds to end", str_visible(r->name)));
	return true;
}

static bool on_held(struct top *t, const struct box_row *r)
{
	const struct json_value *reply;
	struct fault f = { 0 };
	const char *host;
	int key;

	if (!r->waiting.n) {
		say(t, "no host is held");
		return true;
	}
	host = r->waiting.v[0];
	key = ask(t,
		mem_printf("Let %s reach %s? [y]es [n]o, another key: later",
			str_visible(r->name), str_visible(host)));
	if (key != 'y' && key != 'n')
		return key != KEY_GONE;
	if (control_ask(r->name, control_ask_decide(host, key == 'n'), WAIT_MS, &reply, &f) < 0)
		say(t, fault_line(&f));
	else
		say(t,
			mem_printf("%s is %s in %s", str_visible(host),
				key == 'y' ? "allowed" : "denied", str_visible(r->name)));
	return true;
}

static bool on_attach(struct top *t, const struct box_row *r)
{
	const char *const argv[] = { "carrel", "attach", r->name, NULL };
	pid_t pid;

	if (r->ended || r->viewers < 0) {
		say(t,
			r->ended ? "it has ended: l shows what it wrote"
				 : "it was not started with -d, and has the terminal that it "
				   "was started from");
		return true;
	}
	full_screen_leave(t->screen);
	pid = fork();
	if (pid == 0)
		become(argv);
	if (await(t, pid) == EXIT_CARREL)
		say(t,
			mem_printf("%s could not be attached to, or is gone",
				str_visible(r->name)));
	full_screen_enter(t->screen);
	return true;
}

static bool on_diff(struct top *t, const struct box_row *r)
{
	const char *const now[] = { "carrel", "diff", "--no-pager", "--color", "never", r->name,
		r->ended ? NULL : "--now", NULL };

	return show_output(t, mem_printf("changes of %s", str_visible(r->name)), now, false);
}

static bool on_events(struct top *t, const struct box_row *r)
{
	const char *const argv[] = { "carrel", "events", r->name, NULL };

	return show_output(t, mem_printf("network of %s", str_visible(r->name)), argv, true);
}

static bool on_log(struct top *t, const struct box_row *r)
{
	const char *const argv[] = { "carrel", "logs", r->name, NULL };

	return show_output(t, mem_printf("output of %s", str_visible(r->name)), argv, true);
}

static const struct {
	int key;
	bool (*run)(struct top *t, const struct box_row *r);
} actions[] = {
	{ KEY_RETURN, on_attach },
	{ 's', on_stop },
	{ 'h', on_held },
	{ 'd', on_diff },
	{ 'e', on_events },
	{ 'l', on_log },
};

/* false: end. */
static bool obey(struct top *t, int key)
{
	const struct box_row *r = selected(t);

	if (key != KEY_NONE)
		say(t, "");
	if (key == KEY_DOWN || key == 'j')
		move(t, 1);
	else if (key == KEY_UP || key == 'k')
		move(t, -1);
	else if (key == KEY_HOME || key == KEY_PAGE_UP)
		move(t, -(long)t->rows.n);
	else if (key == KEY_END || key == KEY_PAGE_DOWN)
		move(t, (long)t->rows.n);
	else if (key == 'a')
		t->all = !t->all;
	for (size_t i = 0; r && i < ARRAY_SIZE(actions); i++)
		if (actions[i].key == key)
			return actions[i].run(t, r);
	return key != 'q' && key != KEY_GONE;
}

static int run_top(struct full_screen *screen, void *ctx)
{
	struct top *t = ctx;
	bool on = true;

	t->screen = screen;
	while (on) {
		void *mark = mem_mark();

		look(t);
		draw(t);
		on = obey(t, full_screen_key(screen, LOOK_MS));
		mem_reset(mark);
	}
	return 0;
}

static int cmd_top(void *args, int argc, char **argv)
{
	static struct top t;
	const char *term = getenv("TERM");
	struct fault f = { 0 };
	int code = 0;

	(void)args, (void)argc, (void)argv;
	if (term && !strcmp(term, "dumb"))
		fault_set(&f, 0, "this terminal has no full screen");
	else if (full_screen_run(run_top, &t, &code, &f) == 0)
		return code;
	fault_fix(&f, "`carrel ps --watch` needs none.");
	return cmd_fail(&f);
}

const struct cmd cmd_top_entry = {
	.name = "top",
	.about = "watch all boxes, and act on them",
	.detail =
		"A list as that of `carrel ps`, which is read again every second. A box that "
		"waits for you is bold. The arrow keys, or j and k, select a box; these keys "
		"act "
		"on it:\n"
		"\n"
		"  Return   attach to it; Ctrl-P Ctrl-Q comes back\n"
		"  s        stop it, after a question\n"
		"  h        answer about the host that is held: allow or deny it\n"
		"  d        see what it changed in its copy of the workspace\n"
		"  e        see what it did on its network\n"
		"  l        see what it wrote\n"
		"  a        show also all that have ended, or not\n"
		"  q        quit\n"
		"\n"
		"It needs a terminal of 80 by 24 or so, and no colours: `NO_COLOR`. However it "
		"ends, the terminal is left as it was.",
	.run = cmd_top,
};
