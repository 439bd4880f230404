/*
 * bench/interleave.c - run the commands of a comparison side by side
 *
 * Theory of operation. On a shared machine the clock speed, the caches and the
 * neighbours change from minute to minute; a command measured now and its rival
 * measured later are measured on two machines. So one process runs all of them,
 * in a new random order every round: whatever drifts, drifts for all alike, and
 * the ratios hold even where the absolute times do not.
 *
 *	interleave rounds [-r ROUNDS] [-w WARMUP] [-g GAP_US] [-s SEED] FILE
 *		each round runs every command once, alone: time from spawn to reaped
 *	interleave flood [-r ROUNDS] [-c IN_FLIGHT] [-t SECONDS] [-s SEED] FILE
 *		each round keeps IN_FLIGHT of one command alive for SECONDS, then of
 *		the next: completions per second, teardown included
 *
 * FILE holds one record per command, a blank line after each:
 *
 *	= name
 *	@ the directory to run it in (this line may be left out)
 *	argv[0], an absolute path
 *	argv[1]
 *
 * The result is JSON on stdout. Children have /dev/null as their three streams.
 * A run that exits other than 0 is a failure: counted, and not among the times. A
 * run that takes longer than LIMIT_S is killed, and is a failure as well.
 *
 * GAP_US is a pause after each run. Boxes are taken down by the kernel after their
 * exit was reported; without the pause the next command, whose ever it is, would
 * pay for it. What teardown costs is seen in flood, which has no pause.
 *
 * We are a subreaper and collect orphans at once, as init would: our parent is one, to
 * be able to end what is left over, and would let zombies pile up while we run.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_COMMANDS 64
#define MAX_ARGS     4096
#define MAX_FLIGHT   256
#define LIMIT_S      60

extern char **environ;

struct samples {
	double *v;
	size_t n, room;
};

struct command {
	char *name;
	char **argv;
	posix_spawn_file_actions_t actions;
	struct samples wall_us, cpu_us, per_s;
	size_t fails;
	int first_failure; /* wait status, or 0 */
};

struct settings {
	int rounds, warmup, in_flight;
	long gap_us;
	double seconds;
	unsigned long long seed;
};

static struct command commands[MAX_COMMANDS];
static size_t command_n;

/* What the alarm has to kill; 0 is a free slot. Written around spawn and wait only. */
static volatile pid_t in_flight[MAX_FLIGHT];

static void die(const char *what)
{
	fprintf(stderr, "interleave: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void *grow(void *old, size_t size)
{
	void *p = realloc(old, size);

	if (!p)
		die("memory");
	return p;
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* xorshift64*: the order must be random, not secret, and repeatable from the seed. */
static size_t random_below(unsigned long long *state, size_t n)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (size_t)((*state * 2685821657736338717ULL >> 33) % n);
}

static void shuffle(size_t *order, unsigned long long *state)
{
	for (size_t i = 0; i < command_n; i++)
		order[i] = i;
	for (size_t i = command_n; i > 1; i--) {
		size_t j = random_below(state, i), t = order[i - 1];

		order[i - 1] = order[j];
		order[j] = t;
	}
}

/* ---- samples ---- */

static void samples_add(struct samples *s, double value)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->v = grow(s->v, s->room * sizeof(*s->v));
	}
	s->v[s->n++] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Linear between the two nearest ranks; s is sorted and not empty. */
static double quantile(const struct samples *s, double q)
{
	double at = q * (double)(s->n - 1);
	size_t low = (size_t)at, high = low + 1 < s->n ? low + 1 : low;

	return s->v[low] + (at - (double)low) * (s->v[high] - s->v[low]);
}

/* ---- the command file ---- */

static void new_command(struct command *c, const char *name)
{
	c->name = strdup(name);
	posix_spawn_file_actions_init(&c->actions);
	posix_spawn_file_actions_addopen(&c->actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&c->actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&c->actions, 2, "/dev/null", O_WRONLY, 0);
}

static void read_argument(struct command *c, size_t *argc, const char *line)
{
	if (*argc == MAX_ARGS) {
		errno = E2BIG;
		die(c->name);
	}
	c->argv = grow(c->argv, (*argc + 2) * sizeof(*c->argv));
	c->argv[(*argc)++] = strdup(line);
	c->argv[*argc] = NULL;
}

static void check_commands(void)
{
	errno = EINVAL;
	if (!command_n)
		die("no commands");
	for (size_t i = 0; i < command_n; i++)
		if (!commands[i].argv)
			die(commands[i].name);
}

static void read_commands(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0, argc = 0;
	struct command *c = NULL;

	if (!file)
		die(path);
	while (getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line) {
			c = NULL;
		} else if (c && !argc && strncmp(line, "@ ", 2) == 0) {
			posix_spawn_file_actions_addchdir_np(&c->actions, line + 2);
		} else if (c) {
			read_argument(c, &argc, line);
		} else if (strncmp(line, "= ", 2) == 0 && command_n < MAX_COMMANDS) {
			c = &commands[command_n++];
			new_command(c, line + 2);
			argc = 0;
		} else {
			errno = EINVAL;
			die(line);
		}
	}
	free(line);
	fclose(file);
	check_commands();
}

