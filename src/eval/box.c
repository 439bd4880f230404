/*
 * eval/box.c - one box, from its start to its end
 */
#include "eval/box.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	TICK_MS = 250,
	GENTLE_MS = 4000, /* between one signal and the next, harder one */
	/*
	 * Claude Code says what it cost if SIGINT finds it waiting for the model, and nothing
	 * while it runs a tool (measured, 2.1.197). Between the two is less than this.
	 */
	FIRED_MS = 400,
	LINGER_MS = 10000, /* for a client that is done to end by itself */
	PIECE = 1 << 16,
};

volatile sig_atomic_t box_cancelled;

struct pump {
	const struct box_job *job;
	pid_t pid;
	int out, err, in;
	char *line;
	size_t len, size;
	bool skipping; /* the rest of a line that is too long */
	unsigned long long bytes, err_bytes;
	long long started, last, asked, over_at, stopped_at;
	int harshness;
	enum box_stop stop;
	bool exited;
	int status;
};

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- starting ---- */

static void child(const struct box_job *job, int in, int out, int err, pid_t parent)
{
	sigset_t none;

	/* A worker that is killed takes its box with it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(125);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(125);
	execve("/proc/self/exe", (char *const *)job->argv, (char *const *)job->env);
	_exit(125);
}

static int start_box(struct pump *p, struct fault *f)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_close int out_w = -1, err_w = -1, in_r = -1;
	int out[2], err[2], in[2] = { -1, -1 };
	pid_t self = getpid();

	if (null < 0 || pipe2(out, O_CLOEXEC) < 0)
		return fault_set(f, errno, "make a pipe");
	p->out = out[0], out_w = out[1];
	if (pipe2(err, O_CLOEXEC) < 0)
		return fault_set(f, errno, "make a pipe");
	p->err = err[0], err_w = err[1];
	if (p->job->input && pipe2(in, O_CLOEXEC) < 0)
		return fault_set(f, errno, "make a pipe");
	in_r = in[0], p->in = in[1];
	p->pid = fork();
	if (p->pid < 0)
		return fault_set(f, errno, "start a process");
	if (p->pid == 0)
		child(p->job, in_r >= 0 ? in_r : null, out_w, err_w, self);
	fcntl(p->out, F_SETFL, O_NONBLOCK);
	fcntl(p->err, F_SETFL, O_NONBLOCK);
	p->started = p->last = now_ms();
	return 0;
}

/* ---- reading ---- */

static void next_input(struct pump *p)
{
	const char *text = p->in >= 0 ? p->job->input(p->job->arg) : NULL;

	if (text && fd_write_all(p->in, text, strlen(text)) == 0)
		return;
	fd_close(&p->in);
	p->in = -1;
}

static void ask_to_stop(struct pump *p, enum box_stop why)
{
	if (p->stop != STOP_NOT)
		return;
	p->stop = why;
	p->stopped_at = now_ms();
}

static void end_line(struct pump *p)
{
	enum box_stop stop = STOP_NOT;

	if (!p->skipping && p->job->line)
		stop = p->job->line(p->job->arg, p->line, p->len);
	p->len = 0;
	p->skipping = false;
	if (stop != STOP_NOT)
		ask_to_stop(p, stop);
	if (p->job->over && p->job->over(p->job->arg)) {
		if (p->in >= 0)
			next_input(p);
		if (p->in < 0 && !p->over_at)
			p->over_at = now_ms();
	}
}

static void add_bytes(struct pump *p, const char *bytes, size_t n)
{
	if (p->skipping)
		return;
	if (p->len + n > BOX_LINE) {
		p->skipping = true;
		return;
	}
	if (p->len + n + 1 > p->size) {
		size_t size = 2 * (p->len + n) + 4096;
		char *line = realloc(p->line, size);

		if (!line) {
			p->skipping = true;
			return;
		}
		p->line = line;
		p->size = size;
	}
	memcpy(p->line + p->len, bytes, n);
	p->len += n;
}

static void split(struct pump *p, const char *bytes, size_t n)
{
	while (n) {
		const char *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;

		add_bytes(p, bytes, part);
		if (!end)
			return;
		end_line(p);
		bytes = end + 1;
		n -= part + 1;
	}
}

/* False: it is at its end. */
static bool read_out(struct pump *p)
{
	char piece[PIECE];
	ssize_t n = read(p->out, piece, sizeof(piece));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0) {
		if (p->len)
			end_line(p);
		return false;
	}
	p->last = now_ms();
	p->bytes += (unsigned long long)n;
	if (p->bytes > BOX_OUTPUT)
		ask_to_stop(p, STOP_FLOOD);
	else if (p->job->out >= 0 && fd_write_all(p->job->out, piece, (size_t)n) < 0)
		ask_to_stop(p, STOP_FLOOD);
	split(p, piece, (size_t)n);
	return true;
}

