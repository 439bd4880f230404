/*
 * run/supervise.c - one loop around one box
 *
 * Theory of operation. The box never holds a descriptor of the host's: on a terminal it
 * has a pty of its own, else three pipes, and the loop here relays between those and our
 * standard streams. The same poll(2) waits for signals (signalfd), for init's word that the
 * command stopped or ended, and for the time limit. Nothing here blocks, so a reader that
 * stalls cannot keep the limit from being enforced. Nothing allocates once the box runs.
 *
 * Signals. On a terminal Ctrl-C and Ctrl-Z are bytes for the box's pty. Signals sent
 * to the supervisor itself go to the command: those that a terminal would send to a job go
 * to its whole process group, others to the command alone.
 */
#include "run/supervise.h"
#include "run/broker-link.h"
#include "run/record.h"
#include "run/relay.h"
#include "run/steer.h"
#include "run/tty.h"
#include "box/engine.h"
#include "plan/plan.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	GRACE_MS = 5000,     /* between the polite signal and the end */
	BACKGROUND_MS = 250, /* how often to look whether we came to the foreground */
	NOT_STARTED = 125,   /* in the record of a box that never ran */
	QUIET_MS = 500,      /* after that long without an event, let go of memory */
	IN = 0,
	OUT,
	ERR,
	STREAMS,
};

struct session {
	const struct plan *plan;
	const struct engine *engine;
	struct box box;
	struct tty tty;
	struct record record;
	struct broker_link broker;
	struct relay relay[STREAMS];
	int host[STREAMS]; /* our own descriptors for the user's streams */
	int ends[STREAMS]; /* our ends of the box's */
	int signals;
	long long time_up; /* ms; 0: no limit */
	long long kill_at; /* ms; 0: nobody asked the box to end */
	bool over;         /* the command ended; only output is left */
	bool quiet;        /* nothing happened for a while */
	bool rested;       /* and memory was given back, since the last event */
	struct outcome outcome;
	struct steer steer; /* last: most of it is never used */
};

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* --- streams --------------------------------------------------------------------- */

