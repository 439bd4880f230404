/*
 * supervise/supervise.c - one loop around one box
 *
 * Theory of operation. The box never holds a descriptor of the host's: on a terminal it has a
 * pty of its own, else three pipes. A struct streams knows where these lead. The loop's poll(2)
 * waits for them, for signals (signalfd), for init's report that the command stopped or ended,
 * for the broker, for callers of the control socket and for the time limit. Nothing here
 * blocks, so a reader that stalls cannot keep the limit from being enforced. Nothing allocates
 * once the box runs.
 *
 * Signals. On a terminal Ctrl-C and Ctrl-Z are bytes for the box's pty. Signals sent
 * to the supervisor itself go to the command: those that a terminal would send to a job go
 * to its whole process group, others to the command alone.
 */
#include "supervise/supervise.h"
#include "box/engine.h"
#include "plan/plan.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	GRACE_MS = 5000,   /* between SIGTERM and SIGKILL */
	NOT_STARTED = 125, /* exit code in the record of a box that never ran */
	QUIET_MS = 500,    /* after so long without an event, give memory back */
};

/* --- signals --------------------------------------------------------------------- */

static const struct {
	int sig;
	bool group; /* a terminal sends it to the whole job */
} forwarded[] = {
	{ SIGINT, true },
	{ SIGQUIT, true },
	{ SIGHUP, true },
	{ SIGTERM, false },
	{ SIGUSR1, false },
	{ SIGUSR2, false },
};

static bool is_ignored(int sig)
{
	struct sigaction a;

	return sigaction(sig, NULL, &a) == 0 && a.sa_handler == SIG_IGN;
}

static int open_signals(void)
{
	static const int others[] = { SIGWINCH, SIGCONT, SIGTSTP };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		sigaddset(&set, others[i]);
	/* Signals that nohup or a background shell made us ignore stay ignored. */
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		if (!is_ignored(forwarded[i].sig))
			sigaddset(&set, forwarded[i].sig);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Stop with the box, and continue it when we are continued. */
static void suspend(struct supervisor *s, bool group)
{
	s->streams->ops->suspend(s->streams, group);
	s->engine->signal(&s->box, SIGCONT, true);
}

static void forward(struct supervisor *s, int sig)
{
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		if (forwarded[i].sig == sig)
			s->engine->signal(&s->box, sig, forwarded[i].group);
	/* A session that has lost its terminal can only end this way. */
	if (sig == SIGHUP && !s->kill_at)
		s->kill_at = clock_ms() + GRACE_MS;
}

static void on_signal(struct supervisor *s, int sig)
{
	switch (sig) {
	case SIGWINCH:
	case SIGCONT:
		s->streams->ops->refresh(s->streams);
		break;
	case SIGTSTP:
		s->engine->signal(&s->box, SIGSTOP, true);
		suspend(s, false);
		break;
	default:
		forward(s, sig);
	}
}

/*
 * Once the command has ended, a signal means that we need not wait for readers of its output.
 */
static bool read_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (s->over && info.ssi_signo != SIGWINCH && info.ssi_signo != SIGCONT)
			return false;
		on_signal(s, (int)info.ssi_signo);
	}
	return true;
}

/* --- the box --------------------------------------------------------------------- */

static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void read_events(struct supervisor *s)
{
	struct box_event e;

	s->engine->event(&s->box, &e);
	switch (e.type) {
	case BOX_NONE:
		break;
	case BOX_STOPPED:
		if (s->box.terminal >= 0)
			suspend(s, true);
		break;
	case BOX_EXITED:
		s->outcome.code = exit_code(e.status);
		s->over = true;
		break;
	case BOX_EXEC_STARTED:
	case BOX_EXEC_FAILED:
	case BOX_EXEC_ENDED:
		execs_event(&s->execs, &e);
		break;
	case BOX_SOCKET:
		broker_spare(&s->broker, e.fd);
		break;
	case BOX_LOST:
		s->engine->kill(&s->box);
		s->outcome.code = 128 + SIGKILL;
		s->outcome.killed =
			!s->outcome.time_is_up && !s->outcome.idle && !s->outcome.disk_full;
		s->over = true;
		break;
	}
}