/* ---- running ---- */

static void on_alarm(int signal_number)
{
	(void)signal_number;
	for (size_t i = 0; i < MAX_FLIGHT; i++)
		if (in_flight[i] > 0)
			kill(in_flight[i], SIGKILL);
}

static void prepare(void)
{
	struct sigaction on = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	/* If whoever started us is killed, nobody is left to end us. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigaction(SIGALRM, &on, NULL);
}

static void note_failure(struct command *c, int status)
{
	if (!c->fails++)
		c->first_failure = status;
}

static double cpu_us(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e6 +
		(double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

/* glibc's posix_spawn is vfork and exec: our own size costs the child nothing. */
static bool start(const struct command *c, size_t slot)
{
	pid_t pid;

	if (posix_spawn(&pid, c->argv[0], &c->actions, NULL, c->argv, environ))
		return false;
	in_flight[slot] = pid;
	return true;
}

/* Wait for one of ours, and collect orphans meanwhile; its slot is free afterwards. */
static int wait_one(struct rusage *ret_usage)
{
	int status;

	for (;;) {
		pid_t pid = wait4(-1, &status, 0, ret_usage);

		if (pid < 0)
			die("wait");
		for (size_t i = 0; i < MAX_FLIGHT; i++) {
			if (in_flight[i] == pid) {
				in_flight[i] = 0;
				return status;
			}
		}
	}
}

static void run_once(struct command *c, bool counts)
{
	struct rusage usage;
	double began, ended;
	int status;

	alarm(LIMIT_S);
	began = now_us();
	if (!start(c, 0)) {
		note_failure(c, 127 << 8);
		return;
	}
	status = wait_one(&usage);
	ended = now_us();
	alarm(0);

	if (status) {
		note_failure(c, status);
	} else if (counts) {
		samples_add(&c->wall_us, ended - began);
		samples_add(&c->cpu_us, cpu_us(&usage));
	}
}

static void run_rounds(const struct settings *s)
{
	unsigned long long state = s->seed;
	size_t order[MAX_COMMANDS];

	for (int round = -s->warmup; round < s->rounds; round++) {
		shuffle(order, &state);
		for (size_t i = 0; i < command_n; i++) {
			run_once(&commands[order[i]], round >= 0);
			if (s->gap_us)
				usleep((useconds_t)s->gap_us);
		}
	}
}

/*
 * The clock stops when time is up, not when the stragglers are home: what completes
 * afterwards is reaped and not counted, so a slow command is not helped by its tail.
 */
static void flood(struct command *c, const struct settings *s)
{
	double began = now_us(), until = began + s->seconds * 1e6, last = began;
	size_t done = 0;
	int flying = 0;

	alarm((unsigned)s->seconds + LIMIT_S);
	do {
		for (size_t i = 0; i < (size_t)s->in_flight && now_us() < until; i++) {
			if (in_flight[i])
				continue;
			if (start(c, i))
				flying++;
			else
				note_failure(c, 127 << 8);
		}
		if (flying) {
			int status = wait_one(NULL);

			flying--;
			if (status) {
				note_failure(c, status);
			} else if (now_us() < until) {
				done++;
				last = now_us();
			}
		}
	} while (flying || now_us() < until);
	alarm(0);
	samples_add(&c->per_s, done ? (double)done / ((last - began) / 1e6) : 0);
}

static void run_floods(const struct settings *s)
{
	unsigned long long state = s->seed;
	size_t order[MAX_COMMANDS];

	for (int round = 0; round < s->rounds; round++) {
		shuffle(order, &state);
		for (size_t i = 0; i < command_n; i++)
			flood(&commands[order[i]], s);
	}
}

/* ---- the result ---- */

static void print_samples(const char *what, struct samples *s)
{
	if (!s->n)
		return;
	qsort(s->v, s->n, sizeof(*s->v), by_value);
	printf(", \"%s\": {\"n\": %zu, \"median\": %.2f, \"p10\": %.2f, \"p90\": %.2f, "
	       "\"min\": %.2f}",
		what, s->n, quantile(s, 0.5), quantile(s, 0.1), quantile(s, 0.9), s->v[0]);
}

static void print_quoted(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_result(const char *mode, const struct settings *s)
{
	printf("{\"mode\": \"%s\", \"rounds\": %d, \"warmup\": %d, \"gap_us\": %ld, "
	       "\"in_flight\": %d, \"seconds\": %g, \"seed\": %llu,\n \"commands\": [",
		mode, s->rounds, s->warmup, s->gap_us, s->in_flight, s->seconds, s->seed);
	for (size_t i = 0; i < command_n; i++) {
		struct command *c = &commands[i];

		printf("%s\n  {\"name\": ", i ? "," : "");
		print_quoted(c->name);
		printf(", \"fails\": %zu, \"first_failure\": %d", c->fails, c->first_failure);
		print_samples("wall_us", &c->wall_us);
		print_samples("cpu_us", &c->cpu_us);
		print_samples("per_s", &c->per_s);
		printf("}");
	}
	printf("\n ]}\n");
}

static void usage(void)
{
	fputs("usage: interleave rounds|flood [-r ROUNDS] [-w WARMUP] [-g GAP_US]\n"
	      "                  [-c IN_FLIGHT] [-t SECONDS] [-s SEED] FILE\n",
		stderr);
	exit(2);
}

static void read_options(int argc, char **argv, struct settings *s)
{
	int o;

	while ((o = getopt(argc, argv, "r:w:g:c:t:s:")) != -1) {
		switch (o) {
		case 'r':
			s->rounds = atoi(optarg);
			break;
		case 'w':
			s->warmup = atoi(optarg);
			break;
		case 'g':
			s->gap_us = atol(optarg);
			break;
		case 'c':
			s->in_flight = atoi(optarg);
			break;
		case 't':
			s->seconds = atof(optarg);
			break;
		case 's':
			s->seed = strtoull(optarg, NULL, 0);
			break;
		default:
			usage();
		}
	}
	if (s->rounds < 1 || s->in_flight < 1 || s->in_flight > MAX_FLIGHT || !s->seed)
		usage();
}

int main(int argc, char **argv)
{
	struct settings s = { .rounds = 50, .warmup = 3, .in_flight = 8, .seconds = 3 };
	bool rounds = argc > 1 && !strcmp(argv[1], "rounds");

	if (!rounds && !(argc > 1 && !strcmp(argv[1], "flood")))
		usage();
	s.seed = (unsigned long long)now_us() | 1;
	read_options(argc - 1, argv + 1, &s);
	if (optind + 1 != argc - 1)
		usage();
	prepare();
	read_commands(argv[optind + 1]);
	if (rounds)
		run_rounds(&s);
	else
		run_floods(&s);
	print_result(argv[1], &s);
	return 0;
}
