#include "cli/eval-progress.h"
#include "cli/table.h"
#include "eval/eval-run.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 16, NAMES = 6, WIDTH_LEAST = 40 };

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void progress_begin(struct progress *p, const struct engine *e)
{
	const char *term = getenv("TERM");

	*p = (struct progress){ .began_ms = now_ms(), .before = e->done };
	p->width = table_width(STDERR_FILENO);
	p->live = p->width >= WIDTH_LEAST && term && strcmp(term, "dumb") != 0;
}

static void write_line(int fd, const struct str *text)
{
	(void)fd_write_all(fd, text->p, text->len);
}

/* ---- on a terminal ---- */

static void add_bar(const struct engine *e, struct str *out)
{
	size_t all = e->items.n - e->spared, full = all ? BAR * e->done / all : BAR;

	str_addc(out, '[');
	for (size_t i = 0; i < BAR; i++)
		str_addc(out, i < full ? '#' : '-');
	str_addf(out, "]  %zu/%zu  ", e->done, all);
}

static void add_left(const struct progress *p, const struct engine *e, struct str *out)
{
	size_t made = e->done - p->before, left = e->items.n - e->spared - e->done;
	long long spent = now_ms() - p->began_ms, seconds;

	if (e->stopping)
		str_addf(out, "   finishing %zu (Ctrl-C again ends them)", e->running);
	else if (e->paused_why)
		str_addf(out, "   waiting: %s", str_visible(e->paused_why));
	if (e->stopping || e->paused_why || made < 3 || !left)
		return;
	seconds = spent * (long long)left / (long long)made / 1000;
	if (seconds > 90)
		str_addf(out, "   about %lld min left", (seconds + 30) / 60);
	else
		str_addf(out, "   about %lld s left", seconds + 1);
}

static void show_line(const struct progress *p, const struct engine *e)
{
	struct str out = { 0 }, tail = { 0 };
	size_t shown = 0;

	str_add(&out, "\r");
	add_bar(e, &out);
	str_addf(&tail, "   $%.2f", e->usd);
	add_left(p, e, &tail);
	for (size_t i = 0; i < e->items.n && shown < NAMES; i++) {
		const char *label = e->items.v[i].trial.label;

		if (e->items.v[i].state != ITEM_RUNS)
			continue;
		if (out.len + strlen(label) + 2 + tail.len > p->width)
			break;
		str_addf(&out, " %s", str_visible(label));
		shown++;
	}
	str_add(&out, tail.p);
	if (out.len > p->width)
		out.len = p->width;
	str_add(&out, "\x1b[K");
	write_line(STDERR_FILENO, &out);
}

void progress_end(const struct progress *p)
{
	if (p->live)
		(void)fd_write_all(STDERR_FILENO, "\r\x1b[K", 4);
}

/* ---- lines ---- */

static const char *verdict_word(const struct item *item, const struct trial_note *note)
{
	const char *fired = attempt_fired_name(note->fired);

	return item->trial.kind == ATTEMPT_ARTIFACT || note->outcome == OUTCOME_LIMIT || !fired
		? attempt_outcome_name(note->outcome)
		: fired;
}

static bool is_worth_a_line(const struct progress *p, const struct trial_note *note)
{
	return !p->live || note->outcome == OUTCOME_ERROR || note->outcome == OUTCOME_LIMIT;
}

static void show_ended(const struct engine *e, const struct item *item,
	const struct trial_note *note)
{
	struct str out = { 0 };

	str_addf(&out, "%4zu/%zu  %-12s %-14s %-11s %6.1f s  %s%s%s\n", e->done,
		e->items.n - e->spared, str_visible(item->trial.label),
		item->trial.configuration ? item->trial.configuration->name : "",
		verdict_word(item, note), note->seconds,
		note->has_usd ? mem_printf("$%.4f", note->usd) : "$?",
		note->reason[0] ? "  " : "", note->reason);
	write_line(STDOUT_FILENO, &out);
}

static void show_controls(struct progress *p, const struct engine *e)
{
	struct str out = { 0 };

	if (p->told_controls || !e->controls || e->controls < CONTROLS)
		return;
	p->told_controls = true;
	str_addf(&out, "control   fired %u of %u%s%s\n", e->controls_fired, e->controls,
		e->controls_fired < e->controls ? ": " : "",
		e->controls_fired < e->controls ? e->control_reason : "");
	progress_end(p);
	write_line(STDOUT_FILENO, &out);
}

/* Without a line of its own on the terminal, what makes nothing happen must be said once. */
static void show_state(struct progress *p, const struct engine *e)
{
	struct str out = { 0 };

	if (e->stopping && !p->told_stopping && e->running) {
		p->told_stopping = true;
		str_addf(&out, "stopping  %s; %zu under way come to their end first\n",
			str_visible(e->why), e->running);
	} else if (!e->stopping && e->paused_why && e->paused_until > p->told_until) {
		p->told_until = e->paused_until;
		str_addf(&out, "waiting   %s\n", str_visible(e->paused_why));
	}
	if (out.len && !p->live)
		write_line(STDOUT_FILENO, &out);
}

void progress_changed(const struct engine *e, const struct item *ended,
	const struct trial_note *note, void *arg)
{
	struct progress *p = arg;
	void *mark = mem_mark();

	if (ended && is_worth_a_line(p, note)) {
		progress_end(p);
		show_ended(e, ended, note);
	}
	if (ended)
		show_controls(p, e);
	show_state(p, e);
	if (p->live)
		show_line(p, e);
	mem_reset(mark);
}