/* The time when the box will have been idle for too long; 0: there is no such limit. */
static long long idle_up(const struct supervisor *s)
{
	return s->active ? s->active + (long long)s->plan->limits.idle * 1000 : 0;
}

static void end_for_limit(struct supervisor *s, long long now)
{
	s->time_up = s->active = 0;
	s->engine->signal(&s->box, SIGTERM, true);
	s->engine->signal(&s->box, SIGCONT, true);
	s->kill_at = now + GRACE_MS;
}

static void check_time(struct supervisor *s)
{
	long long now;

	if (s->over || (!s->time_up && !s->active && !s->kill_at))
		return;
	now = clock_ms();
	if (s->time_up && now >= s->time_up) {
		s->outcome.time_is_up = true;
		end_for_limit(s, now);
	} else if (s->active && now >= idle_up(s)) {
		s->outcome.idle = true;
		end_for_limit(s, now);
	}
	if (s->kill_at && now >= s->kill_at) {
		s->engine->kill(&s->box);
		s->outcome.code = 128 + SIGKILL;
		s->over = true;
	}
}

/* A box that goes on writing after it was asked to end does not get the whole time for that. */
static void check_disk(struct supervisor *s, const struct pollfd *fd)
{
	if (s->over || !disk_watch_serve(&s->disk, fd) || !disk_watch_is_over(&s->disk))
		return;
	if (!s->outcome.disk_full) {
		s->outcome.disk_full = true;
		s->full_at = s->disk.used;
		end_for_limit(s, clock_ms());
	} else if (s->disk.used > s->full_at + s->disk.limit / 16) {
		s->kill_at = clock_ms();
	}
}

static int soonest(int a, long long b)
{
	long long left = b - clock_ms();

	left = left < 0 ? 0 : left > 3600000 ? 3600000 : left;
	return a < 0 || left < a ? (int)left : a;
}

/* The sooner of two timeouts of poll(2), where -1 is never. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int timeout_ms(struct supervisor *s)
{
	int ms = s->streams->ops->timeout(s->streams);

	ms = sooner(ms, record_timeout(&s->record));
	ms = sooner(ms, journal_timeout(&s->broker.journal));
	ms = sooner(ms, broker_timeout(&s->broker));
	if (!s->rested && !s->quiet)
		ms = sooner(ms, QUIET_MS);
	if (s->over)
		return ms; /* the command has ended: its deadlines must not wake us */
	if (s->time_up)
		ms = soonest(ms, s->time_up);
	if (s->active)
		ms = soonest(ms, idle_up(s));
	if (s->kill_at)
		ms = soonest(ms, s->kill_at);
	return sooner(ms, disk_watch_timeout(&s->disk));
}

/* Nothing has happened for a while, and nothing may happen for days. */
static int rest(struct supervisor *s, struct pollfd *fds, unsigned int n, int timeout)
{
	s->streams->ops->rest(s->streams);
	s->rested = true;
	return mem_rest(fds, n, timeout);
}

/* The place of each part's entries for poll(2). */
enum {
	AT_STREAMS = 0,
	AT_SIGNALS = AT_STREAMS + STREAMS_FDS,
	AT_BOX,
	AT_BROKER,
	AT_STUBS = AT_BROKER + BROKER_FDS,
	AT_STEER,
	AT_EXECS = AT_STEER + STEER_FDS,
	AT_CGROUP = AT_EXECS + BOX_EXECS,
	AT_DISK = AT_CGROUP + CGROUP_EVENTS,
	FDS = AT_DISK + DISK_FDS,
};

static void wait_for_all(struct supervisor *s, struct pollfd *fds)
{
	int timeout = timeout_ms(s), ready;

	s->streams->ops->poll(s->streams, &fds[AT_STREAMS], s->over);
	fds[AT_SIGNALS] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
	fds[AT_BOX] = (struct pollfd){ .fd = s->over ? -1 : s->box.control, .events = POLLIN };
	broker_poll(&s->broker, &fds[AT_BROKER]);
	stub_watch_poll(&s->stubs, &fds[AT_STUBS]);
	steer_poll(&s->steer, &fds[AT_STEER]);
	execs_poll(&s->execs, &fds[AT_EXECS]);
	cgroup_poll(&s->box.cgroup, &fds[AT_CGROUP]);
	disk_watch_poll(&s->disk, &fds[AT_DISK]);
	ready = s->quiet ? rest(s, fds, FDS, timeout) : poll(fds, FDS, timeout);
	if (ready < 0 && errno != EINTR)
		BUG("poll: %s", strerror(errno));
	s->rested &= ready <= 0;
	s->quiet = ready == 0 && !s->rested;
}

