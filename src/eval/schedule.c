/*
 * eval/schedule.c - trials, so many at a time
 *
 * One process for each attempt. It leads a session of its own, so that Ctrl-C at the terminal
 * reaches only the engine: the first one lets what runs come to its end, the second ends it.
 * A worker whose engine was killed ends its box and leaves nothing behind but its scratch
 * directory, which the next run removes.
 *
 * The controls of trigger evals come first, alone. If they do not fire, no query is asked: a
 * client that loads no skills would "pass" every negative one.
 *
 * Only what the infrastructure failed is tried again, later each time; where the API says
 * that it is asked too often, nothing at all is started for that long. A user's own limit is
 * waited for if it is back before long; otherwise the run ends, and goes on with --resume.
 */
#include "eval/eval-run.h"
#include "eval/stats.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	TICK_MS = 500,
	FIRST_PAUSE_MS = 2000,
	LONGEST_PAUSE_MS = 120000,
	LONGEST_WAIT = 6 * 3600, /* for a user's limit; the shortest such limit is of 5 hours */
	AFTER_RESET = 3,         /* seconds, because clocks differ */
};

#define SURE_APART 0.2  /* half the distance of the two rates that are told apart */
#define SURE_ERROR 0.05 /* the chance to decide wrongly, on either side */

struct slot {
	pid_t pid; /* 0: free */
	int fd;
	size_t item;
};

struct schedule {
	struct engine *engine;
	const struct engine_watch *watch;
	struct slot slots[MOST_JOBS];
	unsigned int jobs, next_number;
	long long began;
	bool killed;
};

static volatile sig_atomic_t interrupts;

static void on_interrupt(int sig)
{
	interrupts += sig == SIGINT ? 1 : 2;
}