/* Closed, or /dev/null itself: then the box has its own and nothing needs relaying. */
static bool is_null(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

/* A pipe: our end is s->ends[i], the box's *ret_box_end. What is nothing needs none. */
static int open_stream(struct session *s, int i, int *ret_box_end, struct fault *f)
{
	int ends[2], ours = i == IN ? 1 : 0;

	if (is_null(i))
		return 0;
	s->host[i] = relay_reopen(i, i == IN ? O_RDONLY : O_WRONLY);
	if (s->host[i] < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, errno, "make a pipe for the box");
	fcntl(ends[ours], F_SETFL, O_NONBLOCK);
	s->ends[i] = ends[ours];
	*ret_box_end = ends[!ours];
	return 0;
}

static int open_streams(struct session *s, struct box_io *io, struct fault *f)
{
	int *const box_ends[STREAMS] = { &io->in, &io->out, &io->err };
	struct winsize size;

	if (io->terminal) {
		tty_size(&s->tty, &size);
		io->rows = size.ws_row;
		io->cols = size.ws_col;
		io->termios = tty_cooked(&s->tty);
		s->host[IN] = relay_reopen(0, O_RDONLY);
		s->host[OUT] = relay_reopen(1, O_WRONLY);
		io->err_apart = !isatty(STDERR_FILENO);
		return io->err_apart ? open_stream(s, ERR, &io->err, f) : 0;
	}
	for (int i = 0; i < STREAMS; i++) {
		int rc = open_stream(s, i, box_ends[i], f);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The box has its copies; ours would keep its readers from ever seeing the end. */
static void close_box_ends(struct box_io *io)
{
	fd_close(&io->in);
	fd_close(&io->out);
	fd_close(&io->err);
}

static void start_relays(struct session *s)
{
	if (s->box.terminal >= 0) {
		fcntl(s->box.terminal, F_SETFL, O_NONBLOCK);
		relay_init(&s->relay[IN], s->host[IN], s->box.terminal);
		relay_init(&s->relay[OUT], s->box.terminal, s->host[OUT]);
	} else {
		relay_init(&s->relay[IN], s->host[IN], s->ends[IN]);
		relay_init(&s->relay[OUT], s->ends[OUT], s->host[OUT]);
	}
	relay_init(&s->relay[ERR], s->ends[ERR], s->host[ERR]);
	if (s->record.buf) {
		relay_tap(&s->relay[OUT], record_tap, &s->record.out);
		relay_tap(&s->relay[ERR], record_tap, &s->record.err);
	}
}

/*
 * A relay that is done closes the end that tells the box: the end of its input, or
 * that nobody reads its output any more (SIGPIPE). The pty closes with the box.
 */
static void settle_relay(struct session *s, int i)
{
	if (s->relay[i].state != RELAY_OPEN)
		fd_close(&s->ends[i]);
}

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
	/* What nohup or a background shell made us ignore stays ignored. */
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		if (!is_ignored(forwarded[i].sig))
			sigaddset(&set, forwarded[i].sig);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void pass_size(struct session *s)
{
	struct winsize size;

	if (s->box.terminal < 0)
		return;
	tty_size(&s->tty, &size);
	ioctl(s->box.terminal, TIOCSWINSZ, &size);
	record_resize(&s->record, size.ws_col, size.ws_row);
}

/* Stop with the box, and go on with it when somebody continues us. */
static void suspend(struct session *s, bool group)
{
	tty_suspend(&s->tty, group);
	pass_size(s);
	s->engine->signal(&s->box, SIGCONT, true);
}

static void forward(struct session *s, int sig)
{
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		if (forwarded[i].sig == sig)
			s->engine->signal(&s->box, sig, forwarded[i].group);
	/* Without its terminal a session has no way to end but this. */
	if (sig == SIGHUP && !s->kill_at)
		s->kill_at = now_ms() + GRACE_MS;
}

static void on_signal(struct session *s, int sig)
{
	switch (sig) {
	case SIGWINCH:
		pass_size(s);
		break;
	case SIGCONT:
		if (s->box.terminal >= 0)
			tty_raw(&s->tty);
		pass_size(s);
		break;
	case SIGTSTP:
		s->engine->signal(&s->box, SIGSTOP, true);
		suspend(s, false);
		break;
	default:
		forward(s, sig);
	}
}

/* Once the command has ended, a signal means: do not wait for the readers of its output. */
static bool read_signals(struct session *s)
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

static void read_events(struct session *s)
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
	case BOX_SOCKET:
		broker_spare(&s->broker, e.fd);
		break;
	case BOX_LOST:
		s->engine->kill(&s->box);
		s->outcome.code = 128 + SIGKILL;
		s->outcome.killed = !s->outcome.time_is_up;
		s->over = true;
		break;
	}
}

static void check_time(struct session *s)
{
	long long now;

	if (s->over || (!s->time_up && !s->kill_at))
		return;
	now = now_ms();
	if (s->time_up && now >= s->time_up) {
		s->time_up = 0;
		s->outcome.time_is_up = true;
		s->engine->signal(&s->box, SIGTERM, true);
		s->engine->signal(&s->box, SIGCONT, true);
		s->kill_at = now + GRACE_MS;
	}
	if (s->kill_at && now >= s->kill_at) {
		s->engine->kill(&s->box);
		s->outcome.code = 128 + SIGKILL;
		s->over = true;
	}
}

static int soonest(int a, long long b)
{
	long long left = b - now_ms();

	left = left < 0 ? 0 : left > 3600000 ? 3600000 : left;
	return a < 0 || left < a ? (int)left : a;
}

/* Reading the terminal from the background would stop us: wait until we are in front. */
static int timeout_ms(struct session *s)
{
	int ms = record_timeout(&s->record), events = journal_timeout(&s->broker.journal),
	    rest = broker_timeout(&s->broker);

	if (events >= 0 && (ms < 0 || events < ms))
		ms = events;
	if (rest >= 0 && (ms < 0 || rest < ms))
		ms = rest;
	s->relay[IN].hold = !tty_foreground(&s->tty);
	if (s->relay[IN].hold && s->relay[IN].state == RELAY_OPEN)
		ms = ms < 0 || ms > BACKGROUND_MS ? BACKGROUND_MS : ms;
	else if (s->box.terminal >= 0 && !s->tty.raw)
		tty_raw(&s->tty);
	if (!s->rested && !s->quiet && (ms < 0 || ms > QUIET_MS))
		ms = QUIET_MS;
	if (s->over)
		return ms; /* there is nothing left to end: past deadlines must not wake us */
	if (s->time_up)
		ms = soonest(ms, s->time_up);
	if (s->kill_at)
		ms = soonest(ms, s->kill_at);
	return ms;
}

static bool output_done(const struct session *s)
{
	return s->over && s->relay[OUT].state != RELAY_OPEN &&
		s->relay[ERR].state != RELAY_OPEN;
}

/* Nothing happened for a while, and it may be days. */
static int rest(struct session *s, struct pollfd *fds, unsigned int n, int timeout)
{
	for (int i = 0; i < STREAMS; i++)
		relay_idle(&s->relay[i]);
	s->rested = true;
	return mem_rest(fds, n, timeout);
}

static void loop(struct session *s)
{
	struct pollfd fds[2 * STREAMS + 2 + BROKER_FDS + STEER_FDS];

	while (!output_done(s)) {
		int timeout = timeout_ms(s), ready;

		for (int i = 0; i < STREAMS; i++)
			relay_poll(&s->relay[i], &fds[2 * i]);
		/* After the end input is of no use to anybody. */
		if (s->over)
			fds[0].fd = fds[1].fd = -1;
		fds[6] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
		fds[7] = (struct pollfd){ .fd = s->over ? -1 : s->box.control,
			.events = POLLIN };
		broker_poll(&s->broker, &fds[8]);
		steer_poll(&s->steer, &fds[8 + BROKER_FDS]);
		ready = s->quiet ? rest(s, fds, ARRAY_SIZE(fds), timeout)
				 : poll(fds, ARRAY_SIZE(fds), timeout);
		if (ready < 0 && errno != EINTR)
			BUG("poll: %s", strerror(errno));
		s->rested &= ready <= 0;
		s->quiet = ready == 0 && !s->rested;
		for (int i = s->over ? OUT : IN; i < STREAMS; i++) {
			relay_pump(&s->relay[i], &fds[2 * i]);
			settle_relay(s, i);
		}
		record_tick(&s->record);
		s->steer.raw = s->tty.raw;
		broker_serve(&s->broker, &fds[8]);
		steer_serve(&s->steer, &fds[8 + BROKER_FDS]);
		journal_tick(&s->broker.journal);
		if (fds[6].revents && !read_signals(s))
			return;
		if (fds[7].revents)
			read_events(s);
		check_time(s);
		/* It says its last words while we tidy up. */
		if (s->over)
			broker_ask_end(&s->broker);
	}
}

/* --- from start to end ----------------------------------------------------------- */

static int start_record(struct session *s, const char *path, bool terminal, struct fault *f)
{
	struct winsize size;
	struct record_head head = {
		.term = getenv("TERM"), .shell = getenv("SHELL"), .lines = !terminal
	};

	if (!path)
		return 0;
	tty_size(&s->tty, &size);
	head.cols = size.ws_col;
	head.rows = size.ws_row;
	return record_open(&s->record, path, &head, f);
}

static void need_sockets(void *ctx, unsigned int n)
{
	struct session *s = ctx;

	while (!s->over && n-- > 0)
		s->engine->socket(&s->box);
}

static int open_journal(void *ctx, struct fault *f)
{
	struct session *s = ctx;

	return journal_open(&s->broker.journal, s->plan->name, f);
}

static int make_box(struct session *s, plan_fn *plan, void *ctx, struct fault *f)
{
	const struct policy *policy = NULL;
	int rc = plan(ctx, &s->plan, &policy, f);

	if (rc == 0)
		rc = steer_ports(&s->steer, s->plan, f);
	if (rc < 0) {
		s->engine->kill(&s->box);
		s->engine->release(&s->box);
		return rc;
	}
	rc = s->engine->start(&s->box, s->plan, policy ? open_journal : NULL, s, f);
	if (rc == 0 && policy)
		broker_expect(&s->broker, policy, s->plan, s->box.net);
	return rc;
}

static int start(struct session *s, const struct frame *frame, plan_fn *plan, void *ctx,
	struct fault *f)
{
	struct box_io io = { .in = -1, .out = -1, .err = -1, .terminal = s->tty.is_tty };
	struct fault unused = { 0 };
	int rc = open_streams(s, &io, f);

	if (rc == 0)
		rc = s->engine->begin(frame, &io, &s->box, f);
	close_box_ends(&io);
	if (rc < 0)
		return rc;
	rc = make_box(s, plan, ctx, f);
	if (rc < 0)
		journal_close(&s->broker.journal, NOT_STARTED, &unused);
	return rc;
}

/* After the box: what is left to say about its network. */
static void end_network(struct session *s)
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

/* A process has one box; what is never used of it costs nothing. */
static struct session *one;

/* In memory that init lets go of: a static one would be copied for it, page by page. */
static struct session *prepare(void)
{
	struct session *s = mem_alloc(sizeof(*s));

	one = s;
	s->engine = &engine_native;
	for (int i = 0; i < STREAMS; i++)
		s->host[i] = s->ends[i] = -1;
	s->broker.tell = steer_event;
	s->broker.tell_ctx = &s->steer;
	s->broker.need = need_sockets;
	s->broker.need_ctx = s;
	s->steer.broker = &s->broker;
	tty_open(&s->tty, 0, 1);
	return s;
}

int supervise(const struct frame *frame, plan_fn *plan, void *ctx, const char *record,
	pid_t *ret_init, struct fault *f)
{
	struct session *s = prepare();
	int rc = start_record(s, record, s->tty.is_tty, f);

	if (rc < 0)
		return rc;
	rc = start(s, frame, plan, ctx, f);
	if (rc < 0) {
		record_discard(&s->record);
		return rc;
	}
	s->signals = open_signals();
	if (s->signals < 0)
		BUG("signalfd: %s", strerror(errno)); /* the box ends with us */
	if (s->plan->limits.time)
		s->time_up = now_ms() + (long long)s->plan->limits.time * 1000;
	start_relays(s);
	steer_begin(&s->steer);
	loop(s);
	tty_restore(&s->tty);
	steer_end(&s->steer);
	*ret_init = s->box.pid;
	return 0;
}

void supervise_end(struct outcome *ret)
{
	struct fault unused = { 0 };

	end_network(one);
	one->outcome.record_error = -record_close(&one->record, &unused);
	one->engine->release(&one->box);
	one->outcome.replaced = one->box.replaced;
	*ret = one->outcome;
}