/* With a limit of idle time: has anything gone in or out of the box? */
static void note_activity(struct supervisor *s, const struct pollfd *fds)
{
	bool any = false;

	if (!s->active)
		return;
	for (int i = AT_STREAMS; i < AT_STREAMS + STREAMS_FDS; i++)
		any |= fds[i].revents != 0;
	for (int i = AT_BROKER; i < AT_BROKER + BROKER_FDS; i++)
		any |= fds[i].revents != 0;
	for (int i = AT_EXECS; i < AT_EXECS + BOX_EXECS; i++)
		any |= fds[i].revents != 0;
	if (any)
		s->active = clock_ms();
}

/* Read the counts while the group exists: systemd removes it right after the last process. */
static void note_limits(struct supervisor *s, const struct pollfd *fds)
{
	for (int i = AT_CGROUP; i < AT_CGROUP + CGROUP_EVENTS; i++)
		if (fds[i].revents)
			cgroup_count(&s->box.cgroup, &s->outcome.counts);
}

void supervise_loop(struct supervisor *s)
{
	struct pollfd fds[FDS];

	while (!s->over || !s->streams->ops->done(s->streams)) {
		wait_for_all(s, fds);
		note_activity(s, fds);
		note_limits(s, fds);
		s->streams->ops->serve(s->streams, &fds[AT_STREAMS], s->over);
		record_tick(&s->record);
		s->steer.raw = s->streams->raw;
		broker_serve(&s->broker, &fds[AT_BROKER]);
		stub_watch_serve(&s->stubs, &fds[AT_STUBS], s->streams->raw);
		execs_serve(&s->execs, &fds[AT_EXECS]);
		steer_serve(&s->steer, &fds[AT_STEER]);
		journal_tick(&s->broker.journal);
		if (fds[AT_SIGNALS].revents && !read_signals(s))
			break;
		if (fds[AT_BOX].revents)
			read_events(s);
		check_disk(s, &fds[AT_DISK]);
		check_time(s);
		/* It reports its last events while we clean up. */
		if (s->over)
			broker_ask_end(&s->broker);
	}
	execs_end(&s->execs, 128 + SIGKILL);
	s->streams->ops->close(s->streams, s->outcome.code);
	fd_close(&s->stubs.fd);
	steer_end(&s->steer);
}

/* --- from start to end ----------------------------------------------------------- */

static int start_record(struct supervisor *s, const char *path, const struct box_io *io,
	struct fault *f)
{
	const struct record_head head = { .term = getenv("TERM"),
		.shell = getenv("SHELL"),
		.cols = io->cols,
		.rows = io->rows,
		.lines = !io->terminal };

	return path ? record_open(&s->record, path, &head, f) : 0;
}

/* A second request may shorten the time that the first one has given, and not lengthen it. */
static void stop_box(void *ctx, unsigned int seconds, bool restart)
{
	struct supervisor *s = ctx;
	const long long at = clock_ms() + 1000LL * seconds;

	s->outcome.stopped = true;
	s->outcome.restart = restart;
	if (seconds) {
		s->engine->signal(&s->box, SIGTERM, true);
		s->engine->signal(&s->box, SIGCONT, true);
	}
	if (!s->kill_at || at < s->kill_at)
		s->kill_at = at;
}

static void need_sockets(void *ctx, unsigned int n)
{
	struct supervisor *s = ctx;

	while (!s->over && n-- > 0)
		s->engine->socket(&s->box);
}

static int open_journal(void *ctx, struct fault *f)
{
	struct supervisor *s = ctx;
	const struct plan *p = s->plan;

	return journal_open(&s->broker.journal,
		&(struct journal_box){ .name = p->name,
			.agent = p->agent ? p->agent->name : NULL,
			.workspace = p->workspace },
		f);
}

/* The box has its own copies. While ours are open, their readers never see the end. */
static void close_box_ends(struct box_io *io)
{
	fd_close(&io->in);
	fd_close(&io->out);
	fd_close(&io->err);
}