static void on_cancel(int sig)
{
	(void)sig;
	box_cancelled = 1;
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What is free and what the kernel would give back: most of the memory is page cache. */
static unsigned long long available_memory(void)
{
	static const char key[] = "\nMemAvailable:";
	const char *text = fd_read_file(AT_FDCWD, "/proc/meminfo", 1 << 16);
	const char *at = text ? strstr(text, key) : NULL;

	if (at)
		return strtoull(at + strlen(key), NULL, 10) << 10;
	return (unsigned long long)sysconf(_SC_AVPHYS_PAGES) *
		(unsigned long long)sysconf(_SC_PAGESIZE);
}

unsigned int engine_default_jobs(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned long long memory = available_memory();
	/* A client waits for its model most of the time, and takes about 300 MB. */
	unsigned long long jobs = cores > 0 ? (unsigned long long)cores * 2 : 2;

	if (jobs > memory / (512 << 20))
		jobs = memory / (512 << 20);
	return jobs < 1 ? 1 : jobs > 16 ? 16 : (unsigned int)jobs;
}

/* ---- the journal ---- */

static void note_down(struct engine *e, const char *event, const struct item *item,
	const struct trial_note *note)
{
	void *mark = mem_mark();
	struct str out = { 0 };
	struct json j = { .out = &out };

	json_open(&j, NULL, '{');
	json_string(&j, "time", record_time());
	json_string(&j, "event", event);
	if (item)
		json_string(&j, "attempt", item->trial.dir);
	if (note) {
		json_string(&j, "outcome", attempt_outcome_name(note->outcome));
		json_string(&j, "verdict", attempt_fired_name(note->fired));
		json_string(&j, "reason", note->reason);
		if (note->has_usd)
			json_raw(&j, "usd", mem_printf("%.9g", note->usd));
		else
			json_string(&j, "usd", NULL);
	} else if (e->why) {
		json_string(&j, "reason", e->why);
	}
	json_close(&j, '}');
	str_addc(&out, '\n');
	(void)fd_write_all(e->journal, out.p, out.len);
	mem_reset(mark);
}

/* ---- workers ---- */

static void work(struct schedule *s, const struct item *item, unsigned int number, int fd,
	pid_t parent)
{
	struct sigaction cancel = { .sa_handler = on_cancel };
	struct trial_note note = { 0 };

	mem_own();
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigaction(SIGTERM, &cancel, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (getppid() != parent)
		_exit(1);
	trial_run(&s->engine->bench, &item->trial, number, item->tries,
		item->tries > s->engine->options.retries, &note);
	_exit(write(fd, &note, sizeof(note)) == sizeof(note) ? 0 : 1);
}

static bool start_trial(struct schedule *s, struct slot *slot, size_t i)
{
	struct item *item = &s->engine->items.v[i];
	pid_t self = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	item->tries++;
	slot->pid = fork();
	if (slot->pid == 0)
		work(s, item, s->next_number, fds[1], self);
	close(fds[1]);
	if (slot->pid < 0) {
		slot->pid = 0;
		close(fds[0]);
		item->tries--;
		return false;
	}
	slot->fd = fds[0];
	slot->item = i;
	s->next_number++;
	item->state = ITEM_RUNS;
	s->engine->running++;
	note_down(s->engine, "started", item, NULL);
	return true;
}

static void stop(struct engine *e, const char *why)
{
	if (e->stopping)
		return;
	e->stopping = true;
	e->why = why;
	note_down(e, "stopped", NULL, NULL);
}

/* Later each time, and not all at the same moment. */
static long long pause_ms(unsigned int tries)
{
	long long ms = FIRST_PAUSE_MS;

	while (--tries && ms < LONGEST_PAUSE_MS)
		ms *= 2;
	return ms + rand() % (int)(ms / 2);
}

/* ---- stopping a series early ---- */

static bool same_series(const struct trial *a, const struct trial *b)
{
	return a->kind == b->kind && a->configuration == b->configuration &&
		!strcmp(a->id, b->id);
}

void engine_judged(struct item *item, enum attempt_outcome outcome, enum attempt_fired fired)
{
	item->judged = outcome == OUTCOME_PASS || outcome == OUTCOME_FAIL;
	item->success =
		item->trial.kind == ATTEMPT_ARTIFACT ? outcome == OUTCOME_PASS : fired == FIRED;
}

/*
 * Wald's test between the rates SURE_APART below and above the threshold. The rate must also
 * lie on the side that the test chose, because the verdict of the run goes by the rate.
 */
static bool is_sure(const struct engine *e, const struct trial *t)
{
	double low = fmax(e->options.threshold - SURE_APART, SURE_APART / 4);
	double high = fmin(e->options.threshold + SURE_APART, 1 - SURE_APART / 4);
	unsigned int n = 0, successes = 0;
	enum stats_decision decision;
	bool above;

	vec_each(item, &e->items)
		if (item->judged && same_series(&item->trial, t)) {
			n++;
			successes += item->success;
		}
	if (n < e->options.min_n)
		return false;
	decision = stats_sequential(successes, n, low, high, SURE_ERROR, SURE_ERROR);
	above = successes >= e->options.threshold * n;
	return decision == STATS_ABOVE ? above : decision == STATS_BELOW && !above;
}

/* The repeats of this series that have not begun are not needed if it is decided. */
static void spare(struct engine *e, const struct trial *t)
{
	if (!e->options.until_sure || t->kind == ATTEMPT_CONTROL || !is_sure(e, t))
		return;
	vec_each(item, &e->items)
		if (item->state == ITEM_WAITS && same_series(&item->trial, t)) {
			item->state = ITEM_SPARED;
			e->spared++;
			note_down(e, "spared", item, NULL);
		}
}

static void spare_all(struct engine *e)
{
	vec_each(item, &e->items)
		if (item->judged)
			spare(e, &item->trial);
}

static void count(struct engine *e, struct item *item, const struct trial_note *note)
{
	e->done++;
	e->usd += note->usd;
	e->unpriced += !note->has_usd;
	if (!e->version[0])
		snprintf(e->version, sizeof(e->version), "%s", note->version);
	if (note->outcome == OUTCOME_ERROR || note->outcome == OUTCOME_LIMIT)
		e->errors++;
	if (item->trial.kind == ATTEMPT_CONTROL) {
		e->controls++;
		e->controls_fired += note->fired == FIRED;
		if (note->fired != FIRED)
			snprintf(e->control_reason, sizeof(e->control_reason), "%s",
				note->reason);
	}
	engine_judged(item, note->outcome, note->fired);
	spare(e, &item->trial);
	if (note->refused)
		stop(e,
			mem_printf(
				"%s. Log in with the client, or set its key; --resume goes on",
				note->reason));
	if (e->options.fail_fast && note->outcome == OUTCOME_FAIL &&
		(!item->trial.configuration ||
			item->trial.configuration == e->suite->configurations.v))
		stop(e, "an attempt failed, and --fail-fast was given");
}

/* ---- pauses ---- */

static void pause_until(struct engine *e, long long until, const char *why)
{
	if (until <= e->paused_until)
		return;
	e->paused_until = until;
	e->paused_why = why;
}

/* Wait for the user's limit, or stop where that would take too long. */
static void wait_for_reset(const struct schedule *s, long long reset_at)
{
	struct engine *e = s->engine;
	time_t reset = (time_t)reset_at;
	long long seconds = reset_at - time(NULL) + AFTER_RESET, now = now_ms();
	char when[40];
	struct tm tm;

	if (seconds < AFTER_RESET)
		seconds = AFTER_RESET;
	strftime(when, sizeof(when), "%a %H:%M", localtime_r(&reset, &tm));
	if (seconds > LONGEST_WAIT ||
		(e->options.time &&
			now + seconds * 1000 - s->began > (long long)e->options.time * 1000))
		stop(e,
			mem_printf("the limit of your account is used up until %s; "
				   "--resume goes on then",
				when));
	else
		pause_until(e, now + seconds * 1000,
			mem_printf("the limit of your account is used up until %s", when));
}

/* The same attempt later; nothing of this one is kept. */
static void put_back(struct schedule *s, struct item *item, const struct trial_note *note)
{
	struct engine *e = s->engine;

	item->state = ITEM_WAITS;
	item->not_before = now_ms() + pause_ms(item->tries);
	e->usd += note->usd;
	note_down(e, "again", item, note);
	if (note->reset_at) {
		item->tries--;
		wait_for_reset(s, note->reset_at);
	} else if (note->limited) {
		pause_until(e, item->not_before, "the API asks for fewer requests");
	}
	s->watch->changed(e, NULL, NULL, s->watch->arg);
}

static void end(struct schedule *s, struct slot *slot)
{
	struct engine *e = s->engine;
	struct item *item = &e->items.v[slot->item];
	struct trial_note note = { .outcome = OUTCOME_ERROR,
		.fired = FIRED_ERROR,
		.reason = "the process that made the attempt ended early" };
	struct trial_note said;

	if (read(slot->fd, &said, sizeof(said)) == sizeof(said))
		note = said;
	note.version[sizeof(note.version) - 1] = note.reason[sizeof(note.reason) - 1] = '\0';
	close(slot->fd);
	waitpid(slot->pid, NULL, 0);
	slot->pid = 0;
	e->running--;
	if (note.again && !e->stopping) {
		put_back(s, item, &note);
		return;
	}
	if (note.limited) /* the others need not find out */
		pause_until(e, now_ms() + pause_ms(item->tries),
			"the API asks for fewer requests");
	item->state = note.written ? ITEM_DONE : ITEM_WAITS;
	note_down(e, note.written ? "ended" : "lost", item, &note);
	if (note.written)
		count(e, item, &note);
	else if (!s->killed)
		stop(e, mem_printf("an attempt could not be recorded: %s", note.reason));
	s->watch->changed(e, item, &note, s->watch->arg);
}

/* ---- which is next ---- */

static bool controls_are_over(const struct engine *e)
{
	for (size_t i = 0; i < e->items.n; i++)
		if (e->items.v[i].trial.kind == ATTEMPT_CONTROL &&
			e->items.v[i].state != ITEM_DONE)
			return false;
	return true;
}

static bool may_start(const struct engine *e, const struct item *item, bool controlled)
{
	if (item->state != ITEM_WAITS || (item->tries && item->not_before > now_ms()))
		return false;
	if (item->trial.kind == ATTEMPT_CONTROL)
		return true;
	if (!controlled)
		return false;
	return item->trial.kind == ATTEMPT_ARTIFACT || e->controls_fired == e->controls;
}

/* Is there money for one more, if it and those with no price cost what the others did? */
static bool can_afford(const struct engine *e)
{
	size_t priced = e->done - e->unpriced;
	double each = priced ? e->usd / (double)priced : 0;

	return e->options.usd <= 0 ||
		e->usd + each * (double)(e->unpriced + e->running + 1) <= e->options.usd;
}

static void check_budgets(struct schedule *s)
{
	struct engine *e = s->engine;

	if (interrupts)
		stop(e, "it was interrupted");
	if (e->options.time && now_ms() - s->began > (long long)e->options.time * 1000)
		stop(e, "the time for the run is over");
	if (!can_afford(e) && !e->running)
		stop(e, "the money for the run is spent");
}

static void fill_slots(struct schedule *s)
{
	struct engine *e = s->engine;
	bool controlled = controls_are_over(e), started = false;
	size_t i = 0;

	check_budgets(s);
	if (e->paused_why && now_ms() >= e->paused_until)
		e->paused_why = NULL;
	for (unsigned int k = 0; k < s->jobs && !e->stopping; k++) {
		if (s->slots[k].pid || now_ms() < e->paused_until || !can_afford(e))
			continue;
		while (i < e->items.n && !may_start(e, &e->items.v[i], controlled))
			i++;
		if (i == e->items.n || !start_trial(s, &s->slots[k], i))
			break;
		started = true;
	}
	if (started)
		s->watch->changed(e, NULL, NULL, s->watch->arg);
}

static bool is_left(const struct engine *e)
{
	bool controlled = controls_are_over(e);

	for (size_t i = 0; i < e->items.n; i++) {
		const struct item *item = &e->items.v[i];

		if (item->state == ITEM_WAITS &&
			(item->trial.kind != ATTEMPT_TRIGGER || !controlled ||
				e->controls_fired == e->controls))
			return true;
	}
	return false;
}

/* ---- the loop ---- */

static void kill_workers(struct schedule *s)
{
	if (s->killed)
		return;
	s->killed = true;
	for (unsigned int k = 0; k < s->jobs; k++)
		if (s->slots[k].pid)
			kill(s->slots[k].pid, SIGTERM);
}

static void wait_for_one(struct schedule *s)
{
	struct pollfd fds[MOST_JOBS];

	for (unsigned int k = 0; k < s->jobs; k++)
		fds[k] = (struct pollfd){ .fd = s->slots[k].pid ? s->slots[k].fd : -1,
			.events = POLLIN };
	if (poll(fds, s->jobs, TICK_MS) <= 0) {
		s->watch->changed(s->engine, NULL, NULL, s->watch->arg);
		return;
	}
	for (unsigned int k = 0; k < s->jobs; k++)
		if (s->slots[k].pid && fds[k].revents)
			end(s, &s->slots[k]);
}

int engine_run(struct engine *e, const struct engine_watch *watch, struct fault *f)
{
	struct schedule s = {
		.engine = e, .watch = watch, .jobs = e->options.jobs, .began = now_ms()
	};
	struct sigaction interrupt = { .sa_handler = on_interrupt };

	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &interrupt, NULL);
	sigaction(SIGHUP, &interrupt, NULL);
	signal(SIGPIPE, SIG_IGN);
	srand((unsigned int)getpid());
	spare_all(e);
	while (e->running || (!e->stopping && is_left(e))) {
		fill_slots(&s);
		if (interrupts > 1)
			kill_workers(&s);
		if (e->running || !e->stopping)
			wait_for_one(&s);
	}
	if (!e->why && e->controls_fired < e->controls)
		e->why = mem_printf("the positive control fired %u of %u times: %s",
			e->controls_fired, e->controls, e->control_reason);
	return engine_write(e, true, f);
}