static bool read_err(struct pump *p)
{
	char piece[PIECE];
	ssize_t n = read(p->err, piece, sizeof(piece));
	size_t room;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	room = p->err_bytes < BOX_STDERR ? BOX_STDERR - (size_t)p->err_bytes : 0;
	if (p->job->err >= 0 && room)
		(void)fd_write_all(p->job->err, piece, (size_t)n < room ? (size_t)n : room);
	p->err_bytes += (unsigned long long)n;
	return n > 0;
}

/* ---- ending ---- */

static void check_limits(struct pump *p)
{
	long long now = now_ms();
	const struct box_job *job = p->job;

	if (box_cancelled)
		ask_to_stop(p, STOP_CANCELLED);
	if (!p->over_at && job->time && now - p->started > (long long)job->time * 1000)
		ask_to_stop(p, STOP_TIME);
	if (!p->over_at && job->idle && now - p->last > (long long)job->idle * 1000)
		ask_to_stop(p, STOP_IDLE);
}

/* SIGINT, then SIGTERM, then SIGKILL: each when the one before had its time. */
static void press(struct pump *p)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGKILL };
	long long now = now_ms();
	bool late = p->over_at && now - p->over_at > LINGER_MS;

	if (p->exited || (p->stop == STOP_NOT && !late))
		return;
	if (p->stop == STOP_FIRED && now - p->stopped_at < FIRED_MS)
		return;
	if (p->harshness && now - p->asked < GENTLE_MS)
		return;
	kill(p->pid, signals[p->harshness < 2 ? p->harshness : 2]);
	p->harshness++;
	p->asked = now;
}

static void look_for_end(struct pump *p)
{
	if (!p->exited && waitpid(p->pid, &p->status, WNOHANG) == p->pid)
		p->exited = true;
}

static void loop(struct pump *p)
{
	while (p->out >= 0 || p->err >= 0 || !p->exited) {
		struct pollfd fds[] = { { .fd = p->out, .events = POLLIN },
			{ .fd = p->err, .events = POLLIN } };

		/* Its last words are in the pipes when it has exited; nobody else has them. */
		(void)poll(fds, 2, p->out < 0 && p->err < 0 ? 5 : TICK_MS);
		if (fds[0].revents && !read_out(p)) {
			fd_close(&p->out);
			p->out = -1;
		}
		if (fds[1].revents && !read_err(p)) {
			fd_close(&p->err);
			p->err = -1;
		}
		check_limits(p);
		press(p);
		look_for_end(p);
	}
}

int box_run(const struct box_job *job, struct box_end *ret, struct fault *f)
{
	struct pump p = { .job = job, .out = -1, .err = -1, .in = -1 };
	int rc;

	signal(SIGPIPE, SIG_IGN);
	rc = start_box(&p, f);
	if (rc == 0) {
		if (p.in >= 0)
			next_input(&p);
		loop(&p);
	}
	fd_close(&p.out);
	fd_close(&p.err);
	fd_close(&p.in);
	free(p.line);
	if (rc < 0)
		return rc;
	*ret = (struct box_end){
		.code = WIFSIGNALED(p.status) ? 128 + WTERMSIG(p.status)
					      : WEXITSTATUS(p.status),
		.stop = p.stop,
		.seconds = (double)(now_ms() - p.started) / 1000,
		.bytes = p.bytes,
	};
	return 0;
}

/* ---- short commands ---- */

struct gather {
	struct str text;
	size_t max;
};

static enum box_stop gather_line(void *arg, const char *line, size_t n)
{
	struct gather *g = arg;

	if (g->text.len + n + 1 > g->max)
		return STOP_FLOOD;
	str_addn(&g->text, line, n);
	str_addc(&g->text, '\n');
	return STOP_NOT;
}

int box_output(const char *const *argv, const char *const *env, unsigned long long time,
	size_t max, char **ret, int *ret_code, struct fault *f)
{
	struct gather g = { .max = max };
	struct box_job job = { .argv = argv,
		.env = env,
		.out = -1,
		.err = -1,
		.time = time,
		.line = gather_line,
		.arg = &g };
	struct box_end end;
	int rc = box_run(&job, &end, f);

	if (rc < 0)
		return rc;
	*ret = g.text.p ? g.text.p : mem_strdup("");
	*ret_code = end.stop == STOP_NOT ? end.code : 125;
	return 0;
}

const char *const *box_environment(const char *const *pass, const char *const *extra)
{
	static const char *const always[] = { "PATH", "HOME", "USER", "LOGNAME",
		"XDG_RUNTIME_DIR", "TMPDIR", NULL };
	const char *const *const lists[] = { always, pass };
	VEC(const char *) env = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (const char *const *name = lists[i]; name && *name; name++)
			if (getenv(*name))
				vec_push(&env, mem_printf("%s=%s", *name, getenv(*name)));
	vec_push(&env, "LANG=C.UTF-8");
	for (; *extra; extra++)
		vec_push(&env, *extra);
	vec_push(&env, NULL);
	return env.v;
}