int supervise_begin(struct supervisor *s, const struct frame *frame, struct streams *streams,
	const char *record, struct fault *f)
{
	struct box_io io = { .in = -1, .out = -1, .err = -1 };
	int rc;

	s->engine = engine_find(frame->engine, f);
	if (!s->engine)
		return -1;
	s->frame = frame;
	s->streams = streams;
	s->broker.tell = steer_event;
	s->broker.tell_ctx = &s->steer;
	s->broker.need = need_sockets;
	s->broker.need_ctx = s;
	s->steer.broker = &s->broker;
	s->steer.streams = streams;
	s->steer.stop = stop_box;
	s->steer.stop_ctx = s;
	rc = streams->ops->open(streams, &io, f);
	if (rc == 0)
		rc = start_record(s, record, &io, f);
	if (rc == 0)
		rc = s->engine->begin(frame, &io, &s->box, f);
	close_box_ends(&io);
	if (rc < 0)
		record_discard(&s->record);
	return rc;
}

void supervise_abandon(struct supervisor *s)
{
	s->engine->kill(&s->box);
	s->engine->release(&s->box);
	record_discard(&s->record);
}

static int start_box(struct supervisor *s, const struct plan *p, struct fault *f)
{
	struct fault unused = { 0 };
	int rc = s->streams->ops->prepare(s->streams, p->name, f);

	if (rc == 0)
		rc = steer_ports(&s->steer, p, f);
	if (rc == 0)
		rc = disk_watch_begin(&s->disk, p, f);
	if (rc < 0) {
		supervise_abandon(s);
		return rc;
	}
	rc = s->engine->start(&s->box, p, p->policy ? open_journal : NULL, s, f);
	if (rc == 0)
		return 0;
	journal_close(&s->broker.journal, NOT_STARTED, &unused);
	record_discard(&s->record);
	return rc;
}

int supervise_start(struct supervisor *s, const struct plan *p, struct fault *f)
{
	int rc;

	if (!plan_same_frame(s->frame, &p->frame))
		BUG("the box was begun with another frame than its plan has");
	s->plan = p;
	rc = start_box(s, p, f);
	if (rc < 0)
		return rc;
	if (p->policy)
		broker_expect(&s->broker, p, s->box.net);
	s->signals = open_signals();
	if (s->signals < 0)
		BUG("signalfd: %s", strerror(errno)); /* the box ends with us */
	if (p->limits.time)
		s->time_up = clock_ms() + (long long)p->limits.time * 1000;
	if (p->limits.idle)
		s->active = clock_ms();
	s->streams->ops->start(s->streams, s->box.terminal);
	s->steer.init = s->box.pid;
	s->steer.cgroup = s->box.cgroup.path;
	s->steer.execs = &s->execs;
	execs_init(&s->execs, s->engine, &s->box, p);
	steer_begin(&s->steer);
	stub_watch_begin(&s->stubs, p);
	return 0;
}

/* Collect the last events and the summary of the network. */
static void end_network(struct supervisor *s)
{
	struct fault unused = { 0 };
	struct str summary = { 0 };

	broker_end(&s->broker);
	journal_summary(&s->broker.journal, &summary);
	s->outcome.net_summary = summary.p;
	s->outcome.net_lost = s->broker.lost;
	s->outcome.net_fault = s->broker.fault.text[0] ? &s->broker.fault : NULL;
	s->outcome.net_error = -journal_close(&s->broker.journal, s->outcome.code, &unused);
}

static bool is_full(int root)
{
	struct statvfs v;

	return root >= 0 && fstatvfs(root, &v) == 0 && v.f_blocks && (!v.f_bfree || !v.f_ffree);
}

void supervise_end(struct supervisor *s, struct outcome *ret)
{
	struct fault unused = { 0 };

	cgroup_count(&s->box.cgroup, &s->outcome.counts);
	s->outcome.scratch_full = is_full(s->box.root);
	disk_watch_end(&s->disk);
	s->outcome.disk_full |= disk_watch_is_over(&s->disk);
	end_network(s);
	s->outcome.record_error = -record_close(&s->record, &unused);
	s->engine->release(&s->box);
	s->outcome.replaced = stub_watch_lost(&s->stubs, s->box.replaced);
	*ret = s->outcome;
}
